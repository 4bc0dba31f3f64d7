//! Test support: runs a reader on damaged versions of a valid sample.
//!
//! A reader may reject damaged content or read it as something else, but it must return. The number of
//! rounds is bounded; `AUTOBATCH_TEST=long` multiplies it.

use super::random::Random;
use autobatch_testing::trials::trials;

const PIECES: [&[u8]; 16] = [
    b"(",
    b")",
    b" ",
    b"\n",
    b"\n\n",
    b"\t",
    b"|",
    b":",
    b"-",
    b"0",
    b"9",
    b"\xff",
    b"\xe4\xb8\xad",
    b"4294967295",
    b"99999999999999999999",
    b"((((((((((((",
];

fn damage(sample: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    for _ in 0..random.between(1, 4) {
        let from = random.index(bytes.len() + 1);
        let to = from + random.index((bytes.len() - from).min(20) + 1);
        match random.below(5) {
            0 => drop(bytes.drain(from..to)),
            1 => {
                let copy = bytes[from..to].to_vec();
                let at = random.index(bytes.len() + 1);
                bytes.splice(at..at, copy);
            }
            2 => drop(bytes.splice(from..to, PIECES[random.index(PIECES.len())].iter().copied())),
            3 => bytes.truncate(from.max(1)),
            _ => {
                if let Some(byte) = bytes.get_mut(from) {
                    *byte = random.bits() as u8;
                }
            }
        }
    }
    bytes
}

/// Calls `read` with every prefix of a short sample and with randomly damaged samples. A panic in
/// `read` fails the test, which then shows the seed of the round.
pub(crate) fn survives(sample: &[u8], read: impl Fn(&[u8])) {
    for end in 0..sample.len().min(600) {
        println!("prefix of {end} bytes");
        read(&sample[..end]);
    }
    for seed in 0..trials(3_000, 200_000) {
        println!("seed {seed}");
        read(&damage(sample, &mut Random::new(seed)));
    }
}
