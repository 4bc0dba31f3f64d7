//! Mutations of `.abp` files, most of them with a checksum that fits.

use crate::counting::{SplitMix64, limit, measured, rounds};
use crate::{corpus, played};
use autobatch_ir::codec::LoadError;
use autobatch_ir::hash::hash_bytes;
use autobatch_ir::plan::Plan;

const HEADER: usize = 32;

fn files() -> Vec<Vec<u8>> {
    corpus().iter().map(|text| Plan::from_text(text).expect("committed plans are plans").to_bytes()).collect()
}

fn reseal(bytes: &mut [u8]) {
    if bytes.len() >= HEADER {
        let (length, hash) = ((bytes.len() - HEADER) as u64, hash_bytes(&bytes[HEADER..]));
        bytes[16..24].copy_from_slice(&length.to_le_bytes());
        bytes[24..32].copy_from_slice(&hash.to_le_bytes());
    }
}

fn put_word(bytes: &mut [u8], at: usize, change: impl Fn(u32) -> u32) {
    if let Some(place) = bytes.get_mut(at..at + 4) {
        let word = u32::from_le_bytes(place.try_into().expect("four bytes"));
        place.copy_from_slice(&change(word).to_le_bytes());
    }
}

fn mutate(random: &mut SplitMix64, files: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = files[random.below(files.len())].clone();
    for _ in 0..=random.below(2) {
        if bytes.len() <= HEADER {
            break;
        }
        // Mostly behind the header, which is a few bytes.
        let at = match random.below(20) {
            0 => random.below(HEADER),
            _ => HEADER + random.below(bytes.len() - HEADER),
        };
        match random.below(7) {
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
                let word = [0, 1, 2, 3, 4, 1 << 16, 1 << 30, u32::MAX, random.next() as u32][random.below(9)];
                put_word(&mut bytes, at, |_| word);
            }
            _ => {
                let up = random.below(2) == 0;
                put_word(&mut bytes, at, |word| if up { word.wrapping_add(1) } else { word.wrapping_sub(1) });
            }
        }
    }
    if random.below(8) > 0 {
        reseal(&mut bytes);
    }
    bytes
}

#[test]
fn mutated_files_are_refused_or_sound() {
    let (rounds, files, seed) = (rounds(), files(), 0x5eed_0003);
    let mut random = SplitMix64(seed);
    let mut outcomes = [0usize; 8];
    let mut reverse = 0;
    for round in 0..rounds {
        let bytes = mutate(&mut random, &files);
        let (result, peak) = measured(|| Plan::from_bytes(&bytes));
        let limit = limit(bytes.len());
        assert!(peak <= limit, "seed {seed:#x}, round {round}: {} bytes took {peak}", bytes.len());
        outcomes[match result {
            Ok(plan) => {
                reverse += usize::from(played(&plan).is_some() && !plan.finals.is_empty());
                let mut normal = plan.into_inner();
                let again = Plan::from_bytes(&normal.to_bytes()).expect("what was read can be written");
                assert!(*again == normal, "seed {seed:#x}, round {round}");
                let text = normal.to_text();
                normal.normalise();
                let back = Plan::from_text(&text).unwrap_or_else(|error| panic!("{round}: {error}\n{text}"));
                assert!(back == normal, "seed {seed:#x}, round {round}:\n{text}");
                0
            }
            Err(error) => {
                assert!(error.to_string().len() < 100_000, "seed {seed:#x}, round {round}");
                match error {
                    LoadError::Foreign => 1,
                    LoadError::Kind { .. } => 2,
                    LoadError::Version { .. } => 3,
                    LoadError::Length { .. } => 4,
                    LoadError::Checksum => 5,
                    LoadError::Malformed(_) => 6,
                    LoadError::VerifyPlan(_) => 7,
                    other => panic!("seed {seed:#x}, round {round}: {other}"),
                }
            }
        }] += 1;
    }
    assert!(reverse > 0, "none of the sound plans has finals");
    assert!(outcomes.iter().all(|&count| count > 0), "every outcome is met: {outcomes:?}");
}

#[test]
fn every_forged_count_costs_little() {
    for bytes in files().iter().take(3) {
        for at in (HEADER..bytes.len() - 8).step_by(4) {
            for count in [1u32 << 16, 1 << 30, u32::MAX] {
                let mut forged = bytes.clone();
                put_word(&mut forged, at, |_| count);
                reseal(&mut forged);
                let (_, peak) = measured(|| Plan::from_bytes(&forged).is_ok());
                assert!(peak <= limit(forged.len()), "count {count} at {at}: {peak} bytes held");
            }
        }
    }
}
