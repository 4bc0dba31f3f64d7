//! The exponential family: exp, expm1, sigmoid, tanh, silu and elu share one range reduction and one polynomial.
//!
//! `x = n ln 2 + r` with `n` the nearest integer and `|r| <= 0.3467`, `e^r = 1 + r + r^2 q(r)` with `q` of degree 4 (a
//! weighted minimax fit; the coefficients were rounded to f32 one after the other; relative error 2^-28.2). Adding `1.5 *
//! 2^23` yields `n`: the low mantissa bits then hold the integer. This needs no conversion instruction, and NaN needs no
//! special case because `r` is NaN too. `ln 2` is split such that `n * LN2_HI` is exact; the remainder is added last.

use super::{from_bits, horner, log1p_of_unit};

/// `1.5 * 2^23`: adding it rounds to an integer, stored in the low mantissa bits.
const ROUND_TO_INT: f32 = 12_582_912.0;
/// The leading 15 bits of `ln 2`: a product with an integer below 512 is exact.
pub(super) const LN2_HI: f32 = f32::from_bits(0x3f31_7200);
/// `ln 2 - LN2_HI`.
pub(super) const LN2_LO: f32 = 1.428_606_8e-6;
/// `(e^r - 1 - r) / r^2`, highest power first.
const EXP: [f32; 5] = from_bits([0x3ab5_25a2, 0x3c09_1cca, 0x3d2a_ac59, 0x3e2a_aa49, 0x3eff_fffe]);
/// `(tanh(x)/x - 1) / x^2` as a polynomial in `x^2` for `|x| < 0.625`, highest power first.
const TANH: [f32; 5] = from_bits([0xbbba_8671, 0x3ca8_fc67, 0xbd5c_1ad2, 0x3e08_837b, 0xbeaa_aa99]);

/// Splits `x` into `n`, `r` and `tail` with `e^x = 2^n (1 + r + tail)`, `r` exact and `tail` small.
/// Requires `|x| <= 104` or NaN; for NaN `r` and `tail` are NaN and `n` is arbitrary.
#[inline(always)]
fn reduce(x: f32) -> (i32, f32, f32) {
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND_TO_INT);
    let n = shifted - ROUND_TO_INT;
    let exact = n.mul_add(-LN2_HI, x);
    let r = n.mul_add(-LN2_LO, exact);
    let tail = n.mul_add(-LN2_LO, (r * r) * horner(r, EXP));
    let integer = (shifted.to_bits() as i32).wrapping_sub(ROUND_TO_INT.to_bits() as i32);
    (integer, exact, tail)
}

/// `2^n` for `-126 <= n <= 127`; an arbitrary number for other `n`.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// `e^x` for `|x| <= 87` or NaN, with one scaling.
#[inline(always)]
pub(super) fn exp_bounded(x: f32) -> f32 {
    let (n, r, tail) = reduce(x);
    (1.0 + (r + tail)) * power_of_two(n)
}

/// `e^x` for `-104 <= x <= 89` or NaN. It scales by two factors, since `2^n` itself may not be a normal number.
#[inline(always)]
fn exp_clamped(x: f32) -> f32 {
    let (n, r, tail) = reduce(x);
    let mantissa = 1.0 + (r + tail);
    let half = n >> 1;
    (mantissa * power_of_two(half)) * power_of_two(n.wrapping_sub(half))
}

/// `e^-|x|`: [`exp`] without the upper bound.
#[inline(always)]
fn exp_of_neg_abs(x: f32) -> f32 {
    let exponent = -x.abs();
    exp_clamped(if exponent < -104.0 { -104.0 } else { exponent })
}

/// `e^x`; at most 0.9 units off.
///
/// `exp(±0) = 1`, `exp(-inf) = +0`, `exp(+inf) = +inf`. From `88.72284` on the result is `+inf`.
/// Underflow is gradual. Two exact powers of two scale the mantissa, so a denormal result is the
/// rounded mantissa rounded again to a multiple of 2^-149. The result is `+0` below about `-103.97`.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let upper = if x > 89.0 { 89.0 } else { x };
    exp_clamped(if x < -104.0 { -104.0 } else { upper })
}

/// `e^x - 1` without cancellation near 0; at most 1.63 units off. `expm1(±0) = ±0`, denormals pass
/// unchanged, and the result is `-1` below about `-17.4`.
#[inline(always)]
pub fn expm1(x: f32) -> f32 {
    let upper = if x > 89.0 { 89.0 } else { x };
    let bounded = if x < -18.0 { -18.0 } else { upper };
    let (n, r, tail) = reduce(bounded);
    let y = r + tail;
    // Half of 2^n, so that n = 128 has a representable scale. n = 0 is a special case, since halving a
    // denormal would round it.
    let half = power_of_two(n.wrapping_sub(1));
    let scaled = 2.0 * half.mul_add(y, half - 0.5);
    let near = if n == 0 { y } else { scaled };
    if x == 0.0 { x } else { near }
}

/// `1 / (1 + e^-x)`, computed as `q = p / (1 + e)` with `e = exp(-|x|)` and `p = e` below zero,
/// else 1; then `q - q * lost`, where `lost` is the rounding error of the sum.
///
/// At most 1.97 units off everywhere, also for the denormal results below `-87.34`; `+0` below about
/// `-103.97`; `sigmoid(±0) = 0.5`.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    let e = exp_of_neg_abs(x);
    let numerator = if x < 0.0 { e } else { 1.0 };
    let sum = 1.0 + e;
    let lost = e - (sum - 1.0);
    let quotient = numerator / sum;
    quotient.mul_add(-lost, quotient)
}

/// The hyperbolic tangent: an odd polynomial below `|x| = 0.625`, `1 - 2 / (e^(2|x|) + 1)` above.
///
/// At most 1.33 units off. Odd in every bit, `tanh(±0) = ±0`, denormals pass unchanged, `±1` from `|x| = 9.02` on.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let square = a * a;
    let small = (a * square).mul_add(horner(square, TANH), a);
    let bounded = if a > 10.0 { 10.0 } else { a };
    let large = 1.0 - 2.0 / (exp_bounded(2.0 * bounded) + 1.0);
    let magnitude = if a < 0.625 { small } else { large };
    magnitude.copysign(x)
}

/// `x * sigmoid(x)`, two roundings. Where the sigmoid is 0 the result is `-0`, so `silu(-inf) = -0`.
#[inline(always)]
pub fn silu(x: f32) -> f32 {
    let s = sigmoid(x);
    let product = x * s;
    if s == 0.0 { -0.0 } else { product }
}

/// `log(1 + e^x)`, computed as `relu(x) + log1p(exp(-|x|))`; at most 1.69 units off.
///
/// It does not overflow; for large negative `x` the result is `e^x`.
#[inline(always)]
pub fn softplus(x: f32) -> f32 {
    super::relu(x) + log1p_of_unit(exp_of_neg_abs(x))
}

/// `x` where `x > 0`, else `alpha * expm1(x)`.
#[inline(always)]
pub fn elu(x: f32, alpha: f32) -> f32 {
    let below = alpha * expm1(x);
    if x > 0.0 { x } else { below }
}
