//! The graph passes.
//!
//! Each pass is one function in a file or folder of its own. It takes a verified graph and returns an equal, better graph, or
//! `None` if it finds nothing to do; a graph that needs no pass is then not even copied. [`passes`] defines the
//! order of the passes and their promises. A pass may change a graph only within the normal form of `equivalent` in
//! `autobatch_oracle`; the tests hold every pass to that proof.

mod chains;
mod cse;
mod dead;
mod fold;
mod hoist;
mod outline;
mod pass;
pub mod passes;
