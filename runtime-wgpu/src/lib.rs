//! Executes plans on the GPU with wgpu: Vulkan, Metal, Direct3D 12 and OpenGL by one text.
//!
//! * [`adapters`]: which there are, and what each has; [`Gpu`] is an open one, and knows what it can hold.
//! * [`compile`]: a plan becomes a list of dispatches: a pipeline, a record of numbers, a count of threads.
//! * [`Executor`]: memory on the device, one upload and one submission a run, outputs read back.
//!
//! **Shape of a run.** A plan is compiled once and stays on the device: its tables and a record for each
//! unit of each step lie in a buffer of its own, and a second run brings up what is bound and nothing else.
//! A unit is a stage, or products together with the elementwise line that takes their sums (their *tail*):
//! a Tree-LSTM cell is one. What a unit leaves behind for the next lies in rows that the plan's results take
//! anyway, or in rows reserved behind the slabs. Units of a wave's steps that run the same program are
//! *segments* of one dispatch. All dispatches are in one compute pass of one submission; every one writes
//! the arena, so wgpu puts a barrier between any two. Outputs are copied from where they are if they lie side by side,
//! as losses of a batch do; else a last dispatch brings them together. Nothing else comes back.
//!
//! **Growing.** Of a plan that grows, [`Executor::resume`] executes what is new over the rows that are there.
//!
//! **Pipelines.** Only lines and tails are generated. All else is a fixed text whose sizes and places are
//! in the record, so that a handful of pipelines executes any model and a new graph of known cells costs no
//! compilation. wgpu validates every module with naga before a driver sees it, and its bounds checks stay
//! on: no plan, stored or hostile, reads outside of its buffers.
//!
//! **Bits.** A result is a function of its own lane: the number and order of rows decide which thread
//! computes it and nothing else, and all product kernels are one chain in ascending `k`. So on one device
//! the bits of a row do not depend on its batch. Between devices, and against the CPU, they differ where
//! devices round differently: see [`Arithmetic`].

mod adapter;
mod precheck;
pub mod compile;
mod counters;
mod device;
mod error;
mod executor;
pub mod module;
mod options;
mod self_test;

pub use adapter::{AdapterFacts, Selector, UnknownSelector, adapters};
pub use autobatch_ir::plan::{BindError, Bound, Stores};
pub use counters::{Counters, UpdateCounters};
pub use device::Gpu;
pub use error::GpuError;
pub use executor::{Executor, Next, StoresMut, Times, Trained};
pub use options::{Arithmetic, Budget, PipelineCacheDir, Options};
pub use self_test::{SelfTest, self_test};
