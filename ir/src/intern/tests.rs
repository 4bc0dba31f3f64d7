//! Tests of interning.

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

/// A key that counts its comparisons.
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
fn secret_keys_spread_keys_that_collide_under_fixed_keys() {
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
fn a_truncated_table_reuses_numbers() {
    let mut table: Interner<_> = ["a", "b", "c"].into_iter().collect();
    table.truncate(1);
    assert_eq!(table.intern("c"), (1, true));
    assert_eq!(table.items(), ["a", "c"]);
}
