//! libFuzzer on texts of graphs.

#![no_main]

autobatch_fuzz::libfuzzer!("graph_text");
