//! Symbol tables of the parsers.
//!
//! A table stores a name as the place of its declaration, so an entry takes twelve to twenty bytes, independent of the
//! length of the name. The names of printed graphs, `%0 %1 %2 ..` in order, take no memory.

use super::lex::is_name;
use super::number;
use crate::hash::BuildMix;
use std::hash::{BuildHasher, Hasher};

/// A symbol table for names of one kind.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The names `0`, `1`, .. below this number refer to themselves.
    counted: u32,
    /// All other names: the place of the declaration and the number.
    entries: Vec<(u32, u32)>,
    /// A hash table with open addressing: entry numbers plus one. Its size is a power of two, and it is at most half full.
    slots: Vec<u32>,
    hasher: BuildMix,
}

impl Names {
    /// Removes all names. It frees the slots, so that small scopes after a large one stay cheap.
    pub(crate) fn clear(&mut self) {
        self.counted = 0;
        if !self.entries.is_empty() {
            self.entries.clear();
            self.slots = Vec::new();
        }
    }

    /// The number of a name.
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

    /// Declares the name at `place` for the number `id`; false if the name exists.
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

    /// The latest names, for suggestions. The limit bounds the cost of a message.
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

/// The number that a name spells without leading zeros.
#[inline]
fn own_number(name: &[u8]) -> Option<u32> {
    if name.len() > 1 && name[0] == b'0' {
        return None;
    }
    number::unsigned32(name).ok()
}

#[cfg(test)]
#[path = "tests/names.rs"]
mod tests;
