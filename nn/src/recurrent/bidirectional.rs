//! [`Bidirectional`]: one layer in each direction.

use super::{Gru, Lstm, Rnn, Sequence};
use crate::values::Values;
use autobatch_ir::{Graph, ModuleBuilder, Value};

/// A layer named `name.fw` from the first input to the last, and one named `name.bw` in the opposite
/// direction. Both are one cell with different parameters and run independently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bidirectional<R> {
    /// From the first input to the last.
    pub forward: R,
    /// From the last input to the first.
    pub backward: R,
}

/// A bidirectional [`Lstm`].
pub type BiLstm = Bidirectional<Lstm>;
/// A bidirectional [`Gru`].
pub type BiGru = Bidirectional<Gru>;
/// A bidirectional [`Rnn`].
pub type BiRnn = Bidirectional<Rnn>;

impl<R: Sequence> Bidirectional<R> {
    /// Two layers of width `width`; outputs have width `2 * width`.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, input: usize, width: usize) -> Self {
        Self::with_options(m, name, input, width, &R::Options::default())
    }

    /// Two layers with options.
    #[track_caller]
    pub fn with_options(
        m: &mut ModuleBuilder,
        name: &str,
        input: usize,
        width: usize,
        options: &R::Options,
    ) -> Self {
        let forward = R::build(m, &format!("{name}.fw"), input, width, options);
        let backward = R::build(m, &format!("{name}.bw"), input, width, options);
        Self { forward, backward }
    }

    /// For each input, `[f b]`: the output of each layer at that input.
    #[track_caller]
    #[must_use]
    pub fn run<'g>(&self, g: &'g Graph, xs: impl Values<'g>) -> Vec<Value<'g>> {
        let pairs = self.run_pairs(g, xs);
        let mut outputs = Vec::with_capacity(pairs.len());
        for pair in pairs {
            outputs.push(g.concat(pair));
        }
        outputs
    }

    /// As [`run`](Self::run), with the two outputs separate, for a consumer that takes parts.
    #[track_caller]
    #[must_use]
    pub fn run_pairs<'g>(&self, g: &'g Graph, xs: impl Values<'g>) -> Vec<[Value<'g>; 2]> {
        let mut xs = xs.into_vec();
        let forward = self.forward.outputs(g, &xs);
        xs.reverse();
        let backward = self.backward.outputs(g, &xs);
        forward.into_iter().zip(backward.into_iter().rev()).map(|(f, b)| [f, b]).collect()
    }

    /// `[f b]`: the last output of each layer in its direction; zeros if there are no inputs.
    #[track_caller]
    #[must_use]
    pub fn last<'g>(&self, g: &'g Graph, xs: impl Values<'g>) -> Value<'g> {
        let mut xs = xs.into_vec();
        let forward = self.forward.summary(g, &xs);
        xs.reverse();
        let backward = self.backward.summary(g, &xs);
        g.concat([forward, backward])
    }

    /// The width of an input.
    #[must_use]
    pub fn input(&self) -> usize {
        self.forward.input_width()
    }

    /// The width of an output: both directions together.
    #[must_use]
    pub fn width(&self) -> usize {
        self.forward.output_width().saturating_add(self.backward.output_width())
    }
}
