//! libFuzzer on random graphs: plan, verify, prove, execute, compare, under every policy and order of rows.

#![no_main]

autobatch_fuzz::libfuzzer!("forward_everywhere");
