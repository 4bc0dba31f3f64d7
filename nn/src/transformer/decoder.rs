//! [`TransformerDecoder`]: positions that attend to earlier positions and to an encoded sequence.

use super::state::LayerState;
use super::{Around, FeedForward, LastNorm, TransformerOptions, TransformerState};
use crate::any_cell::vector;
use crate::attention::no_values;
use crate::multi_head::{HeadWeights, columns_of, whole};
use crate::values::Values;
use autobatch_ir::{CellOfAny, Graph, ModuleBuilder, Value};
use std::panic::Location;
use std::sync::Arc;

/// A stack of decoder layers (Vaswani et al. 2017), as `torch.nn.TransformerDecoder`. `S` is a causal
/// [multi-head attention](crate::MultiHeadAttention) over the sequence, `C` one over the encoded sequence `e`; the other
/// symbols are those of an [encoder layer](crate::TransformerEncoderLayer):
/// ```text
/// norms after    y = N1(x + D(S(x)))    z = N2(y + D(C(y, e)))       N3(z + D(F(z)))
/// norms before   y = x + D(S(N1(x)))    z = y + D(C(N2(y), e))       z + D(F(N3(z)))
/// ```
/// A layer is three cells: one projects an encoded position, one projects a position, and the third attends to both and does the
/// rest. If all positions are known, this is three batches per layer for any lengths. Parameters of layer `k` start with
/// `name.layers.k`: `self_attn` with `in_proj` and `out_proj`, `multihead_attn` with `q_proj`, `k_proj`, `v_proj` and `out_proj`,
/// `linear1`, `linear2`, `norm1`, `norm2` and `norm3`. A decoder with norms before its parts has a final `name.norm`.
///
/// ```
/// use autobatch_ir::{EmitError, Graph, ModuleBuilder};
/// use autobatch_nn::{Embedding, TransformerDecoder, TransformerEncoder};
///
/// # fn main() -> Result<(), EmitError> {
/// let mut m = ModuleBuilder::new("m");
/// let words = Embedding::new(&mut m, "words", 100, 16);
/// let encoder = TransformerEncoder::new(&mut m, "encoder", 16, 4, 2);
/// let decoder = TransformerDecoder::new(&mut m, "decoder", 16, 4, 2);
/// let g = Graph::new(&m.build()?);
/// let encoded = encoder.run(&g, [7, 1, 4].map(|word| words.lookup(&g, word)));
/// let memory = decoder.memory(&g, encoded);
/// let known = decoder.run(&g, [2, 9].map(|word| words.lookup(&g, word)), &memory); // training: all words are known
/// let mut state = decoder.start(&g, &memory); // generation: one word at a time
/// let first = state.push(words.lookup(&g, 2));
/// # g.output("known", known[1]);
/// # g.output("first", first);
/// # g.finish().map(|_| ())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransformerDecoder {
    layers: Arc<[Layer]>,
    norm: LastNorm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layer {
    /// `e -> k_1 .. k_H v_1 .. v_H`
    remember: CellOfAny,
    /// `x -> q k_1 .. k_H v_1 .. v_H`
    enter: CellOfAny,
    /// `x q, lists of k_1 .. k_H v_1 .. v_H, the same of the encoded sequence -> y`
    leave: CellOfAny,
    heads: usize,
}

/// An encoded sequence in the form that the layers of one [`TransformerDecoder`] read.
#[derive(Clone, Debug)]
pub struct DecoderMemory<'g> {
    decoder: TransformerDecoder,
    lists: Vec<Vec<Value<'g>>>,
}

