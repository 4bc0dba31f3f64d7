//! Predicts the language of a name with an LSTM over its letters.
//!
//! Names of different lengths are batched without padding, sorting or packing. Results have the order of
//! the inputs.
//!
//! ```text
//! cargo run --release --example names
//! ```

#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch::nn::{Linear, Lstm};
use autobatch::prelude::*;

const LETTERS: usize = 27;
const LANGUAGES: [&str; 4] = ["English", "Japanese", "Polish", "Turkish"];

#[rustfmt::skip]
const NAMES: [&[&str]; 4] = [
    &["Smith", "Taylor", "Walker", "Wright", "Harrison", "Cooper", "Bennett", "Marshall", "Thornton", "Whitfield",
      "Ashworth", "Barker", "Caldwell", "Dawson", "Fletcher", "Hughes", "Jennings", "Lawson", "Norton", "Palmer"],
    &["Tanaka", "Suzuki", "Watanabe", "Yamamoto", "Nakamura", "Kobayashi", "Saito", "Kimura", "Hayashi", "Shimizu",
      "Matsumoto", "Inoue", "Yamaguchi", "Mori", "Ikeda", "Hashimoto", "Ogawa", "Fujita", "Okada", "Murakami"],
    &["Nowak", "Kowalski", "Wojcik", "Kaminski", "Lewandowski", "Zielinski", "Szymanski", "Wozniak", "Dabrowski",
      "Kozlowski", "Jankowski", "Mazur", "Kwiatkowski", "Krawczyk", "Piotrowski", "Grabowski", "Pawlak", "Michalski",
      "Nowicki", "Adamczyk"],
    &["Yilmaz", "Kaya", "Demir", "Celik", "Sahin", "Yildiz", "Ozturk", "Aydin", "Arslan", "Dogan", "Kilic", "Aslan",
      "Cetin", "Kara", "Koc", "Kurt", "Ozdemir", "Simsek", "Polat", "Erdogan"],
];

struct Names {
    lstm: Lstm,
    out: Linear,
    letters: usize,
}

impl Names {
    fn new(m: &mut ModuleBuilder, letters: usize, width: usize, classes: usize) -> Self {
        let (lstm, out) = (Lstm::new(m, "lstm", letters, width), Linear::new(m, "out", width, classes));
        Names { lstm, out, letters }
    }

    fn logits<'g>(&self, g: &'g Graph, name: &str) -> Value<'g> {
        let last = self.lstm.last(g, name.chars().map(|c| g.one_hot(letter(c), self.letters)));
        self.out.on(last)
    }
}

/// The number of a letter; 0 stands for all other characters.
fn letter(c: char) -> u32 {
    match c.to_ascii_lowercase() {
        c @ 'a'..='z' => 1 + c as u32 - 'a' as u32,
        _ => 0,
    }
}

fn main() -> autobatch::Result<()> {
    let languages = (0..).zip(NAMES);
    let all: Vec<(&str, u32)> =
        languages.flat_map(|(language, names)| names.iter().map(move |&name| (name, language))).collect();
    // Every fifth name is held out.
    let (valid, train): (Vec<_>, Vec<_>) = all.iter().enumerate().partition(|(number, _)| number % 5 == 4);
    let [train, valid] =
        [train, valid].map(|part| part.into_iter().map(|(_, &name)| name).collect::<Vec<_>>());

    let mut m = ModuleBuilder::new("names");
    let names = Names::new(&mut m, LETTERS, 48, LANGUAGES.len());
    let mut trainer = Trainer::new(m.build()?, Adam::new(1e-2))?.on_device("cpu".parse()?)?;
    for batch in train.sample(32, 1).take(80) {
        trainer.step(batch, |g, (name, language)| names.logits(g, name).cross_entropy(*language))?;
    }
    for k in [1, 2] {
        let correct = trainer.evaluate(
            &valid,
            |g, (name, _)| names.logits(g, name),
            |(_, language), p| p.top_k(k).contains(&(*language as usize)),
        )?;
        println!(
            "{} held-out names: {:.0} % have the correct language among the best {k}",
            correct.count(),
            100.0 * correct.mean()
        );
    }
    let unseen = ["Yamada", "Wisniewski", "Yavuz", "Robertson"];
    let p = trainer.session().predict(unseen, |g, name| names.logits(g, name).softmax())?;
    for (name, p) in unseen.iter().zip(&p) {
        let best: Vec<String> =
            p.top_k(2).into_iter().map(|class| format!("{} {:.3}", LANGUAGES[class], p[class])).collect();
        println!("{name:12} {}", best.join(", "));
    }
    Ok(())
}
