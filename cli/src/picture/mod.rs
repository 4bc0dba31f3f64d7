//! Pictures of graphs, plans and measurements as SVG without scripts.
//!
//! Animations use SMIL; renderers without animation show the complete picture. The colours are
//! distinguishable for colour-blind readers, and no information depends on colour alone.

mod axis;
mod curve;
mod graph;
mod instances;
mod memory;
mod svg;
mod sweep;

pub use curve::{Line, Quantity, curve};
pub use graph::graph;
pub use instances::instances;
pub use memory::memory;
pub use sweep::sweep;
