//! Which row each value has while rows are numbered in batch order.
//!
//! *Needs* batches whose results have rows. *Ensures* that an operand is told the row of
//! its value in the slab that it reads: a constant has one in each of its homes, and every other
//! value has one. *Cost.* A look and a comparison an operand.

use autobatch_ir::graph::{GraphData, Operand, OperandKind};
use autobatch_ir::id::{NodeId, ValueId};
use std::ops::Range;

/// The rows of values in the problem.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    /// The row of each value; of a constant that in its first home.
    pub(crate) row_of: &'a [u32],
    pub(crate) copies: &'a [Copied],
}

/// A home of constants besides their first. A batch brings the same constants in, in the same order.
#[derive(Clone, Debug)]
pub(crate) struct Copied {
    /// The rows in the first home.
    pub(crate) first: Range<u32>,
    /// The row here of the first of them.
    pub(crate) start: u32,
}

impl Rows<'_> {
    /// The row of a value in the slab that has these rows.
    #[inline]
    pub(crate) fn of(&self, value: ValueId, slab: &Range<u32>) -> u32 {
        let row = self.row_of[value.index()];
        // One comparison says that the row is neither below the slab nor above it.
        if row.wrapping_sub(slab.start) < slab.end - slab.start { row } else { self.copy(row, slab) }
    }

    #[cold]
    fn copy(&self, row: u32, slab: &Range<u32>) -> u32 {
        let own = |copied: &&Copied| copied.first.contains(&row) && slab.contains(&copied.start);
        let home = self.copies.iter().find(own);
        let Copied { first, start } = home.expect("a constant has a home in every field that it is read in");
        start + (row - first.start)
    }
}

/// Rows of the problem that are read as lists. They are found while the graph is walked in its order and kept, because each list
/// is a node of its own, far from whoever reads it.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    /// Where in `items` each list begins and ends.
    spans: Vec<(u32, u32)>,
    items: Vec<u32>,
}

impl Lists {
    /// Forgets everything but memory. As many lists as said are [taken](Self::take) before one is asked for.
    pub(crate) fn restart(&mut self, count: usize) {
        self.spans.resize(count, (0, 0));
        self.items.clear();
    }

    /// Keeps a list, and gives it back.
    fn take(&mut self, number: usize, items: impl Iterator<Item = u32>) -> &[u32] {
        let start = self.items.len();
        self.items.extend(items);
        self.spans[number] = (start as u32, self.items.len() as u32);
        &self.items[start..]
    }

    /// The rows of a list.
    pub(crate) fn items(&self, number: usize) -> &[u32] {
        let (start, end) = self.spans[number];
        &self.items[start as usize..end as usize]
    }
}

/// So many lanes are looked at together, so that many cache misses are under way at once.
const STRETCH: usize = 64;
/// So many jobs at least are looked at in all batches before the next are in any: what is known of them stays in the second-level
/// cache.
const CHUNK: usize = 1 << 13;

/// Where the jobs of a batch go.
#[derive(Debug)]
pub(crate) struct Target {
    /// Its jobs that have no lane yet, as a range of the scheduler's items.
    pub(crate) jobs: Range<u32>,
    /// The next lane among those of all batches.
    pub(crate) next: u32,
    /// How many lanes of the batch come before it, and how many there are.
    pub(crate) done: u32,
    pub(crate) lanes: u32,
    /// Where its columns begin.
    pub(crate) columns: u32,
    pub(crate) wave: u32,
    /// Its operand places that take values and no lists, and those that take lists.
    pub(crate) places: Range<u32>,
    pub(crate) lists: Range<u32>,
    /// Where its columns of lists begin.
    pub(crate) list_columns: u32,
    /// Its operand places that are bound, and where their columns begin.
    pub(crate) bound: Range<u32>,
    pub(crate) bound_columns: u32,
    /// Its results.
    pub(crate) starts: Range<u32>,
}

/// The batches of a graph, of which each brings its operands together.
pub(crate) struct Gathered<'a> {
    pub(crate) graph: &'a GraphData,
    /// The nodes of jobs.
    pub(crate) jobs: &'a [NodeId],
    /// Jobs, batch after batch, ascending.
    pub(crate) items: &'a [u32],
    /// Operand places, batch after batch, and the rows of the slabs that they read.
    pub(crate) places: &'a [(u32, Range<u32>)],
    /// The same of operand places that take lists.
    pub(crate) lists: &'a [(u32, Range<u32>)],
    /// Operand places that are bound, batch after batch.
    pub(crate) bound: &'a [u32],
    /// Per result, batch after batch, the row of the first lane's.
    pub(crate) starts: &'a [u32],
    pub(crate) copies: &'a [Copied],
}

/// What gathering writes.
pub(crate) struct Columns<'a> {
    /// The row of each value.
    pub(crate) row_of: &'a mut [u32],
    /// The nodes of all lanes.
    pub(crate) nodes: &'a mut [NodeId],
    /// The rows that operands read, column after column.
    pub(crate) columns: &'a mut [u32],
    /// The numbers that operands are bound to, column after column.
    pub(crate) bound: &'a mut [u32],
    /// The lists that operands are, column after column.
    pub(crate) lists: &'a mut Lists,
    /// Per row the last wave that reads it as an element of a list.
    pub(crate) last_waves: &'a mut [u32],
}

