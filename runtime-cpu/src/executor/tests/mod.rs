//! Tests of private parts of the executor.

mod clock;
mod waves;
mod weight_cache;
