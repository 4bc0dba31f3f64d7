//! Types of values: an element type and a shape of rank 0 to 4, *per instance*.
//!
//! Models have no batch dimension. A list type such as `list f32[128]` has no storage. It stands for
//! any number of values, for ops and cell ports that accept a variable number.

use crate::getters::getters;
use crate::id::TypeId;
use crate::intern::Interner;
pub use crate::shape::{IntoShape, Shape, ShapeError};
use serde::{Deserialize, Serialize};
use std::fmt;

/// An element type.
///
/// Arithmetic uses `F32`. `F16` and `BF16` are storage formats of parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16, a storage format of parameters.
    F16,
    /// The upper half of a binary32, a storage format of parameters.
    BF16,
    /// Signed, two's complement, 32 bits.
    I32,
    /// Unsigned, 32 bits; the type of indices and labels.
    U32,
    /// Truth values, stored as one word each: 0 or 1.
    Bool,
}

impl DType {
    /// Every element type, in declaration order.
    pub const ALL: [Self; 6] = [Self::F32, Self::F16, Self::BF16, Self::I32, Self::U32, Self::Bool];

    /// The type's name in the text format.
    #[must_use]
    pub const fn spelling(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::Bool => "bool",
        }
    }

    /// The element type with this name.
    #[must_use]
    pub fn from_spelling(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dtype| dtype.spelling() == word)
    }

    /// The size of one stored element in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::F16 | Self::BF16 => 2,
            _ => 4,
        }
    }

    /// Whether ops compute with values of this type: all types but the storage formats and `Bool`.
    #[must_use]
    pub const fn is_number(self) -> bool {
        matches!(self, Self::F32 | Self::I32 | Self::U32)
    }

    /// The number that an element of a row means. A row holds integers and truth values as their bits.
    #[must_use]
    pub fn number(self, element: f32) -> f32 {
        match self {
            Self::U32 | Self::Bool => element.to_bits() as f32,
            Self::I32 => element.to_bits() as i32 as f32,
            Self::F32 | Self::F16 | Self::BF16 => element,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spelling())
    }
}

/// An element type with a shape, or a list of such values.
///
/// Human-readable formats store the spelling, `"list f32[128]"`; binary formats store the fields.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Type {
    /// The element type.
    pub dtype: DType,
    /// The extents of one value.
    pub shape: Shape,
    /// Whether the type is a list of such values.
    pub is_list: bool,
}

/// The type of an index: one unsigned number. A binding supplies it, or a step computes it.
pub const INDEX: Type = Type::new(DType::U32, Shape::SCALAR);

impl Type {
    /// The type of a single value with this element type and shape.
    #[must_use]
    pub const fn new(dtype: DType, shape: Shape) -> Self {
        Self { dtype, shape, is_list: false }
    }

    /// The type of a single number. Losses have such a type.
    #[must_use]
    pub const fn scalar(dtype: DType) -> Self {
        Self::new(dtype, Shape::SCALAR)
    }

    /// This type with another shape.
    #[must_use]
    pub const fn with_shape(self, shape: Shape) -> Self {
        Self { shape, ..self }
    }

    /// The element type of a list type; any other type unchanged.
    #[must_use]
    pub const fn element(self) -> Self {
        Self { is_list: false, ..self }
    }

    /// The size of one value in bytes; 0 for lists, which have no storage.
    #[must_use]
    pub fn bytes(&self) -> usize {
        if self.is_list { 0 } else { self.shape.elements() * self.dtype.bytes() }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_list {
            f.write_str("list ")?;
        }
        write!(f, "{}", self.dtype)?;
        if self.shape.rank() > 0 { write!(f, "{}", self.shape) } else { Ok(()) }
    }
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for Type {
    type Err = String;

    /// Parses the spelling of a type, without surrounding spaces.
    fn from_str(text: &str) -> Result<Self, String> {
        let (is_list, value) = match text.strip_prefix("list ") {
            Some(value) => (true, value),
            None => (false, text),
        };
        let (word, dims) = match value.split_once('[') {
            Some((word, rest)) => (word, rest.strip_suffix(']').ok_or("a shape ends with ']'")?),
            None => (value, ""),
        };
        let dtype = DType::from_spelling(word).ok_or_else(|| {
            let known = DType::ALL.map(DType::spelling).join(", ");
            format!("an element type is one of {known}, found {:?}", word.get(..16).unwrap_or(word))
        })?;
        let mut extents = [0; Shape::MAX_RANK];
        let mut rank = 0;
        for dim in dims.split(',').filter(|_| !dims.is_empty()) {
            let slot = extents.get_mut(rank).ok_or_else(|| ShapeError::Rank(rank + 1).to_string())?;
            *slot = dim.parse().map_err(|_| "an extent is a whole number".to_owned())?;
            rank += 1;
        }
        let shape = Shape::new(&extents[..rank]).map_err(|error| error.to_string())?;
        Ok(Self { dtype, shape, is_list })
    }
}

impl Serialize for Type {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return serializer.collect_str(self);
        }
        (self.dtype, self.shape, self.is_list).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Type {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            return text.parse().map_err(serde::de::Error::custom);
        }
        let (dtype, shape, is_list) = Deserialize::deserialize(deserializer)?;
        Ok(Self { dtype, shape, is_list })
    }
}

/// The type of a cell port that takes one value: `f32([128])`.
///
/// # Panics
/// If the extents are not a valid shape. Ports are declared once, in the model's constructor.
#[must_use]
#[track_caller]
pub fn f32(shape: impl IntoShape) -> Type {
    match shape.into_shape() {
        Ok(shape) => Type::new(DType::F32, shape),
        Err(error) => panic!("{error}"),
    }
}

/// The type of a cell port that takes any number of values: `list(f32([128]))`.
#[must_use]
pub const fn list(element: Type) -> Type {
    Type { is_list: true, ..element }
}

/// The interned types of a module or graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Types(Interner<Type>);

impl Types {
    /// Interns `ty` and returns its id.
    pub fn intern(&mut self, ty: Type) -> TypeId {
        TypeId::new(self.0.intern(ty).0)
    }

    getters! {
        /// The id of `ty`, if the table contains it.
        find(self, ty: &Type) -> Option<TypeId> = self.0.find(ty).map(TypeId::new);
        /// The type with this id.
        get(self, id: TypeId) -> Type = self.0.items()[id.index()];
        /// All types in the order of their ids.
        items(self) -> &[Type] = self.0.items();
    }

    pub(crate) fn reserve(&mut self, more: usize) {
        self.0.reserve(more);
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }
}

impl FromIterator<Type> for Types {
    fn from_iter<I: IntoIterator<Item = Type>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}
