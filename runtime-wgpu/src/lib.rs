//! Plays plans on the GPU with wgpu: Vulkan, Metal, Direct3D 12 and OpenGL by one text.
//!
//! * [`device`]: finds adapters, opens one, and knows what it can hold.
//! * [`compile`]: a plan becomes a list of dispatches: a pipeline, a record of numbers, a count of threads.
//! * [`Player`]: memory on the device, one upload and one submission a play, outputs read back.
//!
//! **Shape of a play.** The tables of a plan and a record a dispatch go up in one write, bound numbers in
//! another. Every stage of a kernel is one dispatch over all lanes of its step; what a stage leaves behind
//! for the next lies in rows that the plan's results take anyway, or in rows reserved behind the slabs. All
//! dispatches are in one compute pass of one submission; every one writes the arena, so wgpu puts a barrier
//! between any two and waves need no care. Outputs are brought together by a last dispatch and read back in
//! one copy. Nothing else comes back.
//!
//! **Pipelines.** Only maps are generated. All else is a fixed text whose sizes and places are in the
//! record, so that a handful of pipelines plays any model and a new graph costs no compilation. wgpu
//! validates every module with naga before a driver sees it, and its bounds checks stay on: no plan, stored
//! or hostile, reads outside of its buffers.
//!
//! **Bits.** A result is a function of its own lane: the number and order of rows decide which thread
//! computes it and nothing else, and both product kernels are one chain in ascending `k`. So on one device
//! the bits of a row do not depend on its batch. Between devices, and against the CPU, they differ where
//! devices round differently: see [`Arithmetic`].

mod border;
pub mod compile;
mod counters;
pub mod device;
mod error;
pub mod module;
mod player;
mod self_test;

pub use autobatch_ir::plan::{BindError, Bound, Stores};
pub use counters::{Counters, UpdateCounters};
pub use device::{AdapterFacts, Arithmetic, Budget, Gpu, Options, Selector, UnknownSelector};
pub use error::GpuError;
pub use player::{Player, StoresMut, Trained};
pub use self_test::{SelfTest, self_test};
