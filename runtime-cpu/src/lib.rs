//! Plays plans on the CPU.
//!
//! * [`kernels`]: what the inner loops are made of, the same bits on every instruction set.
//! * [`player`]: plays a plan, tile by tile.

pub mod kernels;
pub mod player;

pub use player::{Bound, Player, RunError, Stores};
