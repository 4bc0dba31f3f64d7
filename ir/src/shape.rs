//! Shapes of values: rank 0 to 4, per instance, every extent at least 1.

use crate::getters::getters;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The extents of a value, outermost first; every extent is at least 1.
///
/// Unused array elements are zero, so equality and hashing ignore the rank.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    dims: [u32; Shape::MAX_RANK],
    rank: u8,
}

impl Shape {
    /// The maximum rank of a value.
    pub const MAX_RANK: usize = 4;
    /// The maximum number of elements of a value. Byte offsets inside a value then fit in 32 bits.
    pub const MAX_ELEMENTS: u64 = 1 << 29;
    /// The shape of a single number.
    pub const SCALAR: Self = Self { dims: [0; Self::MAX_RANK], rank: 0 };

    /// The shape with these extents.
    ///
    /// # Errors
    /// If there are more than four extents, one is zero, or there are too many elements.
    pub fn new(dims: &[u32]) -> Result<Self, ShapeError> {
        if dims.len() > Self::MAX_RANK {
            return Err(ShapeError::Rank(dims.len()));
        }
        if let Some(axis) = dims.iter().position(|&extent| extent == 0) {
            return Err(ShapeError::ZeroExtent(axis));
        }
        let elements = dims.iter().try_fold(1u64, |n, &extent| n.checked_mul(u64::from(extent)));
        if elements.is_none_or(|n| n > Self::MAX_ELEMENTS) {
            return Err(ShapeError::TooLarge);
        }
        let mut shape = Self::SCALAR;
        shape.dims[..dims.len()].copy_from_slice(dims);
        shape.rank = dims.len() as u8;
        Ok(shape)
    }

    getters! {
        /// The extents, outermost first.
        dims(self) -> &[u32] = &self.dims[..self.rank as usize];
        /// The number of extents.
        rank(self) -> usize = self.rank as usize;
        /// The number of elements; 1 for a scalar.
        elements(self) -> usize = self.dims().iter().map(|&extent| extent as usize).product();
        /// The innermost extent; 1 for a scalar.
        width(self) -> usize = self.dims().last().map_or(1, |&extent| extent as usize);
        /// The number of rows of [`width`](Self::width) elements.
        rows(self) -> usize = self.elements() / self.width();
    }

    /// The shape without its innermost extent; a scalar stays a scalar.
    #[must_use]
    pub fn without_last(&self) -> Self {
        let rank = self.rank().saturating_sub(1);
        Self::new(&self.dims[..rank]).expect("a part of a valid shape is valid")
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (axis, extent) in self.dims().iter().enumerate() {
            write!(f, "{}{extent}", if axis == 0 { "" } else { "," })?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Shape {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.dims())
    }
}

/// Reads into a fixed array, so a forged number of extents allocates nothing.
impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Extents;
        impl<'de> serde::de::Visitor<'de> for Extents {
            type Value = Shape;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "at most {} extents", Shape::MAX_RANK)
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Shape, A::Error> {
                let mut dims = [0; Shape::MAX_RANK];
                let mut rank = 0;
                while let Some(extent) = seq.next_element()? {
                    let error = || serde::de::Error::custom(ShapeError::Rank(rank + 1));
                    *dims.get_mut(rank).ok_or_else(error)? = extent;
                    rank += 1;
                }
                Shape::new(&dims[..rank]).map_err(serde::de::Error::custom)
            }
        }
        deserializer.deserialize_seq(Extents)
    }
}

/// Extents as a user writes them: `[h]`, `[rows, cols]`, `[]`, or a [`Shape`].
///
/// The function that receives an invalid shape reports it with the user's line.
pub trait IntoShape {
    /// Validates the extents.
    ///
    /// # Errors
    /// As [`Shape::new`], and if an extent exceeds 32 bits.
    fn into_shape(self) -> Result<Shape, ShapeError>;
}

impl IntoShape for Shape {
    fn into_shape(self) -> Result<Shape, ShapeError> {
        Ok(self)
    }
}

impl IntoShape for usize {
    fn into_shape(self) -> Result<Shape, ShapeError> {
        [self].into_shape()
    }
}

impl<const RANK: usize> IntoShape for [usize; RANK] {
    fn into_shape(self) -> Result<Shape, ShapeError> {
        self.as_slice().into_shape()
    }
}

impl IntoShape for &[usize] {
    fn into_shape(self) -> Result<Shape, ShapeError> {
        if self.len() > Shape::MAX_RANK {
            return Err(ShapeError::Rank(self.len()));
        }
        let dims: Option<Vec<u32>> = self.iter().map(|&extent| u32::try_from(extent).ok()).collect();
        Shape::new(&dims.ok_or(ShapeError::TooLarge)?)
    }
}

/// Why extents are not a valid shape.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// More than [`Shape::MAX_RANK`] extents.
    #[error("a shape has at most {MAX_RANK} extents, found {0}", MAX_RANK = Shape::MAX_RANK)]
    Rank(usize),
    /// The extent of this axis is zero.
    #[error("extent {0} of a shape is zero; extents start at 1")]
    ZeroExtent(usize),
    /// More than [`Shape::MAX_ELEMENTS`] elements.
    #[error("a value has at most {} elements", Shape::MAX_ELEMENTS)]
    TooLarge,
}

crate::debug_as_display!(ShapeError);
