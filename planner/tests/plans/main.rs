//! Plans of small models: verified, proved against their graph, played, and broken on purpose.

mod agreement;
mod bodies;
mod caching;
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

#[path = "../../../tests/growing.rs"]
mod growing_model;
#[path = "../../../tests/trials.rs"]
mod trials;
