//! Interning: equal things get equal numbers, so that comparing them later is comparing words.

use crate::hash::{BuildMix, hash_of};
use std::collections::HashMap;
use std::hash::Hash;

/// A table of distinct values in the order of their first appearance.
///
/// The map from hash to numbers is never iterated, so the table is deterministic; equality is
/// always decided by comparing the values in full.
#[derive(Clone, Debug)]
pub struct Interner<T> {
    items: Vec<T>,
    by_hash: HashMap<u64, Vec<u32>, BuildMix>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { items: Vec::new(), by_hash: HashMap::default() }
    }
}

impl<T: Hash + Eq> Interner<T> {
    /// The number of `item`, which is appended if it is new. The flag says whether it was.
    pub fn intern(&mut self, item: T) -> (usize, bool) {
        let bucket = self.by_hash.entry(hash_of(&item)).or_default();
        if let Some(&found) = bucket.iter().find(|&&n| self.items[n as usize] == item) {
            return (found as usize, false);
        }
        let number = self.items.len();
        bucket.push(u32::try_from(number).expect("fewer than 2^32 distinct items fit in memory"));
        self.items.push(item);
        (number, true)
    }

    /// The number of `item`, if the table has it.
    pub fn find(&self, item: &T) -> Option<usize> {
        let bucket = self.by_hash.get(&hash_of(item))?;
        bucket.iter().map(|&n| n as usize).find(|&n| self.items[n] == *item)
    }

    /// Makes room for exactly so many more items.
    pub fn reserve(&mut self, more: usize) {
        self.items.reserve_exact(more);
        self.by_hash.reserve(more);
    }

    /// Forgets every item but the first `len`.
    pub fn truncate(&mut self, len: usize) {
        for item in self.items.drain(len.min(self.items.len())..) {
            if let Some(bucket) = self.by_hash.get_mut(&hash_of(&item)) {
                bucket.retain(|&n| (n as usize) < len);
            }
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
