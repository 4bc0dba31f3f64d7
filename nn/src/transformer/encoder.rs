//! [`TransformerEncoder`]: layers in which each position of a sequence attends to the others.

use super::state::LayerState;
use super::{Around, FeedForward, LastNorm, TransformerOptions, TransformerState};
use crate::any_cell::vector;
use crate::multi_head::{HeadWeights, project_all, whole};
use crate::values::Values;
use autobatch_ir::{CellOfAny, Graph, ModuleBuilder, Value};
use std::sync::Arc;

/// An encoder layer (Vaswani et al. 2017), as `torch.nn.TransformerEncoderLayer`. With `A` a
/// [multi-head attention](crate::MultiHeadAttention), `N1` and `N2` [`LayerNorm`](crate::LayerNorm)s, `D` dropout and
/// `F(x) = D(act(x · W1 + b1)) · W2 + b2`:
/// ```text
/// norms after    y = N1(x + D(A(x)))       z = N2(y + D(F(y)))
/// norms before   y = x + D(A(N1(x)))       z = y + D(F(N2(y)))
/// ```
/// A layer is two cells, so two batches over all positions of all instances: one projects a position, the other attends and
/// does the rest. Parameters: `name.self_attn.in_proj`, `name.self_attn.out_proj`, `name.linear1`, `name.linear2`
/// ([`Linear`](crate::Linear)s), `name.norm1` and `name.norm2`.
///
/// PyTorch also applies dropout to attention weights. Here a list fold computes them internally, without dropout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransformerEncoderLayer {
    /// `x -> q k_1 .. k_H v_1 .. v_H`
    enter: CellOfAny,
    /// `x q, lists of k_1 .. k_H v_1 .. v_H -> z`
    leave: CellOfAny,
    heads: usize,
}

impl TransformerEncoderLayer {
    /// A layer over positions of width `width`, which `heads` must divide.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, width: usize, heads: usize) -> Self {
        Self::with_options(m, name, width, heads, &TransformerOptions::default())
    }

    /// A layer with options.
    #[track_caller]
    pub fn with_options(
        m: &mut ModuleBuilder,
        name: &str,
        width: usize,
        heads: usize,
        options: &TransformerOptions,
    ) -> Self {
        options.check(m, name);
        let attention = format!("{name}.self_attn");
        let attention = HeadWeights::declare(m, &attention, [width, heads], None, &options.of_attention());
        let shape = attention.shape();
        let feed = FeedForward::declare(m, name, width, options);
        let first = Around::declare(m, name, "norm1", width, options);
        let second = Around::declare(m, name, "norm2", width, options);
        let enter = m.cell_of_any(&format!("{name}.enter"), &[vector(width)], |_, ports| {
            attention.project(first.seen(ports[0]))
        });
        let mut ports = vec![vector(width); 2];
        ports.extend(shape.list_types());
        let leave = m.cell_of_any(&format!("{name}.leave"), &ports, |g, ports| {
            let x = first.joined(ports[0], attention.read(g, ports[1], &ports[2..]));
            vec![second.joined(x, feed.on(second.seen(x)))]
        });
        Self { enter, leave, heads: shape.heads }
    }

    /// The output at each position, given all positions.
    #[track_caller]
    #[must_use]
    pub fn run<'g>(&self, g: &'g Graph, xs: impl Values<'g>) -> Vec<Value<'g>> {
        let mut xs = xs.into_vec();
        let (queries, columns) = project_all(g, self.enter, self.heads, &xs);
        let all = whole(g, &columns);
        for (x, query) in xs.iter_mut().zip(queries) {
            *x = g.call_any(self.leave, [&*x, &query].into_iter().chain(&all))[0];
        }
        xs
    }

    /// The output at each position, given itself and earlier positions.
    #[track_caller]
    #[must_use]
    pub fn run_causal<'g>(&self, g: &'g Graph, xs: impl Values<'g>) -> Vec<Value<'g>> {
        self.start(g).push_all(xs)
    }

    /// The state before the first position, for positions that arrive one by one; the results equal those of
    /// [`run_causal`](Self::run_causal) bit for bit.
    #[track_caller]
    #[must_use]
    pub fn start<'g>(&self, g: &'g Graph) -> TransformerState<'g> {
        TransformerState::new(g, [self.state()], LastNorm(None))
    }

    pub(super) fn state<'g>(&self) -> LayerState<Value<'g>> {
        LayerState::new(self.enter, self.leave, Vec::new())
    }
}

/// A stack of [`TransformerEncoderLayer`]s named `name.layers.0`, `name.layers.1` and so on. If norms come before
/// their parts, a final [`LayerNorm`](crate::LayerNorm) `name.norm` follows.
///
/// ```
/// use autobatch_ir::{EmitError, Graph, ModuleBuilder};
/// use autobatch_nn::{Embedding, Positions, TransformerEncoder};
///
/// # fn main() -> Result<(), EmitError> {
/// let mut m = ModuleBuilder::new("m");
/// let words = Embedding::new(&mut m, "words", 100, 16);
/// let positions = Positions::sinusoidal(16);
/// let encoder = TransformerEncoder::new(&mut m, "encoder", 16, 4, 2);
/// let g = Graph::new(&m.build()?);
/// for (key, sentence) in [&[7, 1, 4][..], &[2, 9]].into_iter().enumerate() {
///     g.instance(key as u64);
///     let xs = sentence.iter().map(|&word| words.lookup(&g, word));
///     let encoded = encoder.run(&g, positions.add(&g, xs));
///     g.output(&format!("first {key}"), encoded[0]);
/// }
/// # g.finish().map(|_| ())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransformerEncoder {
    layers: Arc<[TransformerEncoderLayer]>,
    norm: LastNorm,
}

impl TransformerEncoder {
    /// An encoder of some layers over positions of width `width`, which `heads` must divide.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, width: usize, heads: usize, layers: usize) -> Self {
        Self::with_options(m, name, width, heads, layers, &TransformerOptions::default())
    }

    /// An encoder with options.
    #[track_caller]
    pub fn with_options(
        m: &mut ModuleBuilder,
        name: &str,
        width: usize,
        heads: usize,
        layers: usize,
        options: &TransformerOptions,
    ) -> Self {
        let layers = stacked!(TransformerEncoderLayer, m, name, width, heads, layers, options);
        let norm = LastNorm::declare(m, name, width, options);
        Self { layers, norm }
    }

    /// The output at each position, given all positions.
    #[track_caller]
    #[must_use]
    pub fn run<'g>(&self, g: &'g Graph, xs: impl Values<'g>) -> Vec<Value<'g>> {
        let mut xs = xs.into_vec();
        for layer in self.layers.iter() {
            xs = layer.run(g, xs);
        }
        for x in &mut xs {
            *x = self.norm.on(g, *x);
        }
        xs
    }

    /// The output at each position, given itself and earlier positions.
    #[track_caller]
    #[must_use]
    pub fn run_causal<'g>(&self, g: &'g Graph, xs: impl Values<'g>) -> Vec<Value<'g>> {
        self.start(g).push_all(xs)
    }

    /// The state before the first position, for positions that arrive one by one (generated words, for example). The results
    /// equal those of [`run_causal`](Self::run_causal) bit for bit.
    #[track_caller]
    #[must_use]
    pub fn start<'g>(&self, g: &'g Graph) -> TransformerState<'g> {
        TransformerState::new(g, self.layers.iter().map(TransformerEncoderLayer::state), self.norm)
    }
}
