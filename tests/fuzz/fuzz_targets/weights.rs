//! libFuzzer on weights as safetensors files.

#![no_main]

autobatch_fuzz::libfuzzer!("weights");
