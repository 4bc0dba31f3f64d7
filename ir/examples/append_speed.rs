//! Compares the time to emit a graph of cell calls with the time to append two halves of it.
//!
//! `cargo run --release -p autobatch-ir --example append_speed`

#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch_ir::{EmitError, Graph, Init, ModuleBuilder, Value, f32};
use std::time::{Duration, Instant};

const CALLS: usize = 40;
const INSTANCES: usize = 4000;
const ROUNDS: usize = 15;

fn main() -> Result<(), EmitError> {
    let mut m = ModuleBuilder::new("speed");
    let (words, w) = (m.table("words", [100, 16], Init::Uniform(1.0)), m.param("w", [32, 16], Init::He));
    let node = m.cell("node", [f32([16]); 2], |g, pair| [g.affine(pair, w, None).tanh()]);
    let module = m.build()?;
    let emit = |g: &Graph, instances: std::ops::Range<usize>| {
        for instance in instances {
            g.instance(instance as u64);
            let mut h: Value<'_> = words.lookup(g, (instance % 100) as u32);
            for call in 0..CALLS {
                let x = words.lookup(g, (call % 100) as u32);
                [h] = g.call(node, [h, x]);
            }
        }
    };
    let (mut emitting, mut appending) = (Duration::MAX, Duration::MAX);
    let [mut first, mut second] = [(); 2].map(|()| Graph::new(&module));
    for _ in 0..ROUNDS {
        first.clear();
        second.clear();
        let start = Instant::now();
        emit(&first, 0..INSTANCES / 2);
        emit(&second, INSTANCES / 2..INSTANCES);
        emitting = emitting.min(start.elapsed());
        let start = Instant::now();
        first.append(&second);
        appending = appending.min(start.elapsed());
    }
    first.check()?;
    let nodes = first.data().arena.len();
    let each = |time: Duration, count: usize| time.as_nanos() as f64 / count as f64;
    println!("{nodes} nodes: emitted in {:.1} ns each", each(emitting, nodes));
    println!("appended in {:.1} ns each", each(appending, nodes / 2));
    Ok(())
}
