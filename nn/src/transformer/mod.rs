//! Transformers over sequences of any length: [`TransformerEncoder`], [`TransformerDecoder`], and
//! [`TransformerState`], which processes one position at a time.

/// Declares `name.layers.0`, `name.layers.1` and so on. It is a macro because `#[track_caller]` does not work through a closure.
macro_rules! stacked {
    ($layer:ty, $m:ident, $name:ident, $width:ident, $heads:ident, $layers:ident, $options:ident) => {{
        let mut layers = Vec::new();
        for number in 0..super::checked_layers($m, $name, $layers) {
            layers.push(<$layer>::with_options(
                $m,
                &format!("{}.layers.{number}", $name),
                $width,
                $heads,
                $options,
            ));
        }
        layers.into()
    }};
}

mod decoder;
mod encoder;
mod state;

pub use decoder::{DecoderMemory, TransformerDecoder};
pub use encoder::{TransformerEncoder, TransformerEncoderLayer};
pub use state::{DetachedState, TransformerState};

use crate::activation::Activation;
use crate::any_cell::vector;
use crate::linear::Linear;
use crate::mask::dropped;
use crate::multi_head::{MultiHeadOptions, linear};
use crate::norm::{EPS, LayerNorm};
use autobatch_ir::{Cell, Graph, Init, ModuleBuilder, Value};
use std::panic::Location;

/// Options of encoders and decoders.
#[derive(Clone, Debug, PartialEq)]
pub struct TransformerOptions {
    /// The inner width of the feed-forward part; four times the layer's width if `None`.
    pub feed_forward: Option<usize>,
    /// The activation of the feed-forward part.
    pub activation: Activation,
    /// Whether norms come before attention and feed-forward parts, with a final one after all layers.
    pub norm_first: bool,
    /// The rate of dropout.
    pub dropout: f32,
    /// Whether products and norms have biases.
    pub bias: bool,
    /// The constant that norms add to the variance.
    pub eps: f32,
    /// The initialiser of the weights; biases start at zero.
    pub init: Init,
}

impl Default for TransformerOptions {
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

impl TransformerOptions {
    /// Reports invalid options of the layer `name`.
    #[track_caller]
    fn check(&self, m: &mut ModuleBuilder, name: &str) {
        self.activation.check(m, name);
        if !(0.0..1.0).contains(&self.dropout) {
            let message = format!("the rate must be at least 0 and below 1, found {}", self.dropout);
            m.fail(&format!("layer @{name}"), message, None, Location::caller());
        }
    }

    /// The options of the attention in a layer.
    fn of_attention(&self) -> MultiHeadOptions {
        MultiHeadOptions { bias: self.bias, init: self.init.clone(), ..MultiHeadOptions::default() }
    }
}

/// The maximum number of layers of a stack.
const MAX_LAYERS: usize = 1000;

/// Reports an invalid number of layers, and continues with one layer.
#[track_caller]
fn checked_layers(m: &mut ModuleBuilder, name: &str, layers: usize) -> usize {
    if (1..=MAX_LAYERS).contains(&layers) {
        return layers;
    }
    let message = format!("a stack has 1 to {MAX_LAYERS} layers, found {layers}");
    m.fail(&format!("layer @{name}"), message, None, Location::caller());
    1
}

/// A norm and a residual connection around a part of a layer.
#[derive(Clone, Copy, Debug)]
struct Around {
    norm: LayerNorm,
    norm_first: bool,
    dropout: f32,
}

impl Around {
    #[track_caller]
    fn declare(
        m: &mut ModuleBuilder,
        name: &str,
        norm: &str,
        width: usize,
        options: &TransformerOptions,
    ) -> Self {
        let &TransformerOptions { norm_first, dropout, eps, bias, .. } = options;
        let norm = LayerNorm::with_options(m, &format!("{name}.{norm}"), width, eps, bias);
        Self { norm, norm_first, dropout }
    }

    /// The input of the part.
    #[track_caller]
    fn seen<'g>(&self, x: Value<'g>) -> Value<'g> {
        if self.norm_first { self.norm.on(x) } else { x }
    }

    /// The sum of `x` and the result of the part, normalised if norms come after.
    #[track_caller]
    fn joined<'g>(&self, x: Value<'g>, given: Value<'g>) -> Value<'g> {
        let sum = x + dropped(given, self.dropout);
        if self.norm_first { sum } else { self.norm.on(sum) }
    }
}

/// `D(act(x · W1 + b1)) · W2 + b2`
#[derive(Clone, Copy, Debug)]
struct FeedForward {
    one: Linear,
    two: Linear,
    activation: Activation,
    dropout: f32,
}

impl FeedForward {
    #[track_caller]
    fn declare(m: &mut ModuleBuilder, name: &str, width: usize, options: &TransformerOptions) -> Self {
        let inner = options.feed_forward.unwrap_or(width.saturating_mul(4));
        let shared = options.of_attention();
        let one = linear(m, name, "linear1", [width, inner], &shared);
        let two = linear(m, name, "linear2", [inner, width], &shared);
        Self { one, two, activation: options.activation, dropout: options.dropout }
    }

    #[track_caller]
    fn on<'g>(&self, x: Value<'g>) -> Value<'g> {
        self.two.on(dropped(self.activation.on(self.one.on(x)), self.dropout))
    }
}

/// The norm after all layers, if norms come before their parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LastNorm(Option<Cell<1, 1>>);

impl LastNorm {
    #[track_caller]
    fn declare(m: &mut ModuleBuilder, name: &str, width: usize, options: &TransformerOptions) -> Self {
        if !options.norm_first {
            return Self(None);
        }
        let name = format!("{name}.norm");
        let layer = LayerNorm::with_options(m, &name, width, options.eps, options.bias);
        Self(Some(m.cell(&name, [vector(width)], |_, [x]| [layer.on(x)])))
    }

    #[track_caller]
    fn on<'g>(&self, g: &'g Graph, x: Value<'g>) -> Value<'g> {
        let Some(norm) = self.0 else { return x };
        let [x] = g.call(norm, x);
        x
    }
}
