//! Ids of the planner's own numberings. The `Display` of an id is its spelling in every report.

use autobatch_ir::id::{SigId, ValueId};
use autobatch_ir::plan::{FieldId, SlabId};
use bytemuck::TransparentWrapper;
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
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, TransparentWrapper)]
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
    /// A job of a part of a scheduling problem, numbered within the part in the order of all jobs.
    pub(crate) LocalJob, "job";
    /// A type of a part of a scheduling problem, numbered within the part in the order of all types.
    pub(crate) LocalType, "type";
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
    /// A row before the layout moves it, numbered over all slabs, slab after slab.
    pub(crate) ProvisionalRow, "provisional row";
    /// A batch of the order, in execution order.
    pub(crate) BatchId, "batch";
    /// One result or operand of a batch, over all its lanes, numbered over all batches.
    pub(crate) SlotId, "slot";
    /// A lane of a batch, as the layout problem numbers them.
    pub(crate) Lane, "lane";
    /// A list of rows that operands read.
    pub(crate) ListId, "list";
    /// A block of rows that a step of a signature writes, numbered within the signature.
    pub(crate) BlockId, "block";
}

/// A type of jobs, or an alone job as a type of its own. The numbers of alone jobs follow those of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TransparentWrapper)]
#[repr(transparent)]
pub(crate) struct KindId(pub(crate) TypeIndex);

impl KindId {
    /// Stands for all kinds where they do not matter.
    pub(crate) const ANY: Self = Self(TypeIndex(0));
}

impl Id for KindId {
    #[inline]
    fn from_index(index: usize) -> Self {
        Self(TypeIndex::from_index(index))
    }

    #[inline]
    fn to_index(self) -> usize {
        self.0.index()
    }
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
    ValueId, ValueId::new;
    FieldId, |index| FieldId(index as u32);
    SlabId, |index| SlabId(index as u32);
}
