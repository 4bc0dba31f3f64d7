//! libFuzzer on binary files of update plans.

#![no_main]

autobatch_fuzz::libfuzzer!("update_binary");
