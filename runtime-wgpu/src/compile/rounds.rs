//! How many rounds the loops of one thread take, all of them together.
//!
//! Mesa's software drivers count the rounds of all loops of a shader in one number, for the threads of a
//! vector together, and when it reaches 65,535 they leave every loop and say nothing. What a loop does follows
//! from the record alone, so a plan that would go round oftener is refused before it is executed. The count is
//! from above: a round is one more than the times that the body is executed, because the last look at the
//! condition is one as well, and loops that a compiler unrolls are counted nevertheless.

use super::record::TABLED;
use crate::module::{Patch, Program};
use autobatch_shaders::{
    ATTEND, ATTEND_GRAD, COLSUM, MATMUL, MOVE, SEG_FOLD, SEG_FOLD_GRAD, TGRAD, TOP_K, Template, WEIGHTED_SUM,
    WEIGHTED_SUM_GRAD, WGRAD,
};

/// What the search for the segment, joins of lanes and other loops of a few rounds take at most.
const FEW: u64 = 64;
/// What a join of the sixteen lanes of a row takes.
const JOIN: u64 = 5;

/// Rounds of loops that a thread may take, all of its loops together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    /// After so many the device leaves every loop and says nothing.
    OfDevice(u64),
    /// So many are allowed by [`Budget::rounds`](crate::Budget::rounds).
    OfBudget(u64),
}

impl Rounds {
    /// How many.
    #[must_use]
    pub const fn most(self) -> u64 {
        match self {
            Self::OfDevice(most) | Self::OfBudget(most) => most,
        }
    }
}

/// A record, and what is needed to follow it.
pub(super) struct Loops<'r> {
    /// The words.
    pub(super) record: &'r [u32],
    /// The tables of the plan, in which lists are.
    pub(super) tables: &'r [u32],
    /// The first lane, and how many threads.
    pub(super) lanes: (u32, u64),
}

impl Loops<'_> {
    /// The rounds of a thread of a program, at most.
    pub(super) fn of(&self, program: &Program) -> u64 {
        let rounds = match program {
            Program::Fixed(template) => self.of_fixed(*template),
            Program::Map(_) => 0,
            Program::Row(function) => passes(function) * (self.lanes_of(1) + 1 + JOIN),
            Program::Products(products) => products.rounds(self.record),
            Program::Wgrad(Patch::Element) => self.of_fixed(WGRAD),
            Program::Wgrad(_) => self.parts(5, 10, |lanes, each| (lanes * each).div_ceil(16) * 18 + 2),
        };
        rounds.saturating_add(FEW)
    }

    fn word(&self, at: usize) -> u64 {
        u64::from(self.record[at])
    }

    /// How often one of sixteen threads goes along a row whose width the record says.
    fn lanes_of(&self, at: usize) -> u64 {
        self.word(at).div_ceil(16)
    }

    fn of_fixed(&self, template: Template) -> u64 {
        // Rows of a part, a loop inside that over lanes.
        let rows = |lanes: u64, each: u64| lanes * (each + 2) + 2;
        match template {
            MATMUL => self.word(2) + 1,
            TOP_K => self.word(2) * (self.word(1) + 2) + 1,
            MOVE => self.word(1) + 6,
            SEG_FOLD => self.longest(2) + 1,
            SEG_FOLD_GRAD => 2 * (self.longest(2) + 1),
            WEIGHTED_SUM => 3 * (self.longest(3) + 1),
            ATTEND => {
                let count = self.longest(9);
                self.dots(count, &[1]) + 2 * (count + 1) + self.elements(2) * (count + 2)
            }
            WEIGHTED_SUM_GRAD => {
                let count = self.longest(6);
                let copied = count * self.word(2).max(self.word(3));
                self.dots(count, &[3]) + self.elements(2) * (5 * count + 6) + 2 * (copied / 64 + 2)
            }
            ATTEND_GRAD => {
                let count = self.longest(10);
                let copied = count * self.word(1).max(self.word(2));
                let of_query = self.elements(1) * (count + 2);
                self.dots(count, &[1, 2]) + 5 * (count + 1) + of_query + 2 * (copied / 64 + 2)
            }
            WGRAD => self.parts(5, 10, rows),
            COLSUM => self.parts(3, 6, rows),
            TGRAD => self.parts(6, 10, rows),
            _ => 0,
        }
    }

    /// What the parts of a final take, which begin at a word of the record; the word before says how many.
    fn parts(&self, first: usize, size: usize, rounds: impl Fn(u64, u64) -> u64) -> u64 {
        let at = |part: u64| first + size * part as usize;
        (0..self.word(first - 1)).map(|part| rounds(self.word(at(part)), self.word(at(part) + 1))).sum()
    }

    /// Rounds over elements that 64 threads share, with the last look.
    fn elements(&self, at: usize) -> u64 {
        self.word(at).div_ceil(64) + 1
    }

    /// What dots of so many items take, four at a time; the record says how wide.
    fn dots(&self, items: u64, widths: &[usize]) -> u64 {
        let each: u64 = widths.iter().map(|&at| self.lanes_of(at) + 1 + JOIN).sum();
        items.div_ceil(4) * (1 + each) + 1
    }

    /// The values of the longest list at a word of the record.
    fn longest(&self, at: usize) -> u64 {
        if self.record[at] != TABLED {
            return self.word(at);
        }
        let (first, threads) = self.lanes;
        let lanes = threads / self.word(0).max(1);
        let from = self.record[at + 2] as usize + first as usize;
        let offsets = &self.tables[from..=from + lanes as usize];
        offsets.windows(2).map(|pair| u64::from(pair[1] - pair[0])).max().unwrap_or(0)
    }
}

/// How often a function goes along the row.
fn passes(function: &str) -> u64 {
    match function {
        "execute_logsumexp" | "execute_pick_neg_log_softmax" => 2,
        "execute_softmax" | "execute_log_softmax" | "execute_layer_norm" | "execute_cross_entropy" => 3,
        _ => 1,
    }
}
