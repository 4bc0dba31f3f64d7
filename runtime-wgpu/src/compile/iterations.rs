//! Loop iterations of one thread, over all its loops.
//!
//! Mesa's software drivers count the iterations of all loops of a shader together and silently leave every loop at
//! 65,535. The record alone determines the lengths of loops, so longer ones are rejected before the plan is executed.
//! The count is an upper bound: it includes the final test of each condition, and loops that a compiler unrolls.

use super::record::{GATHERED, SHARED};
use super::wave::Threads;
use crate::module::{Program, WgradTile};
use autobatch_shaders::{
    ATTEND, ATTEND_GRAD, ATTEND_PULL, COLSUM, GRAPH_ATTEND, GRAPH_ATTEND_GRAD, GRAPH_ATTEND_PULL, LABEL_LOSS,
    LGRAD, MATMUL, MOVE, SEG_FOLD, SEG_FOLD_GRAD, TGRAD, TOP_K, Template, WEIGHTED_SUM, WEIGHTED_SUM_GRAD,
    WGRAD,
};

/// Upper bound of the iterations of small loops: the search for the segment, joins of lanes.
const SMALL_LOOPS: u64 = 64;
/// Iterations of a join of the sixteen lanes of a row.
const JOIN: u64 = 5;

/// The maximum number of loop iterations of a thread, over all its loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopLimit {
    /// The device silently aborts loops after this number.
    Device(u64),
    /// [`Budget::iterations`](crate::Budget::iterations) allows this number.
    Budget(u64),
}

impl LoopLimit {
    /// The number.
    #[must_use]
    pub const fn max(self) -> u64 {
        match self {
            Self::Device(max) | Self::Budget(max) => max,
        }
    }
}

/// A segment: a record and what it refers to.
pub(super) struct Segment<'r> {
    pub(super) record: &'r [u32],
    /// The tables of the plan, and the records so far: both hold offsets of lists.
    pub(super) tables: [&'r [u32]; 2],
    /// The position of the first record in the tables.
    pub(super) records_at: u64,
    pub(super) threads: Threads,
}

