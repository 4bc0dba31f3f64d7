//! [`TransformerEncoder`]: layers of attention and feed-forward products over sequences of any lengths.

use crate::activation::Activation;
use crate::any_cell::vector;
use crate::mask::dropped;
use crate::multi_head::{HeadWeights, MultiHeadOptions, linear, project_all, up_to, whole};
use crate::norm::{EPS, LayerNorm};
use autobatch_ir::{Cell, CellOfAny, Graph, Init, ModuleBuilder, Value};
use std::borrow::Borrow;
use std::panic::Location;

/// A layer of an encoder (Vaswani et al. 2017), by the formula of `torch.nn.TransformerEncoderLayer`. With `A` a
/// [multi-head attention](crate::MultiHeadAttention), `N1` and `N2` [`LayerNorm`]s, `D` dropout and `F(x) = D(act(x · W1 +
/// b1)) · W2 + b2`:
/// ```text
/// norms behind   y = N1(x + D(A(x)))       z = N2(y + D(F(y)))
/// norms before   y = x + D(A(N1(x)))       z = y + D(F(N2(y)))
/// ```
/// A layer is two cells, so two batches over all positions of all instances: one projects a position, the other reads and does all
/// the rest. Parameters: `name.self_attn.in_proj`, `name.self_attn.out_proj`, `name.linear1`, `name.linear2`
/// ([`Linear`](crate::Linear)s), `name.norm1` and `name.norm2`.
///
/// PyTorch drops weights of the attention at the same rate as well; here they are made inside a fold over a list, and are not dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransformerEncoderLayer {
    /// `x -> q k_1 .. k_H v_1 .. v_H`
    enter: CellOfAny,
    /// `x q, lists of k_1 .. k_H v_1 .. v_H -> z`
    leave: CellOfAny,
    heads: usize,
}

/// What an encoder's layers are like.
#[derive(Clone, Debug, PartialEq)]
pub struct TransformerEncoderOptions {
    /// The width between the two products of the feed-forward part; four times the layer's if `None`.
    pub feed_forward: Option<usize>,
    /// What stands between them.
    pub activation: Activation,
    /// Whether norms stand before attention and feed-forward part, and a last one behind all layers.
    pub norm_first: bool,
    /// The rate of dropout.
    pub dropout: f32,
    /// Whether products and norms have biases.
    pub bias: bool,
    /// What norms add to the variance.
    pub eps: f32,
    /// The weights' first values; biases begin at zero.
    pub init: Init,
}

impl Default for TransformerEncoderOptions {
    fn default() -> Self {
        Self {
            feed_forward: None,
            activation: Activation::Relu,
            norm_first: false,
            dropout: 0.0,
            bias: true,
            eps: EPS,
            init: Init::Glorot(1.0),
        }
    }
}

impl TransformerEncoderLayer {
    /// A layer over positions of `width` numbers, which `heads` divides.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, width: usize, heads: usize) -> Self {
        Self::with(m, name, width, heads, &TransformerEncoderOptions::default())
    }

    /// A layer with options.
    #[track_caller]
    pub fn with(
        m: &mut ModuleBuilder,
        name: &str,
        width: usize,
        heads: usize,
        options: &TransformerEncoderOptions,
    ) -> Self {
        let &TransformerEncoderOptions { activation, norm_first, dropout, bias, eps, .. } = options;
        activation.check(m, name);
        if !(0.0..1.0).contains(&dropout) {
            let message = format!("the rate must be at least 0 and below 1, found {dropout}");
            m.fail(&format!("layer @{name}"), message, None, Location::caller());
        }
        let shared = MultiHeadOptions { bias, init: options.init.clone(), ..MultiHeadOptions::default() };
        let attention = HeadWeights::declare(m, &format!("{name}.self_attn"), [width, heads], None, &shared);
        let shape = attention.shape();
        let inner = options.feed_forward.unwrap_or(width.saturating_mul(4));
        let one = linear(m, name, "linear1", [width, inner], &shared);
        let two = linear(m, name, "linear2", [inner, width], &shared);
        let norm1 = LayerNorm::with(m, &format!("{name}.norm1"), width, eps, bias);
        let norm2 = LayerNorm::with(m, &format!("{name}.norm2"), width, eps, bias);
        let enter = m.cell_of_any(&format!("{name}.enter"), &[vector(width)], |_, ports| {
            attention.project(if norm_first { norm1.on(ports[0]) } else { ports[0] })
        });
        let mut ports = vec![vector(width); 2];
        ports.extend(shape.list_types());
        let leave = m.cell_of_any(&format!("{name}.leave"), &ports, |g, ports| {
            let (x, read) = (ports[0], dropped(attention.read(g, ports[1], &ports[2..]), dropout));
            let y = if norm_first { x + read } else { norm1.on(x + read) };
            let inner = activation.on(one.on(if norm_first { norm2.on(y) } else { y }));
            let fed = dropped(two.on(dropped(inner, dropout)), dropout);
            vec![if norm_first { y + fed } else { norm2.on(y + fed) }]
        });
        Self { enter, leave, heads: shape.heads }
    }

    /// Each position, having read all.
    #[track_caller]
    #[must_use]
    pub fn run<'g>(
        &self,
        g: &'g Graph,
        xs: impl IntoIterator<Item = impl Borrow<Value<'g>>>,
    ) -> Vec<Value<'g>> {
        self.run_over(g, xs.into_iter().map(|x| *x.borrow()).collect(), false)
    }

    /// Each position, having read itself and those before it.
    #[track_caller]
    #[must_use]
    pub fn run_causal<'g>(
        &self,
        g: &'g Graph,
        xs: impl IntoIterator<Item = impl Borrow<Value<'g>>>,
    ) -> Vec<Value<'g>> {
        self.run_over(g, xs.into_iter().map(|x| *x.borrow()).collect(), true)
    }

    #[track_caller]
    fn run_over<'g>(&self, g: &'g Graph, mut xs: Vec<Value<'g>>, causal: bool) -> Vec<Value<'g>> {
        let (queries, columns) = project_all(g, self.enter, self.heads, &xs);
        let all = if causal { Vec::new() } else { whole(g, &columns) };
        for (place, (x, query)) in xs.iter_mut().zip(queries).enumerate() {
            let seen = if causal { &up_to(g, &columns, place) } else { &all };
            *x = g.call_of_any(self.leave, [&*x, &query].into_iter().chain(seen))[0];
        }
        xs
    }
}

