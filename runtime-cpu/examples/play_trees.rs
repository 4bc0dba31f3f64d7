//! Tree-LSTM inference from emitting to logits: milliseconds a minibatch, batched and one by one, with the same kernels.
//!
//! `cargo run --release -p autobatch-runtime-cpu --example play_trees [hidden] [trees] [threads] [rounds]`
#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::{Cell, Graph, INDEX, Init, Module, ModuleBuilder, Param, Value, Weights, f32};
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Planner, Request};
use autobatch_runtime_cpu::{Bound, Player};
use std::sync::Arc;
use std::time::Instant;

struct Model {
    leaf: Cell<1, 2>,
    node: Cell<4, 2>,
    out: Param,
    out_bias: Param,
}

fn model(h: usize) -> (Arc<Module>, Model) {
    let mut m = ModuleBuilder::new("treelstm");
    let embed = m.table("embed", [1000, h], Init::Uniform(0.1));
    let weight = m.param("w", [2 * h, 5 * h], Init::Glorot(1.0));
    let bias = m.param("b", [5 * h], Init::ZEROS);
    let out = m.param("out", [h, 5], Init::Glorot(1.0));
    let out_bias = m.param("out.b", [5], Init::Glorot(1.0));
    let leaf = m.cell("leaf", [INDEX], |g, [word]| [embed.row(word), g.zeros([h])]);
    let node = m.cell("node", [f32([h]); 4], |g, [lh, lc, rh, rc]| {
        let [a, i, l, r, o] = g.affine([lh, rh], weight, Some(bias)).split();
        let c = a.tanh() * i.sigmoid() + l.sigmoid() * lc + r.sigmoid() * rc;
        [o.sigmoid() * c.tanh(), c]
    });
    (m.build().expect("the model is well typed"), Model { leaf, node, out, out_bias })
}

fn tree<'g>(g: &'g Graph, model: &Model, leaves: usize, random: &mut u64) -> [Value<'g>; 2] {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    if leaves == 1 {
        return g.call(model.leaf, (*random >> 33) as u32 % 1000);
    }
    let left = 1 + (*random >> 33) as usize % (leaves - 1);
    let [lh, lc] = tree(g, model, left, random);
    let [rh, rc] = tree(g, model, leaves - left, random);
    g.call(model.node, [lh, lc, rh, rc])
}

fn main() {
    let mut arguments = std::env::args().skip(1).map_while(|word| word.parse::<usize>().ok());
    let (h, trees) = (arguments.next().unwrap_or(100), arguments.next().unwrap_or(128));
    let (threads, rounds) = (arguments.next().unwrap_or(1), arguments.next().unwrap_or(21));
    let (module, model) = model(h);
    let weights = Weights::init(&module, 1);
    let mut graph = Graph::new(&module);
    let mut player = Player::new(threads).expect("an instruction set");
    let mut reference: Option<Vec<u32>> = None;
    for (word, rounds) in [("auto", rounds), ("none", rounds.min(3))] {
        let policy: Policy = word.parse().expect("a policy");
        let mut planner = Planner::new(policy.load().expect("no file"));
        let mut times = [const { Vec::new() }; 4];
        let mut nodes = 0;
        for _ in 0..=rounds {
            graph.clear();
            let mut random = 7;
            let start = Instant::now();
            let mut logits = Vec::with_capacity(trees);
            for key in 0..trees {
                graph.instance(key as u64);
                let [hidden, _] = tree(&graph, &model, 20, &mut random);
                logits.extend(hidden.affine(model.out, Some(model.out_bias)).id());
            }
            times[0].push(start.elapsed().as_secs_f64());
            let data = graph.data();
            let start = Instant::now();
            let plan =
                planner.plan(&data, &Request { wanted: &logits, ..Request::default() }).expect("a plan");
            times[1].push(start.elapsed().as_secs_f64());
            let start = Instant::now();
            let plan = plan.verify().expect("planners make verifiable plans");
            times[3].push(start.elapsed().as_secs_f64());
            let bound =
                Bound { words: &data.bindings.words, floats: &data.bindings.floats, noise: Noise::Off };
            let start = Instant::now();
            player.play(&plan, &weights, bound).expect("bindings fit");
            times[2].push(start.elapsed().as_secs_f64());
            nodes = data.arena.len();
            let bits: Vec<u32> =
                (0..trees).flat_map(|n| player.output(&plan, n).iter().map(|x| x.to_bits())).collect();
            assert_eq!(*reference.get_or_insert_with(|| bits.clone()), bits, "batched and one by one differ");
        }
        let mut median = |n: usize| {
            times[n].sort_by(f64::total_cmp);
            times[n][times[n].len() / 2] * 1e3
        };
        let (emit, plan, verify, play) = (median(0), median(1), median(3), median(2));
        let flops = (trees * 19 * 2 * h * 5 * h * 2) as f64;
        println!(
            "{word:>5}: {nodes} applications, emit {emit:.2} plan {plan:.2} verify {verify:.2} play {play:.2} ms, together {:.2} ms; {:.0} GFLOP/s in play",
            emit + plan + verify + play,
            flops / play / 1e6,
        );
    }
}
