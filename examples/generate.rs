//! Words that are written letter by letter until the model ends them: how far a word goes depends on
//! what was computed of it, and all words are computed together nevertheless.
//!
//! The language is made up: syllables of a consonant and a vowel, each vowel followed by the next in
//! order, and a word ends behind `u`.
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
/// The letter that ends a word.
const END: u32 = 26;
const LETTERS: usize = 27;
const LONGEST: usize = 40;

/// A recurrent network that says which letter comes next.
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

    /// The loss of a whole word: every letter from those before it.
    fn loss<'g>(&self, g: &'g Graph, word: &[u32]) -> Value<'g> {
        let mut state = self.lstm.start(g);
        let mut scores = Vec::with_capacity(word.len());
        for &letter in word {
            state = state.push(self.letters.look(g, letter));
            scores.push(self.next.on(state.h()));
        }
        let wanted = word[1..].iter().copied().chain([END]);
        losses::sequence_cross_entropy(g, scores, wanted)
    }

    /// Goes on with a word until the model ends it: a task, which waits for every letter.
    async fn complete(&self, g: &Graph, begun: &[u32]) -> autobatch::Result<Vec<u32>> {
        let mut word = begun.to_vec();
        let mut state = self.lstm.start(g);
        for &letter in begun {
            state = state.push(self.letters.look(g, letter));
        }
        while word.len() < LONGEST {
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

/// A word of the language.
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

fn spelled(word: &[u32]) -> String {
    word.iter().map(|&letter| char::from(b'a' + letter as u8)).collect()
}

fn main() -> autobatch::Result<()> {
    let mut m = ModuleBuilder::new("writer");
    let writer = Writer::new(&mut m, 64);
    let mut trainer = Trainer::new(m.build()?, Adam::new(0.01))?;
    let mut random = Random::new(1);
    for step in 1..=150 {
        let words: Vec<_> = (0..32).map(|_| word(&mut random)).collect();
        let step_made = trainer.step(&words, |g, word| writer.loss(g, word))?;
        if step % 50 == 0 {
            println!("step {step}: {step_made}");
        }
    }

    let begun: Vec<Vec<u32>> = (0..256).map(|_| word(&mut random)[..2].to_vec()).collect();
    let session = trainer.session();
    let start = Instant::now();
    let graph = session.graph();
    let together = session.tasks(&graph, begun.iter().map(|begun| writer.complete(&graph, begun)))?;
    let (took, batches) = (start.elapsed(), session.last_plan().map_or(0, |plan| plan.steps.len()));

    let start = Instant::now();
    for (begun, word) in begun.iter().zip(&together) {
        let graph = session.graph();
        let alone = session.tasks(&graph, [writer.complete(&graph, begun)])?;
        assert_eq!(alone[0], *word, "a word is what it is, alone as among others");
    }
    println!(
        "{} words in {batches} steps: {took:.1?}; one after another: {:.1?}",
        together.len(),
        start.elapsed()
    );
    for (begun, word) in begun.iter().zip(&together).take(8) {
        println!("{} -> {}", spelled(begun), spelled(word));
    }
    let ended = together.iter().filter(|word| spelled(word).ends_with('u')).count();
    println!("{ended} of {} end as words of the language do", together.len());
    Ok(())
}
