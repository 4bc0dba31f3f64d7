//! Layers, losses, optimisers and weight layouts of other libraries.
//!
//! A layer declares parameters, traces cells and emits calls. It is a `Copy` handle of ids, made once
//! with a [`ModuleBuilder`] and used with any graph of that module; it contains no numbers and no
//! lifetimes. Constructors record the first fault in the builder, methods record it in the graph. Both
//! report the *user's* line, because every method is `#[track_caller]`. Weights store the values; each
//! layer documents its parameters, their shapes and the order of its gates.
//!
//! * single values: [`Linear`], [`Embedding`], [`Mlp`], [`Bilinear`], [`LayerNorm`], [`RmsNorm`],
//!   [`GroupNorm`], [`Activation`], [`PRelu`];
//! * sequences: [`Rnn`], [`Lstm`], [`Gru`], [`Bidirectional`], [`Stacked`], [`unroll`], [`CharCnn`], and
//!   conversion from padded arrays: [`Sequences`];
//! * trees and lattices: [`TreeLstm`], [`ChildSumTreeLstm`], [`TreeGru`], [`TreeRnn`], [`MvRnn`],
//!   [`LatticeLstm`];
//! * graphs: [`GatedGraph`], [`GatedSum`], [`GraphAttention`];
//! * lists: [`AdditiveAttention`], [`DotAttention`], [`MultiHeadAttention`], and sequence models built
//!   on them: [`TransformerEncoder`], [`TransformerDecoder`], [`Positions`];
//! * sequences of tags: [`Crf`]; mixtures of experts: [`Experts`];
//! * losses over many classes: [`AdaptiveSoftmax`], [`SampledSoftmax`];
//! * [`optim`]: optimisers, learning-rate schedules, clipping, moving averages;
//! * [`losses`] that combine several ops, and [`pytorch`] weight layouts.
//!
//! Initialisers are the IR's [`Init`].
//!
//! ```
//! use autobatch_ir::{EmitError, Graph, ModuleBuilder, Value};
//! use autobatch_nn::{BiLstm, Embedding, Linear, losses};
//!
//! struct Tagger { words: Embedding, context: BiLstm, out: Linear }
//!
//! impl Tagger {
//!     fn new(m: &mut ModuleBuilder) -> Self {
//!         Tagger {
//!             words: Embedding::new(m, "words", 1000, 16),
//!             context: BiLstm::new(m, "context", 16, 8),
//!             out: Linear::new(m, "out", 16, 5),
//!         }
//!     }
//!     fn loss<'g>(&self, g: &'g Graph, words: &[u32], tags: &[u32]) -> Value<'g> {
//!         let xs: Vec<_> = words.iter().map(|&word| self.words.lookup(g, word)).collect();
//!         let context = self.context.run_pairs(g, xs);
//!         let scores = context.into_iter().map(|pair| self.out.on_parts(g, pair));
//!         losses::sequence_cross_entropy(g, scores, tags.iter().copied())
//!     }
//! }
//!
//! # fn main() -> Result<(), EmitError> {
//! let mut m = ModuleBuilder::new("tagger");
//! let tagger = Tagger::new(&mut m);
//! let module = m.build()?;
//! assert_eq!(module.cells.len(), 1); // both directions are one cell
//! let g = Graph::new(&module);
//! for (key, words) in [[3, 7, 2], [9, 1, 7]].iter().enumerate() {
//!     g.instance(key as u64);
//!     g.loss(&format!("loss {key}"), tagger.loss(&g, words, &[0, 4, 1]));
//! }
//! assert_eq!(g.finish()?.instances(), 2);
//! # Ok(())
//! # }
//! ```
//!
//! [`ModuleBuilder`]: autobatch_ir::ModuleBuilder
//! [`Init`]: autobatch_ir::Init

#![forbid(unsafe_code)]

mod activation;
mod any_cell;
mod attention;
mod char_cnn;
mod crf;
mod embedding;
mod experts;
mod graphs;
mod lattice;
mod linear;
pub mod losses;
mod mask;
mod mlp;
mod multi_head;
mod norm;
pub mod optim;
mod positions;
pub mod pytorch;
pub mod recurrent;
mod sequences;
mod transformer;
mod tree;
mod values;
mod vocabulary;

pub use activation::{Activation, PRelu};
pub use attention::{AdditiveAttention, DotAttention};
pub use char_cnn::CharCnn;
pub use crf::Crf;
pub use embedding::Embedding;
pub use experts::Experts;
pub use graphs::{GatedGraph, GatedSum, GraphAttention, GraphAttentionOptions};
pub use lattice::{LatticeLstm, LatticeWord};
pub use linear::{Bilinear, Linear};
pub use mask::dropout_mask;
pub use mlp::Mlp;
pub use multi_head::{AttentionMemory, MultiHeadAttention, MultiHeadOptions};
pub use norm::{GroupNorm, LayerNorm, RmsNorm};
pub use positions::{Positions, sinusoid};
pub use recurrent::{
    BiGru, BiLstm, BiRnn, Bidirectional, Gru, GruOptions, Hoist, Lstm, LstmOptions, Recurrent, Rnn,
    RnnOptions, Sequence, Stacked, StackedState, State, unroll,
};
pub use sequences::{Packed, Sequences, SequencesError};
pub use transformer::{
    DecoderMemory, DetachedState, TransformerDecoder, TransformerEncoder, TransformerEncoderLayer,
    TransformerOptions, TransformerState,
};
pub use tree::{
    ChildSumTreeLstm, MvRnn, TreeGru, TreeGruOptions, TreeLstm, TreeLstmOptions, TreeRnn, TreeRnnOptions,
};
pub use values::Values;
pub use vocabulary::{AdaptiveSoftmax, DetachedSample, Sample, SampledSoftmax};
