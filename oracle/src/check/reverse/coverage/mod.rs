//! Checks that reductions cover every use of every parameter exactly once.
//!
//! The rows of a reduction say where they come from, and their numbers say which use of a parameter they may be. The numbers
//! of two uses can be equal on all probes: a node may use a parameter twice with equal operands, or with gradients that are
//! always zero. Then the first use that fits is a guess, and a search over the other guesses decides. An assignment is
//! complete if the blocks of each use cover each of its elements as often as the use counts.

use super::class::Block;
use super::reference_derivative::ReferenceDerivative;
use autobatch_ir::id::ParamId;
use autobatch_ir::plan::blocks::lie_apart;
use std::collections::BTreeMap;

/// The most assignments of one block that the search tries. A node with more is refused.
const MAX_TRIALS: u32 = 1 << 14;
/// The most blocks of a node among which the search chooses.
const MAX_BLOCKS: usize = 1 << 10;
/// The most different blocks of a use whose overlaps are counted. More blocks must lie apart.
const MAX_OVERLAPPING: usize = 64;

/// A trained parameter with a use that the blocks do not cover, if there is one.
pub(super) fn incomplete(
    reference: &ReferenceDerivative,
    blocks: impl Iterator<Item = Block>,
    trained: &[bool],
) -> Option<ParamId> {
    let mut of_use: Vec<BTreeMap<Block, u32>> = vec![BTreeMap::new(); reference.uses.len()];
    for block in blocks {
        *of_use[block.uses as usize].entry(block).or_default() += 1;
    }
    let uses = reference.uses.iter().zip(&of_use).filter(|(own, _)| trained[own.param.index()]);
    let mut incomplete = uses.filter(|(own, blocks)| !covers(blocks, own.count(), reference.area(own)));
    incomplete.next().map(|(own, _)| own.param)
}

/// Returns whether one block can be chosen for each reduction such that the chosen blocks cover every use.
pub(super) fn is_assignable(
    reference: &ReferenceDerivative,
    choices: &[Vec<Block>],
    trained: &[bool],
) -> bool {
    if choices.len() > MAX_BLOCKS {
        return false;
    }
    let left = reference.uses.iter().map(|own| reference.area(own) * u64::from(own.count())).collect();
    let mut search = Search { reference, choices, trained, chosen: Vec::new(), left, trials: 0 };
    search.assign()
}

/// A search for a complete assignment, reduction by reduction.
struct Search<'a> {
    reference: &'a ReferenceDerivative,
    choices: &'a [Vec<Block>],
    trained: &'a [bool],
    chosen: Vec<Block>,
    /// For each use, the number of elements that no chosen block covers.
    left: Vec<u64>,
    trials: u32,
}

impl Search<'_> {
    fn assign(&mut self) -> bool {
        let Some(choices) = self.choices.get(self.chosen.len()) else {
            return incomplete(self.reference, self.chosen.iter().copied(), self.trained).is_none();
        };
        for &block in choices {
            self.trials += 1;
            let (own, area) = (block.uses as usize, area(&block));
            let Some(left) = self.left[own].checked_sub(area).filter(|_| self.trials <= MAX_TRIALS) else {
                continue;
            };
            let before = std::mem::replace(&mut self.left[own], left);
            self.chosen.push(block);
            if self.assign() {
                return true;
            }
            self.chosen.pop();
            self.left[own] = before;
        }
        false
    }
}

fn area(block: &Block) -> u64 {
    let length = |(from, to): (u32, u32)| u64::from(to - from);
    length(block.rows) * length(block.columns)
}

/// Returns whether blocks cover each element of a use exactly `count` times.
fn covers(blocks: &BTreeMap<Block, u32>, count: u32, area_of_use: u64) -> bool {
    let whole: u64 = blocks.iter().map(|(block, &times)| area(block) * u64::from(times)).sum();
    if whole != area_of_use * u64::from(count) {
        return false;
    }
    if blocks.values().all(|&times| times == count) {
        let range = |(from, to): (u32, u32)| u64::from(from)..u64::from(to);
        return lie_apart(blocks.keys().map(|block| [range(block.rows), range(block.columns)]));
    }
    // The sum of the areas is right, so each element is covered often enough if none is covered too often. The corner of some
    // block lies in the part that is covered most.
    let times_at = |row: u32, column: u32| -> u32 {
        let inside = |block: &Block| {
            (block.rows.0..block.rows.1).contains(&row)
                && (block.columns.0..block.columns.1).contains(&column)
        };
        blocks.iter().filter(|(block, _)| inside(block)).map(|(_, &times)| times).sum()
    };
    let starts = || blocks.keys().flat_map(|row| blocks.keys().map(|column| (row.rows.0, column.columns.0)));
    blocks.len() <= MAX_OVERLAPPING && starts().all(|(row, column)| times_at(row, column) <= count)
}

#[cfg(test)]
mod tests;
