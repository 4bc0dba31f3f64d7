//! Mutations of plans as JSON, the format of other programs.

use crate::{corpus, executed};
use autobatch_ir::plan::Plan;
use autobatch_testing::hostile::{campaign, limit, measured, mutated_json, tokens};
use std::fmt::Display;

/// Parses and verifies within the memory limit. The error is the number of the rejecting stage.
fn read(text: &str, what: &dyn Display) -> Result<autobatch_ir::plan::Verified<Plan>, usize> {
    let (result, peak) = measured(|| match serde_json::from_str::<Plan>(text) {
        Err(error) => Err((0, error.to_string())),
        Ok(plan) => plan.verify().map_err(|errors| (1, errors.to_string())),
    });
    let limit = limit(text.len());
    assert!(peak <= limit, "{what}: {} bytes of JSON took {peak} bytes, the limit is {limit}", text.len());
    result.map_err(|(stage, said)| {
        assert!(said.len() < 100_000, "{what}: {} bytes of error", said.len());
        stage
    })
}

#[test]
fn mutated_documents_are_rejected_or_sound() {
    let (seed, rounds, mut random) = campaign(0x5eed_0011);
    let plan = |text: &String| Plan::from_text(text).expect("a committed plan is valid");
    let documents: Vec<Vec<u8>> = corpus()
        .iter()
        .map(|text| serde_json::to_vec(&plan(text)).expect("every plan has a JSON form"))
        .filter(|document| document.len() < 20_000)
        .collect();
    // Rejected by the parser, rejected by the verifier, valid.
    let mut outcomes = [0usize; 3];
    for round in 0..rounds {
        let bytes = mutated_json(&mut random, &documents, &tokens::PLAN_JSON);
        let text = String::from_utf8_lossy(&bytes);
        let what = format_args!("seed {seed:#x}, round {round}");
        outcomes[match read(&text, &what) {
            Err(stage) => stage,
            Ok(plan) => {
                let _ = executed(&plan);
                2
            }
        }] += 1;
    }
    println!("no plan, rule, sound: {outcomes:?}");
    assert!(outcomes.iter().all(|&count| count > rounds / 1000), "every outcome occurs: {outcomes:?}");
}

#[test]
fn deep_nesting_is_rejected() {
    for piece in ["[", "{\"a\":", "{\"kernels\":[", "[{\"a\":"] {
        assert_eq!(read(&piece.repeat(200_000), &piece).err(), Some(0), "{piece}");
    }
}