impl Gathered<'_> {
    /// Writes who runs in which lane, the rows that lanes read, and the rows of what they make.
    ///
    /// Batch after batch, but a chunk of the graph at a time: on large graphs nearly every look at a node or a value would
    /// be a cache miss otherwise. What a job reads is in its chunk, in an earlier batch, or in an earlier chunk.
    pub(crate) fn gather(&self, targets: &mut [Target], to: &mut Columns<'_>) {
        let count = self.jobs.len();
        // Every chunk visits every batch, so it must hold jobs enough for all: chains have as many batches as jobs.
        let chunk = CHUNK.max(STRETCH * targets.len());
        for first in (0..count).step_by(chunk) {
            let end = (first + chunk).min(count);
            for target in &mut *targets {
                let left = &self.items[target.jobs.start as usize..target.jobs.end as usize];
                let jobs = if end == count { left } else { &left[..count_below(left, end as u32)] };
                for jobs in jobs.chunks(STRETCH) {
                    self.take(jobs, target, to);
                }
            }
        }
    }

    /// Finds the nodes of jobs, and where their operands and results begin. Apart like [`read`](Self::read).
    #[inline(never)]
    fn look_up(&self, jobs: &[u32], nodes: &mut [NodeId], operands: &mut [u32], results: &mut [u32]) {
        let arena = self.graph.arena.nodes();
        let firsts = operands.iter_mut().zip(results);
        for ((&job, id), (operands, results)) in jobs.iter().zip(nodes).zip(firsts) {
            *id = self.jobs[job as usize];
            let node = &arena[id.index()];
            (*operands, *results) = (node.operands, node.results);
        }
    }

    /// Writes the rows of a slab that nodes whose operands begin so read at a place. Apart, so that the loop has the
    /// registers to itself.
    #[inline(never)]
    fn read(&self, column: &mut [u32], operands: &[u32], place: u32, slab: Range<u32>, rows: Rows<'_>) {
        let pool = self.graph.arena.operand_pool();
        for (row, operands) in column.iter_mut().zip(operands) {
            let value = pool[(operands + place) as usize].as_value();
            *row = rows.of(value.expect("one type of job takes one kind of operand"), &slab);
        }
    }

    /// Gives the next lanes of a batch to these jobs.
    fn take(&self, jobs: &[u32], target: &mut Target, to: &mut Columns<'_>) {
        let pool = self.graph.arena.operand_pool();
        let Columns { row_of, nodes, columns, bound, lists, last_waves } = to;
        let nodes = &mut nodes[target.next as usize..][..jobs.len()];
        let (mut operands, mut results) = ([0u32; STRETCH], [0u32; STRETCH]);
        self.look_up(jobs, nodes, &mut operands, &mut results);
        let starts = &self.starts[target.starts.start as usize..target.starts.end as usize];
        for (place, start) in (0..).zip(starts) {
            for (row, results) in (start + target.done..).zip(&results[..jobs.len()]) {
                row_of[(results + place) as usize] = row;
            }
        }
        let rows = Rows { row_of, copies: self.copies };
        let mut first = (target.columns + target.done) as usize;
        for (place, slab) in &self.places[target.places.start as usize..target.places.end as usize] {
            self.read(&mut columns[first..first + jobs.len()], &operands, *place, slab.clone(), rows);
            first += target.lanes as usize;
        }
        let mut first = (target.bound_columns + target.done) as usize;
        for place in &self.bound[target.bound.start as usize..target.bound.end as usize] {
            let column = &mut bound[first..first + jobs.len()];
            for (number, operands) in column.iter_mut().zip(&operands) {
                *number = bound_number(pool[(operands + place) as usize]);
            }
            first += target.lanes as usize;
        }
        let mut first = (target.list_columns + target.done) as usize;
        for (place, slab) in &self.lists[target.lists.start as usize..target.lists.end as usize] {
            for (number, operands) in (first..).zip(&operands[..jobs.len()]) {
                let list = pool[(operands + place) as usize].as_value();
                let list = list.expect("one type of job takes one kind of operand");
                let items = self.graph.arena.operands(self.graph.arena.producer(list));
                let items = items.iter().filter_map(|item| item.as_value());
                for &row in lists.take(number, items.map(|item| rows.of(item, slab))) {
                    let last = &mut last_waves[row as usize];
                    *last = target.wave.max(*last);
                }
            }
            first += target.lanes as usize;
        }
        let count = jobs.len() as u32;
        (target.jobs.start, target.next, target.done) =
            (target.jobs.start + count, target.next + count, target.done + count);
    }
}

/// The number that an operand is bound to.
#[inline]
pub(crate) fn bound_number(operand: Operand) -> u32 {
    match operand.kind() {
        Some(OperandKind::Index(number) | OperandKind::Data(number)) => number,
        _ => unreachable!("one type of job takes one kind of operand"),
    }
}

/// How many of the ascending jobs are below a limit; few at the beginning of many are found in few looks near there.
fn count_below(jobs: &[u32], limit: u32) -> usize {
    let mut reach = STRETCH;
    while jobs.get(reach).is_some_and(|&job| job < limit) {
        reach *= 2;
    }
    jobs[..reach.min(jobs.len())].partition_point(|&job| job < limit)
}
