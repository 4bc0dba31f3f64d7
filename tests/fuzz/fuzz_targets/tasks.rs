//! libFuzzer on tasks that branch on values: together, alone, by the reference.

#![no_main]

autobatch_fuzz::libfuzzer!("tasks");
