//! libFuzzer on checkpoints of trainers.

#![no_main]

autobatch_fuzz::libfuzzer!("checkpoint");
