//! Pictures as SVG without scripts: those of measurements, and with them those of graphs and plans.
//!
//! Animations use SMIL; renderers without animation show the complete picture. The colours are
//! distinguishable for colour-blind readers, and no information depends on colour alone.

mod curve;
mod sweep;

pub use autobatch_inspector::picture::{graph, instances, memory};
pub use curve::{Line, Quantity, curve};
pub use sweep::sweep;
