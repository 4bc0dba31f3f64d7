//! Errors of the safe kernels, detected before any memory access.

use std::fmt;

use super::isa::IsaError;

/// The reason why a kernel did not run. Nothing was written.
#[derive(Clone, PartialEq, Eq)]
pub enum KernelError {
    /// The instruction set cannot be used on this machine.
    Isa(IsaError),
    /// Two sizes that must agree differ.
    Size {
        /// The thing whose size is wrong.
        what: &'static str,
        /// The size that the rest of the call requires.
        expected: usize,
        /// The actual size.
        found: usize,
    },
    /// An access would pass the end of its slice, table or matrix.
    Reach {
        /// The accessed thing.
        what: &'static str,
        /// How many elements it needs; `usize::MAX` after an overflow.
        needs: usize,
        /// How many there are.
        has: usize,
    },
    /// The allocation of packed weights of this size failed.
    Memory {
        /// Rows of the weights.
        k: usize,
        /// Columns of the weights.
        n: usize,
    },
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelError::Isa(error) => error.fmt(f),
            KernelError::Size { what, expected, found } => {
                write!(f, "{what}: expected {expected}, found {found}; pass sizes that agree")
            }
            KernelError::Reach { what, needs, has } => write!(
                f,
                "{what}: expected at least {needs} elements, found {has}; pass more or name fewer rows"
            ),
            KernelError::Memory { k, n } => {
                write!(f, "out of memory for packed weights of {k} x {n}; split the weights")
            }
        }
    }
}

impl std::error::Error for KernelError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            KernelError::Isa(error) => Some(error),
            _ => None,
        }
    }
}

autobatch_ir::debug_as_display!(KernelError);

impl From<IsaError> for KernelError {
    fn from(error: IsaError) -> Self {
        KernelError::Isa(error)
    }
}

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
