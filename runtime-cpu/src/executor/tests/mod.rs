//! Tests of private parts of the executor.

mod beside;
mod clock;
mod waves;
mod weight_cache;