impl Segment<'_> {
    /// Upper bound of the iterations of a thread of a program.
    pub(super) fn iterations(&self, program: &Program) -> u64 {
        let iterations = match program {
            Program::Fixed(template) => self.of_fixed(*template),
            Program::Map(_) => 0,
            Program::Row(function) => passes(function) * (self.lane_steps(1) + 1 + JOIN),
            Program::Products(products) => products.iterations(self.record),
            Program::Wgrad(WgradTile::Element) => self.of_fixed(WGRAD),
            Program::Wgrad(tile) => {
                let deep = u64::from(tile.deep());
                self.parts(5, 10, |lanes, each| ((lanes * each).div_ceil(deep) + 1) * (deep + 3) + 1)
            }
        };
        iterations.saturating_add(SMALL_LOOPS)
    }

    pub(super) fn word(&self, at: usize) -> u64 {
        u64::from(self.record[at])
    }

    /// The elements per lane of a row that sixteen lanes share. The row's width is a word of the record.
    fn lane_steps(&self, at: usize) -> u64 {
        self.word(at).div_ceil(16)
    }

    pub(super) fn of_fixed(&self, template: Template) -> u64 {
        // A loop over eight or four elements at a time, and one over the rest.
        let eights = |count: u64| count / 8 + count % 8 + 3;
        let fours = |count: u64| count / 4 + count % 4 + 3;
        let rows = |lanes: u64, each: u64| eights(lanes * each);
        match template {
            MATMUL => eights(self.word(2)),
            TOP_K => self.word(2) * (self.word(1) + 2) + 1,
            MOVE => self.word(1) + 6,
            SEG_FOLD => 2 * (self.longest(2) + 1),
            SEG_FOLD_GRAD => 3 * (self.longest(2) + 1),
            WEIGHTED_SUM => 3 * (self.longest(3) + 1),
            ATTEND => {
                let count = self.longest(9);
                let scores = (count.div_ceil(64) + 1) * (eights(self.word(1)) + 1);
                scores + 2 * (count.div_ceil(16) + 1 + JOIN) + self.elements(2) * (fours(count) + 1)
            }
            WEIGHTED_SUM_GRAD => {
                let count = self.longest(6);
                let copied = count * self.word(2).max(self.word(3));
                self.dots(count, &[3]) + self.elements(2) * (5 * count + 6) + 2 * (copied / 64 + 2)
            }
            ATTEND_GRAD => {
                let count = self.longest(10);
                let shared = count.div_ceil(64) + 1;
                let chains = shared * (eights(self.word(1)) + eights(self.word(2)) + 1);
                let rows = 3 * (count.div_ceil(16) + 1 + JOIN);
                let copies = self.elements(1) + self.elements(2);
                chains + rows + 2 * shared + self.elements(1) * (fours(count) + 1) + copies
            }
            ATTEND_PULL => {
                let count = self.longest(14);
                let chains = (count.div_ceil(64) + 1) * (eights(self.word(1)) + eights(self.word(2)) + 1);
                chains + (self.elements(1) + self.elements(2)) * (fours(count) + 1)
            }
            GRAPH_ATTEND => {
                let count = self.longest(9);
                let shared = (count * self.word(1)).div_ceil(64) + 1;
                shared + self.elements(1) * 3 * (count + 1) + self.elements(2) * (count + 1)
            }
            GRAPH_ATTEND_GRAD => {
                let count = self.longest(10);
                let (items, part) = (count * self.word(1), self.word(2) / self.word(1).max(1));
                let dots = (items.div_ceil(4) + 1) * (part.div_ceil(16) + 1 + JOIN);
                let copies = self.elements(2);
                dots + items.div_ceil(64) + 1 + self.elements(1) * 5 * (count + 1) + copies
            }
            GRAPH_ATTEND_PULL => {
                let count = self.longest(14);
                let (items, part) = (count * self.word(1), self.word(2) / self.word(1).max(1));
                let dots = (items.div_ceil(4) + 1) * (part.div_ceil(16) + 1 + JOIN);
                dots + items.div_ceil(64) + 1 + (self.elements(1) + self.elements(2)) * (count + 1)
            }
            WGRAD => self.parts(5, 10, rows),
            // Loads of 64 rows at a time, and additions of eight. Its loops of eight may not be unrolled.
            COLSUM => self.parts(3, 6, |lanes, each| ((lanes * each).div_ceil(64) + 1) * 36 + 1),
            // Loads of 128 numbers at a time, a comparison of each, and a turn for eight rows; compilers unroll the others.
            TGRAD => self.parts(6, 10, |lanes, each| {
                let rows = lanes * each;
                rows + rows.div_ceil(128) * 6 + rows.div_ceil(8) + 2
            }),
            LABEL_LOSS => {
                let (width, labels) = (self.word(1), self.word(2));
                let stripe = 5 * (fours(width) + 1) + 5 + 2 * (16 + 1 + JOIN);
                labels.div_ceil(256) * (stripe + self.elements(1) * (fours(256) + 1)) + self.elements(1) + 1
            }
            LGRAD => self.parts(6, 10, |lanes, _| {
                (lanes.div_ceil(64) + 1) * (fours(self.word(0)) + self.elements(0) * (fours(64) + 1) + 1)
            }),
            _ => 0,
        }
    }

    /// The iterations over the parts of a reduction, from word `first` of the record on; the word before is their number.
    pub(super) fn parts(&self, first: usize, size: usize, each: impl Fn(u64, u64) -> u64) -> u64 {
        let at = |part: u64| first + size * part as usize;
        (0..self.word(first - 1)).map(|part| each(self.word(at(part)), self.word(at(part) + 1))).sum()
    }

    /// The iterations over elements that 64 threads share, with the final test.
    fn elements(&self, at: usize) -> u64 {
        self.word(at).div_ceil(64) + 1
    }

    /// The iterations of dot products of `items` items, four at a time. Their widths are words of the record.
    fn dots(&self, items: u64, widths: &[usize]) -> u64 {
        let each: u64 = widths.iter().map(|&at| self.lane_steps(at) + 1 + JOIN).sum();
        items.div_ceil(4) * (1 + each) + 1
    }

    /// The length of the longest list that a word of the record describes.
    fn longest(&self, at: usize) -> u64 {
        self.lengths(at, |lengths| lengths.max().unwrap_or(0))
    }

    /// The length of all lists that a word of the record describes.
    pub(super) fn items(&self, at: usize) -> u64 {
        self.lengths(at, |lengths| lengths.sum())
    }

    /// A number of the lengths of the lists of all lanes.
    fn lengths(&self, at: usize, number: impl Fn(&mut dyn Iterator<Item = u64>) -> u64) -> u64 {
        let lanes = (self.threads.count / self.word(0).max(1)) as usize;
        let (first, lists) = (self.threads.first_lane, self.record[at + 2]);
        match self.record[at] {
            GATHERED => {
                let offsets = &self.tables_at(lists.wrapping_add(first))[..=lanes];
                number(&mut offsets.windows(2).map(|pair| u64::from(pair[1] - pair[0])))
            }
            SHARED => {
                let words = &self.tables_at(lists.wrapping_add(first.wrapping_mul(4)))[..4 * lanes];
                number(&mut words.chunks_exact(4).map(|list| u64::from(list[1])))
            }
            length => number(&mut std::iter::repeat_n(u64::from(length), lanes)),
        }
    }

    /// The tables from a position on.
    fn tables_at(&self, at: u32) -> &[u32] {
        match u64::from(at).checked_sub(self.records_at) {
            Some(record) => &self.tables[1][record as usize..],
            None => &self.tables[0][at as usize..],
        }
    }
}

/// The number of times that a function reads the row.
pub(super) fn passes(function: &str) -> u64 {
    match function {
        "store_logsumexp" | "store_pick_neg_log_softmax" => 2,
        "store_softmax" | "store_log_softmax" | "store_layer_norm" | "store_cross_entropy" => 3,
        _ => 1,
    }
}
