//! Optimiser updates match formulas in `f64`, and match the naive executor bit for bit on every instruction set and number
//! of threads.

mod clips;
mod fused;
mod lab;
mod minibatches;
mod packed;
mod rejections;
mod rules;
mod states;
mod threads;
