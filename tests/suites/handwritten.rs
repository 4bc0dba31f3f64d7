//! The CPU executor gives the bits of the naive executor for the handwritten plans in
//! `tests/files/handwritten`. The test compares outputs and gradients, on every instruction set and with two threads.

use autobatch_ir::Weights;
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Plan, StoreId, StoreKind};
use autobatch_oracle::naive::execute;
use autobatch_runtime_cpu::kernels::Isa;
use autobatch_runtime_cpu::{Executor, Inputs};
use std::path::Path;

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

#[test]
fn handwritten_plans_have_the_same_bits_on_the_cpu() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("files/handwritten");
    let entries = std::fs::read_dir(folder).expect("the folder exists");
    let paths = entries.map(|entry| entry.expect("a file").path());
    let plans: Vec<_> = paths.filter(|path| path.extension().is_some_and(|word| word == "plan")).collect();
    assert!(plans.len() > 5, "found {plans:?}");
    for path in plans {
        let name = path.display();
        let read = |path: &Path| std::fs::read_to_string(path).expect("a text");
        let plan = Plan::from_text(read(&path)).expect("a plan").verify().expect("sound");
        let graph = GraphData::from_text(read(&path.with_extension("graph"))).expect("a graph");
        let weights = Weights::init(&graph.module, 3);
        let stores: Vec<&[f32]> = weights.iter().map(|param| param.values()).collect();
        let (words, floats) = (&graph.bindings.words[..], &graph.bindings.floats[..]);
        let naive = execute(&plan, &stores, words, floats, Noise::Off).expect("in range");
        for (isa, threads) in [(Isa::Scalar, 1), (Isa::best(), 1), (Isa::best(), 2)] {
            let mut executor = Executor::with_isa(isa, threads);
            executor.execute(&plan, &weights, Inputs { words, floats, noise: Noise::Off }).expect("in range");
            for output in 0..plan.outputs.len() {
                let found = bits(executor.output(&plan, output));
                assert_eq!(Some(&found[..]), naive.output(output), "{name}: output {output} on {isa:?}");
            }
            for (number, store) in plan.stores.iter().enumerate() {
                if !matches!(store.kind, StoreKind::Grad(_)) {
                    continue;
                }
                let id = StoreId(number as u32);
                let (found, wanted) =
                    (executor.gradient(id).expect("made"), naive.gradient(id).expect("made"));
                assert_eq!(bits(found), bits(wanted), "{name}: {} on {isa:?}", store.name);
            }
        }
    }
}
