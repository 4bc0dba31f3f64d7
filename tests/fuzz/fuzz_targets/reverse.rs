//! libFuzzer on random graphs: differentiate, verify, prove, execute, compare.

#![no_main]

autobatch_fuzz::libfuzzer!("reverse");
