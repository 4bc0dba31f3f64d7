//! Workload g: a transition parser over a stack LSTM, with given actions (Dyer et al. 2015).

pub mod greedy;

use crate::Model;
use crate::scores::Scores;
use autobatch::prelude::*;
use autobatch_nn::recurrent::LstmKind;
use autobatch_nn::{Embedding, Linear, Lstm, State, losses};
use std::panic::Location;

/// The numbers of the actions in the data.
const SHIFT: u32 = 0;
const REDUCE_LEFT: u32 = 1;
/// The number of actions.
const ACTIONS: usize = 3;

/// Widths of a [`Parser`].
#[derive(Clone, Copy, Debug)]
pub struct Widths {
    /// The width of the vectors of words and phrases.
    pub embedding: usize,
    /// The width of the vectors of actions.
    pub action: usize,
    /// The width of the three LSTMs.
    pub hidden: usize,
}

/// Three LSTMs over the remaining words, the stack and the past actions score the next action. A reduction
/// pops two phrases and pushes their composition. States are immutable, so a pop returns to an older
/// state.
#[derive(Clone, Copy, Debug)]
pub struct Parser {
    words: Embedding,
    actions: Embedding,
    stack: Lstm,
    buffer: Lstm,
    history: Lstm,
    score: Cell<3, 1>,
    compose: Cell<2, 1>,
}

impl Parser {
    /// Declares the model. The widths of the comparative benchmark are 100, 20 and 100.
    pub fn new(m: &mut ModuleBuilder, words: usize, widths: Widths) -> Self {
        let Widths { embedding, action, hidden } = widths;
        let features = Linear::new(m, "features", hidden.saturating_mul(3), hidden);
        let next = Linear::new(m, "next", hidden, ACTIONS);
        let phrase = Linear::new(m, "phrase", embedding.saturating_mul(2), embedding);
        Parser {
            words: Embedding::new(m, "words", words, embedding),
            actions: Embedding::new(m, "actions", ACTIONS, action),
            stack: Lstm::new(m, "stack", embedding, hidden),
            buffer: Lstm::new(m, "buffer", embedding, hidden),
            history: Lstm::new(m, "history", action, hidden),
            score: m.cell("score", [f32([hidden]); 3], |g, states| {
                [next.on(features.on_parts(g, states).tanh())]
            }),
            compose: m
                .cell("compose", [f32([embedding]); 2], |g, phrases| [phrase.on_parts(g, phrases).tanh()]),
        }
    }

    /// Emits the scores of every action before each action.
    pub fn scores<'g>(&self, g: &'g Graph, words: &[u32], actions: &[u32]) -> Vec<Value<'g>> {
        let mut walk = self.begin(g, words);
        let mut scores = Vec::with_capacity(actions.len());
        for &action in actions {
            scores.push(self.score(g, &walk));
            if !self.act(g, &mut walk, action) {
                let message = format!("action {action} has no word or fewer than two phrases");
                let help = "actions must shift every word once and reduce only phrases on the stack";
                return vec![g.refuse("parse", &message, help, Location::caller())];
            }
        }
        scores
    }

    fn begin<'g>(&self, g: &'g Graph, words: &[u32]) -> Walk<'g> {
        let words: Vec<_> = words.iter().map(|&word| self.words.lookup(g, word)).collect();
        // The states of the LSTM over the remaining words, which reads from the last word. The top has read
        // all of them; each state below has read one word fewer.
        let mut buffer = vec![self.buffer.start(g)];
        for &word in words.iter().rev() {
            buffer.push(buffer[buffer.len() - 1].push(word));
        }
        let (stack, history) = (vec![self.stack.start(g)], self.history.start(g));
        Walk { words: words.into_iter(), buffer, phrases: Vec::new(), stack, history }
    }

    fn score<'g>(&self, g: &'g Graph, walk: &Walk<'g>) -> Value<'g> {
        let [top, next] = [&walk.stack, &walk.buffer].map(|states| states[states.len() - 1].h());
        let [score] = g.call(self.score, [top, next, walk.history.h()]);
        score
    }

    /// Takes an action. Returns whether the action was legal.
    fn act<'g>(&self, g: &'g Graph, walk: &mut Walk<'g>, action: u32) -> bool {
        let pushed = if action == SHIFT {
            let left = walk.buffer.len().max(2) - 1;
            walk.buffer.truncate(left);
            walk.words.next()
        } else {
            self.reduce(g, action, &mut walk.phrases, &mut walk.stack)
        };
        let Some(phrase) = pushed else { return false };
        walk.phrases.push(phrase);
        let state = walk.stack[walk.stack.len() - 1].push(phrase);
        walk.stack.push(state);
        walk.history = walk.history.push(self.actions.lookup(g, action));
        true
    }

    /// Pops two phrases and composes them, the head first. Returns `None` if there are fewer than two.
    fn reduce<'g, S>(
        &self,
        g: &'g Graph,
        action: u32,
        phrases: &mut Vec<Value<'g>>,
        stack: &mut Vec<S>,
    ) -> Option<Value<'g>> {
        let (right, left) = (phrases.pop()?, phrases.pop()?);
        stack.truncate(stack.len() - 2);
        let pair = if action == REDUCE_LEFT { [left, right] } else { [right, left] };
        let [phrase] = g.call(self.compose, pair);
        Some(phrase)
    }
}

/// The state of a parse.
struct Walk<'g> {
    words: std::vec::IntoIter<Value<'g>>,
    buffer: Vec<State<'g, LstmKind, 2>>,
    phrases: Vec<Value<'g>>,
    stack: Vec<State<'g, LstmKind, 2>>,
    history: State<'g, LstmKind, 2>,
}

impl Model for Parser {
    /// Words and actions.
    type Instance = (Vec<u32>, Vec<u32>);

    fn emit<'g>(&self, g: &'g Graph, (words, actions): &Self::Instance, outputs: &mut Vec<Value<'g>>) {
        outputs.extend(self.scores(g, words, actions));
    }

    fn loss<'g>(&self, g: &'g Graph, (words, actions): &Self::Instance) -> Value<'g> {
        losses::sequence_cross_entropy(g, self.scores(g, words, actions), actions.iter().copied())
    }

    fn score(&self, (_, actions): &Self::Instance, outputs: &[&Row], scores: &mut Scores) {
        for (output, &action) in outputs.iter().zip(actions) {
            scores.hit("action accuracy", output.argmax() == action as usize);
        }
    }
}