impl Layer {
    #[track_caller]
    fn with_options(
        m: &mut ModuleBuilder,
        name: &str,
        width: usize,
        heads: usize,
        options: &TransformerOptions,
    ) -> Self {
        options.check(m, name);
        let (shape, of_attention) = ([width, heads], options.of_attention());
        let itself = HeadWeights::declare(m, &format!("{name}.self_attn"), shape, None, &of_attention);
        // Queries come from one sequence, keys and values from another: a joint weight would compute all three for both.
        let encoded = format!("{name}.multihead_attn");
        let encoded = HeadWeights::declare(m, &encoded, shape, Some([width; 2]), &of_attention);
        let shape = itself.shape();
        let feed = FeedForward::declare(m, name, width, options);
        let first = Around::declare(m, name, "norm1", width, options);
        let second = Around::declare(m, name, "norm2", width, options);
        let third = Around::declare(m, name, "norm3", width, options);
        let port = [vector(width)];
        let remember =
            m.cell_of_any(&format!("{name}.remember"), &port, |_, ports| encoded.entry(ports[0], ports[0]));
        let enter =
            m.cell_of_any(&format!("{name}.enter"), &port, |_, ports| itself.project(first.seen(ports[0])));
        let mut ports = vec![vector(width); 2];
        ports.extend(shape.list_types());
        ports.extend(encoded.shape().list_types());
        let leave = m.cell_of_any(&format!("{name}.leave"), &ports, |g, ports| {
            let (lists, memory) = ports[2..].split_at(2 * shape.heads);
            let x = first.joined(ports[0], itself.read(g, ports[1], lists));
            let x = second.joined(x, encoded.read(g, encoded.query(second.seen(x)), memory));
            vec![third.joined(x, feed.on(third.seen(x)))]
        });
        Self { remember, enter, leave, heads: shape.heads }
    }

    /// The lists of `k_1 .. k_H v_1 .. v_H` of the encoded positions.
    #[track_caller]
    fn lists<'g>(&self, g: &'g Graph, encoded: &[Value<'g>]) -> Vec<Value<'g>> {
        if encoded.is_empty() {
            return vec![no_values(g); 2 * self.heads];
        }
        whole(g, &columns_of(g, self.remember, 2 * self.heads, encoded))
    }
}

impl TransformerDecoder {
    /// A decoder of some layers over positions of width `width`, which `heads` must divide.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, width: usize, heads: usize, layers: usize) -> Self {
        Self::with_options(m, name, width, heads, layers, &TransformerOptions::default())
    }

    /// A decoder with options.
    #[track_caller]
    pub fn with_options(
        m: &mut ModuleBuilder,
        name: &str,
        width: usize,
        heads: usize,
        layers: usize,
        options: &TransformerOptions,
    ) -> Self {
        let layers = stacked!(Layer, m, name, width, heads, layers, options);
        Self { layers, norm: LastNorm::declare(m, name, width, options) }
    }

    /// The projected keys and values of an encoded sequence for each layer, for [`run`](Self::run) and [`start`](Self::start).
    #[track_caller]
    #[must_use]
    pub fn memory<'g>(&self, g: &'g Graph, encoded: impl Values<'g>) -> DecoderMemory<'g> {
        let encoded = encoded.into_vec();
        let mut lists = Vec::with_capacity(self.layers.len());
        for layer in self.layers.iter() {
            lists.push(layer.lists(g, &encoded));
        }
        DecoderMemory { decoder: self.clone(), lists }
    }

    /// The output at each position, given itself, earlier positions, and the encoded sequence.
    #[track_caller]
    #[must_use]
    pub fn run<'g>(&self, g: &'g Graph, xs: impl Values<'g>, memory: &DecoderMemory<'g>) -> Vec<Value<'g>> {
        self.start(g, memory).push_all(xs)
    }

    /// The state before the first position, for positions that arrive one by one; the results equal those of [`run`](Self::run) bit for bit.
    #[track_caller]
    #[must_use]
    pub fn start<'g>(&self, g: &'g Graph, memory: &DecoderMemory<'g>) -> TransformerState<'g> {
        let mut layers = Vec::with_capacity(self.layers.len());
        for (layer, lists) in self.layers.iter().zip(&memory.lists) {
            let mut lists = lists.clone();
            if memory.decoder != *self {
                let help = "make the memory with the decoder that reads it";
                let message = "the memory belongs to another decoder";
                let refused = g.refuse("decoder", message, help, Location::caller());
                lists.fill(refused);
            }
            layers.push(LayerState::new(layer.enter, layer.leave, lists));
        }
        TransformerState::new(g, layers, self.norm)
    }
}
