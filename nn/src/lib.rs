//! Layers, losses and maps from other libraries' weights: code that declares parameters, traces
//! cells and emits calls.
//!
//! A layer is a `Copy` handle of ids, made once with a [`ModuleBuilder`] and used with any graph of
//! that module; it holds no numbers and no lifetimes. Constructors keep the first fault in the
//! builder, methods keep it in the graph, both with the *user's* line: every method here is
//! `#[track_caller]`. The numbers themselves live in weights outside; each layer's documentation
//! names its parameters, their shapes and the order of its gates.
//!
//! * single values: [`Linear`], [`Embedding`], [`Mlp`], [`LayerNorm`], [`Activation`];
//! * sequences: [`Rnn`], [`Lstm`], [`Gru`], [`Bidirectional`], [`Stacked`], [`unroll`], [`CharCnn`];
//! * trees and lattices: [`TreeLstm`], [`ChildSumTreeLstm`], [`TreeGru`], [`TreeRnn`], [`MvRnn`],
//!   [`LatticeLstm`];
//! * lists: [`AdditiveAttention`], [`DotAttention`];
//! * [`losses`] that are more than one op, and [`pytorch`] weight layouts.
//!
//! Initialisers are [`Init`] of the IR.
//!
//! [`ModuleBuilder`]: autobatch_ir::ModuleBuilder
//! [`Init`]: autobatch_ir::Init

#![forbid(unsafe_code)]

mod activation;
mod any_cell;
mod attention;
mod char_cnn;
mod embedding;
mod lattice;
mod linear;
pub mod losses;
mod mask;
mod mlp;
mod norm;
pub mod pytorch;
pub mod recurrent;
mod tree;

pub use activation::Activation;
pub use attention::{AdditiveAttention, DotAttention};
pub use char_cnn::CharCnn;
pub use embedding::Embedding;
pub use lattice::{LatticeLstm, LatticeWord};
pub use linear::Linear;
pub use mask::dropout_mask;
pub use mlp::Mlp;
pub use norm::LayerNorm;
pub use recurrent::{
    BiGru, BiLstm, BiRnn, Bidirectional, Gru, GruOptions, Hoist, Lstm, LstmOptions, Recurrent, Rnn,
    RnnOptions, Sequence, Stacked, StackedState, State, unroll,
};
pub use tree::{
    ChildSumTreeLstm, MvRnn, TreeGru, TreeGruOptions, TreeLstm, TreeLstmOptions, TreeRnn, TreeRnnOptions,
};
