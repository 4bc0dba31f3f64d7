//! The language of a name, from an LSTM over its letters. Names of any lengths go together without
//! padding, sorting or packing, and results come back in the order in which they were asked for.
//!
//! ```text
//! cargo run --release --example names
//! ```

#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch::nn::{Linear, Lstm};
use autobatch::prelude::*;

const LETTERS: usize = 27;
const LANGUAGES: [&str; 4] = ["English", "Nepali", "Polish", "Turkish"];

struct Names {
    lstm: Lstm,
    out: Linear,
}

impl Names {
    fn new(m: &mut ModuleBuilder) -> Self {
        Names { lstm: Lstm::new(m, "lstm", LETTERS, 64), out: Linear::new(m, "out", 64, LANGUAGES.len()) }
    }

    fn languages<'g>(&self, g: &'g Graph, name: &str) -> Value<'g> {
        let last = self.lstm.last(g, name.chars().map(|letter| g.one_hot(index(letter), LETTERS)));
        self.out.on(last).softmax()
    }
}

/// 0 stands for everything that is no letter.
fn index(letter: char) -> u32 {
    match letter.to_ascii_lowercase() {
        letter @ 'a'..='z' => 1 + letter as u32 - 'a' as u32,
        _ => 0,
    }
}

fn main() -> autobatch::Result<()> {
    let mut m = ModuleBuilder::new("names");
    let model = Names::new(&mut m);
    let mut session = Session::new(&m.build()?, Device::Cpu)?;

    let names = ["Shyam", "Ram", "Kowalczyk", "O'Hara", "Yildirim"];
    let graph = session.graph();
    let languages: Vec<Value<'_>> = names.iter().map(|name| model.languages(&graph, name)).collect();
    print!("{}", graph.summary());
    let run = session.run(&graph, &languages)?;
    println!("the weights were drawn, not trained: every language is about as likely");
    for (name, &value) in names.iter().zip(&languages) {
        let best: Vec<String> = run[value]
            .top_k(2)
            .into_iter()
            .map(|place| format!("{} {:.3}", LANGUAGES[place], run[value][place]))
            .collect();
        println!("{name:10} {}", best.join(", "));
    }
    let certificate = run.plan().certificate;
    println!("{} batches, bound {}", certificate.batches, certificate.bound);
    Ok(())
}
