//! Plans of small models: verified, proved against their graph, executed, and mutated.

mod agreement;
mod bodies;
mod caching;
mod cost;
mod determinism;
mod found;
mod gradients;
mod graphs;
mod growing;
mod grown;
mod mutations;
mod own_policy;
mod proof;
mod refusals;
mod rewrites;
mod sizes;
mod updates;
mod vocabulary;

#[global_allocator]
static ALLOCATOR: autobatch_testing::hostile::Counting = autobatch_testing::hostile::Counting;
