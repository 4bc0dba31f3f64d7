//! How the first values of a parameter are drawn.

use std::sync::Arc;

/// An initialiser. Fans are read off the shape: a matrix `[inputs, outputs]` has these, a vector
/// counts as one input.
#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    /// Every element is this number.
    Constant(f32),
    /// Uniform in `-a..a`.
    Uniform(f32),
    /// Normal with this deviation around 0.
    Normal(f32),
    /// Glorot's uniform: `a = gain * sqrt(6 / (inputs + outputs))`.
    Glorot(f32),
    /// He's normal: deviation `sqrt(2 / inputs)`.
    He,
    /// Saxe's random orthogonal matrix, times a gain.
    Saxe(f32),
    /// These numbers, row by row.
    Values(Arc<[f32]>),
}

impl Init {
    /// All zero.
    pub const ZEROS: Self = Self::Constant(0.0);
}
