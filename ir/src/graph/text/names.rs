//! What the names in a text stand for.
//!
//! A name is kept as the place where it was declared, so a table costs twelve to twenty bytes a
//! name however long names are. Names that are their own numbers, `%0 %1 %2 ..` in order, which is
//! how graphs are printed, cost nothing at all.

use super::lex::is_name;
use super::number;
use crate::hash::BuildMix;
use std::hash::{BuildHasher, Hasher};

/// Names of one kind, from a sigil each.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The names `0`, `1`, .. up to here stand for these numbers.
    counted: u32,
    /// All other names: where they were declared and what they stand for.
    entries: Vec<(u32, u32)>,
    /// Open addressing over the entries, plus one; a power of two and at most half full.
    slots: Vec<u32>,
    hasher: BuildMix,
}

impl Names {
    /// Forgets all names. The slots go, so that many small scopes behind a large one stay cheap.
    pub(crate) fn clear(&mut self) {
        self.counted = 0;
        if !self.entries.is_empty() {
            self.entries.clear();
            self.slots = Vec::new();
        }
    }

    /// What the name stands for.
    #[inline]
    pub(crate) fn find(&self, text: &[u8], name: &[u8]) -> Option<u32> {
        if let Some(number) = own_number(name)
            && number < self.counted
        {
            return Some(number);
        }
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut slot = self.hash(name) as usize & mask;
        while self.slots[slot] != 0 {
            let (place, id) = self.entries[self.slots[slot] as usize - 1];
            if declared(text, place) == name {
                return Some(id);
            }
            slot = (slot + 1) & mask;
        }
        None
    }

    /// Declares the name at `place` to stand for `id`; false if the name is taken.
    #[inline]
    pub(crate) fn declare(&mut self, text: &[u8], place: u32, id: u32) -> bool {
        let name = declared(text, place);
        if self.entries.is_empty() && id == self.counted && own_number(name) == Some(id) {
            self.counted += 1;
            return true;
        }
        if self.find(text, name).is_some() {
            return false;
        }
        self.entries.push((place, id));
        if self.entries.len() * 2 > self.slots.len() {
            self.grow(text);
        } else {
            self.place(text, self.entries.len() - 1);
        }
        true
    }

    fn grow(&mut self, text: &[u8]) {
        let size = (self.slots.len() * 2).max(16);
        self.slots = Vec::new();
        self.slots.resize(size, 0);
        for entry in 0..self.entries.len() {
            self.place(text, entry);
        }
    }

    fn place(&mut self, text: &[u8], entry: usize) {
        let mask = self.slots.len() - 1;
        let mut slot = self.hash(declared(text, self.entries[entry].0)) as usize & mask;
        while self.slots[slot] != 0 {
            slot = (slot + 1) & mask;
        }
        self.slots[slot] = entry as u32 + 1;
    }

    fn hash(&self, name: &[u8]) -> u64 {
        let mut mix = self.hasher.build_hasher();
        mix.write(name);
        mix.finish()
    }

    /// Names worth comparing with a misspelt one: the latest ones, so that a message costs little.
    pub(crate) fn recent<'t>(&self, text: &'t [u8]) -> impl Iterator<Item = &'t str> + use<'_, 't> {
        let latest = self.entries.iter().rev().take(200);
        latest.filter_map(|&(place, _)| std::str::from_utf8(declared(text, place)).ok())
    }
}

/// The name at `place`, without its sigil.
#[inline]
fn declared(text: &[u8], place: u32) -> &[u8] {
    let name = &text[place as usize + 1..];
    let end = name.iter().position(|&byte| !is_name(byte)).unwrap_or(name.len());
    &name[..end]
}

/// The number that a name is, spelled in the one way that numbers print.
#[inline]
fn own_number(name: &[u8]) -> Option<u32> {
    if name.len() > 1 && name[0] == b'0' {
        return None;
    }
    number::unsigned32(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> (Names, Vec<bool>) {
        let mut names = Names::default();
        let places = text.match_indices('%').map(|(place, _)| place as u32);
        let fresh = places.enumerate().map(|(id, place)| names.declare(text.as_bytes(), place, id as u32));
        let fresh = fresh.collect();
        (names, fresh)
    }

    #[test]
    fn numbers_in_order_take_no_memory() {
        let text = "%0 %1 %2 ";
        let (names, fresh) = table(text);
        assert_eq!(fresh, [true; 3]);
        assert!(names.entries.is_empty());
        assert_eq!(names.find(text.as_bytes(), b"2"), Some(2));
        assert_eq!(names.find(text.as_bytes(), b"3"), None);
        assert_eq!(names.find(text.as_bytes(), b"02"), None);
    }

    #[test]
    fn any_name_is_found_and_taken_once() {
        let text = "%0 %x %1 %x %0 %00 %x.1";
        let (names, fresh) = table(text);
        assert_eq!(fresh, [true, true, true, false, false, true, true]);
        let found =
            ["0", "x", "1", "00", "x.1", "y"].map(|name| names.find(text.as_bytes(), name.as_bytes()));
        assert_eq!(found, [Some(0), Some(1), Some(2), Some(5), Some(6), None]);
    }

    #[test]
    fn thousands_of_names_stay_apart() {
        let text: String = (0..3000).map(|n| format!("%v{n} ")).collect();
        let (names, fresh) = table(&text);
        assert!(fresh.iter().all(|&fresh| fresh));
        for n in 0..3000 {
            assert_eq!(names.find(text.as_bytes(), format!("v{n}").as_bytes()), Some(n));
        }
    }
}
