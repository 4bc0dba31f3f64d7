//! libFuzzer on texts of modules.

#![no_main]

autobatch_fuzz::libfuzzer!("module_text");
