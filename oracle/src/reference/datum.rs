//! Values of the interpreter. Elements are shared, so clones are cheap.

use super::error::{Checked, malformed};
use autobatch_ir::id::ValueId;
use autobatch_ir::numeric::noise::Noise;
use autobatch_ir::types::Type;
use std::sync::Arc;

/// The elements of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum<T> {
    /// The elements of an `f32` value, row by row.
    Floats(Arc<[T]>),
    /// The elements of an `i32`, `u32` or `bool` value, as words; a bool is 0 or 1.
    Words(Arc<[u32]>),
    /// The elements of a list, by id. A list has no storage of its own. An id beyond the values of the arena denotes a
    /// bound element of the list.
    List(Arc<[ValueId]>),
}

impl<T> Datum<T> {
    pub(crate) fn floats(elements: impl Into<Arc<[T]>>) -> Self {
        Self::Floats(elements.into())
    }

    pub(crate) fn words(elements: impl Into<Arc<[u32]>>) -> Self {
        Self::Words(elements.into())
    }
}

/// An operand of an op.
#[derive(Clone, Debug)]
pub(crate) enum Argument<T> {
    One(Datum<T>),
    Many(Vec<Datum<T>>),
}

impl<T> Argument<T> {
    /// The elements of a float operand of this type.
    pub(crate) fn floats(&self, ty: Type) -> Checked<&Arc<[T]>> {
        match self {
            Self::One(Datum::Floats(elements)) if elements.len() == ty.shape.elements() => Ok(elements),
            _ => malformed(format!("an operand is not the {ty} that the signature says")),
        }
    }

    /// The elements of an operand of words of this type.
    pub(crate) fn words(&self, ty: Type) -> Checked<&Arc<[u32]>> {
        match self {
            Self::One(Datum::Words(words)) if words.len() == ty.shape.elements() => Ok(words),
            _ => malformed(format!("an operand is not the {ty} that the signature says")),
        }
    }

    /// The elements of the float values of a list of this type.
    pub(crate) fn rows(&self, ty: Type) -> Checked<Vec<&[T]>> {
        let Self::Many(items) = self else {
            return malformed("an operand is not the list that the signature says");
        };
        items
            .iter()
            .map(|item| match item {
                Datum::Floats(elements) if elements.len() == ty.shape.elements() => Ok(&elements[..]),
                _ => malformed(format!("an element of a list is not as in {ty}")),
            })
            .collect()
    }
}

/// The result of an evaluation: the elements of every value.
#[derive(Clone, Debug)]
pub struct Run<T> {
    /// By slot: the values of the graph, then bound elements of lists.
    pub(crate) slots: Vec<Option<Datum<T>>>,
    /// The noise that dropout drew, which the reverse must share.
    pub(crate) noise: Noise,
}

impl<T> Run<T> {
    /// A value; `None` if the graph has no such value.
    #[must_use]
    pub fn value(&self, id: ValueId) -> Option<&Datum<T>> {
        self.slots.get(id.index())?.as_ref()
    }

    /// The elements of a float value; `None` if the graph has no such float value.
    #[must_use]
    pub fn floats(&self, id: ValueId) -> Option<&[T]> {
        match self.value(id)? {
            Datum::Floats(elements) => Some(elements),
            Datum::Words(_) | Datum::List(_) => None,
        }
    }

    /// The elements of an `i32`, `u32` or `bool` value; `None` if the graph has no such value.
    #[must_use]
    pub fn words(&self, id: ValueId) -> Option<&[u32]> {
        match self.value(id)? {
            Datum::Words(words) => Some(words),
            Datum::Floats(_) | Datum::List(_) => None,
        }
    }

    /// The values that a list names; `None` if the graph has no such list.
    #[must_use]
    pub fn list(&self, id: ValueId) -> Option<&[ValueId]> {
        match self.value(id)? {
            Datum::List(items) => Some(items),
            Datum::Floats(_) | Datum::Words(_) => None,
        }
    }

    /// The noise that dropout drew.
    #[must_use]
    pub const fn noise(&self) -> Noise {
        self.noise
    }
}
