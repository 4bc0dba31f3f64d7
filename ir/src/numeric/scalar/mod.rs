//! One pure `f32` function per elementwise op: the bits of the op.
//!
//! Rules for every function in this folder:
//! * `#[inline(always)]` and straight-line: selects and bit operations instead of branches, no tables, no loops with
//!   data-dependent trip counts. So LLVM widens the same function inside a `#[target_feature(enable = "avx512f")]` (or
//!   AVX2+FMA, or NEON) loop, and each lane gets the bits of the scalar call.
//! * Only IEEE operations (`+ - * /`, `sqrt`, `mul_add`, conversions, comparisons) and integer operations.
//! * NaN in, NaN out, unless the doc says otherwise ([`pow`] with exponent 0). Comparisons are written such that a NaN takes
//!   the branch that preserves it. `f32::min`, `f32::max` and `f32::clamp` drop NaN, so they are not used.
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
macro_rules! horner {
    ($name:ident, $number:ident) => {
        #[inline(always)]
        fn $name<const N: usize>(x: $number, coefficients: [$number; N]) -> $number {
            let mut sum = coefficients[0];
            let mut i = 1;
            while i < N {
                sum = sum.mul_add(x, coefficients[i]);
                i += 1;
            }
            sum
        }
    };
}
horner!(horner, f32);
horner!(horner_f64, f64);

/// Numbers from their bits, for tables of coefficients.
const fn from_bits<const N: usize>(bits: [u32; N]) -> [f32; N] {
    let mut numbers = [0.0; N];
    let mut i = 0;
    while i < N {
        numbers[i] = f32::from_bits(bits[i]);
        i += 1;
    }
    numbers
}
