//! Reads mutated binary files one after the other.

use super::{campaign, limit, measured, mutated_bytes};
use autobatch_ir::codec::LoadError;

/// Reads mutated files. Asserts that the file size bounds the memory, that messages are short, and that every
/// kind of outcome occurs. `sound` receives each decoded value and the name of its round. `verify` recognises
/// errors of broken rules.
pub fn read_mutated<T>(
    seed: u64,
    files: &[Vec<u8>],
    read: impl Fn(&[u8]) -> Result<T, LoadError>,
    verify: impl Fn(&LoadError) -> bool,
    mut sound: impl FnMut(T, &str),
) {
    let (seed, rounds, mut random) = campaign(seed);
    let mut outcomes = [0usize; 8];
    for round in 0..rounds {
        let what = format!("seed {seed:#x}, round {round}");
        let bytes = mutated_bytes(&mut random, files);
        let (result, peak) = measured(|| read(&bytes));
        assert!(peak <= limit(bytes.len()), "{what}: {peak} bytes held for a file of {}", bytes.len());
        outcomes[match result {
            Ok(made) => {
                sound(made, &what);
                0
            }
            Err(error) => {
                assert!(error.to_string().len() < 100_000, "{what}");
                match error {
                    LoadError::Foreign => 1,
                    LoadError::Kind { .. } => 2,
                    LoadError::Version { .. } => 3,
                    LoadError::Length { .. } => 4,
                    LoadError::Checksum => 5,
                    LoadError::Malformed(_) => 6,
                    other if verify(&other) => 7,
                    other => panic!("{what}: {other}"),
                }
            }
        }] += 1;
    }
    println!("passed, foreign, kind, version, length, checksum, malformed, verify: {outcomes:?}");
    assert!(outcomes.iter().all(|&count| count > 0), "every outcome occurs: {outcomes:?}");
}
