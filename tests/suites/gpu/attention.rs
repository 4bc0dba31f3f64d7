//! Attention layers and encoders over sequences of different lengths: values and gradients.

use crate::agreement::{EXACT, agrees};
use crate::common::{exact, executor, weights};
use crate::gradients::{plan, same_as_naive};
use autobatch_ir::graph::{Graph, GraphData, Value};
use autobatch_ir::module::ModuleBuilder;
use autobatch_nn::{
    AdditiveAttention, DotAttention, MultiHeadAttention, MultiHeadOptions, Positions, TransformerEncoder,
    TransformerOptions,
};
use autobatch_runtime_wgpu::{Executor, Options};
use autobatch_testing::random::Rng;
use autobatch_testing::trials::trials;

/// Emits the instances of a model from random numbers.
type Emit = fn(&mut Rng) -> GraphData;

/// Lengths of sequences. A group has 64 threads, so some are longer and some shorter.
fn length(rng: &mut Rng) -> usize {
    rng.pick(&[1, 2, 3, 7, 18, 70])
}

/// Inputs of a sequence.
fn sequence<'g>(g: &'g Graph, rng: &mut Rng, [length, width]: [usize; 2]) -> Vec<Value<'g>> {
    let mut row = || (0..width).map(|_| rng.small()).collect::<Vec<f32>>();
    (0..length).map(|_| g.input(&row())).collect()
}

/// Adds a loss of the final values of an instance.
fn lose<'g>(g: &'g Graph, key: usize, values: &[Value<'g>]) {
    for (number, value) in values.iter().enumerate() {
        g.loss(&format!("loss {key} {number}"), value.square().mean());
    }
}

fn heads_over_themselves(rng: &mut Rng) -> GraphData {
    let heads = rng.between(1, 4) as usize;
    let width = heads * rng.between(1, 9) as usize;
    let mut m = ModuleBuilder::new("heads");
    let bias = rng.chance(50);
    let options = MultiHeadOptions { bias, ..MultiHeadOptions::default() };
    let layer = MultiHeadAttention::with_options(&mut m, "heads", width, heads, &options);
    let g = Graph::new(&m.build().expect("sound"));
    for key in 0..4 {
        g.instance(key as u64);
        let long = length(rng);
        let xs = sequence(&g, rng, [long, width]);
        let ys = if rng.chance(50) { layer.run(&g, &xs) } else { layer.run_causal(&g, &xs) };
        lose(&g, key, &ys);
    }
    g.finish().expect("sound")
}

/// Queries, keys and values of one width each, with shared queries.
fn heads_across(rng: &mut Rng) -> GraphData {
    let heads = rng.between(1, 3) as usize;
    let width = heads * rng.between(1, 7) as usize;
    let [key, value] = [(); 2].map(|()| rng.between(1, 21) as usize);
    let mut m = ModuleBuilder::new("across");
    let options = MultiHeadOptions { key: Some(key), value: Some(value), ..MultiHeadOptions::default() };
    let layer = MultiHeadAttention::with_options(&mut m, "across", width, heads, &options);
    let g = Graph::new(&m.build().expect("sound"));
    for instance in 0..3 {
        g.instance(instance as u64);
        let long = length(rng);
        let (keys, values) = (sequence(&g, rng, [long, key]), sequence(&g, rng, [long, value]));
        let memory = layer.memory(&g, keys, values);
        let queries = rng.between(1, 3) as usize;
        let read: Vec<Value<'_>> =
            sequence(&g, rng, [queries, width]).into_iter().map(|query| layer.read(query, &memory)).collect();
        // The result of one query asks again.
        let again = layer.read(read[0], &memory);
        lose(&g, instance, &[read, vec![again]].concat());
    }
    g.finish().expect("sound")
}

/// Values whose width differs from that of keys, by products and by sums.
fn values_of_their_own_width(rng: &mut Rng) -> GraphData {
    let [query, key, value, inner] = [(); 4].map(|()| rng.between(1, 33) as usize);
    let mut m = ModuleBuilder::new("values");
    let additive = AdditiveAttention::new(&mut m, "additive", query, key, inner);
    let dot = DotAttention::scaled(key);
    let g = Graph::new(&m.build().expect("sound"));
    for instance in 0..3 {
        g.instance(instance as u64);
        let long = length(rng);
        let (keys, values) = (sequence(&g, rng, [long, key]), sequence(&g, rng, [long, value]));
        let asked = sequence(&g, rng, [1, key])[0];
        let products = dot.read(&g, asked, &keys, &values);
        let asked = sequence(&g, rng, [1, query])[0];
        let projected = additive.keys(&g, &keys);
        let sums = additive.read(&g, asked, &projected, &values);
        lose(&g, instance, &[products, sums, products * sums]);
    }
    g.finish().expect("sound")
}

fn encoders(rng: &mut Rng) -> GraphData {
    let heads = rng.between(1, 3) as usize;
    let width = heads * rng.between(1, 8) as usize;
    let mut m = ModuleBuilder::new("encoders");
    let options = TransformerOptions {
        feed_forward: Some(rng.between(1, 40) as usize),
        norm_first: rng.chance(50),
        dropout: rng.pick(&[0.0, 0.25]),
        bias: rng.chance(50),
        // Only this remains of rows of one number.
        eps: 1e-3,
        ..TransformerOptions::default()
    };
    let encoder = TransformerEncoder::with_options(&mut m, "encoder", width, heads, 2, &options);
    let positions = width.is_multiple_of(2).then(|| Positions::sinusoidal(width));
    let g = Graph::new(&m.build().expect("sound"));
    for key in 0..3 {
        g.instance(key as u64);
        let long = rng.pick(&[1, 2, 5, 19]);
        let xs = sequence(&g, rng, [long, width]);
        let xs = positions.as_ref().map_or(xs.clone(), |positions| positions.add(&g, &xs));
        let ys = if rng.chance(50) { encoder.run(&g, xs) } else { encoder.run_causal(&g, xs) };
        lose(&g, key, &ys);
    }
    g.finish().expect("sound")
}

fn every(name: &str, emit: Emit) {
    let Some(mut close) = executor(exact()) else { return };
    let mut native = Executor::new(Options::default()).expect("opens");
    // Devices without subgroups join the threads of a row through group memory.
    let mut through_memory =
        Executor::new(Options { subgroups: false, ..Options::default() }).expect("opens");
    for seed in 0..trials(5, 60) {
        let graph = emit(&mut Rng::new(seed));
        let told = |error: String| panic!("{name}, seed {seed}: {error}");
        for training in [false, true] {
            agrees(&graph, training, &mut close, EXACT).unwrap_or_else(told);
        }
        let plan = plan(&graph).unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}"));
        let plan = plan.expect("there are losses");
        for executor in [&mut close, &mut native, &mut through_memory] {
            same_as_naive(executor, &plan, &graph, &weights(&graph)).unwrap_or_else(told);
        }
    }
}

#[test]
fn self_attention_agrees_in_values_and_gradients() {
    every("heads over themselves", heads_over_themselves);
}

#[test]
fn cross_attention_agrees_in_values_and_gradients() {
    every("heads across", heads_across);
}

#[test]
fn attention_with_wider_values_agrees_in_values_and_gradients() {
    every("values of their own width", values_of_their_own_width);
}

#[test]
fn encoders_agree_in_values_and_gradients() {
    every("encoders", encoders);
}
