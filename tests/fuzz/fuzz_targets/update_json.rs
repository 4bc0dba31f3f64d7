//! libFuzzer on update plans as JSON.

#![no_main]

autobatch_fuzz::libfuzzer!("update_json");
