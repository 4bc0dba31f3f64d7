//! The time to emit, plan, verify, normalise and prove the plans of encoders over sentences, and the sizes of the plans.
//!
//! `cargo run --release -p autobatch-planner --example encoder_speed [rounds]`
//!
//! Two layers of width 128 with 4 heads, over 32 sentences of 5 to 200 tokens, and over one sentence of 512 to 4,096 tokens. Each
//! token attends to its whole sentence, then, in the causal rows, to itself and the tokens before. So pairs of tokens grow with
//! the square of a sentence. The best round counts.
#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch_ir::plan::{Plan, Verified};
use autobatch_ir::{Graph, INDEX, Init, Module, ModuleBuilder, f32};
use autobatch_nn::TransformerEncoder;
use autobatch_oracle::check::{Wanted, check};
use autobatch_planner::{Planner, Request};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const WIDTH: usize = 128;
const WORDS: u32 = 10_000;

struct Tagger {
    module: Arc<Module>,
    encoder: TransformerEncoder,
    embed: autobatch_ir::Cell<1, 1>,
    tag: autobatch_ir::Cell<1, 1>,
}

impl Tagger {
    fn new() -> Self {
        let mut m = ModuleBuilder::new("tagger");
        let words = m.table("words", [WORDS as usize, WIDTH], Init::Uniform(0.1));
        let out = m.param("out", [WIDTH, 17], Init::Glorot(1.0));
        let encoder = TransformerEncoder::new(&mut m, "encoder", WIDTH, 4, 2);
        let embed = m.cell("embed", [INDEX], |_, [word]| [words.row(word)]);
        let tag = m.cell("tag", [f32([WIDTH])], |g, [x]| [g.affine([x], out, None)]);
        Self { module: m.build().expect("the model is well typed"), encoder, embed, tag }
    }

    /// Emits sentences of these lengths.
    fn emit(&self, lengths: &[u32], is_causal: bool) -> Graph {
        let graph = Graph::new(&self.module);
        for (number, &length) in lengths.iter().enumerate() {
            graph.instance(number as u64);
            let words = (0..length).flat_map(|word| graph.call(self.embed, word * 7919 % WORDS));
            let words: Vec<_> = words.collect();
            let read = match is_causal {
                true => self.encoder.run_causal(&graph, &words),
                false => self.encoder.run(&graph, &words),
            };
            for (place, x) in read.into_iter().enumerate() {
                let [tag] = graph.call(self.tag, x);
                graph.output(&format!("{number}.{place}"), tag);
            }
        }
        graph
    }
}

fn best<T>(rounds: usize, mut work: impl FnMut() -> T) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        let start = Instant::now();
        black_box(work());
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}

fn measure(tagger: &Tagger, lengths: &[u32], is_causal: bool, rounds: usize) {
    let tokens: u32 = lengths.iter().sum();
    let graph = tagger.emit(lengths, is_causal);
    let data = graph.data();
    let request = Request::default();
    let mut planner = Planner::default();
    let plan = || planner.plan(&data, &request).expect("a plan");
    let emitting = best(rounds, || tagger.emit(lengths, is_causal));
    let planning = best(rounds, plan);
    let mut plan: Plan = Planner::default().plan(&data, &request).expect("a plan");
    let bytes = plan.to_bytes().len();
    let copying = best(rounds, || plan.clone());
    let verifying = best(rounds, || plan.clone().verify().expect("a valid plan")) - copying;
    let normalising = best(rounds, || plan.normalise());
    let verified: Verified<Plan> = plan.verify().expect("a valid plan");
    let wanted = Wanted { values: &[], training: false };
    let proving = best(rounds, || check(&verified, &data, wanted).expect("a correct plan"));
    let reads = if is_causal { "causal" } else { "all" };
    print!("{:>9} {tokens:>7} {reads:>7} {:>10}", lengths.len(), bytes / 1024);
    for seconds in [emitting, planning, verifying, normalising, proving] {
        print!(" {:>10.0}", seconds * 1e9 / f64::from(tokens));
    }
    println!();
}

fn main() {
    let rounds = std::env::args().nth(1).map_or(5, |word| word.parse().expect("a number of rounds"));
    let tagger = Tagger::new();
    println!("sentences tokens   reads  plan, KiB  emit, ns a token   plan     verify  normalise      prove");
    let mut state = 1u64;
    let mut length = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        5 + (state >> 33) as u32 % 196
    };
    let lengths: Vec<u32> = (0..32).map(|_| length()).collect();
    for is_causal in [false, true] {
        measure(&tagger, &lengths, is_causal, rounds);
        for tokens in [512, 1024, 2048, 4096] {
            measure(&tagger, &[tokens], is_causal, rounds);
        }
    }
}
