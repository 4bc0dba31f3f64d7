//! Measures generation: greedy, drawn and beam search over a causal transformer or an LSTM, for several sentences at once; and
//! the time until the next word of one sentence.
//!
//! ```text
//! cargo run --release --example generation_speed                          # 1, 8 and 64 sentences of 128 words
//! cargo run --release --example generation_speed -- lstm --width 256
//! python bench/peers/pytorch_generation.py                                # the transformer in PyTorch, with a cache
//! ```

#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch::decode::{Draw, Search};
use autobatch::nn::{Linear, Lstm, TransformerEncoder, TransformerState};
use autobatch::prelude::*;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

const WORDS: u32 = 1000;
const HEADS: usize = 4;
const LAYERS: usize = 2;
const SENTENCES: [u32; 3] = [1, 8, 64];
const BEAM: usize = 4;
const ROUNDS: usize = 3;
/// The number of words whose times are measured.
const TIMED: usize = 10_000;

/// A model that scores the next word.
struct Writer {
    words: Table,
    body: Body,
    next: Linear,
}

enum Body {
    Transformer(TransformerEncoder),
    Lstm(Lstm),
}

/// The words so far, and the vector that scores the next one.
#[derive(Clone)]
enum State<'g> {
    Transformer(TransformerState<'g>, Value<'g>),
    Lstm([Value<'g>; 2]),
}

impl Writer {
    fn new(m: &mut ModuleBuilder, width: usize, is_lstm: bool) -> Self {
        Writer {
            words: m.table("words", [WORDS as usize, width], Init::Uniform(0.5)),
            body: match is_lstm {
                true => Body::Lstm(Lstm::new(m, "lstm", width, width)),
                false => Body::Transformer(TransformerEncoder::new(m, "encoder", width, HEADS, LAYERS)),
            },
            next: Linear::new(m, "next", width, WORDS as usize),
        }
    }

    fn start<'g>(&self, g: &'g Graph, word: u32) -> State<'g> {
        let x = self.words.lookup(g, word);
        match &self.body {
            Body::Lstm(lstm) => State::Lstm(lstm.start(g).push(x).values()),
            Body::Transformer(encoder) => {
                let mut state = encoder.start(g);
                let y = state.push(x);
                State::Transformer(state, y)
            }
        }
    }

    fn push<'g>(&self, g: &'g Graph, state: &State<'g>, word: u32) -> State<'g> {
        let x = self.words.lookup(g, word);
        match (&self.body, state) {
            (Body::Lstm(lstm), State::Lstm(values)) => State::Lstm(lstm.start_from(*values).push(x).values()),
            (_, State::Transformer(state, _)) => {
                let mut state = state.clone();
                let y = state.push(x);
                State::Transformer(state, y)
            }
            (Body::Transformer(_), State::Lstm(_)) => unreachable!("states are those of the body"),
        }
    }

    fn scores<'g>(&self, state: &State<'g>) -> Value<'g> {
        match state {
            State::Transformer(_, y) => self.next.on(*y),
            State::Lstm([h, _]) => self.next.on(*h),
        }
    }
}

/// Generates words for some sentences, and returns their number.
fn generate(
    session: &mut Session,
    writer: &Writer,
    way: &str,
    sentences: u32,
    length: usize,
) -> autobatch::Result<usize> {
    let g = session.graph();
    // No word ends a sentence.
    let (search, draw) = (Search::new(WORDS, length), Draw::new(WORDS, length));
    let words = |symbols: Vec<Vec<u32>>| symbols.iter().map(Vec::len).sum();
    if way == "drawn" {
        let one = |task: u32| {
            let start = writer.start(&g, task % WORDS);
            draw.run(
                &g,
                start,
                task.into(),
                |state| writer.scores(state),
                |state, word| writer.push(&g, state, word),
            )
        };
        let found = session.tasks(&g, (0..sentences).map(one))?;
        return Ok(words(found.into_iter().map(|found| found.symbols).collect()));
    }
    let search = if way == "beam" { search.width(BEAM) } else { search };
    let one = |task: u32| {
        let start = writer.start(&g, task % WORDS);
        search.run(&g, start, |state| writer.scores(state), |state, word| writer.push(&g, state, word))
    };
    let found = session.tasks(&g, (0..sentences).map(one))?;
    Ok(words(
        found.into_iter().filter_map(|found| found.into_iter().next()).map(|best| best.symbols).collect(),
    ))
}

/// The times from word to word of single sentences, one after the other, greedily; ascending.
fn word_times(session: &mut Session, writer: &Writer, length: usize) -> autobatch::Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(TIMED + length);
    while times.len() < TIMED {
        let g = session.graph();
        let found = RefCell::new(Vec::with_capacity(length));
        let search = Search::new(WORDS, length);
        let one = search.run(
            &g,
            writer.start(&g, 0),
            |state| writer.scores(state),
            |state, word| {
                found.borrow_mut().push(Instant::now());
                writer.push(&g, state, word)
            },
        );
        session.tasks(&g, [one])?;
        times.extend(found.borrow().windows(2).map(|pair| pair[1] - pair[0]));
    }
    times.sort_unstable();
    Ok(times)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut width, mut length, mut is_lstm) = (128, 128, false);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|word| word.parse().ok()).ok_or("expected a number");
        match &*word {
            "lstm" => is_lstm = true,
            "--width" => width = number()?,
            "--length" => length = number()?,
            _ => return Err(format!("unknown argument `{word}`: expected lstm, --width or --length").into()),
        }
    }
    let mut m = ModuleBuilder::new("generation");
    let writer = Writer::new(&mut m, width, is_lstm);
    let module = m.build()?;
    let options = SessionOptions { threads: 1, ..SessionOptions::default() };
    let mut session = Session::with_options(&module, Arc::new(Weights::init(&module, 1)), options)?;
    println!("sentences       greedy        drawn    beam of {BEAM}   words a second, width {width}");
    for sentences in SENTENCES {
        print!("{sentences:>9}");
        for way in ["greedy", "drawn", "beam"] {
            let mut best: f64 = 0.0;
            for _ in 0..ROUNDS {
                let start = Instant::now();
                let words = generate(&mut session, &writer, way, sentences, length)?;
                best = best.max(words as f64 / start.elapsed().as_secs_f64());
            }
            print!(" {best:>12.0}");
        }
        println!();
    }
    let times = word_times(&mut session, &writer, length.max(3))?;
    let at = |percent: usize| times[times.len() * percent / 100].as_secs_f64() * 1e6;
    println!(
        "one sentence: {:.0} microseconds a word, p50, and {:.0}, p99, of {}",
        at(50),
        at(99),
        times.len()
    );
    Ok(())
}
