//! Mutations of `.abp` files, most of them with a checksum that fits.

use crate::hostile::{HEADER, campaign, limit, measured, mutated_bytes, reseal};
use crate::{corpus, played};
use autobatch_ir::codec::LoadError;
use autobatch_ir::plan::Plan;

fn files() -> Vec<Vec<u8>> {
    corpus().iter().map(|text| Plan::from_text(text).expect("committed plans are plans").to_bytes()).collect()
}

#[test]
fn mutated_files_are_refused_or_sound() {
    let (seed, rounds, mut random) = campaign(0x5eed_0003);
    let files = files();
    let mut outcomes = [0usize; 8];
    let mut reverse = 0;
    for round in 0..rounds {
        let bytes = mutated_bytes(&mut random, &files);
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
                forged[at..at + 4].copy_from_slice(&count.to_le_bytes());
                reseal(&mut forged);
                let (_, peak) = measured(|| Plan::from_bytes(&forged).is_ok());
                assert!(peak <= limit(forged.len()), "count {count} at {at}: {peak} bytes held");
            }
        }
    }
}
