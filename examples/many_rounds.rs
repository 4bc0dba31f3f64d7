//! Measures the time of a round when tasks await many values.
//!
//! Each round plans, verifies and executes only the new nodes; earlier rows stay in place. A late round
//! of a long task therefore costs as much as an early one. With `transformer` each round attends to all rounds before, so it
//! costs more the later it is.
//!
//! ```text
//! cargo run --release --example many_rounds -- 1 500 8000        # one task of 500 rounds, then one of 8,000
//! cargo run --release --example many_rounds -- transformer 1 128 512
//! cargo run --release --features gpu --example many_rounds -- gpu 1 100 400
//! ```

#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch::nn::{Linear, Lstm, TransformerEncoder};
use autobatch::prelude::*;
use std::sync::Arc;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1).peekable();
    let attends = words.next_if(|word| word == "transformer").is_some();
    let device = words.next_if(|word| word.parse::<u32>().is_err()).map(|word| word.parse()).transpose()?;
    let numbers = words.map(|word| word.parse()).collect::<Result<Vec<u32>, _>>()?;
    let [tasks, lengths @ ..] = &numbers[..] else {
        return Err("expected the number of tasks and numbers of rounds, such as 1 500 8000".into());
    };
    let mut m = ModuleBuilder::new("rounds");
    let letters = m.table("letters", [50, 16], Init::Uniform(0.1));
    let lstm = Lstm::new(&mut m, "lstm", 16, 32);
    let encoder = TransformerEncoder::new(&mut m, "encoder", 16, 4, 2);
    let next = Linear::new(&mut m, "next", if attends { 16 } else { 32 }, 50);
    let module = m.build()?;
    let device = device.unwrap_or(Device::Cpu);
    let options = SessionOptions { threads: 1, device, ..SessionOptions::default() };
    let mut session = Session::with_options(&module, Arc::new(Weights::init(&module, 0)), options)?;
    for &rounds in lengths {
        let start = Instant::now();
        let g = session.graph();
        let one = async |first: u32| {
            let (mut state, mut positions, mut letter) = (lstm.start(&g), encoder.start(&g), first);
            for _ in 0..rounds {
                let x = letters.lookup(&g, letter);
                let y = if attends {
                    positions.push(x)
                } else {
                    state = state.push(x);
                    state.h()
                };
                letter = next.on(y).argmax().index().await?;
            }
            Ok(letter)
        };
        session.tasks(&g, (0..*tasks).map(|task| one(task % 50)))?;
        let time = start.elapsed();
        println!(
            "{tasks} tasks of {rounds} rounds: {time:.2?}, {:.1} us per round",
            time.as_secs_f64() * 1e6 / f64::from(rounds.max(1))
        );
    }
    Ok(())
}
