//! libFuzzer on plans as JSON.

#![no_main]

autobatch_fuzz::libfuzzer!("plan_json");
