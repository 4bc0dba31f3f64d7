//! Automatic dynamic batching: write a model for one instance, execute thousands at once.
//!
//! A model emits ops and cells for one instance into a [`Graph`](prelude::Graph); a [`Session`]
//! compiles everything that was emitted into a short plan of large kernels and executes it. Results
//! equal the unbatched ones bit for bit.
//!
//! ```
//! use autobatch::prelude::*;
//!
//! enum Tree {
//!     Leaf(u32),
//!     Node(Box<[Tree; 2]>),
//! }
//!
//! struct TreeRnn {
//!     words: Table,
//!     node: Cell<2, 1>,
//! }
//!
//! impl TreeRnn {
//!     fn new(m: &mut ModuleBuilder, words: usize, h: usize) -> Self {
//!         let words = m.table("words", [words, h], Init::Uniform(0.1));
//!         let (w, b) = (m.param("w", [2 * h, h], Init::Glorot(1.0)), m.param("b", [h], Init::ZEROS));
//!         let node = m.cell("node", [f32([h]); 2], |g, [l, r]| [g.affine([l, r], w, Some(b)).tanh()]);
//!         TreeRnn { words, node }
//!     }
//!
//!     // One tree, by plain recursion.
//!     fn encode<'g>(&self, g: &'g Graph, tree: &Tree) -> Value<'g> {
//!         match tree {
//!             Tree::Leaf(word) => self.words.lookup(g, *word),
//!             Tree::Node(kids) => {
//!                 let [l, r] = [&kids[0], &kids[1]].map(|kid| self.encode(g, kid));
//!                 let [h] = g.call(self.node, [l, r]);
//!                 h
//!             }
//!         }
//!     }
//! }
//!
//! fn main() -> autobatch::Result<()> {
//!     let mut m = ModuleBuilder::new("tree");
//!     let model = TreeRnn::new(&mut m, 100, 8);
//!     let mut session = Session::new(&m.build()?, Device::Cpu)?;
//!     let node = |l, r| Tree::Node(Box::new([l, r]));
//!     let trees = [Tree::Leaf(3), node(Tree::Leaf(1), node(Tree::Leaf(4), Tree::Leaf(1)))];
//!     let encoded = session.predict(&trees, |g, tree| model.encode(g, tree))?;
//!     assert_eq!((encoded.len(), encoded[0].len()), (2, 8));
//!     Ok(())
//! }
//! ```
//!
//! # Where to go
//!
//! | task | item |
//! |---|---|
//! | declare parameters, tables and cells | [`ModuleBuilder`](prelude::ModuleBuilder) |
//! | emit a graph | [`Graph`](prelude::Graph), [`Value`](prelude::Value) |
//! | predict | [`Session::predict`], [`Session::run`], [`Session::run_in_parts`] |
//! | train, evaluate, save checkpoints | [`Trainer`], [`train`], [`prelude::optim`] |
//! | train on several machines | [`Trainer::group`], [`distributed`] |
//! | take minibatches | [`sampling`] |
//! | decide with computed values | [`Session::tasks`], [`Trainer::step_tasks`] |
//! | generate sequences: greedily, with a beam, at random | [`decode`] |
//! | extend a graph after execution | [`Session::growing`] |
//! | inspect values at once | [`Session::eager`] |
//! | save and load a model as one file | [`Session::bundle`], [`Module::save`](prelude::Module::save), [`Module::load`](prelude::Module::load) |
//! | layers, losses, import of PyTorch weights | [`nn`] |
//! | write a policy | [`planner::schedule::Schedule`] |
//!
//! The folder `docs/` of the repository holds a guide: chapters for each of these tasks, and for users of PyTorch, TorchFold,
//! DyNet and MXNet Fold.
//!
//! # Features
//!
//! * `progress`, on by default: draws a progress bar on terminals.
//! * `gpu`: executes on Vulkan, Metal, Direct3D 12 and OpenGL. Building it takes minutes.
//! * `mpi`: trains on the processes that `mpirun` starts. Building it needs an MPI library and libclang.
//! * `noop`: adds a GPU that computes nothing, for timing the host.

pub mod calibrate;
pub mod decode;
mod device;
mod dump;
mod eager;
mod emit;
mod error;
mod executor;
#[cfg(feature = "gpu")]
mod measure;
mod mirror;
pub mod random;
mod row;
pub mod sampling;
mod session;
pub mod train;

pub use device::{Device, UnknownDevice};
pub use dump::dumped;
pub use eager::Eager;
pub use error::{Error, Result};
pub use row::{Row, RowBuf};
pub use session::{Gradients, Growing, ParamGradient, Paused, Run, Session, SessionOptions, SuspendedGrowth};
pub use train::{SetAside, Trainer};

pub use autobatch_distributed as distributed;
pub use autobatch_ir as ir;
pub use autobatch_nn as nn;
pub use autobatch_planner as planner;
pub use autobatch_runtime_cpu as runtime_cpu;
#[cfg(feature = "gpu")]
pub use autobatch_runtime_wgpu as runtime_wgpu;

/// The names that a model and its program use.
pub mod prelude {
    pub use crate::sampling::Sampling;
    pub use crate::train::{Bar, Minibatch, Patience, Progress, Step, Trainer};
    pub use crate::{
        Device, Error, Gradients, Growing, Paused, Result, Row, RowBuf, Run, Session, SessionOptions,
    };
    pub use autobatch_ir::plan::Limits;
    pub use autobatch_ir::types::{INDEX, f32, list};
    pub use autobatch_ir::{
        Arg, Args, Cell, DType, Graph, Init, IntoArg, Module, ModuleBuilder, Param, Shape, Table, Type,
        Value, ValueKey, Weights,
    };
    pub use autobatch_nn::optim::{self, Adam, AdamW, Momentum, Optimize, Optimizer, Schedule, Sgd};
    pub use autobatch_planner::schedule::Policy;
}
