//! Ids of the planner's own numberings. The `Display` of an id is its spelling in every report.

use autobatch_ir::id::SigId;
use autobatch_ir::plan::{FieldId, SlabId};
use std::fmt;

/// A number that is the index of an [`IndexVec`](crate::index_vec::IndexVec).
pub(crate) trait Id: Copy {
    /// The id with this index.
    fn from_index(index: usize) -> Self;

    /// The index.
    fn to_index(self) -> usize;
}

macro_rules! id {
    ($($(#[$doc:meta])* $visible:vis $name:ident, $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        $visible struct $name(pub u32);

        impl $name {
            /// The number as an index of a list.
            #[inline]
            #[must_use]
            $visible const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl Id for $name {
            #[inline]
            fn from_index(index: usize) -> Self {
                Self(index as u32)
            }

            #[inline]
            fn to_index(self) -> usize {
                self.index()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    )*};
}

id! {
    /// A job: a node that needs a step. Jobs have numbers in topological order.
    pub JobId, "job";
    /// A type of jobs. Jobs of one type may share a batch.
    pub TypeIndex, "type";
    /// A row of a slab.
    pub RowId, "row";
    /// A wave: batches that do not read each other.
    pub WaveId, "wave";
    /// An operand port of a signature, numbered over all signatures.
    pub(crate) PortId, "port";
    /// A result of a signature, numbered over all signatures.
    pub(crate) ResultId, "result";
    /// A class of results that share a field.
    pub(crate) ClassId, "class";
    /// A block of rows that a step of a signature writes, numbered within the signature.
    pub(crate) BlockId, "block";
}

/// Ids of `autobatch-ir` that index lists of the planner.
macro_rules! foreign {
    ($($name:ident, $new:expr;)*) => {$(
        impl Id for $name {
            #[inline]
            fn from_index(index: usize) -> Self {
                $new(index)
            }

            #[inline]
            fn to_index(self) -> usize {
                self.index()
            }
        }
    )*};
}

foreign! {
    SigId, SigId::new;
    FieldId, |index| FieldId(index as u32);
    SlabId, |index| SlabId(index as u32);
}
