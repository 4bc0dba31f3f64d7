//! libFuzzer on texts of plans.

#![no_main]

autobatch_fuzz::libfuzzer!("plan_text");
