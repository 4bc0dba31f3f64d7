//! Tests of private parts of the executor.

mod bound_words;
mod clock;
mod waves;
mod weight_cache;
