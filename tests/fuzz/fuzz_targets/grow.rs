//! libFuzzer on graphs that grow: extend, verify, prove, resume, compare.

#![no_main]

autobatch_fuzz::libfuzzer!("grow");
