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
    /// The elements of an `i32`, `u32` or `bool` value, as words.
    Words(Words),
    /// The elements of a list, by id. A list has no storage of its own. An id beyond the values of the arena denotes a
    /// bound element of the list.
    List(Arc<[ValueId]>),
}

/// The elements of a value that is not a float.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// One word per element; a bool is 0 or 1.
    pub words: Arc<[u32]>,
    /// For each element its bound word, if it is [bound](super#indices); empty if no element is.
    pub bound: Arc<[Option<BoundWord>]>,
}

/// An element of a vector of bound words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundWord {
    /// The first bound word of the vector in the graph.
    pub vector: u32,
    /// The index of the element.
    pub element: u32,
}

impl Words {
    /// Returns whether the elements are a contiguous range of one bound vector. Such indices are checked; others are clamped.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        let Some(Some(first)) = self.bound.first().copied() else { return false };
        let next = |number: usize| BoundWord { element: first.element + number as u32, ..first };
        let mut elements = self.bound.iter().enumerate();
        self.bound.len() == self.words.len() && elements.all(|(number, word)| *word == Some(next(number)))
    }
}

impl<T> Datum<T> {
    pub(crate) fn floats(elements: impl Into<Arc<[T]>>) -> Self {
        Self::Floats(elements.into())
    }

    /// Words that an op computed.
    pub(crate) fn computed(words: impl Into<Arc<[u32]>>) -> Self {
        Self::Words(Words { words: words.into(), bound: Arc::default() })
    }

    /// Marks the elements as computed.
    pub(crate) fn forget_bound(&mut self) {
        if let Self::Words(words) = self
            && !words.bound.is_empty()
        {
            words.bound = Arc::default();
        }
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
    pub(crate) fn words(&self, ty: Type) -> Checked<&Words> {
        match self {
            Self::One(Datum::Words(words)) if words.words.len() == ty.shape.elements() => Ok(words),
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
            Datum::Words(words) => Some(&words.words),
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
