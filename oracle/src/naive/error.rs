//! Errors of the naive executor, and checks of stores and bindings.

use super::Plan;
use autobatch_ir::plan::{StepId, Store};

/// Why a plan could not be executed.
#[expect(missing_docs, reason = "the messages explain the fields")]
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// Too few or too many words are bound.
    #[error(
        "the plan requires {expected} bound words, found {found}; bind those of the graph it was made for"
    )]
    Words { expected: usize, found: usize },
    /// Too few or too many floats are bound.
    #[error(
        "the plan requires {expected} bound floats, found {found}; bind those of the graph it was made for"
    )]
    Floats { expected: usize, found: usize },
    /// Too few or too many stores are given.
    #[error("the plan requires {expected} stores, found {found}; give those of its module")]
    Stores { expected: usize, found: usize },
    /// A store has another size than the plan says.
    #[error("store @{name} has {expected} elements, found {found}; give the parameters of the plan's module")]
    Store { name: String, expected: usize, found: usize },
    /// A bound index is out of range. `of` is a table's `@name`, or `scores`.
    #[error(
        "word {word} is bound to {index}, step {step} takes it as an index of {of}: it must be below {limit}"
    )]
    Index { step: StepId, word: u32, index: u32, limit: u32, of: String },
    /// A bound truth value is neither 0 nor 1.
    #[error("word {word} is bound to {found}, step {step} takes it as a truth value: 0 or 1")]
    Truth { step: StepId, word: u32, found: u32 },
    /// A sparse row is not in the table, whose gradient store has this name.
    #[error("store @{name} has {limit} rows, row {row} is listed as sparse; list rows that exist")]
    SparseRows { name: String, row: u32, limit: u32 },
    /// There is not enough memory.
    #[error("not enough memory for the plan's rows; execute fewer instances at once")]
    Memory,
}

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
    check_floats(plan.all_floats(), floats)?;
    let (expected, found) = (plan.given_stores(), stores.len());
    if expected != found {
        return Err(RunError::Stores { expected, found });
    }
    check_stores(&plan.stores, stores)
}

pub(super) fn check_floats(expected: u64, floats: &[f32]) -> Result<(), RunError> {
    let (expected, found) = (usize::try_from(expected).unwrap_or(usize::MAX), floats.len());
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
