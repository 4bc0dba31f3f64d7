//! The provisional rows of lists.
//!
//! Each list is a node of its own, far from its readers, so the walk over the operands stores its rows. A list is stored once for
//! each slab that its rows lie in, whatever the number of its readers. A list that grew from another by one item lies over the
//! rows of that one, so that all lists of a sentence together take as many words as the last.

use super::NONE;
use autobatch_ir::graph::{GraphData, Operand};
use autobatch_ir::id::ValueId;

/// The rows of all lists that are read.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    /// The number of the list that each lane reads, column after column.
    of: Vec<u32>,
    stored: Vec<Stored>,
    items: Vec<u32>,
    /// Per value of the graph the number of the list that was stored last for it, or [`NONE`].
    last: Vec<u32>,
    /// Working memory: lists that wait for the list that they grew from, and their items.
    grown: Vec<(ValueId, Operand)>,
}

/// A stored list.
#[derive(Clone, Copy, Debug)]
struct Stored {
    /// The first provisional row of its slab.
    slab: u32,
    start: u32,
    end: u32,
    /// The end of the space in which a list that grows from it continues.
    limit: u32,
    /// The list that it has one item more than, or [`NONE`].
    from: u32,
    /// The last wave that reads it.
    wave: u32,
}

impl Lists {
    /// Starts again with lists in `count` places of columns. Each place is [filled](Self::fill) before it is read.
    pub(super) fn restart(&mut self, count: usize, values: usize) {
        self.of.resize(count, NONE);
        self.stored.clear();
        self.items.clear();
        self.last.clear();
        self.last.resize(if count > 0 { values } else { 0 }, NONE);
    }

    /// Fills a place with a list that is read in a wave. `row` gives the row of an item in the slab.
    #[inline]
    pub(super) fn fill(
        &mut self,
        place: usize,
        list: ValueId,
        (slab, wave): (u32, u32),
        graph: &GraphData,
        row: impl Fn(ValueId) -> u32,
    ) {
        let number = match self.known(list, slab) {
            Some(number) => number,
            None => self.store(list, slab, graph, row),
        };
        let stored = &mut self.stored[number as usize];
        stored.wave = stored.wave.max(wave);
        self.of[place] = number;
    }

    /// The number of a list in a slab, if it is stored.
    #[inline]
    fn known(&self, list: ValueId, slab: u32) -> Option<u32> {
        let last = self.last[list.index()];
        self.stored.get(last as usize).is_some_and(|stored| stored.slab == slab).then_some(last)
    }

    /// Stores a list, and those that it grew from which are not stored yet.
    fn store(&mut self, list: ValueId, slab: u32, graph: &GraphData, row: impl Fn(ValueId) -> u32) -> u32 {
        let row = |item: &Operand| item.as_value().map(&row);
        let mut grown = std::mem::take(&mut self.grown);
        let mut at = list;
        let mut number = loop {
            let node = graph.arena.producer(at);
            let Some((from, item)) = graph.arena.appended(node, &graph.sigs) else {
                let start = self.items.len() as u32;
                self.items.extend(graph.arena.operands(node).iter().filter_map(row));
                let end = self.items.len() as u32;
                break self.push(at, Stored { slab, start, end, limit: end, from: NONE, wave: 0 });
            };
            grown.push((at, item));
            at = from;
            if let Some(known) = self.known(at, slab) {
                break known;
            }
        };
        while let Some((list, item)) = grown.pop() {
            if let Some(row) = row(&item) {
                number = self.grow(number, list, row);
            }
        }
        self.grown = grown;
        number
    }

    fn push(&mut self, list: ValueId, stored: Stored) -> u32 {
        let number = self.stored.len() as u32;
        self.stored.push(stored);
        self.last[list.index()] = number;
        number
    }

    /// Stores a list that has one item more than a stored one. Without space behind that one it moves to twice the space, so the
    /// items of a list that grows are copied twice on average.
    fn grow(&mut self, from: u32, list: ValueId, row: u32) -> u32 {
        let mut stored = self.stored[from as usize];
        if stored.end == stored.limit {
            let (start, len) = (self.items.len() as u32, stored.end - stored.start);
            self.items.extend_from_within(stored.start as usize..stored.end as usize);
            let limit = start + 2 * (len + 1);
            self.items.resize(limit as usize, NONE);
            stored = Stored { start, end: start + len, limit, ..stored };
        } else {
            // The space belongs to the first list that grows into it.
            self.stored[from as usize].limit = stored.end;
        }
        self.items[stored.end as usize] = row;
        self.push(list, Stored { end: stored.end + 1, from, wave: 0, ..stored })
    }

    /// The number of the list at a place. Places with one number hold one list.
    #[inline]
    pub(crate) fn number(&self, place: usize) -> u32 {
        self.of[place]
    }

    /// The rows of the list with a number.
    #[inline]
    pub(crate) fn items(&self, number: u32) -> &[u32] {
        let Stored { start, end, .. } = self.stored[number as usize];
        &self.items[start as usize..end as usize]
    }

    /// Whether a list is another with one item more.
    #[inline]
    pub(crate) fn continues(&self, number: u32, from: u32) -> bool {
        self.stored[number as usize].from == from
    }

    /// Raises, for each row that a list holds, the last wave that reads it.
    pub(super) fn raise_waves(&mut self, waves: &mut [u32]) {
        // A reader of a list reads the items of the list that it grew from, which is stored before it.
        for number in (0..self.stored.len()).rev() {
            let Stored { start, end, from, wave, .. } = self.stored[number];
            let mut own = start as usize..end as usize;
            if from != NONE {
                let before = &mut self.stored[from as usize].wave;
                *before = wave.max(*before);
                own.start = own.end - 1;
            }
            for &row in &self.items[own] {
                let last = &mut waves[row as usize];
                *last = wave.max(*last);
            }
        }
    }
}
