//! libFuzzer on binary files of graphs.

#![no_main]

autobatch_fuzz::libfuzzer!("graph_binary");
