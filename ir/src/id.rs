//! Names of things: `u32` newtypes with a niche, so that an `Option` of one costs nothing.
//!
//! The [`Display`](std::fmt::Display) of an id is its spelling in text, error messages and
//! reports; there is no second way to spell one.

use std::fmt;
use std::num::NonZeroU32;

/// The largest index that an id can carry. Two bits of an operand word say what the operand is,
/// so thirty remain for the index.
pub const MAX_INDEX: usize = (1 << 30) - 2;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $spelling:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(bytemuck::NoUninit, bytemuck::CheckedBitPattern)]
        #[repr(transparent)]
        pub struct $name(NonZeroU32);

        impl $name {
            /// The id with this index.
            ///
            /// # Panics
            /// If `index` exceeds [`MAX_INDEX`]: arenas refuse to grow that far first.
            #[inline]
            #[must_use]
            pub const fn new(index: usize) -> Self {
                assert!(index <= MAX_INDEX, "an id's index must fit in thirty bits");
                match NonZeroU32::new(index as u32 + 1) {
                    Some(raw) => Self(raw),
                    None => unreachable!(),
                }
            }

            /// The id with this index, if an id can carry it: the door for numbers from files.
            #[inline]
            #[must_use]
            pub const fn try_new(index: usize) -> Option<Self> {
                if index <= MAX_INDEX { Some(Self::new(index)) } else { None }
            }

            /// The position in the arena that the id names.
            #[inline]
            #[must_use]
            pub const fn index(self) -> usize {
                self.0.get() as usize - 1
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($spelling, "{}"), self.index())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_u32(self.index() as u32)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let index = u32::deserialize(deserializer)?;
                Self::try_new(index as usize)
                    .ok_or_else(|| serde::de::Error::custom("an id's index must fit in thirty bits"))
            }
        }
    };
}

id!(
    /// A result of a node: `%12`.
    ValueId,
    "%"
);
id!(
    /// A node of an op or a cell, by its place in the arena: `a12`.
    NodeId,
    "a"
);
id!(
    /// An interned type: `type3`.
    TypeId,
    "type"
);
id!(
    /// An interned signature: `sig5`.
    SigId,
    "sig"
);
id!(
    /// A parameter or table of a module: `param2`. Text uses the declared name, `@w`, instead.
    ParamId,
    "param"
);
id!(
    /// A traced cell of a module: `cell1`. Text uses the declared name, `@node`, instead.
    CellId,
    "cell"
);
id!(
    /// A place in the user's source: `!7`.
    SiteId,
    "!"
);
