//! Executes plans on the GPU with wgpu: one implementation for Vulkan, Metal, Direct3D 12 and OpenGL.
//!
//! * [`adapters`] lists the adapters; [`Gpu`] is an open device with its limits.
//! * [`compile`] turns a plan into dispatches: a pipeline, a record of numbers, a number of threads.
//! * [`Executor`] owns the memory on the device. A run is an upload, a submission and a readback of the outputs.
//!
//! **Runs.** A plan is compiled once and stays on the device: a buffer holds its tables and one record for each unit of
//! each step, so later runs upload only the inputs. A unit is a stage, or products together with the elementwise line
//! that reads their sums (their *epilogue*); a Tree-LSTM cell is one unit. Units exchange values through the rows of
//! results or through scratch rows behind the slabs. Units of a wave that run the same program are *segments* of one
//! dispatch. All dispatches are in one compute pass. Every dispatch writes the arena, so wgpu puts a barrier between
//! any two. Contiguous outputs, such as the losses of a batch, are copied from their place; others are collected first.
//!
//! **Growing plans.** [`Executor::resume`] executes only the new steps, over the rows on the device.
//!
//! **Pipelines.** Only maps and epilogues are generated code. Everything else is fixed text that reads its sizes and
//! addresses from the record. A handful of pipelines executes any model, and a new graph of known cells compiles none.
//! wgpu validates every module with naga, and its bounds checks stay on: no plan reads outside of its buffers.
//!
//! **Bits.** A result depends only on its own lane. The number and order of rows decide which thread computes it, and
//! all product kernels compute one chain in ascending `k`. On one device the bits of a row therefore do not depend on
//! its batch. Between devices, and against the CPU, they differ where devices round differently: see [`Arithmetic`].
//!
//! The design decisions are in `README.md` of this crate.

mod adapter;
pub mod compile;
mod counters;
mod device;
mod error;
mod executor;
pub mod module;
mod options;
pub mod predict;
pub mod probe;
mod self_test;
#[cfg(test)]
mod tests;

pub use adapter::{AdapterFacts, Selector, UnknownSelector, adapters};
pub use autobatch_ir::plan::{BindError, Inputs, Stores};
pub use counters::{Counters, UpdateCounters};
pub use device::Gpu;
pub use error::GpuError;
pub use executor::{DispatchTime, Executor, Next, StoresMut, Times, Trained};
pub use options::{Arithmetic, Budget, Options, PipelineCacheDir};
pub use self_test::{SelfTest, relative_error, self_test};
