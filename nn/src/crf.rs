//! [`Crf`]: scores of whole sequences of tags.

use crate::any_cell::vector;
use crate::values::Values;
use autobatch_ir::{Cell, Graph, INDEX, Init, ModuleBuilder, Param, Value};
use std::panic::Location;

/// A linear-chain conditional random field (Lafferty et al. 2001). A sequence of tags has the score
/// ```text
/// start[t_1] + s_1[t_1] + sum over i of (transitions[t_i, t_{i-1}] + s_i[t_i]) + end[t_n]
/// ```
/// with the scores `s_i` of the tags at each position. [`loss`](Self::loss) is the negative logarithm of the probability of the
/// given tags, and [`decode`](Self::decode) gives the most probable ones. Both are one cell per position, so sentences of all lengths
/// share batches without padding.
///
/// Parameters: `name.transitions: [tags, tags]` (to, from), `name.start` and `name.end`, each `[tags]`. All start at small random
/// numbers.
///
/// ```
/// # use autobatch_ir::{EmitError, Graph, ModuleBuilder};
/// # use autobatch_nn::Crf;
/// # fn main() -> Result<(), EmitError> {
/// let mut m = ModuleBuilder::new("m");
/// let crf = Crf::new(&mut m, "crf", 3);
/// let g = Graph::new(&m.build()?);
/// let scores: Vec<_> = (0..5).map(|word| g.input(&[0.1, 0.2 * word as f32, 0.3])).collect();
/// g.loss("loss", crf.loss(&g, &scores, &[0, 2, 1, 1, 0]));
/// for (word, tag) in crf.decode(&g, &scores).into_iter().enumerate() {
///     g.output(&format!("tag {word}"), tag); // an index
/// }
/// # g.finish().map(|_| ())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crf {
    /// `s, tag -> alpha, score of the tag`
    first: Cell<2, 2>,
    /// `alpha, score of the tags so far, s, tag, tag before -> alpha, score`
    next: Cell<5, 2>,
    /// `alpha, score, last tag -> loss`
    last: Cell<3, 1>,
    /// `s -> best scores`
    first_best: Cell<1, 1>,
    /// `best scores, s -> best scores, tags before`
    next_best: Cell<2, 2>,
    /// `best scores -> last tag`
    last_best: Cell<1, 1>,
    tags: usize,
}

impl Crf {
    /// A layer for this number of tags.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, tags: usize) -> Self {
        let init = || Init::Uniform(0.1);
        let transitions = m.param(&format!("{name}.transitions"), [tags, tags], init());
        let [start, end] = ["start", "end"].map(|part| m.param(&format!("{name}.{part}"), [tags], init()));
        let (row, one) = (vector(tags), vector(1));
        let first = m.cell(&format!("{name}.first"), [row, INDEX], |g, [s, tag]| {
            let alpha = s + g.param(start);
            [alpha, alpha.pick(tag).reshape([1])]
        });
        let next = m.cell(name, [row, one, row, INDEX, INDEX], |g, [alpha, score, s, tag, before]| {
            let own = s.pick(tag) + g.param(transitions).pick(tag).pick(before);
            [pairs(alpha, transitions, tags).logsumexp() + s, score + own.reshape([1])]
        });
        let last = m.cell(&format!("{name}.last"), [row, one, INDEX], |g, [alpha, score, tag]| {
            let end = g.param(end);
            [(alpha + end).logsumexp() - (score.reshape([]) + end.pick(tag))]
        });
        let first_best = m.cell(&format!("{name}.first_best"), [row], |g, [s]| [s + g.param(start)]);
        let next_best = m.cell(&format!("{name}.best"), [row, row], |_, [best, s]| {
            let pairs = pairs(best, transitions, tags);
            [pairs.max_rows() + s, pairs.argmax()]
        });
        let last_best =
            m.cell(&format!("{name}.last_best"), [row], |g, [best]| [(best + g.param(end)).argmax()]);
        Self { first, next, last, first_best, next_best, last_best, tags }
    }

    /// The negative logarithm of the probability of the tags, one for each position, given the scores of all tags at each position.
    #[track_caller]
    #[must_use]
    pub fn loss<'g>(&self, g: &'g Graph, scores: impl Values<'g>, tags: &[u32]) -> Value<'g> {
        let scores = scores.into_vec();
        if scores.len() != tags.len() || scores.is_empty() {
            let message = format!(
                "expected one tag for each of one or more positions, found {} positions and {} tags",
                scores.len(),
                tags.len()
            );
            return g.refuse("crf", &message, "give the tag of every position", Location::caller());
        }
        let [mut alpha, mut score] = g.call(self.first, (scores[0], tags[0]));
        for (&s, pair) in scores[1..].iter().zip(tags.windows(2)) {
            [alpha, score] = g.call(self.next, (alpha, score, s, pair[1], pair[0]));
        }
        let [loss] = g.call(self.last, (alpha, score, tags[tags.len() - 1]));
        loss
    }

    /// The most probable tags, an index for each position.
    #[track_caller]
    #[must_use]
    pub fn decode<'g>(&self, g: &'g Graph, scores: impl Values<'g>) -> Vec<Value<'g>> {
        let mut scores = scores.into_vec().into_iter();
        let Some(first) = scores.next() else { return Vec::new() };
        let [mut best] = g.call(self.first_best, first);
        let mut before = Vec::new();
        for s in scores {
            let [next, tags] = g.call(self.next_best, [best, s]);
            best = next;
            before.push(tags);
        }
        let [mut tag] = g.call(self.last_best, best);
        let mut tags = vec![tag];
        for before in before.into_iter().rev() {
            tag = before.pick(tag);
            tags.push(tag);
        }
        tags.reverse();
        tags
    }

    /// The number of tags.
    #[must_use]
    pub const fn tags(&self) -> usize {
        self.tags
    }
}

/// The scores of all pairs of tags: a row for each tag, with all tags before it.
#[track_caller]
fn pairs<'g>(before: Value<'g>, transitions: Param, tags: usize) -> Value<'g> {
    before.broadcast([tags, tags]) + before.graph().param(transitions)
}
