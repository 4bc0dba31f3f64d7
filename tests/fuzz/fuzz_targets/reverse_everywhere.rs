//! libFuzzer on random graphs: differentiate, verify, prove, execute, compare, under every policy and order of rows.

#![no_main]

autobatch_fuzz::libfuzzer!("reverse_everywhere");
