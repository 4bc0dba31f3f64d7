//! libFuzzer on cost tables of the policy auto.

#![no_main]

autobatch_fuzz::libfuzzer!("cost_table");
