//! Mutations of an update plan as text, bytes and JSON, and texts of many small updates.

use autobatch_ir::codec::LoadError;
use autobatch_ir::plan::{UpdatePlan, Verified};
use autobatch_oracle::naive::update;
use autobatch_testing::hostile::{
    campaign, limit, measured, mutated_json, mutated_text, read_mutated, tokens,
};
use std::path::Path;

/// The committed update plan.
fn text() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/files/plans/update_adam.update");
    std::fs::read_to_string(path).expect("the corpus has an update plan")
}

fn plan() -> UpdatePlan {
    UpdatePlan::from_text(text()).expect("the committed text parses")
}

/// Executes an update plan that the verifier accepted, unless it requires much memory.
fn execute(plan: &Verified<UpdatePlan>) {
    const MUCH: u64 = 1 << 16;
    let elements: u64 = plan.stores.iter().map(|store| store.ty.shape.elements() as u64).sum();
    let registers = plan.kernels.iter().flat_map(|kernel| &kernel.regs);
    let registers: u64 = registers.map(|reg| reg.ty.shape.elements() as u64).sum();
    if [elements, registers, u64::from(plan.floats)].iter().any(|&much| much > MUCH) {
        return;
    }
    let stores = plan.stores.iter().map(|store| vec![0.5; store.ty.shape.elements()]);
    let mut stores: Vec<Vec<f32>> = stores.collect();
    let (floats, sparse) = (vec![0.25; plan.floats as usize], vec![None; plan.stores.len()]);
    update(plan, &mut stores, &floats, &sparse).expect("every store is given");
}

/// Parses within the limit of memory.
fn parse(text: &[u8], what: &str) -> Option<UpdatePlan> {
    let (result, peak) = measured(|| UpdatePlan::from_text(text));
    let limit = limit(text.len());
    assert!(peak <= limit, "{what}: {} bytes of text took {peak} bytes, the limit is {limit}", text.len());
    result.ok()
}

#[test]
fn mutated_texts_parse_or_are_refused_within_bounds() {
    let (seed, rounds, mut random) = campaign(0x5eed_0021);
    let corpus = [text().into_bytes()];
    let (mut parsed, mut sound) = (0, 0);
    for round in 0..rounds {
        let text = mutated_text(&mut random, &corpus, &tokens::UPDATE);
        let what = format!("seed {seed:#x}, round {round}");
        let Some(plan) = parse(&text, &what) else { continue };
        parsed += 1;
        let printed = plan.to_text();
        let back =
            UpdatePlan::from_text(&printed).unwrap_or_else(|error| panic!("{what}: {error}\n{printed}"));
        assert!(back == plan && back.to_text() == printed, "{what}:\n{printed}");
        if let Ok(plan) = plan.verify() {
            sound += 1;
            execute(&plan);
        }
    }
    assert!(sound > 0 && sound < parsed, "{sound} of {parsed} were sound");
}

#[test]
fn mutated_files_are_refused_or_sound() {
    let files = [plan().to_bytes()];
    let verify = |error: &LoadError| matches!(error, LoadError::VerifyPlan(_));
    read_mutated(0x5eed_0022, &files, UpdatePlan::from_bytes, verify, |plan, what| {
        execute(&plan);
        let plan = plan.into_inner();
        let again = UpdatePlan::from_bytes(&plan.to_bytes()).expect("what was read can be written");
        assert!(*again == plan, "{what}");
        let text = plan.to_text();
        let back = UpdatePlan::from_text(&text).unwrap_or_else(|error| panic!("{what}: {error}\n{text}"));
        assert!(back == plan, "{what}:\n{text}");
    });
}

#[test]
fn mutated_documents_are_refused_or_sound() {
    let (_, rounds, mut random) = campaign(0x5eed_0023);
    let documents = [serde_json::to_vec(&plan()).expect("every update plan has a JSON form")];
    let mut sound = 0;
    for _ in 0..rounds {
        let bytes = mutated_json(&mut random, &documents, &tokens::UPDATE_JSON);
        let text = String::from_utf8_lossy(&bytes);
        let Ok(plan) = serde_json::from_str::<UpdatePlan>(&text) else { continue };
        let Ok(plan) = plan.verify() else { continue };
        sound += 1;
        execute(&plan);
    }
    assert!(sound > 0);
}

#[test]
fn large_texts_of_many_updates_stay_within_bounds() {
    const N: usize = 70_000;
    let head = |stores: &str| format!("autobatch update 5 module\"\"{stores}bind floats 0 ");
    let kernel = head("") + "kernel k0 f(){return}";
    let repeated = |head: String, piece: &str, tail: &str| head + &piece.repeat(N) + tail;
    let numbered = |head: String| (0..N).fold(head, |text, n| text + &format!("sumsq->c{n}<-"));
    let texts = [
        ("sums of squares", numbered(head(""))),
        ("updates", repeated(kernel.clone(), "update k0-><-", "")),
        ("scalars", repeated(kernel.clone() + "update k0-><-", "c1 ", "")),
        ("targets", repeated(head("store@a param f32 ") + "kernel k0 f(){return}update k0->", "@a", "<-")),
    ];
    for (what, text) in texts {
        assert!(
            parse(text.as_bytes(), what).is_some(),
            "{what}: {}",
            UpdatePlan::from_text(&text).unwrap_err()
        );
    }
}
