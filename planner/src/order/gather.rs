//! The one walk over the operands: gathers, batch after batch, the provisional rows that lanes read.
//!
//! *Needs* batches whose results have provisional rows. *Ensures* that an operand gets the row of its value in the slab that its
//! port reads: a constant has a row for each of its copies, every other value has one. *Cost.* One lookup and one comparison for
//! each operand.

use super::lists::Lists;
use crate::ids::{JobId, ProvisionalRow, WaveId};
use autobatch_ir::graph::{GraphData, Operand, OperandKind};
use autobatch_ir::id::{NodeId, ValueId};
use std::ops::Range;

/// The provisional rows of values.
#[derive(Clone, Copy)]
struct ProvisionalRows<'a> {
    /// The row of each value; of a constant, that of its first copy.
    row_of: &'a [ProvisionalRow],
    copies: &'a [CopiedRows],
}

/// A further copy of constants. Its batch holds the same constants in the same order as the first.
#[derive(Clone, Debug)]
pub(super) struct CopiedRows {
    /// The rows of the first copy.
    pub(super) first: Range<ProvisionalRow>,
    /// The first row of this copy.
    pub(super) start: ProvisionalRow,
}

impl ProvisionalRows<'_> {
    /// The row of a value in the slab that has these rows.
    #[inline]
    fn of(&self, value: ValueId, slab: &Range<ProvisionalRow>) -> ProvisionalRow {
        let row = self.row_of[value.index()];
        // One comparison tests both ends of the slab.
        if row.0.wrapping_sub(slab.start.0) < slab.end.0 - slab.start.0 { row } else { self.copy(row, slab) }
    }

    #[cold]
    fn copy(&self, row: ProvisionalRow, slab: &Range<ProvisionalRow>) -> ProvisionalRow {
        let own = |copy: &&CopiedRows| copy.first.contains(&row) && slab.contains(&copy.start);
        let copy = self.copies.iter().find(own);
        let CopiedRows { first, start } = copy.expect("every field that reads a constant has a copy of it");
        ProvisionalRow(start.0 + (row.0 - first.start.0))
    }
}

/// How many lanes are processed together, so that many cache misses are in flight at once.
const STRETCH: usize = 64;
/// The least number of jobs that all batches process before the next ones start. The facts of this many jobs fit the second-level
/// cache.
const CHUNK: usize = 1 << 13;

/// An operand port and the provisional rows of the slab that it reads.
#[derive(Clone, Debug)]
pub(super) struct PortRead {
    pub(super) port: u32,
    pub(super) slab: Range<ProvisionalRow>,
}

/// Where the jobs of a batch go.
#[derive(Debug)]
pub(super) struct BatchTarget {
    /// Its jobs without a lane, as a range of the scheduler's items.
    pub(super) jobs: Range<u32>,
    /// The next lane among those of all batches.
    pub(super) next: u32,
    /// How many lanes of the batch come before it.
    pub(super) done: u32,
    /// How many lanes the batch has.
    pub(super) lanes: u32,
    /// Its first column of rows.
    pub(super) columns: u32,
    pub(super) wave: WaveId,
    /// Its operand ports that take values and no lists.
    pub(super) ports: Range<u32>,
    /// Its operand ports that take lists.
    pub(super) lists: Range<u32>,
    /// Its first column of lists.
    pub(super) list_columns: u32,
    /// Its operand ports that take bindings.
    pub(super) bound: Range<u32>,
    /// Its first column of bindings.
    pub(super) bound_columns: u32,
    /// Its results.
    pub(super) starts: Range<u32>,
}

/// The inputs of the walk.
pub(super) struct Gatherer<'a> {
    pub(super) graph: &'a GraphData,
    /// The nodes of jobs.
    pub(super) jobs: &'a [NodeId],
    /// Jobs, batch after batch, ascending.
    pub(super) items: &'a [JobId],
    /// Ports that take values, batch after batch.
    pub(super) ports: &'a [PortRead],
    /// Ports that take lists, batch after batch.
    pub(super) lists: &'a [PortRead],
    /// Ports that take bindings, batch after batch.
    pub(super) bound: &'a [u32],
    /// Per result, batch after batch, the row of the first lane.
    pub(super) starts: &'a [ProvisionalRow],
    pub(super) copies: &'a [CopiedRows],
    /// Whether lists take values instead of rows.
    pub(super) is_growing: bool,
}

/// The outputs of the walk.
pub(super) struct Columns<'a> {
    /// The row of each value.
    pub(super) row_of: &'a mut [ProvisionalRow],
    /// The nodes of all lanes.
    pub(super) nodes: &'a mut [NodeId],
    /// The rows that operands read, column after column.
    pub(super) rows: &'a mut [ProvisionalRow],
    /// The numbers that operands bind, column after column.
    pub(super) bound: &'a mut [u32],
    /// The lists that operands are, column after column.
    pub(super) lists: &'a mut Lists,
}

