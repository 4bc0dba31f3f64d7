//! Optimisers: what they compute, against formulas in `f64`; and that the executor's bits are those of
//! the naive one, for every instruction set and number of threads.

mod clips;
mod kept;
mod lab;
mod lines;
mod minibatches;
mod packed;
mod refusals;
mod rules;
mod threads;
