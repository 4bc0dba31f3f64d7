//! Errors of the naive executor, and checks of stores and bindings.

use super::Plan;
use autobatch_ir::plan::{StepId, Store};
use std::fmt;

/// Why a plan could not be executed.
#[derive(Clone, PartialEq, Eq)]
pub enum RunError {
    /// Too few or too many words are bound.
    Words {
        /// How many the plan requires.
        expected: usize,
        /// How many were given.
        found: usize,
    },
    /// Too few or too many floats are bound.
    Floats {
        /// How many the plan requires.
        expected: usize,
        /// How many were given.
        found: usize,
    },
    /// Too few or too many stores are given.
    Stores {
        /// How many the plan requires.
        expected: usize,
        /// How many were given.
        found: usize,
    },
    /// A store has another size than the plan says.
    Store {
        /// The name of the store.
        name: String,
        /// Its elements in the plan.
        expected: usize,
        /// The elements that were given.
        found: usize,
    },
    /// A bound index is out of range.
    Index {
        /// The step that takes it.
        step: StepId,
        /// The place of the bound word.
        word: u32,
        /// The word.
        index: u32,
        /// The index must be below this.
        limit: u32,
        /// The indexed thing: a table's `@name`, or `scores`.
        of: String,
    },
    /// A bound truth value is neither 0 nor 1.
    Truth {
        /// The step that takes it.
        step: StepId,
        /// The place of the bound word.
        word: u32,
        /// The word.
        found: u32,
    },
    /// A sparse row is not in the table.
    SparseRows {
        /// The name of the gradient store.
        name: String,
        /// The row.
        row: u32,
        /// How many rows there are.
        limit: u32,
    },
    /// There is not enough memory.
    Memory,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words { expected, found } => write!(
                f,
                "the plan requires {expected} bound words, found {found}; bind those of the graph it was made for"
            ),
            Self::Floats { expected, found } => write!(
                f,
                "the plan requires {expected} bound floats, found {found}; bind those of the graph it was made for"
            ),
            Self::Stores { expected, found } => {
                write!(f, "the plan requires {expected} stores, found {found}; give those of its module")
            }
            Self::Store { name, expected, found } => write!(
                f,
                "store @{name} has {expected} elements, found {found}; give the parameters of the plan's module"
            ),
            Self::Index { step, word, index, limit, of } => write!(
                f,
                "word {word} is bound to {index}, step {step} takes it as an index of {of}: it must be below {limit}"
            ),
            Self::Truth { step, word, found } => {
                write!(f, "word {word} is bound to {found}, step {step} takes it as a truth value: 0 or 1")
            }
            Self::SparseRows { name, row, limit } => {
                write!(
                    f,
                    "store @{name} has {limit} rows, row {row} is listed as sparse; list rows that exist"
                )
            }
            Self::Memory => {
                f.write_str("not enough memory for the plan's rows; execute fewer instances at once")
            }
        }
    }
}

impl std::error::Error for RunError {}

autobatch_ir::debug_as_display!(RunError);

pub(super) fn check_pools<S: AsRef<[f32]>>(
    plan: &Plan,
    stores: &[S],
    words: &[u32],
    floats: &[f32],
) -> Result<(), RunError> {
    let (expected, found) = (plan.words as usize, words.len());
    if expected != found {
        return Err(RunError::Words { expected, found });
    }
    check_floats(plan.floats, floats)?;
    let (expected, found) = (plan.given_stores(), stores.len());
    if expected != found {
        return Err(RunError::Stores { expected, found });
    }
    check_stores(&plan.stores, stores)
}

pub(super) fn check_floats(expected: u32, floats: &[f32]) -> Result<(), RunError> {
    let (expected, found) = (expected as usize, floats.len());
    if expected == found { Ok(()) } else { Err(RunError::Floats { expected, found }) }
}

/// Checks that stores have the sizes that the plan declares.
pub(super) fn check_stores<S: AsRef<[f32]>>(declared: &[Store], given: &[S]) -> Result<(), RunError> {
    for (store, given) in declared.iter().zip(given) {
        let (expected, found) = (store.ty.shape.elements(), given.as_ref().len());
        if expected != found {
            return Err(RunError::Store { name: store.name.clone(), expected, found });
        }
    }
    Ok(())
}

/// A vector of zeros, if there is memory for it.
pub(super) fn zeros(len: Option<usize>) -> Result<Vec<u32>, RunError> {
    let len = len.ok_or(RunError::Memory)?;
    let mut words = Vec::new();
    words.try_reserve_exact(len).map_err(|_| RunError::Memory)?;
    words.resize(len, 0);
    Ok(words)
}
