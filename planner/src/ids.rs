//! Ids of the planner's own numberings. The `Display` of an id is its spelling in every report.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The number as an index of a list.
            #[inline]
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id!(
    /// A job: a node that needs a step. Jobs have numbers in topological order.
    JobId,
    "job"
);
id!(
    /// A type of jobs. Jobs of one type may share a batch.
    TypeIndex,
    "type"
);
id!(
    /// A row of a slab.
    RowId,
    "row"
);
id!(
    /// A wave: batches that do not read each other.
    WaveId,
    "wave"
);
