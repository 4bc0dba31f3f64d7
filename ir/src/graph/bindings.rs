//! The bindings of a graph: tokens, labels, dynamic picks, float inputs and noise keys.
//!
//! An operand names a slot in one of two pools. Neither the structural hash nor a plan contains the
//! pool contents, so a plan serves every graph with the same structure.

/// The bindings of a graph: the numbers that are not part of its structure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bindings {
    /// Bound indices, labels and noise keys.
    pub words: Vec<u32>,
    /// Bound float inputs.
    pub floats: Vec<f32>,
}

impl Bindings {
    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.floats.clear();
    }
}
