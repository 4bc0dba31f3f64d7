//! What a kernel refuses, before it touches memory.

use std::fmt;

use super::isa::IsaError;

/// Why a kernel was not run. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelError {
    /// The instruction set cannot be used on this machine.
    Isa(IsaError),
    /// Two sizes that must agree do not.
    Size {
        /// The thing whose size is wrong.
        what: &'static str,
        /// The size that the rest of the call asks for.
        expected: usize,
        /// The size it has.
        found: usize,
    },
    /// Something reaches past the end of its slice, table or matrix.
    Reach {
        /// The thing that reaches too far.
        what: &'static str,
        /// How many elements it needs; `usize::MAX` stands for more than can be counted.
        needs: usize,
        /// How many there are.
        has: usize,
    },
    /// A column range does not start and end where panels do.
    Columns {
        /// First column asked for.
        start: usize,
        /// Column after the last asked for.
        end: usize,
        /// Columns of a panel.
        panel: usize,
    },
    /// Memory for packed weights of this size cannot be had.
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
            KernelError::Columns { start, end, panel } => write!(
                f,
                "columns {start}..{end}: expected bounds that are multiples of {panel} or the last column; cut between panels"
            ),
            KernelError::Memory { k, n } => {
                write!(f, "no memory for packed weights of {k} x {n}; split the weights")
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

impl From<IsaError> for KernelError {
    fn from(error: IsaError) -> Self {
        KernelError::Isa(error)
    }
}

/// `Ok` if `found` is `expected`.
pub(super) fn same_size(what: &'static str, expected: usize, found: usize) -> Result<(), KernelError> {
    if expected == found { Ok(()) } else { Err(KernelError::Size { what, expected, found }) }
}

/// `Ok` if `has` is at least `needs`, where `None` stands for a size that overflowed.
pub(super) fn reaches(what: &'static str, needs: Option<usize>, has: usize) -> Result<(), KernelError> {
    match needs {
        Some(needs) if needs <= has => Ok(()),
        _ => Err(KernelError::Reach { what, needs: needs.unwrap_or(usize::MAX), has }),
    }
}
