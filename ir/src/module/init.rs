//! Initialisers of parameters.

use crate::graph::Float;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// An initialiser. A matrix `[inputs, outputs]` has fans of these sizes; a vector has one input.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Init {
    /// Every element is this number.
    Constant(#[serde(with = "number")] f32),
    /// Uniform in `-a..a`.
    Uniform(#[serde(with = "number")] f32),
    /// Normal with mean 0 and this standard deviation.
    Normal(#[serde(with = "number")] f32),
    /// Glorot's uniform distribution: `a = gain * sqrt(6 / (inputs + outputs))`.
    Glorot(#[serde(with = "number")] f32),
    /// He's normal distribution: standard deviation `sqrt(2 / inputs)`.
    He,
    /// Saxe's random orthogonal matrix, times a gain.
    Saxe(#[serde(with = "number")] f32),
    /// These numbers, row by row.
    Values(#[serde(with = "numbers")] Arc<[f32]>),
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

/// A number as readable formats spell a [`Float`].
mod number {
    use super::*;

    pub(super) fn serialize<S: Serializer>(number: &f32, serializer: S) -> Result<S::Ok, S::Error> {
        Float::new(*number).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f32, D::Error> {
        Float::deserialize(deserializer).map(Float::get)
    }
}

/// A list of such numbers.
mod numbers {
    use super::*;

    pub(super) fn serialize<S: Serializer>(numbers: &[f32], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(numbers.iter().map(|&number| Float::new(number)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<[f32]>, D::Error> {
        Ok(Vec::<Float>::deserialize(deserializer)?.into_iter().map(Float::get).collect())
    }
}
