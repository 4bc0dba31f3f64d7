//! Draws the initial values of parameters.
//!
//! All random numbers come from [`numeric::noise`](crate::numeric::noise), keyed by the parameter's name. The computation
//! uses only operations with defined bits, so a model starts with the same weights on every machine. Fans: the innermost
//! extent is the number of outputs, the product of the others the number of inputs; a vector has one input.

use crate::module::{Init, ParamDecl};
use crate::numeric::noise::Stream;
use crate::numeric::scalar;
use crate::types::Shape;

/// The initial values of a parameter.
pub(super) fn draw(decl: &ParamDecl, seed: u64) -> Vec<f32> {
    let shape = decl.ty.shape;
    let elements = shape.elements();
    let (inputs, outputs) = (shape.rows() as f32, shape.width() as f32);
    let streams = Streams { seed, key: name_key(&decl.name) };
    match &decl.init {
        Init::Constant(number) => vec![*number; elements],
        Init::Uniform(limit) => streams.uniforms(elements, *limit),
        Init::Normal(deviation) => streams.normals(elements, 0, *deviation),
        Init::Glorot(gain) => streams.uniforms(elements, gain * (6.0 / (inputs + outputs)).sqrt()),
        Init::He => streams.normals(elements, 0, (2.0 / inputs).sqrt()),
        Init::Saxe(gain) => streams.orthogonal(shape, *gain),
        Init::Values(values) => values.to_vec(),
    }
}

/// The number of multiplications to draw a parameter; 0 if it is linear in the number of elements.
pub(super) fn products(decl: &ParamDecl) -> u64 {
    let Init::Saxe(_) = decl.init else { return 0 };
    let (rows, columns) = (decl.ty.shape.rows() as u64, decl.ty.shape.width() as u64);
    let (count, length) = (rows.min(columns), rows.max(columns));
    // Gram-Schmidt projects each vector twice on all earlier ones, at two products per element.
    count.saturating_mul(count).saturating_mul(length).saturating_mul(2)
}

/// The FNV-1a hash of a name. It must never change.
fn name_key(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The random streams of one parameter.
struct Streams {
    seed: u64,
    key: u64,
}

impl Streams {
    fn stream(&self, number: u64) -> Stream {
        Stream::new(self.seed, number, self.key)
    }

    /// Uniform in `-limit..limit`, in steps of `limit * 2^-23`.
    fn uniforms(&self, elements: usize, limit: f32) -> Vec<f32> {
        let stream = self.stream(0);
        (0..elements as u32).map(|i| (2.0 * stream.uniform(i) - 1.0) * limit).collect()
    }

    /// Normal with mean 0: the Box-Muller transform of the uniform streams `2 draw` and `2 draw + 1`.
    fn normals(&self, elements: usize, draw: u64, deviation: f32) -> Vec<f32> {
        let (radii, angles) = (self.stream(2 * draw), self.stream(2 * draw + 1));
        let normal = |i| {
            // 1 - u is in (0, 1], so the logarithm is finite.
            let radius = (-2.0 * scalar::log(1.0 - radii.uniform(i))).sqrt();
            radius * scalar::cos(std::f32::consts::TAU * angles.uniform(i)) * deviation
        };
        (0..elements as u32).map(normal).collect()
    }

    /// `gain` times a random matrix with orthonormal rows, or columns if there are more rows.
    ///
    /// The algorithm is Gram-Schmidt in f64 on normal vectors, with two passes per vector, which
    /// gives orthogonality to working precision. A vector that vanishes is drawn again.
    fn orthogonal(&self, shape: Shape, gain: f32) -> Vec<f32> {
        let (rows, columns) = (shape.rows(), shape.width());
        let (count, length) = (rows.min(columns), rows.max(columns));
        let drawn = self.normals(count * length, 0, 1.0);
        let mut basis: Vec<Vec<f64>> = Vec::with_capacity(count);
        for first in drawn.chunks_exact(length) {
            let mut candidate = first.to_vec();
            for draw in 1.. {
                let vector = orthogonalize(&candidate, &basis);
                if let Some(vector) = vector {
                    basis.push(vector);
                    break;
                }
                candidate = self.normals(length, draw + basis.len() as u64, 1.0);
            }
        }
        let element = |row: usize, column: usize| {
            let number = if rows <= columns { basis[row][column] } else { basis[column][row] };
            (number * f64::from(gain)) as f32
        };
        (0..rows)
            .flat_map(|row| (0..columns).map(move |column| (row, column)))
            .map(|(r, c)| element(r, c))
            .collect()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Removes the components of `vector` along `basis` and normalizes the rest; `None` if almost nothing is left.
fn orthogonalize(vector: &[f32], basis: &[Vec<f64>]) -> Option<Vec<f64>> {
    let mut vector: Vec<f64> = vector.iter().map(|&x| f64::from(x)).collect();
    let before = dot(&vector, &vector).sqrt();
    for other in basis.iter().chain(basis) {
        let along = dot(&vector, other);
        vector.iter_mut().zip(other).for_each(|(x, other)| *x -= along * other);
    }
    let length = dot(&vector, &vector).sqrt();
    if length <= before * 1e-6 {
        return None;
    }
    vector.iter_mut().for_each(|x| *x /= length);
    Some(vector)
}
