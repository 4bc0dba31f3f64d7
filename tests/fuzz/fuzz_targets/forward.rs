//! libFuzzer on random graphs: plan, verify, prove, execute, compare.

#![no_main]

autobatch_fuzz::libfuzzer!("forward");
