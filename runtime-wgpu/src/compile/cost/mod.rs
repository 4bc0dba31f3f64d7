//! The cost of segments: what they take of a device, by their programs and records alone.

use super::iterations::{Segment, passes};
use crate::module::{Products, Program, Tile, WgradTile};
use autobatch_shaders::{
    ATTEND, ATTEND_GRAD, ATTEND_PULL, COLSUM, GRAPH_ATTEND, GRAPH_ATTEND_GRAD, GRAPH_ATTEND_PULL, LABEL_LOSS,
    LGRAD, MATMUL, SEG_FOLD, SEG_FOLD_GRAD, TGRAD, TOP_K, Template, WEIGHTED_SUM, WEIGHTED_SUM_GRAD, WGRAD,
};

/// Bytes of a word.
const WORD: u64 = 4;
/// Instructions of an exponential, about.
const EXPONENTIAL: u64 = 16;
/// The waits of a thread that reads its segment, its record, the number of a row, and an element.
const ADDRESS: u64 = 4;
/// The waits of a join of the sixteen threads of a row.
const JOIN: u64 = 4;

/// The time and memory that a dispatch takes of a device, about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Threads, with the idle ones of groups that are not full.
    pub threads: u64,
    /// Multiply-adds of all threads. Other instructions count as one each.
    pub work: u64,
    /// Bytes that threads read and write. What many threads read counts once.
    pub bytes: u64,
    /// How often the longest thread waits for memory, one wait after the other.
    pub waits: u64,
}

impl Cost {
    /// One of equal parts, which are executed one after the other.
    pub(super) const fn part(self, parts: u64) -> Self {
        let Self { threads, work, bytes, waits } = self;
        Self { threads: threads / parts, work: work / parts, bytes: bytes / parts, waits }
    }

    /// The cost of two segments of one dispatch.
    #[must_use]
    pub fn beside(self, other: Self) -> Self {
        Self {
            threads: self.threads.saturating_add(other.threads),
            work: self.work.saturating_add(other.work),
            bytes: self.bytes.saturating_add(other.bytes),
            waits: self.waits.max(other.waits),
        }
    }
}

/// Counts over the generated code of a program, which an element executes once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Generated {
    instructions: u64,
    /// Words that it reads and writes.
    words: u64,
}

impl Generated {
    pub(super) fn of(program: &Program) -> Self {
        let (Program::Map(text) | Program::Products(Products { epilogue: text, .. })) = program else {
            return Self::default();
        };
        let count = |what: &str| text.matches(what).count() as u64;
        let functions = count("op_") + count("quotient(");
        let instructions = text.lines().count() as u64 + EXPONENTIAL * functions;
        Self { instructions, words: count("ld(") + count("ldf(") + count("st(") }
    }
}

