//! Interning: equal things get equal numbers, so that comparing them later is comparing words.

use crate::hash::hash_of;
use std::hash::Hash;

/// A table of distinct values in the order of their first appearance.
///
/// Open addressing over the values' numbers: four to eleven bytes a value beside the value itself,
/// and one allocation, so that a table is cheap to clone. Equality is always decided by comparing
/// the values in full.
#[derive(Clone, Debug)]
pub struct Interner<T> {
    items: Vec<T>,
    /// Numbers of items, plus one; 0 is free. A power of two, at most three quarters full.
    slots: Vec<u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { items: Vec::new(), slots: Vec::new() }
    }
}

impl<T: Hash + Eq> Interner<T> {
    /// The number of `item`, which is appended if it is new. The flag says whether it was.
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

    /// The number of `item`, if the table has it.
    pub fn find(&self, item: &T) -> Option<usize> {
        if self.slots.is_empty() { None } else { self.search(item).ok() }
    }

    /// The number of `item`, or the free slot where its number belongs.
    #[inline]
    fn search(&self, item: &T) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let mut slot = hash_of(item) as usize & mask;
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
            let mut slot = hash_of(item) as usize & mask;
            while self.slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = number as u32 + 1;
        }
    }

    /// Makes room for exactly so many more items.
    pub fn reserve(&mut self, more: usize) {
        self.items.reserve_exact(more);
        let size = ((self.items.len() + more + 1) * 4).div_ceil(3).next_power_of_two().max(8);
        if size > self.slots.len() {
            self.rebuild(size);
        }
    }

    /// Forgets every item but the first `len`.
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
mod tests {
    use super::*;

    #[test]
    fn equal_items_share_a_number() {
        let mut table = Interner::default();
        assert_eq!(table.intern("a"), (0, true));
        assert_eq!(table.intern("b"), (1, true));
        assert_eq!(table.intern("a"), (0, false));
        assert_eq!(table.find(&"b"), Some(1));
        assert_eq!(table.find(&"c"), None);
    }

    #[test]
    fn a_truncated_table_numbers_anew() {
        let mut table: Interner<_> = ["a", "b", "c"].into_iter().collect();
        table.truncate(1);
        assert_eq!(table.intern("c"), (1, true));
        assert_eq!(table.items(), ["a", "c"]);
    }
}
