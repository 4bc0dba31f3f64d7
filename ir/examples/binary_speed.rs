//! Measures how long a graph of a million nodes takes to verify, to encode and to decode.
//!
//! `cargo run --release -p autobatch-ir --example binary_speed`

#![allow(clippy::print_stdout, reason = "the program's purpose is to print")]

use autobatch_ir::types::{INDEX, f32};
use autobatch_ir::{Graph, GraphData, Init, ModuleBuilder};
use std::time::Instant;

const NODES: usize = 1_000_000;
const REPETITIONS: usize = 7;

/// Binary trees of 128 leaves: half of the nodes take a word, half take four values; each
/// has two results.
fn trees() -> GraphData {
    let mut m = ModuleBuilder::new("tree");
    let embed = m.table("embed", [1000, 64], Init::Uniform(0.1));
    let w = m.param("w", [128, 320], Init::Glorot(1.0));
    let leaf = m.cell("leaf", [INDEX], |g, [word]| [embed.row(word), g.zeros([64])]);
    let node = m.cell("node", [f32([64]); 4], |g, [lh, lc, rh, rc]| {
        let [a, i, l, r, o] = g.affine([lh, rh], w, None).split();
        let c = a.tanh() * i.sigmoid() + l.sigmoid() * lc + r.sigmoid() * rc;
        [o.sigmoid() * c.tanh(), c]
    });
    let module = m.build().expect("the module is valid");
    let g = Graph::new(&module);
    let mut key = 0;
    while g.data().arena.len() < NODES {
        g.instance(key);
        key += 1;
        let mut level: Vec<_> = (0..128).map(|word| g.call(leaf, word)).collect();
        while level.len() > 1 {
            let pair = |pair: &[[_; 2]]| g.call(node, [pair[0][0], pair[0][1], pair[1][0], pair[1][1]]);
            level = level.chunks(2).map(pair).collect();
        }
    }
    g.finish().expect("the graph is valid")
}

/// The result of the last of several runs and the milliseconds of the best.
fn best<T>(mut f: impl FnMut() -> T) -> (T, f64) {
    let mut least = f64::INFINITY;
    let mut run = || {
        let start = Instant::now();
        let result = f();
        least = least.min(start.elapsed().as_secs_f64() * 1e3);
        result
    };
    for _ in 1..REPETITIONS {
        drop(run());
    }
    let last = run();
    (last, least)
}

fn main() {
    let data = trees();
    let (verified, verify) = best(|| data.verify());
    verified.expect("an emitted graph is valid");
    let (bytes, encode) = best(|| data.to_bytes());
    let (read, decode) = best(|| GraphData::from_bytes(&bytes).expect("an encoded graph can be decoded"));
    assert_eq!(read, data);
    let (nodes, size) = (data.arena.len(), bytes.len() as f64 / 1e6);
    println!("{nodes} nodes, {size:.1} MB, best of {REPETITIONS} runs:");
    println!("verify {verify:.1} ms, encode {encode:.1} ms, decode with verification {decode:.1} ms");
}
