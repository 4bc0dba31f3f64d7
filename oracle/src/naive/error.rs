//! Errors of the naive executor, and checks of stores.

use autobatch_ir::plan::{BindError, ComputedIndex, Store};

/// Why a plan could not be executed.
#[expect(missing_docs, reason = "the messages explain the fields")]
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The bindings or stores do not fit the plan.
    #[error(transparent)]
    Input(#[from] BindError),
    /// A lane computed an index out of range.
    #[error(transparent)]
    Index(#[from] ComputedIndex),
    /// Too few or too many stores are given.
    #[error("the plan requires {expected} stores, found {found}; give those of its module")]
    Stores { expected: usize, found: usize },
    /// A sparse row is not in the table, whose gradient store has this name.
    #[error("store @{name} has {limit} rows, row {row} is listed as sparse; list rows that exist")]
    SparseRows { name: String, row: u32, limit: u32 },
    /// There is not enough memory.
    #[error("not enough memory for the plan's rows; execute fewer instances at once")]
    Memory,
}

autobatch_ir::debug_as_display!(RunError);

/// Checks that the first stores of a plan are given in their sizes.
pub(super) fn check_stores<S: AsRef<[f32]>>(declared: &[Store], given: &[S]) -> Result<(), RunError> {
    let (expected, found) = (declared.len(), given.len());
    if expected != found {
        return Err(RunError::Stores { expected, found });
    }
    let mut pairs = declared.iter().zip(given);
    Ok(pairs.try_for_each(|(store, given)| store.sized(given.as_ref()).map(drop))?)
}

/// A vector of zeros, if there is memory for it.
pub(super) fn zeros(len: Option<usize>) -> Result<Vec<u32>, RunError> {
    let len = len.ok_or(RunError::Memory)?;
    let mut words = Vec::new();
    words.try_reserve_exact(len).map_err(|_| RunError::Memory)?;
    words.resize(len, 0);
    Ok(words)
}
