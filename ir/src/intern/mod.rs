//! Interning: equal items get equal numbers, so later comparisons compare words.

use crate::hash::BuildMix;
use std::hash::{BuildHasher, Hash};

/// A table of distinct items in the order of their first appearance.
///
/// The table uses open addressing over item numbers. It costs four to eleven bytes per item beside the item, in one
/// allocation, so cloning is cheap. Equality always compares items in full. Slots depend on secret keys, so a file cannot be
/// forged whose items all collide. Item numbers do not depend on the keys.
#[derive(Clone, Debug)]
pub struct Interner<T> {
    items: Vec<T>,
    /// Item numbers plus one; 0 marks a free slot. The length is a power of two; at most three quarters are in use.
    slots: Vec<u32>,
    hasher: BuildMix,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { items: Vec::new(), slots: Vec::new(), hasher: BuildMix::default() }
    }
}

impl<T: Hash + Eq> Interner<T> {
    /// Returns the number of `item` and whether it is new. A new item is appended.
    pub fn intern(&mut self, item: T) -> (usize, bool) {
        if (self.items.len() + 1) * 4 > self.slots.len() * 3 {
            self.rebuild((self.slots.len() * 2).max(8));
        }
        match self.search(&item) {
            Ok(found) => (found, false),
            Err(slot) => {
                self.items.push(item);
                let count = self.items.len();
                self.slots[slot] =
                    u32::try_from(count).expect("fewer than 2^32 distinct items fit in memory");
                (count - 1, true)
            }
        }
    }

    /// The number of `item`, if the table contains it.
    pub fn find(&self, item: &T) -> Option<usize> {
        if self.slots.is_empty() { None } else { self.search(item).ok() }
    }

    /// The number of `item`, or the free slot for it.
    #[inline]
    fn search(&self, item: &T) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let mut slot = self.hasher.hash_one(item) as usize & mask;
        loop {
            match self.slots[slot] {
                0 => return Err(slot),
                number if self.items[number as usize - 1] == *item => return Ok(number as usize - 1),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    fn rebuild(&mut self, size: usize) {
        self.slots.clear();
        self.slots.resize(size, 0);
        let mask = size - 1;
        for (number, item) in self.items.iter().enumerate() {
            let mut slot = self.hasher.hash_one(item) as usize & mask;
            while self.slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = number as u32 + 1;
        }
    }

    /// Reserves memory for exactly `more` further items.
    pub fn reserve(&mut self, more: usize) {
        self.items.reserve_exact(more);
        let size = ((self.items.len() + more + 1) * 4).div_ceil(3).next_power_of_two().max(8);
        if size > self.slots.len() {
            self.rebuild(size);
        }
    }

    /// Removes all items after the first `len`.
    pub fn truncate(&mut self, len: usize) {
        if len < self.items.len() {
            self.items.truncate(len);
            self.rebuild(self.slots.len());
        }
    }
}

impl<T> Interner<T> {
    /// The items in the order of their numbers.
    #[inline]
    pub fn items(&self) -> &[T] {
        &self.items
    }
}

impl<T: Eq> PartialEq for Interner<T> {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl<T: Hash + Eq> FromIterator<T> for Interner<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut table = Self::default();
        for item in items {
            table.intern(item);
        }
        table
    }
}

#[cfg(test)]
mod tests;
