//! Interning: equal things get equal numbers, so that comparing them later is comparing words.

use crate::hash::BuildMix;
use std::hash::{BuildHasher, Hash};

/// A table of distinct values in the order of their first appearance.
///
/// Open addressing over the values' numbers: four to eleven bytes a value beside the value itself,
/// and one allocation, so that a table is cheap to clone. Equality is always decided by comparing
/// the values in full. Slots come from secret keys, so that files full of values that would meet in
/// one slot cannot be made; numbers do not depend on them.
#[derive(Clone, Debug)]
pub struct Interner<T> {
    items: Vec<T>,
    /// Numbers of items, plus one; 0 is free. A power of two, at most three quarters full.
    slots: Vec<u32>,
    hasher: BuildMix,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { items: Vec::new(), slots: Vec::new(), hasher: BuildMix::default() }
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
    use std::cell::Cell;
    use std::hash::Hasher;

    #[test]
    fn equal_items_share_a_number() {
        let mut table = Interner::default();
        assert_eq!(table.intern("a"), (0, true));
        assert_eq!(table.intern("b"), (1, true));
        assert_eq!(table.intern("a"), (0, false));
        assert_eq!(table.find(&"b"), Some(1));
        assert_eq!(table.find(&"c"), None);
    }

    thread_local! {
        static COMPARED: Cell<usize> = const { Cell::new(0) };
    }

    /// A key that counts how often it is compared.
    #[derive(Debug, Eq)]
    struct Key(u64);

    impl PartialEq for Key {
        fn eq(&self, other: &Self) -> bool {
            COMPARED.set(COMPARED.get() + 1);
            self.0 == other.0
        }
    }

    impl Hash for Key {
        fn hash<H: Hasher>(&self, hasher: &mut H) {
            hasher.write_u64(self.0);
        }
    }

    #[test]
    fn keys_that_would_meet_in_a_slot_of_fixed_keys_are_spread() {
        const COUNT: usize = 4000;
        let evil = || (0u64..).filter(|&key| BuildMix::fixed().hash_one(key) & 0xffff < 64).take(COUNT);
        let compared = |hasher: BuildMix| {
            let mut table = Interner { items: Vec::new(), slots: Vec::new(), hasher };
            let before = COMPARED.get();
            evil().for_each(|key| assert!(table.intern(Key(key)).1));
            COMPARED.get() - before
        };
        let (fixed, secret) = (compared(BuildMix::fixed()), compared(BuildMix::default()));
        assert!(fixed > COUNT * COUNT / 8, "{fixed} comparisons by fixed keys");
        assert!(secret < COUNT * 20, "{secret} comparisons by secret keys");
    }

    #[test]
    fn a_truncated_table_numbers_anew() {
        let mut table: Interner<_> = ["a", "b", "c"].into_iter().collect();
        table.truncate(1);
        assert_eq!(table.intern("c"), (1, true));
        assert_eq!(table.items(), ["a", "c"]);
    }
}
