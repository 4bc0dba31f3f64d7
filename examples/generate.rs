//! Generates words letter by letter. The model decides when a word ends, and all words are batched.
//!
//! Each word is an `async` task that awaits its next letter. The session batches the pending work of all
//! tasks.
//!
//! The language is artificial: a word is a sequence of syllables of a consonant and a vowel. The vowels
//! follow each other in alphabetical order, and a word ends after `u`.
//!
//! ```text
//! cargo run --release --example generate
//! ```

#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch::nn::{Linear, Lstm, losses};
use autobatch::prelude::*;
use autobatch::random::Random;
use std::time::Instant;

const VOWELS: &[u8] = b"aeiou";
const CONSONANTS: &[u8] = b"bdgklmnprst";
/// The symbol that ends a word.
const END: u32 = 26;
const LETTERS: usize = 27;
/// Maximum length of a generated word.
const MAX_LENGTH: usize = 40;

/// A recurrent network that predicts the next letter.
struct Writer {
    letters: Table,
    lstm: Lstm,
    next: Linear,
}

impl Writer {
    fn new(m: &mut ModuleBuilder, h: usize) -> Self {
        let letters = m.table("letters", [LETTERS, 16], Init::Uniform(0.1));
        Writer { letters, lstm: Lstm::new(m, "lstm", 16, h), next: Linear::new(m, "next", h, LETTERS) }
    }

    /// The loss of a word: the model predicts each letter from the preceding letters.
    fn loss<'g>(&self, g: &'g Graph, word: &[u32]) -> Value<'g> {
        let mut state = self.lstm.start(g);
        let mut scores = Vec::with_capacity(word.len());
        for &letter in word {
            state = state.push(self.letters.lookup(g, letter));
            scores.push(self.next.on(state.h()));
        }
        let targets = word[1..].iter().copied().chain([END]);
        losses::sequence_cross_entropy(g, scores, targets)
    }

    /// Completes a word. This task awaits each letter until the model ends the word.
    async fn complete(&self, g: &Graph, prefix: &[u32]) -> autobatch::Result<Vec<u32>> {
        let mut word = prefix.to_vec();
        let mut state = self.lstm.start(g);
        for &letter in prefix {
            state = state.push(self.letters.lookup(g, letter));
        }
        while word.len() < MAX_LENGTH {
            let letter = self.next.on(state.h()).argmax();
            match letter.index().await? {
                END => break,
                chosen => word.push(chosen),
            }
            state = state.push(self.letters.row(letter));
        }
        Ok(word)
    }
}

/// A random word of the language.
fn word(random: &mut Random) -> Vec<u32> {
    let first = random.below(VOWELS.len() as u64) as usize;
    let letter = |letter: u8| u32::from(letter - b'a');
    let mut word = Vec::new();
    for &vowel in &VOWELS[first..] {
        word.push(letter(CONSONANTS[random.below(CONSONANTS.len() as u64) as usize]));
        word.push(letter(vowel));
    }
    word
}

fn text(word: &[u32]) -> String {
    word.iter().map(|&letter| char::from(b'a' + letter as u8)).collect()
}

fn main() -> autobatch::Result<()> {
    let mut m = ModuleBuilder::new("writer");
    let writer = Writer::new(&mut m, 64);
    let mut trainer = Trainer::new(m.build()?, Adam::new(0.01))?;
    let mut random = Random::new(1);
    for step in 1..=150 {
        let words: Vec<_> = (0..32).map(|_| word(&mut random)).collect();
        let report = trainer.step(&words, |g, word| writer.loss(g, word))?;
        if step % 50 == 0 {
            println!("step {step}: {report}");
        }
    }

    let prefixes: Vec<Vec<u32>> = (0..256).map(|_| word(&mut random)[..2].to_vec()).collect();
    let session = trainer.session();
    let start = Instant::now();
    let graph = session.graph();
    let together = session.tasks(&graph, prefixes.iter().map(|prefix| writer.complete(&graph, prefix)))?;
    let (time, steps) = (start.elapsed(), session.last_plan().map_or(0, |plan| plan.steps.len()));

    let start = Instant::now();
    for (prefix, word) in prefixes.iter().zip(&together) {
        let graph = session.graph();
        let alone = session.tasks(&graph, [writer.complete(&graph, prefix)])?;
        assert_eq!(alone[0], *word, "batching does not change a word");
    }
    println!("{} words in {steps} steps: {time:.1?}; one at a time: {:.1?}", together.len(), start.elapsed());
    for (prefix, word) in prefixes.iter().zip(&together).take(8) {
        println!("{} -> {}", text(prefix), text(word));
    }
    let ended = together.iter().filter(|word| text(word).ends_with('u')).count();
    println!("{ended} of {} end with u", together.len());
    Ok(())
}
