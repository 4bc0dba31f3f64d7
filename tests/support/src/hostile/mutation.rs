//! Mutates valid samples: binary files, most with a matching checksum, and texts with misplaced words.

use autobatch_ir::hash::{hash_bytes, split_mix};

/// The length of the header of a binary file, in bytes.
pub const HEADER: usize = 32;

/// The generator of mutations: SplitMix64 with this state.
#[derive(Debug)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// Draws 64 bits.
    #[allow(clippy::should_implement_trait, reason = "an infinite generator is not an iterator here")]
    pub fn next(&mut self) -> u64 {
        split_mix(&mut self.0)
    }

    /// Draws a number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

/// Updates the length and the checksum in the header to match the payload.
pub fn reseal(bytes: &mut [u8]) {
    if bytes.len() >= HEADER {
        let (length, hash) = ((bytes.len() - HEADER) as u64, hash_bytes(&bytes[HEADER..]));
        bytes[16..24].copy_from_slice(&length.to_le_bytes());
        bytes[24..32].copy_from_slice(&hash.to_le_bytes());
    }
}

fn change_word(bytes: &mut [u8], at: usize, change: impl Fn(u32) -> u32) {
    if let Some(place) = bytes.get_mut(at..at + 4) {
        let word = u32::from_le_bytes(place.try_into().expect("four bytes"));
        place.copy_from_slice(&change(word).to_le_bytes());
    }
}

/// Returns one of the files with up to three changes. A change flips bits, replaces bytes, words or counts,
/// inserts pieces of another file, deletes pieces, or truncates the file. Most results get a matching checksum,
/// so they reach the decoder.
pub fn mutated_bytes(random: &mut SplitMix64, files: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = files[random.below(files.len())].clone();
    // Half of the files change in single bytes only. These reach the verifier most often.
    let gentle = random.below(2) == 0;
    for _ in 0..=random.below(if gentle { 2 } else { 3 }) {
        if bytes.len() <= HEADER {
            break;
        }
        // Most changes are behind the header, because a check of its own guards each field of the header.
        let in_header = random.below(10) == 0;
        let at = if in_header { random.below(HEADER) } else { HEADER + random.below(bytes.len() - HEADER) };
        let word_at = if random.below(2) == 0 { at & !3 } else { at };
        match if gentle { 8 } else { random.below(9) } {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => bytes.truncate(at),
            3 => {
                let other = &files[random.below(files.len())];
                let from = random.below(other.len());
                let len = random.below(64).min(other.len() - from).min(bytes.len() - at);
                bytes[at..at + len].copy_from_slice(&other[from..from + len]);
            }
            4 => drop(bytes.drain(at..(at + random.below(64)).min(bytes.len()))),
            5 => {
                let drawn = random.next() as u32;
                let word = random.one_of(&[0, 1, 2, 3, 4, 1 << 16, 1 << 30, u32::MAX, drawn]);
                change_word(&mut bytes, word_at, |_| word);
            }
            6 => {
                let drawn = random.next();
                let count = random.one_of(&[1 << 20, 1 << 33, 1 << 40, u64::MAX, drawn]);
                if let Some(place) = bytes.get_mut(at..at + 8) {
                    place.copy_from_slice(&count.to_le_bytes());
                }
            }
            7 => {
                let step = random.one_of(&[1, u32::MAX]);
                change_word(&mut bytes, word_at, |word| word.wrapping_add(step));
            }
            _ => bytes[at] = bytes[at].wrapping_add(random.one_of(&[1, 255, 2, 128])),
        }
    }
    if random.below(8) > 0 {
        reseal(&mut bytes);
    }
    bytes
}

/// Numbers that exceed some limit.
const BLOWN: [&[u8]; 5] = [b"9", b"000000", b"4294967295", b"1073741823", b"18446744073709551615"];

/// Tokens of JSON.
const JSON: [&str; 12] = ["{", "}", "[", "]", ",", ":", "\"", "null", "true", "-1", "0.5", "1e999"];

/// Mutates one of the documents as [`mutated_text`] does, with the tokens of JSON in addition to `tokens`.
pub fn mutated_json(random: &mut SplitMix64, documents: &[Vec<u8>], tokens: &[&str]) -> Vec<u8> {
    mutated_text(random, documents, &[&JSON[..], tokens].concat())
}

/// Returns one of the texts with up to four changes. A change flips bits, replaces bytes or numbers, copies
/// pieces of this text or another, or inserts `tokens` in wrong places. Half of the texts change in single digits only.
pub fn mutated_text(random: &mut SplitMix64, texts: &[Vec<u8>], tokens: &[&str]) -> Vec<u8> {
    let mut text = texts[random.below(texts.len())].clone();
    // Texts with other digits reach the verifier most often.
    let gentle = random.below(2) == 0;
    for _ in 0..=random.below(if gentle { 2 } else { 4 }) {
        let at = random.below(text.len());
        let end = (at + random.below(40)).min(text.len());
        // The first digit at or after `at`.
        let digit = text[at..].iter().position(u8::is_ascii_digit).map_or(at, |length| at + length);
        match if gentle { 8 } else { random.below(10) } {
            0 if !text.is_empty() => text[at] ^= 1 << random.below(8),
            1 if !text.is_empty() => text[at] = random.next() as u8,
            2 => text.truncate(at),
            3 => drop(text.drain(at..end)),
            4 => {
                let copy = text[at..end].to_vec();
                let to = random.below(text.len());
                text.splice(to..to, copy);
            }
            5 => {
                let other = &texts[random.below(texts.len())];
                let from = random.below(other.len());
                let piece = other[from..(from + random.below(400)).min(other.len())].to_vec();
                text.splice(at..end, piece);
            }
            6 => drop(text.splice(at..at, random.one_of(tokens).bytes())),
            7 => {
                let end = (digit + random.below(2)).min(text.len());
                text.splice(digit..end, random.one_of(&BLOWN).iter().copied());
            }
            8 => drop(text.splice(digit..(digit + 1).min(text.len()), [b'0' + random.below(10) as u8])),
            _ => drop(text.splice(at..end, random.one_of(tokens).bytes())),
        }
    }
    text
}
