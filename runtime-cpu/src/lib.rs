//! Executes plans on the CPU.
//!
//! * [`kernels`]: the inner loops, with the same bits on every instruction set.
//! * [`executor`]: executes a plan, tile by tile.
//! * `crew`: the threads that share a wave, a sum or an update.
//!
//! Two diagnostics of a run are off by default:
//! * [`Executor::set_watch`] stops a run at the first step, lane and node that makes NaN or an infinity from finite
//!   numbers ([`RunError::NotFinite`]).
//! * [`Executor::set_counting`] counts rows, bytes and floating-point operations of each step, and times it.
//!   [`Counters::by_kernel`] sums them; [`Counters::write_trace`] writes them for Perfetto.

mod crew;
pub mod executor;
pub mod kernels;

pub use autobatch_ir::plan::{BindError, Inputs, Stores};
pub use executor::{
    Counters, Executor, GradientSource, Interrupt, KernelCount, MAX_THREADS, ORDINARY_SQUARES, Paused,
    RunError, Span, StepCount, WorkKind, footprint, resolve_threads,
};
