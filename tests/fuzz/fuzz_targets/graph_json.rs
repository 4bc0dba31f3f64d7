//! libFuzzer on graphs as JSON.

#![no_main]

autobatch_fuzz::libfuzzer!("graph_json");
