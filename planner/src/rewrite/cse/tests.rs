//! The hash table of value numbering resists inputs that are made to collide.

use super::*;
use autobatch_ir::hash::Mix;
use autobatch_ir::{Graph, ModuleBuilder, Value};
use std::hash::BuildHasherDefault;

const INPUTS: u32 = 1024;

/// Sums of two inputs that share few slots under fixed keys. The inputs are the values below [`INPUTS`].
fn evil(sig: u32) -> (GraphData, usize) {
    let g = Graph::new(&ModuleBuilder::new("evil").build().unwrap());
    let inputs: Vec<Value<'_>> = (0..INPUTS).map(|_| g.input(&[0.0])).collect();
    let collides = |&(a, b): &(u32, u32)| {
        let mut mix = Mix::default();
        [sig, u32::MAX, a, b].into_iter().for_each(|word| mix.write_u32(word));
        mix.finish() & 0xffff < 64
    };
    let pairs = (0..INPUTS).flat_map(|a| (0..INPUTS).map(move |b| (a, b))).filter(collides);
    let sums: Vec<Value<'_>> = pairs.map(|(a, b)| inputs[a as usize] + inputs[b as usize]).collect();
    // Every value has a second reader, so every node enters the table.
    for &x in &inputs {
        let _ = (x.tanh(), x.sin());
    }
    let sums = sums.len();
    (g.finish().unwrap(), sums)
}

#[test]
fn secret_keys_spread_nodes_that_collide_under_fixed_keys() {
    // The inputs have the first signature, the sums the second.
    let (graph, sums) = evil(1);
    let context = Context { wanted: &[], mode: Mode::Infer, across_instances: true, eager: false };
    fn compared<S: BuildHasher>(graph: &GraphData, context: &Context<'_>, hasher: S) -> usize {
        let numbering = Numbering::new(graph, context, hasher);
        let compared = std::rc::Rc::clone(&numbering.compared);
        assert!(numbering.twins().iter().all(Option::is_none));
        compared.get()
    }
    let fixed = compared(&graph, &context, BuildHasherDefault::<Mix>::default());
    let secret = compared(&graph, &context, BuildMix::default());
    assert!(sums > 500 && fixed > sums * sums / 8, "{fixed} comparisons of {sums} sums under fixed keys");
    assert!(secret < (sums + 2 * INPUTS as usize) * 20, "{secret} comparisons under secret keys");
}