impl Gatherer<'_> {
    /// Writes the node of each lane, the rows that lanes read, and the rows of their results.
    ///
    /// The walk goes batch after batch, but one chunk of the graph at a time: on large graphs nearly every access to a node or a
    /// value would miss the cache otherwise. A job reads its own chunk, earlier batches, and earlier chunks.
    pub(super) fn gather(&self, targets: &mut [BatchTarget], to: &mut Columns<'_>) {
        let count = self.jobs.len();
        // Every chunk visits every batch, so it must hold enough jobs for all: chains have as many batches as jobs.
        let chunk = CHUNK.max(STRETCH * targets.len());
        for first in (0..count).step_by(chunk) {
            let end = (first + chunk).min(count);
            for target in &mut *targets {
                let left = &self.items[target.jobs.start as usize..target.jobs.end as usize];
                let jobs = if end == count { left } else { &left[..count_below(left, JobId(end as u32))] };
                for jobs in jobs.chunks(STRETCH) {
                    self.fill_lanes(jobs, target, to);
                }
            }
        }
    }

    /// Finds the nodes of jobs, and their first operands and results. Separate for the same reason as [`read`](Self::read).
    #[inline(never)]
    fn look_up(&self, jobs: &[JobId], nodes: &mut [NodeId], operands: &mut [u32], results: &mut [u32]) {
        let arena = self.graph.arena.nodes();
        let firsts = operands.iter_mut().zip(results);
        for ((&job, id), (operands, results)) in jobs.iter().zip(nodes).zip(firsts) {
            *id = self.jobs[job.index()];
            let node = &arena[id.index()];
            (*operands, *results) = (node.operands, node.results);
        }
    }

    /// Writes the rows that nodes read at a place; `operands` are their first operands. A function of its own, so that the
    /// loop has all registers.
    #[inline(never)]
    fn read(
        &self,
        column: &mut [ProvisionalRow],
        operands: &[u32],
        place: u32,
        slab: Range<ProvisionalRow>,
        rows: ProvisionalRows<'_>,
    ) {
        let pool = self.graph.arena.operand_pool();
        for (row, operands) in column.iter_mut().zip(operands) {
            let value = pool[(operands + place) as usize].as_value();
            *row = rows.of(value.expect("jobs of one type take the same kinds of operands"), &slab);
        }
    }

    /// Gives the next lanes of a batch to these jobs.
    fn fill_lanes(&self, jobs: &[JobId], target: &mut BatchTarget, to: &mut Columns<'_>) {
        let nodes = &mut to.nodes[target.next as usize..][..jobs.len()];
        let (mut operands, mut results) = ([0u32; STRETCH], [0u32; STRETCH]);
        self.look_up(jobs, nodes, &mut operands, &mut results);
        let operands = &operands[..jobs.len()];
        let starts = &self.starts[target.starts.start as usize..target.starts.end as usize];
        for (position, start) in (0..).zip(starts) {
            for (row, results) in (start.0 + target.done..).zip(&results[..jobs.len()]) {
                to.row_of[(results + position) as usize] = ProvisionalRow(row);
            }
        }
        let rows = ProvisionalRows { row_of: to.row_of, copies: self.copies };
        let mut first = (target.columns + target.done) as usize;
        for of in &self.ports[target.ports.start as usize..target.ports.end as usize] {
            self.read(&mut to.rows[first..first + jobs.len()], operands, of.port, of.slab.clone(), rows);
            first += target.lanes as usize;
        }
        self.read_bound(operands, target, to);
        self.read_lists(operands, target, to);
        let count = jobs.len() as u32;
        target.jobs.start += count;
        target.next += count;
        target.done += count;
    }

    /// Writes the numbers that nodes bind.
    #[inline]
    fn read_bound(&self, operands: &[u32], target: &BatchTarget, to: &mut Columns<'_>) {
        let pool = self.graph.arena.operand_pool();
        let mut first = (target.bound_columns + target.done) as usize;
        for port in &self.bound[target.bound.start as usize..target.bound.end as usize] {
            let column = &mut to.bound[first..first + operands.len()];
            for (number, operands) in column.iter_mut().zip(operands) {
                *number = binding_of(pool[(operands + port) as usize]);
            }
            first += target.lanes as usize;
        }
    }

    /// Writes the rows of the lists that nodes read.
    #[inline]
    fn read_lists(&self, operands: &[u32], target: &BatchTarget, to: &mut Columns<'_>) {
        let pool = self.graph.arena.operand_pool();
        let rows = ProvisionalRows { row_of: to.row_of, copies: self.copies };
        let mut first = (target.list_columns + target.done) as usize;
        for PortRead { port, slab } in &self.lists[target.lists.start as usize..target.lists.end as usize] {
            for (place, operands) in (first..).zip(operands) {
                let list = pool[(operands + port) as usize].as_value();
                let list = list.expect("jobs of one type take the same kinds of operands");
                if self.is_growing {
                    to.lists.fill(place, list, ProvisionalRow(0), target.wave, self.graph, |item| {
                        item.index() as u32
                    });
                } else {
                    let row = |item| rows.of(item, slab).0;
                    to.lists.fill(place, list, slab.start, target.wave, self.graph, row);
                }
            }
            first += target.lanes as usize;
        }
    }
}

/// The number that an operand binds.
#[inline]
pub(super) fn binding_of(operand: Operand) -> u32 {
    match operand.kind() {
        Some(OperandKind::Index(number) | OperandKind::Data(number)) => number,
        _ => unreachable!("jobs of one type take the same kinds of operands"),
    }
}

/// How many of the ascending jobs are below a limit. A search near the start, because the answer is small.
fn count_below(jobs: &[JobId], limit: JobId) -> usize {
    let mut reach = STRETCH;
    while jobs.get(reach).is_some_and(|&job| job < limit) {
        reach *= 2;
    }
    jobs[..reach.min(jobs.len())].partition_point(|&job| job < limit)
}
