//! Greedy parsing: at every state of every sentence the best action that can be taken.
//!
//! Actions depend on scores, so sentences go in rounds: a round emits, for all sentences that are not
//! finished, the state after the actions so far, and plays the one score of each. States are emitted
//! anew in every round, which takes quadratically many cells in the length of a sentence; a round
//! is one plan, whatever the lengths.

use super::{Parser, REDUCE_LEFT, SHIFT};
use crate::data::dependency::{Transition, play};
use autobatch::prelude::*;
use autobatch::train::metrics::Attachment;

/// How many sentences go together.
const TOGETHER: usize = 256;

/// A parser with sentences to parse.
#[derive(Clone, Debug)]
pub struct Parsing {
    /// The parser.
    pub parser: Parser,
    /// The words of each sentence, and the head of each word, 0 for the root.
    pub sentences: Vec<(Vec<u32>, Vec<u32>)>,
}

/// Parses all sentences and scores their heads. There are no relations: labelled scores equal
/// unlabelled ones.
///
/// # Errors
/// As [`Session::run`].
pub fn measure(session: &mut Session, parsing: &Parsing) -> autobatch::Result<Attachment> {
    let mut score = Attachment::default();
    for sentences in parsing.sentences.chunks(TOGETHER) {
        let words: Vec<&[u32]> = sentences.iter().map(|(words, _)| &**words).collect();
        for (actions, (words, gold)) in parse(session, &parsing.parser, &words)?.iter().zip(sentences) {
            let heads = play(words.len() as u32, &transitions(actions));
            let found = heads.as_ref().map_or(&[][..], |heads| heads.heads());
            for (place, &head) in gold.iter().enumerate() {
                score.observe(head, found.get(place).copied().unwrap_or(u32::MAX), true);
            }
        }
    }
    Ok(score)
}

/// The actions of each sentence: `2n - 1` for `n` words.
///
/// # Errors
/// As [`Session::run`].
pub fn parse(
    session: &mut Session,
    parser: &Parser,
    sentences: &[&[u32]],
) -> autobatch::Result<Vec<Vec<u32>>> {
    let mut actions: Vec<Vec<u32>> = vec![Vec::new(); sentences.len()];
    loop {
        let finished = |number: usize| actions[number].len() + 1 >= 2 * sentences[number].len();
        let open: Vec<usize> = (0..sentences.len()).filter(|&number| !finished(number)).collect();
        if open.is_empty() {
            return Ok(actions);
        }
        let scores =
            session.predict(&open, |g, &number| parser.next(g, sentences[number], &actions[number]))?;
        for (&number, scores) in open.iter().zip(&scores) {
            let best = best(scores, sentences[number].len(), &actions[number]);
            actions[number].push(best);
        }
    }
}

/// The best action that can be taken after these; the first of ties.
fn best(scores: &[f32], words: usize, actions: &[u32]) -> u32 {
    let shifted = actions.iter().filter(|&&action| action == SHIFT).count();
    let phrases = 2 * shifted - actions.len();
    let possible = |action: u32| if action == SHIFT { shifted < words } else { phrases >= 2 };
    let better = |best: Option<(u32, f32)>, (action, &score): (u32, &f32)| match best {
        Some((_, known)) if known >= score => best,
        _ => Some((action, score)),
    };
    (0..).zip(scores).filter(|&(action, _)| possible(action)).fold(None, better).map_or(SHIFT, |best| best.0)
}

fn transitions(actions: &[u32]) -> Vec<Transition> {
    let transition = |&action: &u32| match action {
        SHIFT => Transition::Shift,
        REDUCE_LEFT => Transition::RightArc,
        _ => Transition::LeftArc,
    };
    actions.iter().map(transition).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::Widths;

    #[test]
    fn every_sentence_gets_a_whole_tree_alone_as_together() {
        let mut m = ModuleBuilder::new("parser");
        let parser = Parser::new(&mut m, 10, Widths { embedding: 4, action: 2, hidden: 5 });
        let mut session = Session::new(&m.build().unwrap(), Device::Cpu).unwrap();
        let sentences: [&[u32]; 4] = [&[3, 4, 5, 6, 7], &[1], &[2, 2, 9], &[8, 0]];
        let together = parse(&mut session, &parser, &sentences).unwrap();
        for (sentence, actions) in sentences.iter().zip(&together) {
            assert_eq!(actions.len(), 2 * sentence.len() - 1, "{actions:?}");
            assert!(play(sentence.len() as u32, &transitions(actions)).is_some(), "{actions:?}");
            assert_eq!(parse(&mut session, &parser, &[sentence]).unwrap()[0], *actions);
        }
    }

    #[test]
    fn actions_that_cannot_be_taken_are_passed_over() {
        assert_eq!(best(&[0.0, 5.0, 1.0], 2, &[0]), SHIFT, "one phrase cannot be reduced");
        assert_eq!(best(&[9.0, 5.0, 7.0], 2, &[0, 0]), 2, "no word is left to shift");
    }
}
