//! One pure `f32` function per elementwise op: the bits of the op.
//!
//! Rules for every function in this folder:
//! * `#[inline(always)]`, straight-line: selects and bit operations instead of branches, no tables,
//!   no loops whose trip count depends on data. So LLVM widens the very same function inside a
//!   `#[target_feature(enable = "avx512f")]` (or AVX2+FMA, or NEON) loop, and each lane gets the
//!   bits of the scalar call.
//! * Only IEEE operations (`+ - * /`, `sqrt`, `mul_add`, conversions, comparisons) and integer
//!   operations.
//! * NaN in, NaN out, unless the doc says otherwise ([`pow`] with exponent 0). Comparisons are
//!   written so that a NaN falls into the branch that keeps it; `f32::min`, `f32::max` and
//!   `f32::clamp` are not used because they drop NaN.
//!
//! Accuracy figures are in units in the last place of the correctly rounded result's binade,
//! measured over all 2^32 inputs unless a doc names a domain.

mod arith;
mod error;
mod exponential;
mod logarithm;
mod power;
mod trig;

pub use arith::*;
pub use error::*;
pub use exponential::*;
pub use logarithm::*;
pub use power::*;
pub use trig::*;

/// Horner's rule by fma, highest coefficient first: `((c[0] x + c[1]) x + ..) + c[N-1]`.
#[inline(always)]
fn horner<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[0];
    let mut i = 1;
    while i < N {
        sum = sum.mul_add(x, coefficients[i]);
        i += 1;
    }
    sum
}

/// Horner's rule by fma in f64, highest coefficient first.
#[inline(always)]
fn horner_f64<const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    let mut sum = coefficients[0];
    let mut i = 1;
    while i < N {
        sum = sum.mul_add(x, coefficients[i]);
        i += 1;
    }
    sum
}
