//! Malformed and hostile plans, as text, JSON and bytes: the result is an error or a plan, never a panic, and takes at most sixteen
//! times the memory of the input plus a mebibyte.

mod binary;
mod json;
mod text;
mod updates;

use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Plan, Verified};
use autobatch_oracle::naive::execute;
use autobatch_testing::hostile::Counting;
use std::path::Path;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The committed plans: printed plans, and handwritten plans with a reverse and reductions.
fn corpus() -> Vec<String> {
    let mut files = Vec::new();
    for folder in ["plans", "handwritten"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/files").join(folder);
        let entries = std::fs::read_dir(folder).expect("the corpus exists");
        files.extend(entries.map(|entry| entry.expect("a file").path()));
    }
    files.sort();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "plan"));
    let texts: Vec<String> =
        files.iter().map(|path| std::fs::read_to_string(path).expect("a text")).collect();
    assert!(texts.iter().filter(|text| text.contains(".grad wgrad")).count() > 4, "some have reductions");
    assert!(texts.iter().any(|text| text.contains("\npause waves")), "one pauses");
    texts
}

/// Executes a verified plan, which must not panic. `None` if the plan needs much memory or work.
fn executed(plan: &Verified<Plan>) -> Option<()> {
    const MUCH: u64 = 1 << 16;
    let elements: u64 = plan.stores.iter().map(|store| store.ty.shape.elements() as u64).sum();
    let kernels = plan.kernels.iter().flat_map(|kernel| &kernel.regs);
    let registers: u64 = kernels.map(|reg| reg.ty.shape.elements() as u64).sum();
    let rows: u64 = plan.steps.iter().map(|step| u64::from(step.rows)).sum();
    let taken = plan.reductions.iter().flat_map(|sum| &sum.parts).map(|part| u64::from(part.lanes));
    let bound = u64::from(plan.words) + plan.all_floats();
    let all = [elements, registers, rows, bound, plan.certificate.slab_bytes, taken.sum()];
    if all.iter().any(|&much| much > MUCH) {
        return None;
    }
    let given = &plan.stores[..plan.given_stores()];
    let stores: Vec<Vec<f32>> = given.iter().map(|store| vec![0.5; store.ty.shape.elements()]).collect();
    let (words, floats) = (vec![0; plan.words as usize], vec![0.25; plan.all_floats() as usize]);
    execute(plan, &stores, &words, &floats, Noise::On { seed: 1, step: 1 }).expect("zeros are in range");
    Some(())
}
