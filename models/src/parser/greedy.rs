//! Greedy parsing: every sentence takes the best legal action in every state.
//!
//! Actions depend on scores, so each sentence is a task that awaits its next action. All sentences
//! await together, and the session plans and executes their next states in one round.

use super::{ACTIONS, Parser, REDUCE_LEFT, SHIFT};
use crate::data::dependency::{Heads, Transition, execute};
use autobatch::prelude::*;
use autobatch::train::metrics::Attachment;

/// The number of sentences per graph.
const TOGETHER: usize = 256;

/// A parser with sentences to parse.
#[derive(Clone, Debug)]
pub struct Parsing {
    /// The parser.
    pub parser: Parser,
    /// The words of each sentence, and the head of each word, 0 for the root.
    pub sentences: Vec<(Vec<u32>, Vec<u32>)>,
}

/// Parses all sentences and scores their heads. Labelled scores equal unlabelled ones, because the parser has
/// no relations.
///
/// # Errors
/// As [`Session::run`].
pub fn measure(session: &mut Session, parsing: &Parsing) -> autobatch::Result<Attachment> {
    let mut score = Attachment::default();
    let words: Vec<&[u32]> = parsing.sentences.iter().map(|(words, _)| &**words).collect();
    for (heads, (_, gold)) in heads(session, &parsing.parser, &words)?.iter().zip(&parsing.sentences) {
        let found = heads.as_ref().map_or(&[][..], |heads| heads.heads());
        for (place, &head) in gold.iter().enumerate() {
            score.observe(head, found.get(place).copied().unwrap_or(u32::MAX), true);
        }
    }
    Ok(score)
}

/// Returns the heads of each sentence. A sentence without words has none.
///
/// # Errors
/// As [`Session::tasks`].
pub fn heads(
    session: &mut Session,
    parser: &Parser,
    sentences: &[&[u32]],
) -> autobatch::Result<Vec<Option<Heads>>> {
    let mut all = Vec::with_capacity(sentences.len());
    for sentences in sentences.chunks(TOGETHER) {
        let actions = parse(session, parser, sentences)?;
        let built = actions
            .iter()
            .zip(sentences)
            .map(|(actions, words)| execute(words.len() as u32, &transitions(actions)));
        all.extend(built);
    }
    Ok(all)
}

/// Returns the actions of each sentence: `2n - 1` for `n` words.
///
/// # Errors
/// As [`Session::tasks`].
pub fn parse(
    session: &mut Session,
    parser: &Parser,
    sentences: &[&[u32]],
) -> autobatch::Result<Vec<Vec<u32>>> {
    let g = session.graph();
    session.tasks(&g, sentences.iter().map(|words| parser.parse(&g, words)))
}

impl Parser {
    /// Returns the best actions of a sentence, one after another. The first of equal scores wins.
    async fn parse(&self, g: &Graph, words: &[u32]) -> autobatch::Result<Vec<u32>> {
        let mut walk = self.begin(g, words);
        let mut actions = Vec::with_capacity(2 * words.len());
        while actions.len() + 1 < 2 * words.len() {
            let legal = legal(words.len(), &actions);
            let action = self.score(g, &walk).mask(&legal).argmax().index().await?;
            self.act(g, &mut walk, action);
            actions.push(action);
        }
        Ok(actions)
    }
}

/// Returns the legal actions after these.
fn legal(words: usize, actions: &[u32]) -> [bool; ACTIONS] {
    let shifted = actions.iter().filter(|&&action| action == SHIFT).count();
    let reduces = 2 * shifted - actions.len() >= 2;
    std::array::from_fn(|action| if action == SHIFT as usize { shifted < words } else { reduces })
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
    fn every_sentence_gets_one_tree_alone_and_in_a_batch() {
        let mut m = ModuleBuilder::new("parser");
        let parser = Parser::new(&mut m, 10, Widths { embedding: 4, action: 2, hidden: 5 });
        let mut session = Session::new(m.build().unwrap(), Device::Cpu).unwrap();
        let sentences: [&[u32]; 4] = [&[3, 4, 5, 6, 7], &[1], &[2, 2, 9], &[8, 0]];
        let together = parse(&mut session, &parser, &sentences).unwrap();
        for (sentence, actions) in sentences.iter().zip(&together) {
            assert_eq!(actions.len(), 2 * sentence.len() - 1, "{actions:?}");
            assert!(execute(sentence.len() as u32, &transitions(actions)).is_some(), "{actions:?}");
            assert_eq!(parse(&mut session, &parser, &[sentence]).unwrap()[0], *actions);
        }
    }

    #[test]
    fn illegal_actions_are_skipped() {
        assert_eq!(legal(2, &[0]), [true, false, false], "one phrase cannot be reduced");
        assert_eq!(legal(2, &[0, 0]), [false, true, true], "no word remains to shift");
    }
}
