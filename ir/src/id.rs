//! Typed ids: `u32` newtypes with a niche, so `Option<Id>` takes no extra space.
//!
//! Text, error messages and reports all print an id with its [`Display`](std::fmt::Display).

use std::fmt;
use std::num::NonZeroU32;

/// The largest index of an id. An operand word uses two bits for its tag, which leaves thirty for the index.
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
            /// If `index` exceeds [`MAX_INDEX`]. Arenas check their size before.
            #[inline]
            #[must_use]
            pub const fn new(index: usize) -> Self {
                assert!(index <= MAX_INDEX, "an id's index must fit in thirty bits");
                match NonZeroU32::new(index as u32 + 1) {
                    Some(raw) => Self(raw),
                    None => unreachable!(),
                }
            }

            /// The id with this index; `None` if the index is too large. For numbers read from files.
            #[inline]
            #[must_use]
            pub const fn try_new(index: usize) -> Option<Self> {
                if index <= MAX_INDEX { Some(Self::new(index)) } else { None }
            }

            /// The position in the arena or table.
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
    /// A node, by its position in the arena: `n12`.
    NodeId,
    "n"
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
    /// A source location: `!7`.
    SiteId,
    "!"
);
