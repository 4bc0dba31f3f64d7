//! Pictures of graphs, plans and measurements as SVG, complete without scripts.
//!
//! Where a picture moves, it moves by SMIL; a renderer that knows no animation shows the finished
//! picture. Colours keep apart for colour-blind eyes, and nothing is told by colour alone.

mod graph;
mod memory;
mod svg;
mod sweep;

pub use graph::graph;
pub use memory::memory;
pub use sweep::sweep;
