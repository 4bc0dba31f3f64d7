//! Optimisers: what they compute, against formulas in `f64`; and that the player's bits are those of
//! the naive one.

mod clips;
mod lab;
mod rules;
