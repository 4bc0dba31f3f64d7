//! Powers, computed in f64 as `2^(y log2 |x|)` and rounded once.
//!
//! `log2` by the series of `atanh` on `|s| <= 0.1716` (relative error below 2^-50), `2^r` by its Taylor series on `|r| <=
//! 1/2` (below 2^-46); the largest exponent that matters is 150, so the result is within 0.51 units.

use super::horner_f64;

/// `1.5 * 2^52`: adding it rounds to an integer, stored in the low mantissa bits.
const ROUND_TO_INT: f64 = 6_755_399_441_055_744.0;
/// The bits of `sqrt(1/2)` in f64.
const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
/// `1/19, 1/17, .., 1/3, 1`: `atanh(s)/s` as a polynomial in `s^2`.
const ATANH: [f64; 10] = [
    1.0 / 19.0,
    1.0 / 17.0,
    1.0 / 15.0,
    1.0 / 13.0,
    1.0 / 11.0,
    1.0 / 9.0,
    1.0 / 7.0,
    1.0 / 5.0,
    1.0 / 3.0,
    1.0,
];
/// `1/12!, .., 1/1!, 1`.
const EXP: [f64; 13] = [
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
    1.0,
    1.0,
];

/// `log2 x` for a positive normal f64.
#[inline(always)]
fn log2(x: f64) -> f64 {
    let offset = x.to_bits().wrapping_sub(SQRT_HALF);
    // The shift leaves 12 bits, so the low half holds the whole exponent. The conversion of i32 to f64
    // is a vector instruction.
    let k = (offset as i64 >> 32) as i32 >> 20;
    let m = f64::from_bits((offset & 0x000f_ffff_ffff_ffff).wrapping_add(SQRT_HALF));
    let s = (m - 1.0) / (m + 1.0);
    let log = (2.0 * s) * horner_f64(s * s, ATANH);
    log.mul_add(std::f64::consts::LOG2_E, f64::from(k))
}

/// `2^t` for `|t| <= 1000` or NaN.
#[inline(always)]
fn exp2(t: f64) -> f64 {
    let shifted = t + ROUND_TO_INT;
    let r = (t - (shifted - ROUND_TO_INT)) * std::f64::consts::LN_2;
    let scale = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    horner_f64(r, EXP) * scale
}

/// `x^y`, with the special cases of IEEE 754 `pow`; at most 0.51 units off.
///
/// `pow(x, ±0) = 1` and `pow(1, y) = 1` even for NaN. A negative base with an integer exponent gives the magnitude with the
/// sign of the parity (every `|y| >= 2^24` is even), with any other finite exponent NaN. `pow(±0, y)` is `0` for `y > 0` and
/// `inf` for `y < 0`, signed for odd `y`; `pow(-1, ±inf) = 1`. Overflow gives infinity, underflow is gradual.
#[inline(always)]
pub fn pow(x: f32, y: f32) -> f32 {
    let a = x.abs();
    let wide = log2(f64::from(a));
    let log_of_zero = if a == 0.0 { f64::NEG_INFINITY } else { wide };
    let log = if a == f32::INFINITY { f64::INFINITY } else { log_of_zero };
    let t = f64::from(y) * log;
    let upper = if t > 400.0 { 400.0 } else { t };
    let exponent = if t < -400.0 { -400.0 } else { upper };
    let power = exp2(exponent) as f32;
    let is_unit = (a == 1.0) & !y.is_nan();
    let magnitude = if is_unit { 1.0 } else { power };
    let known = if a.is_nan() | y.is_nan() { f32::NAN } else { magnitude };

    let half = y * 0.5;
    let integer = y.trunc() == y;
    let odd = integer & (half.trunc() != half);
    let negative_base = x.is_sign_negative();
    let signed = if negative_base & odd { -known } else { known };
    let undefined = (x < 0.0) & !integer & (a != f32::INFINITY);
    let value = if undefined { f32::NAN } else { signed };
    if (y == 0.0) | (x == 1.0) { 1.0 } else { value }
}
