//! The provisional rows of lists.
//!
//! Each list is a node of its own, far from its readers, so the walk over the operands stores its rows. A list is stored once for
//! each slab that its rows lie in, whatever the number of its readers. A list that grew from another by one item lies over the
//! rows of that one, so that all lists of a sentence together take as many words as the last.
//!
//! Lists of a growing plan hold values instead of rows, because a value keeps its number from one growth to the next. So they stay
//! stored, and a list that grew adds one item.

use crate::ids::{ListId, ProvisionalRow, WaveId};
use crate::index_vec::IndexVec;
use autobatch_ir::graph::{GraphData, Operand};
use autobatch_ir::id::ValueId;

/// No list.
const NONE: ListId = ListId(u32::MAX);

/// An item that is written before it is read.
const NO_ITEM: u32 = u32::MAX;

/// The rows of all lists that are read; in a growing plan their values.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    /// The number of the list that each lane reads, column after column.
    of: Vec<ListId>,
    stored: IndexVec<ListId, Stored>,
    items: Vec<u32>,
    /// The growing plan that the lists belong to, if any.
    growing: Option<u64>,
    /// Per value of the graph the number of the list that was stored last for it, or [`NONE`].
    last: IndexVec<ValueId, ListId>,
    /// Working memory: the rows of items behind the list that a list grew from, the last item first.
    grown: Vec<u32>,
}

/// A stored list.
#[derive(Clone, Copy, Debug)]
struct Stored {
    /// The first provisional row of its slab.
    slab: ProvisionalRow,
    start: u32,
    end: u32,
    /// The end of the space in which a list that grows from it continues.
    limit: u32,
    /// The list that it grew from, or [`NONE`].
    from: ListId,
    /// The last wave that reads it.
    wave: WaveId,
}

impl Lists {
    /// Starts again with lists in `count` places of columns. Each place is [filled](Self::fill) before it is read. The lists of
    /// the same growing plan stay.
    pub(super) fn restart(&mut self, count: usize, values: usize, growing: Option<u64>) {
        self.of.resize(count, NONE);
        if growing.is_none() || growing != self.growing {
            self.stored.clear();
            self.items.clear();
            self.last.clear();
        }
        if count > 0 {
            self.last.resize(values.max(self.last.len()), NONE);
        }
        self.growing = growing;
    }

    /// Fills a place with a list that is read in a wave. `row` gives the row of an item in the slab.
    #[inline]
    pub(super) fn fill(
        &mut self,
        place: usize,
        list: ValueId,
        slab: ProvisionalRow,
        wave: WaveId,
        graph: &GraphData,
        row: impl Fn(ValueId) -> u32,
    ) {
        let number = match self.known(list, slab) {
            Some(number) => number,
            None => self.store(list, slab, graph, row),
        };
        let stored = &mut self.stored[number];
        stored.wave = stored.wave.max(wave);
        self.of[place] = number;
    }

    /// The number of a list in a slab, if it is stored.
    #[inline]
    fn known(&self, list: ValueId, slab: ProvisionalRow) -> Option<ListId> {
        let last = self.last[list];
        self.stored.get(last).is_some_and(|stored| stored.slab == slab).then_some(last)
    }

    /// Stores a list over the rows of the nearest list that it grew from and that is stored.
    fn store(
        &mut self,
        list: ValueId,
        slab: ProvisionalRow,
        graph: &GraphData,
        row: impl Fn(ValueId) -> u32,
    ) -> ListId {
        let row = |item: &Operand| item.as_value().map(&row);
        let mut grown = std::mem::take(&mut self.grown);
        let mut at = list;
        let mut stored = loop {
            let node = graph.arena.producer(at);
            let Some((from, item)) = graph.arena.appended(node, &graph.sigs) else {
                let start = self.items.len() as u32;
                self.items.extend(graph.arena.operands(node).iter().filter_map(row));
                let end = self.items.len() as u32;
                break Stored { slab, start, end, limit: end, from: NONE, wave: WaveId(0) };
            };
            grown.extend(row(&item));
            at = from;
            if let Some(from) = self.known(at, slab) {
                break self.over(from, grown.len() as u32);
            }
        };
        while let Some(row) = grown.pop() {
            match self.items.get_mut(stored.end as usize) {
                Some(item) => *item = row,
                None => self.items.push(row),
            }
            stored.end += 1;
        }
        stored.limit = stored.limit.max(stored.end);
        self.grown = grown;
        let number = self.stored.push(stored);
        self.last[list] = number;
        number
    }

    /// A list that continues a stored one by `more` items. Without space behind that one it moves to twice the space, so the
    /// items of a list that grows are copied twice on average.
    fn over(&mut self, from: ListId, more: u32) -> Stored {
        let mut stored = Stored { from, wave: WaveId(0), ..self.stored[from] };
        if stored.end + more > stored.limit {
            let (start, len) = (self.items.len() as u32, stored.end - stored.start);
            self.items.extend_from_within(stored.start as usize..stored.end as usize);
            let limit = start + 2 * (len + more);
            self.items.resize(limit as usize, NO_ITEM);
            stored = Stored { start, end: start + len, limit, ..stored };
        } else {
            // The space belongs to the first list that grows into it.
            self.stored[from].limit = stored.end;
        }
        stored
    }

    /// The number of the list at a place. Places with one number hold one list.
    #[inline]
    pub(crate) fn number(&self, place: usize) -> ListId {
        self.of[place]
    }

    /// The rows of the list with a number; in a growing plan its values.
    #[inline]
    pub(crate) fn items(&self, number: ListId) -> &[u32] {
        let Stored { start, end, .. } = self.stored[number];
        &self.items[start as usize..end as usize]
    }

    /// Whether a list is another with one item more.
    #[inline]
    pub(crate) fn continues(&self, number: ListId, from: ListId) -> bool {
        self.stored[number].from == from && self.items(number).len() == self.items(from).len() + 1
    }

    /// Raises, for each row that a list holds, the last wave that reads it.
    pub(super) fn raise_waves(&mut self, waves: &mut IndexVec<ProvisionalRow, WaveId>) {
        // A reader of a list reads the items of the list that it grew from, which is stored before it.
        for number in self.stored.ids().rev() {
            let Stored { start, end, from, wave, .. } = self.stored[number];
            let mut own = start as usize..end as usize;
            if from != NONE {
                let before = &mut self.stored[from];
                before.wave = wave.max(before.wave);
                own.start += (before.end - before.start) as usize;
            }
            for &row in &self.items[own] {
                let last = &mut waves[ProvisionalRow(row)];
                *last = wave.max(*last);
            }
        }
    }
}
