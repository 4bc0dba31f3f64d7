//! Plans of small models: verified, proved against their graph, played, and broken on purpose.

mod agreement;
mod gradients;
mod graphs;
