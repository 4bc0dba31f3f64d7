//! libFuzzer on texts of update plans.

#![no_main]

autobatch_fuzz::libfuzzer!("update_text");
