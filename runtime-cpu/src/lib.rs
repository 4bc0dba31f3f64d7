//! Plays plans on the CPU.
//!
//! * [`kernels`]: what the inner loops are made of, the same bits on every instruction set.
//! * [`player`]: plays a plan, tile by tile.
//!
//! Two looks inside a play, both off at first:
//! * [`Player::set_watch`] stops a play at the first step, lane and application that makes NaN or an
//!   infinity of finite numbers ([`RunError::NotFinite`]).
//! * [`Player::set_counting`] counts rows, bytes and floating-point operations of each step and times
//!   it; [`Counters::by_kernel`] sums them, [`Counters::write_trace`] writes them for Perfetto.

pub mod kernels;
pub mod player;

pub use autobatch_ir::plan::{BindError, Bound, Stores};
pub use player::{
    Counters, GradientSource, KernelCount, MOST_THREADS, Player, RunError, Span, StepCount, threads_meant,
};