/// `LAYERS` [`TransformerEncoderLayer`]s named `name.layers.0`, `name.layers.1` and so on, each over what the one below gives, and
/// behind layers with norms before their parts a last [`LayerNorm`] `name.norm`.
///
/// ```
/// use autobatch_ir::{EmitError, Graph, ModuleBuilder};
/// use autobatch_nn::{Embedding, Positions, TransformerEncoder};
///
/// # fn main() -> Result<(), EmitError> {
/// let mut m = ModuleBuilder::new("m");
/// let words = Embedding::new(&mut m, "words", 100, 16);
/// let positions = Positions::sinusoidal(16);
/// let encoder = TransformerEncoder::<2>::new(&mut m, "encoder", 16, 4);
/// let g = Graph::new(&m.build()?);
/// for (key, sentence) in [&[7, 1, 4][..], &[2, 9]].into_iter().enumerate() {
///     g.instance(key as u64);
///     let xs = sentence.iter().map(|&word| words.look(&g, word));
///     let encoded = encoder.run(&g, positions.add(&g, xs));
///     g.output(&format!("first {key}"), encoded[0]);
/// }
/// # g.finish().map(|_| ())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransformerEncoder<const LAYERS: usize> {
    /// The layers, lowest first.
    pub layers: [TransformerEncoderLayer; LAYERS],
    norm: Option<Cell<1, 1>>,
}

impl<const LAYERS: usize> TransformerEncoder<LAYERS> {
    /// Layers over positions of `width` numbers, which `heads` divides.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, width: usize, heads: usize) -> Self {
        Self::with(m, name, width, heads, &TransformerEncoderOptions::default())
    }

    /// Layers with options.
    #[track_caller]
    pub fn with(
        m: &mut ModuleBuilder,
        name: &str,
        width: usize,
        heads: usize,
        options: &TransformerEncoderOptions,
    ) -> Self {
        const { assert!(LAYERS > 0, "an encoder has at least one layer") };
        let lowest = TransformerEncoderLayer::with(m, &format!("{name}.layers.0"), width, heads, options);
        let mut layers = [lowest; LAYERS];
        for (number, layer) in layers.iter_mut().enumerate().skip(1) {
            let name = format!("{name}.layers.{number}");
            *layer = TransformerEncoderLayer::with(m, &name, width, heads, options);
        }
        let mut norm = None;
        if options.norm_first {
            let name = format!("{name}.norm");
            let layer = LayerNorm::with(m, &name, width, options.eps, options.bias);
            norm = Some(m.cell(&name, [vector(width)], |_, [x]| [layer.on(x)]));
        }
        Self { layers, norm }
    }

    /// Each position, having read all.
    #[track_caller]
    #[must_use]
    pub fn run<'g>(
        &self,
        g: &'g Graph,
        xs: impl IntoIterator<Item = impl Borrow<Value<'g>>>,
    ) -> Vec<Value<'g>> {
        self.run_over(g, xs.into_iter().map(|x| *x.borrow()).collect(), false)
    }

    /// Each position, having read itself and those before it.
    #[track_caller]
    #[must_use]
    pub fn run_causal<'g>(
        &self,
        g: &'g Graph,
        xs: impl IntoIterator<Item = impl Borrow<Value<'g>>>,
    ) -> Vec<Value<'g>> {
        self.run_over(g, xs.into_iter().map(|x| *x.borrow()).collect(), true)
    }

    #[track_caller]
    fn run_over<'g>(&self, g: &'g Graph, mut xs: Vec<Value<'g>>, causal: bool) -> Vec<Value<'g>> {
        for layer in &self.layers {
            xs = layer.run_over(g, xs, causal);
        }
        if let Some(norm) = self.norm {
            for x in &mut xs {
                [*x] = g.call(norm, *x);
            }
        }
        xs
    }
}
