//! Typed ids: numbers of one list each, and the macros that define them.
//!
//! Text, error messages and reports all print an id with its [`Display`](std::fmt::Display).

use std::num::NonZeroU32;

/// The largest index of an id. An operand word uses two bits for its tag, which leaves thirty for the index.
pub const MAX_INDEX: usize = (1 << 30) - 2;

/// A number that names an item of one list.
pub trait Id: Copy {
    /// The id with this index.
    fn from_index(index: usize) -> Self;

    /// The index.
    fn to_index(self) -> usize;
}

/// Implements the traits of all ids: their spelling, and [`Id`] from their own `index` and `$new`.
#[doc(hidden)]
#[macro_export]
macro_rules! id_traits {
    ($name:ident, $spelling:literal, $new:expr) => {
        impl $crate::id::Id for $name {
            #[inline]
            fn from_index(index: usize) -> Self {
                $new(index)
            }

            #[inline]
            fn to_index(self) -> usize {
                self.index()
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(f, concat!($spelling, "{}"), self.index())
            }
        }

        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(self, f)
            }
        }
    };
}

/// Defines ids whose number is public, each with its spelling. A slice of numbers is a slice of ids by
/// `bytemuck::TransparentWrapper`.
#[doc(hidden)]
#[macro_export]
macro_rules! ids {
    ($($(#[$doc:meta])* $visible:vis $name:ident, $spelling:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(bytemuck::TransparentWrapper, serde::Serialize, serde::Deserialize)]
        #[repr(transparent)]
        #[serde(transparent)]
        $visible struct $name(pub u32);

        impl $name {
            /// The position in the list that the id names.
            #[inline]
            #[must_use]
            $visible const fn index(self) -> usize {
                self.0 as usize
            }
        }

        $crate::id_traits!($name, $spelling, |index| Self(index as u32));
    )*};
}

/// Defines ids with a niche, so that `Option` takes no extra space.
macro_rules! niche_ids {
    ($($(#[$doc:meta])* $name:ident, $spelling:literal;)*) => {$(
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

        $crate::id_traits!($name, $spelling, Self::new);

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
    )*};
}

niche_ids! {
    /// A result of a node: `%12`.
    ValueId, "%";
    /// A node, by its position in the arena: `n12`.
    NodeId, "n";
    /// An interned type: `type3`.
    TypeId, "type";
    /// An interned signature: `sig5`.
    SigId, "sig";
    /// A parameter or table of a module: `param2`. Text uses the declared name, `@w`, instead.
    ParamId, "param";
    /// A traced cell of a module: `cell1`. Text uses the declared name, `@node`, instead.
    CellId, "cell";
    /// A source location: `!7`.
    SiteId, "!";
}
