//! Searches and draws on a small recurrent model, against all of its sequences.

use super::search::descending;
use super::*;
use crate::prelude::*;
use autobatch_ir::Graph;

/// The end of the sequences of the tests, which is also the number of other symbols.
const END: u32 = 3;
const LONGEST: usize = 4;

#[test]
fn scores_that_hold_nan_are_refused() -> Result<()> {
    let mut session = Session::new(&ModuleBuilder::new("none").build()?, Device::Cpu)?;
    let (g, scores) = (session.graph(), [0.0, f32::NAN, 1.0]);
    // The task owns its search.
    let search = |longest| Search::new(2, longest).run(&g, (), |()| g.input(&scores), |(), _| ());
    let found = session.tasks(&g, [5].map(search));
    assert!(found.unwrap_err().to_string().contains("the scores behind 0 symbols hold NaN"));
    let g = session.graph();
    let drawn = session.tasks(&g, [Draw::new(2, 5).run(&g, (), 1, |()| g.input(&scores), |(), _| ())]);
    assert!(matches!(drawn, Err(Error::Scores { symbols: 0 })));
    Ok(())
}

/// The state of a recurrent model of four symbols.
struct Chain {
    words: Table,
    next: autobatch_nn::Linear,
    turn: autobatch_nn::Linear,
}

impl Chain {
    fn session() -> (Self, Session) {
        let mut m = ModuleBuilder::new("chain");
        let chain = Chain {
            words: m.table("words", [4, 5], Init::Uniform(2.0)),
            next: autobatch_nn::Linear::with_options(&mut m, "next", 5, 4, Init::Uniform(2.0), None),
            turn: autobatch_nn::Linear::with_options(&mut m, "turn", 10, 5, Init::Uniform(2.0), None),
        };
        let session = Session::new(m.build().unwrap(), Device::Cpu).unwrap();
        (chain, session)
    }

    fn push<'g>(&self, g: &'g Graph, state: Value<'g>, word: u32) -> Value<'g> {
        self.turn.on_parts(g, [state, self.words.lookup(g, word)]).tanh()
    }

    fn search(&self, session: &mut Session, search: Search) -> Vec<Decoded> {
        let g = &session.graph();
        let start = g.input(&[0.3, -0.2, 0.5, 0.1, -0.4]);
        let run = search.run(g, start, |&h| self.next.on(h), |&h, word| self.push(g, h, word));
        session.tasks(g, [run]).unwrap().remove(0)
    }

    /// All sequences with their log-probabilities, computed one by one.
    fn all(&self, session: &mut Session) -> Vec<Decoded> {
        let mut open = vec![Vec::new()];
        let mut all = Vec::new();
        for _ in 0..LONGEST {
            for symbols in std::mem::take(&mut open) {
                let log = self.log_probabilities(session, &symbols);
                all.push((symbols.clone(), log.0 + f64::from(log.1[END as usize]), true));
                for word in 0..END {
                    open.push([&symbols[..], &[word]].concat());
                }
            }
        }
        for symbols in open {
            let (log, _) = self.log_probabilities(session, &symbols);
            all.push((symbols, log, false));
        }
        all.into_iter()
            .map(|(symbols, log, ended)| Search::new(END, LONGEST).scored(symbols, log, ended))
            .collect()
    }

    /// The log-probability of the symbols, and those of all symbols after them.
    fn log_probabilities(&self, session: &mut Session, symbols: &[u32]) -> (f64, Vec<f32>) {
        let g = &session.graph();
        let mut state = g.input(&[0.3, -0.2, 0.5, 0.1, -0.4]);
        let mut rows = vec![self.next.on(state).log_softmax()];
        for &word in symbols {
            state = self.push(g, state, word);
            rows.push(self.next.on(state).log_softmax());
        }
        let run = session.run(g, &rows).unwrap();
        let taken = symbols.iter().zip(&rows).map(|(&word, &row)| f64::from(run[row][word as usize])).sum();
        (taken, run[*rows.last().unwrap()].to_vec())
    }
}

#[test]
fn a_wide_search_finds_the_best_of_all_sequences() {
    let (chain, mut session) = Chain::session();
    let mut all = chain.all(&mut session);
    all.sort_by(|a, b| descending(a.score, b.score));
    let found = chain.search(&mut session, Search::new(END, LONGEST).width(100));
    assert_eq!(found.len(), 100);
    for (found, expected) in found.iter().zip(&all).take(10) {
        assert_eq!((&found.symbols, found.ended), (&expected.symbols, expected.ended));
        assert!((found.score - expected.score).abs() < 1e-5, "{found:?}, expected {expected:?}");
    }
}

#[test]
fn a_search_of_width_one_takes_the_most_probable_symbol() {
    let (chain, mut session) = Chain::session();
    let found = chain.search(&mut session, Search::new(END, LONGEST));
    let [found] = &found[..] else { panic!("one sequence, found {}", found.len()) };
    for end in 0..=found.symbols.len().min(LONGEST - 1) {
        let (_, next) = chain.log_probabilities(&mut session, &found.symbols[..end]);
        let best = (0..4).max_by(|&a, &b| next[a].total_cmp(&next[b])).unwrap() as u32;
        assert_eq!(best, found.symbols.get(end).copied().unwrap_or(END));
    }
}

#[test]
fn a_length_exponent_prefers_longer_sequences() {
    let (chain, mut session) = Chain::session();
    let length = |exponent: f64, session: &mut Session| {
        let found = chain.search(session, Search::new(END, LONGEST).width(100).length_exponent(exponent));
        assert!(found.windows(2).all(|pair| pair[0].score >= pair[1].score));
        found[0].symbols.len()
    };
    assert!(length(4.0, &mut session) > length(-4.0, &mut session));
}

#[test]
fn draws_follow_the_probabilities_and_the_seed() {
    let (chain, mut session) = Chain::session();
    let (_, first) = chain.log_probabilities(&mut session, &[]);
    let draw = |session: &mut Session, options: Draw| {
        let g = &session.graph();
        let start = g.input(&[0.3, -0.2, 0.5, 0.1, -0.4]);
        let tasks = (0..2000).map(|seed| {
            options.run(g, start, seed, |&h| chain.next.on(h), |&h, word| chain.push(g, h, word))
        });
        session.tasks(g, tasks).unwrap()
    };
    let drawn = draw(&mut session, Draw::new(END, 1));
    for symbol in 0..END {
        let share = drawn.iter().filter(|drawn| drawn.symbols == [symbol]).count() as f32 / 2000.0;
        assert!((share - first[symbol as usize].exp()).abs() < 0.05, "{symbol}: {share}, {first:?}");
    }
    let again = draw(&mut session, Draw::new(END, 1));
    assert_eq!(drawn, again);
    let certain = draw(&mut session, Draw::new(END, LONGEST).among_best(1));
    let greedy = chain.search(&mut session, Search::new(END, LONGEST)).remove(0);
    assert!(certain.iter().all(|drawn| drawn.symbols == greedy.symbols));
}
