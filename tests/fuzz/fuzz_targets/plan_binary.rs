//! libFuzzer on binary files of plans.

#![no_main]

autobatch_fuzz::libfuzzer!("plan_binary");
