//! Measures the inference and the training step of encoders over unequal sentences, in milliseconds per minibatch, without the
//! update.
//!
//! `cargo run --release -p autobatch-runtime-cpu --example encoders [threads] [rounds] [tokens]`
//!
//! Taggers over 10,000 words with 17 tags: two layers, 4 heads, norms after. Short: 64 sentences of 10 to 30 tokens; long: 32 of 5
//! to 200. Each token attends to its sentence or, in the causal rows, to itself and the tokens before. Least of the rounds. With a
//! number of tokens, one sentence of this length at width 128 instead.
#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch_ir::id::ValueId;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, Plan, Verified};
use autobatch_ir::{Graph, INDEX, Init, ModuleBuilder, Weights, f32};
use autobatch_nn::TransformerEncoder;
use autobatch_planner::{Gradients, Planner, Request};
use autobatch_runtime_cpu::{Executor, Inputs};
use std::time::Instant;

const WORDS: u32 = 10_000;

/// Sentences of drawn lengths.
struct Sentences {
    name: &'static str,
    count: usize,
    lengths: [u32; 2],
}

fn lengths(of: &Sentences) -> Vec<u32> {
    let mut state = 1u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        of.lengths[0] + (state >> 33) as u32 % (of.lengths[1] - of.lengths[0] + 1)
    };
    (0..of.count).map(|_| draw()).collect()
}

/// The least milliseconds of an inference and of forward and reverse of a training step.
fn measure(of: &Sentences, width: usize, is_causal: bool, threads: usize, rounds: usize) -> [f64; 2] {
    let mut m = ModuleBuilder::new("tagger");
    let words = m.table("words", [WORDS as usize, width], Init::Uniform(0.1));
    let out = m.param("out", [width, 17], Init::Glorot(1.0));
    let encoder = TransformerEncoder::new(&mut m, "encoder", width, 4, 2);
    let embed = m.cell("embed", [INDEX], |_, [word]| [words.row(word)]);
    let tag =
        m.cell("tag", [f32([width]), INDEX], |g, [x, label]| [g.affine([x], out, None).cross_entropy(label)]);
    let module = m.build().expect("the model is well typed");
    let weights = Weights::init(&module, 1);
    let graph = Graph::new(&module);
    let mut losses: Vec<(ValueId, f32)> = Vec::new();
    for (number, length) in lengths(of).into_iter().enumerate() {
        graph.instance(number as u64);
        let xs: Vec<_> = (0..length).flat_map(|word| graph.call(embed, word * 7919 % WORDS)).collect();
        let read = if is_causal { encoder.run_causal(&graph, &xs) } else { encoder.run(&graph, &xs) };
        for (place, x) in (0u32..).zip(read) {
            let [loss] = graph.call(tag, (x, place % 17));
            losses.extend(loss.id().map(|loss| (loss, 1.0)));
        }
    }
    let wanted: Vec<ValueId> = losses.iter().map(|loss| loss.0).collect();
    let data = graph.data();
    let gradients = Some(Gradients { losses: &losses, params: None, values: &[] });
    let infer = Request { wanted: &wanted, ..Request::default() };
    let train = Request { mode: Mode::Train, gradients, ..Request::default() };
    [infer, train].map(|request| {
        let plan = Planner::default().plan(&data, &request).expect("a plan");
        let plan: Verified<Plan> = plan.verify().expect("a valid plan");
        let mut executor = Executor::new(threads).expect("an instruction set");
        let bound = Inputs { words: &data.bindings.words, floats: &data.bindings.floats, noise: Noise::Off };
        let mut least = f64::INFINITY;
        for _ in 0..=rounds {
            let start = Instant::now();
            executor.execute(&plan, &weights, bound).expect("bindings fit");
            least = least.min(start.elapsed().as_secs_f64() * 1e3);
        }
        least
    })
}

fn row(of: &Sentences, width: usize, is_causal: bool, threads: usize, rounds: usize) {
    let [infer, train] = measure(of, width, is_causal, threads, rounds);
    let reads = if is_causal { "causal" } else { "all" };
    println!("{:>9} {width:>6} {reads:>7} {infer:>12.1} {train:>12.1}", of.name);
}

fn main() {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse().expect("a number"));
    let (threads, rounds) = (numbers.next().unwrap_or(1), numbers.next().unwrap_or(5));
    println!("sentences  width   reads    infer, ms    train, ms");
    if let Some(tokens) = numbers.next() {
        let one = Sentences { name: "one", count: 1, lengths: [tokens as u32; 2] };
        return [false, true].into_iter().for_each(|is_causal| row(&one, 128, is_causal, threads, rounds));
    }
    let short = Sentences { name: "short", count: 64, lengths: [10, 30] };
    let long = Sentences { name: "long", count: 32, lengths: [5, 200] };
    for of in [&short, &long] {
        for width in [128, 256] {
            for is_causal in [false, true] {
                row(of, width, is_causal, threads, rounds);
            }
        }
    }
}
