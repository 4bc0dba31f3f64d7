//! A list that is indexed by ids of one numbering.

use crate::ids::Id;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Index, IndexMut, Range, RangeFrom};

/// A list with one item for each id. Its methods besides indexing are those of slices.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct IndexVec<I, T> {
    items: Vec<T>,
    ids: PhantomData<fn(I)>,
}

impl<I, T> Default for IndexVec<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I, T: fmt::Debug> fmt::Debug for IndexVec<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.items.fmt(f)
    }
}

impl<I, T> IndexVec<I, T> {
    /// A list without items.
    pub(crate) const fn new() -> Self {
        Self { items: Vec::new(), ids: PhantomData }
    }
}

impl<I: Id, T> IndexVec<I, T> {
    /// The id of the next item.
    #[inline]
    pub(crate) fn next_id(&self) -> I {
        I::from_index(self.items.len())
    }

    /// Appends an item and gives its id.
    #[inline]
    pub(crate) fn push(&mut self, item: T) -> I {
        let id = self.next_id();
        self.items.push(item);
        id
    }

    /// All ids, ascending.
    pub(crate) fn ids(&self) -> impl DoubleEndedIterator<Item = I> + Clone + use<I, T> {
        (0..self.items.len()).map(I::from_index)
    }

    /// The items with their ids.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (I, &T)> {
        self.ids().zip(&self.items)
    }

    /// The item of an id, if there is one.
    #[inline]
    pub(crate) fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.to_index())
    }

    /// The item of an id to change, if there is one.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.items.get_mut(id.to_index())
    }

    pub(crate) fn clear(&mut self) {
        self.items.clear();
    }

    /// Appends items.
    pub(crate) fn extend(&mut self, items: impl IntoIterator<Item = T>) {
        self.items.extend(items);
    }

    /// Sets the number of items. New ones are copies of one.
    pub(crate) fn resize(&mut self, length: usize, item: T)
    where
        T: Clone,
    {
        self.items.resize(length, item);
    }

    /// Sets the number of items.
    pub(crate) fn resize_with(&mut self, length: usize, item: impl FnMut() -> T) {
        self.items.resize_with(length, item);
    }

    /// Replaces all items by copies of one.
    pub(crate) fn refill(&mut self, length: usize, item: T)
    where
        T: Clone,
    {
        self.items.clear();
        self.items.resize(length, item);
    }

    /// Appends items until there is one for each of `length` ids.
    pub(crate) fn grow_with(&mut self, length: usize, item: impl FnMut() -> T) {
        if self.items.len() < length {
            self.items.resize_with(length, item);
        }
    }
}

impl<I, T> Deref for IndexVec<I, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<I, T> DerefMut for IndexVec<I, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}

impl<I: Id, T> Index<I> for IndexVec<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, id: I) -> &T {
        &self.items[id.to_index()]
    }
}

impl<I: Id, T> IndexMut<I> for IndexVec<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.to_index()]
    }
}

impl<I: Id, T> Index<Range<I>> for IndexVec<I, T> {
    type Output = [T];

    #[inline]
    fn index(&self, ids: Range<I>) -> &[T] {
        &self.items[ids.start.to_index()..ids.end.to_index()]
    }
}

impl<I: Id, T> IndexMut<Range<I>> for IndexVec<I, T> {
    #[inline]
    fn index_mut(&mut self, ids: Range<I>) -> &mut [T] {
        &mut self.items[ids.start.to_index()..ids.end.to_index()]
    }
}

impl<I: Id, T> Index<RangeFrom<I>> for IndexVec<I, T> {
    type Output = [T];

    #[inline]
    fn index(&self, ids: RangeFrom<I>) -> &[T] {
        &self.items[ids.start.to_index()..]
    }
}

impl<I: Id, T> IndexMut<RangeFrom<I>> for IndexVec<I, T> {
    #[inline]
    fn index_mut(&mut self, ids: RangeFrom<I>) -> &mut [T] {
        &mut self.items[ids.start.to_index()..]
    }
}

impl<'a, I, T> IntoIterator for &'a IndexVec<I, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

/// Consecutive ids for the members of each key, key after key.
#[derive(Debug)]
pub(crate) struct Bases<K, I> {
    first: IndexVec<K, u32>,
    ids: PhantomData<fn() -> I>,
}

impl<K, I> Default for Bases<K, I> {
    fn default() -> Self {
        Self { first: IndexVec::default(), ids: PhantomData }
    }
}

impl<K: Id, I: Id> Bases<K, I> {
    /// Numbers the members of all keys, of which each has this many.
    pub(crate) fn number(&mut self, counts: impl Iterator<Item = usize>) {
        self.first.clear();
        let mut next = 0;
        for count in counts {
            self.first.push(next);
            next += count as u32;
        }
    }

    /// The id of the member of a key at a place.
    #[inline]
    pub(crate) fn of(&self, key: K, place: usize) -> I {
        I::from_index(self.first[key] as usize + place)
    }
}
