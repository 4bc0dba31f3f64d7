//! Plays plans on the CPU.

pub mod kernels;
