//! Numbers that are not structure: tokens, labels, dynamic picks, float inputs, noise keys.
//!
//! An operand names a place in one of two pools. The structural hash and every plan leave their
//! contents out, so equal shapes with other words execute the same plan.

/// The bound numbers of a graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bindings {
    /// Indices and other words.
    pub words: Vec<u32>,
    /// Float inputs.
    pub floats: Vec<f32>,
}

impl Bindings {
    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.floats.clear();
    }
}
