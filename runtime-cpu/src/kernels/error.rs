//! Errors of the safe kernels, detected before any memory access.

use super::isa::IsaError;

/// The reason why a kernel did not run. Nothing was written.
#[expect(missing_docs, reason = "the messages explain the fields")]
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// The instruction set cannot be used on this machine.
    #[error(transparent)]
    Isa(#[from] IsaError),
    /// Two sizes that must agree differ.
    #[error("{what}: expected {expected}, found {found}; pass sizes that agree")]
    Size { what: &'static str, expected: usize, found: usize },
    /// An access would pass the end of its slice, table or matrix. `needs` is `usize::MAX` after an overflow.
    #[error("{what}: expected at least {needs} elements, found {has}; pass more or name fewer rows")]
    Reach { what: &'static str, needs: usize, has: usize },
    /// The allocation of packed weights of `k` rows and `n` columns failed.
    #[error("out of memory for packed weights of {k} x {n}; split the weights")]
    Memory { k: usize, n: usize },
}

autobatch_ir::debug_as_display!(KernelError);

/// Checks that `found` is `expected`.
pub(super) fn same_size(what: &'static str, expected: usize, found: usize) -> Result<(), KernelError> {
    if expected == found { Ok(()) } else { Err(KernelError::Size { what, expected, found }) }
}

/// Checks that `has` is at least `needs`; `None` is a size that overflowed.
pub(super) fn reaches(what: &'static str, needs: Option<usize>, has: usize) -> Result<(), KernelError> {
    match needs {
        Some(needs) if needs <= has => Ok(()),
        _ => Err(KernelError::Reach { what, needs: needs.unwrap_or(usize::MAX), has }),
    }
}