impl Segment<'_> {
    /// The cost of a segment of a program with this many groups.
    pub(super) fn cost(&self, program: &Program, groups: u64, generated: Generated) -> Cost {
        let threads = groups * program.group_threads();
        let count = self.threads.count;
        let of = |work: u64, words: u64, waits: u64| Cost {
            threads,
            work,
            bytes: words.saturating_mul(WORD),
            waits: waits + ADDRESS,
        };
        match program {
            Program::Map(_) => of(all([count, generated.instructions]), all([count, generated.words]), 0),
            Program::Products(products) => {
                let columns = self.threads.columns.max(1);
                let rows = match products.tile {
                    Tile::Few => count / columns,
                    Tile::Four => 4 * count / columns,
                    Tile::Rows16 | Tile::Rows64 | Tile::Rows128 => count,
                };
                let depth = products.depth(self.record);
                let weights = all([depth.terms, columns]) / if products.packed { 2 } else { 1 };
                let operands = all([rows, depth.operands]);
                let others = all([rows, columns, generated.words]);
                of(
                    all([rows, columns, depth.terms + generated.instructions]),
                    operands.saturating_add(weights).saturating_add(others),
                    depth.waits,
                )
            }
            Program::Row(function) => {
                let (width, passes) = (self.word(1), passes(function));
                let waits = passes * (width.div_ceil(16) + JOIN);
                of(all([count, width, passes + EXPONENTIAL]), all([count, width + self.word(2)]), waits)
            }
            Program::Wgrad(tile) => self.weight_gradient(*tile, of),
            Program::Fixed(template) => self.fixed(*template, of),
        }
    }

    fn weight_gradient(&self, tile: WgradTile, of: impl Fn(u64, u64, u64) -> Cost) -> Cost {
        let (elements, columns) = (self.word(0), self.word(1).max(1));
        let depth = elements / columns;
        let rows = self.parts(5, 10, |lanes, each| all([lanes, each]));
        let waits = match tile {
            WgradTile::Element => self.of_fixed(WGRAD),
            WgradTile::Two | WgradTile::Four => {
                self.parts(5, 10, |lanes, each| all([lanes, each]).div_ceil(tile.deep().into()) + 1)
            }
        };
        of(all([elements, rows]), all([rows, depth + columns]).saturating_add(2 * elements), waits)
    }

    fn fixed(&self, template: Template, of: impl Fn(u64, u64, u64) -> Cost) -> Cost {
        let count = self.threads.count;
        let waits = self.of_fixed(template);
        match template {
            MATMUL => {
                let (width, columns, depth) = (self.word(0), self.word(1).max(1), self.word(2));
                let lanes = count / width.max(1);
                let words = all([width / columns, depth]).saturating_add(all([depth, columns])) + width;
                of(all([count, depth.max(1)]), all([lanes, words]), waits)
            }
            TOP_K => {
                let each = all([count, self.word(1), self.word(2)]);
                of(each, each, waits)
            }
            SEG_FOLD | SEG_FOLD_GRAD => {
                let elements = all([self.items(2), self.word(0)]);
                of(elements, all([2, elements]).saturating_add(count), 2 * waits)
            }
            WEIGHTED_SUM => {
                let elements = all([self.items(3), self.word(0)]);
                of(all([elements, EXPONENTIAL]), all([2, elements]).saturating_add(count), 2 * waits)
            }
            WEIGHTED_SUM_GRAD => {
                let (scores, values) = (self.word(2), self.word(3));
                let items = self.items(6);
                let words = all([items, 3 * values + 6 * scores]);
                of(all([items, 2 * values + EXPONENTIAL * scores]), words, waits)
            }
            ATTEND => self.attention(self.items(9), 1, waits, of),
            ATTEND_GRAD => self.attention(self.items(10), 2, waits, of),
            ATTEND_PULL => self.attention(self.items(14), 2, waits, of),
            GRAPH_ATTEND => self.graph_attention(self.items(9), 1, waits, of),
            GRAPH_ATTEND_GRAD => self.graph_attention(self.items(10), 2, waits, of),
            GRAPH_ATTEND_PULL => self.graph_attention(self.items(14), 2, waits, of),
            LABEL_LOSS => {
                let (width, labels) = (self.word(1), self.word(2));
                let products = if self.word(23) > 0 { 2 } else { 1 };
                let work = all([count, labels, products * width + EXPONENTIAL]);
                of(work, all([count, labels, products]).saturating_add(all([labels, width])), waits)
            }
            LGRAD => {
                let (width, labels) = (self.word(0), self.word(1));
                let lanes = self.parts(6, 10, |lanes, _| lanes);
                let work = all([lanes, labels, 2 * width + EXPONENTIAL]);
                of(work, all([3, labels, width]).saturating_add(all([lanes, width + 3])), waits)
            }
            COLSUM => {
                let rows = self.parts(3, 6, |lanes, each| all([lanes, each]));
                let turns = self.parts(3, 6, |lanes, each| all([lanes, each]).div_ceil(64) + 1);
                of(all([count, rows]), all([count, rows + 2]), turns)
            }
            TGRAD => {
                let columns = self.word(1);
                let rows = self.parts(6, 10, |lanes, each| all([lanes, each]));
                // A thread loads eight of its rows at a time. With several rows of the table it waits for each of these, too.
                let is_one_row = self.word(2) > self.word(4);
                let own = if is_one_row { rows / 4 } else { rows + rows / 4 } / self.word(2).max(1);
                let read = self.parts(6, 10, |lanes, each| all([lanes, each]).div_ceil(128) + 1);
                let work = all([count, rows]).saturating_add(all([rows, columns]));
                of(work, all([3, rows, columns]).saturating_add(rows), read + own)
            }
            // One element per thread.
            _ => of(all([8, count]), all([2, count]), waits),
        }
    }

    /// Attention over `items` items, each of which takes `times` products with a key and with a value, and one more.
    fn attention(&self, items: u64, times: u64, waits: u64, of: impl Fn(u64, u64, u64) -> Cost) -> Cost {
        let both = self.word(1) + self.word(2);
        let lanes = self.threads.count;
        of(all([items, times * both + EXPONENTIAL]), all([items + 2 * lanes, both]), waits)
    }

    /// Graph attention over `items` items, each of which takes `times` products with a value and an exponential per head.
    fn graph_attention(
        &self,
        items: u64,
        times: u64,
        waits: u64,
        of: impl Fn(u64, u64, u64) -> Cost,
    ) -> Cost {
        let (heads, value) = (self.word(1), self.word(2));
        let lanes = self.threads.count;
        let work = times * value + (EXPONENTIAL + 4) * heads;
        of(all([items, work]), all([items + 2 * lanes, value + 4 * heads]), waits)
    }
}

/// The product of numbers of any size.
fn all<const COUNT: usize>(factors: [u64; COUNT]) -> u64 {
    factors.into_iter().fold(1, u64::saturating_mul)
}

#[cfg(test)]
mod tests;
