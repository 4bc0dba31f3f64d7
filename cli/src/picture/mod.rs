//! Pictures of graphs, plans and measurements as SVG without scripts.
//!
//! Animations use SMIL; renderers without animation show the complete picture. The colours are
//! distinguishable for colour-blind readers, and no information depends on colour alone.

mod curve;
mod graph;
mod memory;
mod svg;
mod sweep;

pub use curve::{Line, curve};
pub use graph::graph;
pub use memory::memory;
pub use sweep::sweep;
