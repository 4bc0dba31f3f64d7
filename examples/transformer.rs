//! Tags words with a transformer over sentences of different lengths, without padding and masks.
//!
//! The task is artificial: the tag of a word tells whether the word occurs once, twice or more often in
//! its sentence. The word alone does not determine its tag.
//!
//! ```text
//! cargo run --release --example transformer
//! ```

#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch::nn::{Embedding, Linear, Positions, TransformerEncoder, TransformerOptions, losses};
use autobatch::prelude::*;
use autobatch::random::Random;
use std::time::Instant;

const WORDS: usize = 16;
const TAGS: usize = 3;
const WIDTH: usize = 32;
const HEADS: usize = 4;
const LAYERS: usize = 2;

struct Tagger {
    words: Embedding,
    positions: Positions,
    encoder: TransformerEncoder,
    out: Linear,
}

impl Tagger {
    fn new(m: &mut ModuleBuilder) -> Self {
        let options = TransformerOptions {
            feed_forward: Some(2 * WIDTH),
            norm_first: true,
            ..TransformerOptions::default()
        };
        Tagger {
            words: Embedding::with_options(m, "words", WORDS, WIDTH, Init::Normal(1.0)),
            positions: Positions::sinusoidal(WIDTH),
            encoder: TransformerEncoder::with_options(m, "encoder", WIDTH, HEADS, LAYERS, &options),
            out: Linear::new(m, "out", WIDTH, TAGS),
        }
    }

    /// The scores of the tags for each word of a sentence.
    fn logits<'g>(&self, g: &'g Graph, sentence: &[u32]) -> Vec<Value<'g>> {
        let xs = sentence.iter().map(|&word| self.words.lookup(g, word));
        let encoded = self.encoder.run(g, self.positions.add(g, xs));
        encoded.into_iter().map(|x| self.out.on(x)).collect()
    }
}

/// A sentence of 3 to 24 words with its tags.
fn sentence(random: &mut Random) -> (Vec<u32>, Vec<u32>) {
    let words: Vec<u32> = (0..3 + random.index(22)).map(|_| random.index(WORDS) as u32).collect();
    let occurrences = |word: &u32| words.iter().filter(|&other| other == word).count();
    let tags = words.iter().map(|word| (occurrences(word).min(TAGS) - 1) as u32).collect();
    (words, tags)
}

fn main() -> autobatch::Result<()> {
    let mut random = Random::new(1);
    let mut sentences = |count: usize| -> Vec<_> { (0..count).map(|_| sentence(&mut random)).collect() };
    let (train, valid) = (sentences(2000), sentences(300));

    let mut m = ModuleBuilder::new("transformer");
    let tagger = Tagger::new(&mut m);
    let mut trainer = Trainer::new(m.build()?, Adam::new(2e-3))?.on_device("cpu".parse()?)?;

    let share = accuracy(&tagger, trainer.session(), &valid[..32])?;
    if let Some(plan) = trainer.session().last_plan() {
        let words: usize = valid[..32].iter().map(|(words, _)| words.len()).sum();
        let longest = valid[..32].iter().map(|(words, _)| words.len()).max().unwrap_or(0);
        let found = plan.certificate;
        println!("32 sentences of {words} words ({} with padding)", 32 * longest);
        println!("{} batches (bound {}), {} rows copied", found.batches, found.bound, found.copied);
        println!("{} rows gathered, {} rows direct", found.gathered, found.direct);
    }
    println!("before training: {:.1} % of the tags are correct", 100.0 * share);
    let start = Instant::now();
    for epoch in 0..6 {
        let mut bar = Bar::new(&format!("epoch {epoch}"), train.len().div_ceil(32));
        for batch in train.batches(32).shuffled(epoch) {
            let step = trainer.step(batch, |g, (words, tags)| {
                losses::sequence_cross_entropy(g, tagger.logits(g, words), tags.iter().copied())
            })?;
            bar.report(&step);
        }
        let share = 100.0 * accuracy(&tagger, trainer.session(), &valid)?;
        println!(
            "epoch {epoch}: {share:.1} % of the held-out tags are correct, after {:.1} s",
            start.elapsed().as_secs_f64()
        );
    }
    let count = |tag: u32| valid.iter().flat_map(|(_, tags)| tags).filter(|&&found| found == tag).count();
    let counts = (0..TAGS as u32).map(count);
    let (total, largest) = (counts.clone().sum::<usize>(), counts.max().unwrap_or(0));
    println!("baseline (most frequent tag): {:.1} %", 100.0 * largest as f64 / total as f64);
    Ok(())
}

/// The share of correct tags.
fn accuracy(
    tagger: &Tagger,
    session: &mut Session,
    sentences: &[(Vec<u32>, Vec<u32>)],
) -> autobatch::Result<f64> {
    let g = session.graph();
    let (mut logits, mut expected): (Vec<Value<'_>>, Vec<u32>) = (Vec::new(), Vec::new());
    for (number, (words, tags)) in sentences.iter().enumerate() {
        g.instance(number as u64);
        logits.extend(tagger.logits(&g, words));
        expected.extend(tags);
    }
    let run = session.run(&g, &logits)?;
    let hits = logits.iter().zip(&expected).filter(|&(&row, &tag)| run[row].argmax() == tag as usize).count();
    Ok(hits as f64 / expected.len() as f64)
}
