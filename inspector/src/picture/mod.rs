//! Pictures of graphs and plans as SVG without scripts.
//!
//! Animations use SMIL; renderers without animation show the complete picture. The colours are
//! distinguishable for colour-blind readers, and no information depends on colour alone.

pub mod axis;
mod graph;
mod instances;
mod memory;
pub mod svg;

pub use graph::graph;
pub use instances::instances;
pub use memory::memory;
