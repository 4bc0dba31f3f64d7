//! Initialisers of parameters.

use std::sync::Arc;

/// An initialiser. A matrix `[inputs, outputs]` has fans of these sizes; a vector has one input.
#[derive(Clone, Debug)]
pub enum Init {
    /// Every element is this number.
    Constant(f32),
    /// Uniform in `-a..a`.
    Uniform(f32),
    /// Normal with mean 0 and this standard deviation.
    Normal(f32),
    /// Glorot's uniform distribution: `a = gain * sqrt(6 / (inputs + outputs))`.
    Glorot(f32),
    /// He's normal distribution: standard deviation `sqrt(2 / inputs)`.
    He,
    /// Saxe's random orthogonal matrix, times a gain.
    Saxe(f32),
    /// These numbers, row by row.
    Values(Arc<[f32]>),
}

/// Compares bits, so a module with a NaN among its values equals itself.
impl PartialEq for Init {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Constant(a), Self::Constant(b))
            | (Self::Uniform(a), Self::Uniform(b))
            | (Self::Normal(a), Self::Normal(b))
            | (Self::Glorot(a), Self::Glorot(b))
            | (Self::Saxe(a), Self::Saxe(b)) => a.to_bits() == b.to_bits(),
            (Self::He, Self::He) => true,
            (Self::Values(a), Self::Values(b)) => {
                a.iter().map(|x| x.to_bits()).eq(b.iter().map(|x| x.to_bits()))
            }
            _ => false,
        }
    }
}

impl Init {
    /// All zero.
    pub const ZEROS: Self = Self::Constant(0.0);
}
