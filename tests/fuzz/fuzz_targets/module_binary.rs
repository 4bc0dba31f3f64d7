//! libFuzzer on binary files of modules.

#![no_main]

autobatch_fuzz::libfuzzer!("module_binary");
