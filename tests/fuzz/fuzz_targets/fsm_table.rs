//! libFuzzer on learned tables of the policy fsm.

#![no_main]

autobatch_fuzz::libfuzzer!("fsm_table");
