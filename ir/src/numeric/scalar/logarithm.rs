//! The natural logarithm, and `log1p` on `[0, 1]` for softplus: one polynomial.
//!
//! `x = 2^k (1 + f)` with `sqrt(1/2) <= 1 + f < sqrt(2)`, `log(1 + f) = f - f^2/2 + f^3 p(f)` with
//! `p` of degree 7 (weighted minimax, coefficients rounded to f32; relative error 2^-27.3).

use super::exponential::{LN2_HI, LN2_LO};
use super::{from_bits, horner};

/// The bits of `sqrt(1/2)`, the lower end of the reduced range.
const SQRT_HALF: u32 = 0x3f35_04f3;
/// `(log(1 + f) - f + f^2/2) / f^3`, highest power first.
const LOG: [f32; 8] = from_bits([
    0xbd9c_64e0,
    0x3e02_af60,
    0xbe06_c121,
    0x3e11_6c97,
    0xbe2a_3945,
    0x3e4c_d00e,
    0xbe80_0113,
    0x3eaa_aaaa,
]);

/// `k ln 2 + log(1 + f)`.
#[inline(always)]
fn assemble(k: f32, f: f32) -> f32 {
    let square = f * f;
    let cubic = k.mul_add(LN2_LO, (f * square) * horner(f, LOG));
    let tail = square.mul_add(-0.5, cubic);
    k.mul_add(LN2_HI, f + tail)
}

/// The natural logarithm; at most 0.86 units off.
///
/// `log(±0) = -inf`, NaN below zero, `log(1) = +0`, `log(+inf) = +inf`; denormal arguments are exact (scaled by 2^23 first).
#[inline(always)]
pub fn log(x: f32) -> f32 {
    let tiny = x < f32::MIN_POSITIVE;
    let scaled = if tiny { x * 8_388_608.0 } else { x };
    let offset = scaled.to_bits().wrapping_sub(SQRT_HALF);
    let exponent = (offset as i32) >> 23;
    let k = if tiny { exponent.wrapping_sub(23) } else { exponent };
    let m = f32::from_bits((offset & 0x007f_ffff).wrapping_add(SQRT_HALF));
    let positive = assemble(k as f32, m - 1.0);
    let finite = if x < f32::INFINITY { positive } else { x };
    let defined = if x < 0.0 { f32::NAN } else { finite };
    if x == 0.0 { f32::NEG_INFINITY } else { defined }
}

/// `log(1 + e)` for `0 <= e <= 1` or NaN. The relative error is small down to the denormals, for which the result is `e`.
#[inline(always)]
pub fn log1p_of_unit(e: f32) -> f32 {
    let upper = e > std::f32::consts::SQRT_2 - 1.0;
    let halved = e.mul_add(0.5, -0.5);
    let f = if upper { halved } else { e };
    let k = if upper { 1.0 } else { 0.0 };
    assemble(k, f)
}
