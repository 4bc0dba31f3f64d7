//! The error function and gelu.
//!
//! Below `|x| = 0.921875`: `x + x p(x^2)`, `p` of degree 6 (relative error 2^-30). Above: `1 -
//! exp(x q(x))` with `x q(x)` fitted to `log erfc(x)`, `q` of degree 5, weighted by the effect of
//! the difference on the result (2^-28.3). Beyond 4 the result rounds to 1.

use super::exponential::exp_bounded;
use super::{from_bits, horner};

/// The boundary between the two forms.
const BOUNDARY: f32 = 0.921_875;
/// `erf(x)/x - 1` in powers of `x^2`, highest first.
const NEAR: [f32; 7] =
    from_bits([0x38a7_9eff, 0xba53_0118, 0x3baa_24d1, 0xbcdc_008b, 0x3de7_16b2, 0xbec0_93a0, 0x3e03_75d4]);
/// `log(erfc(x))/x`, highest power first.
const FAR: [f32; 6] =
    from_bits([0x3960_5351, 0xbb52_aa99, 0x3cbb_80ab, 0xbdd7_924b, 0xbf22_be8e, 0xbf90_7324]);

/// The error function; at most 1.11 units off. Odd in every bit, `erf(±0) = ±0`, `erf(±inf) = ±1`.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let a = x.abs();
    let near = a.mul_add(horner(a * a, NEAR), a);
    let bounded = if a > 4.0 { 4.0 } else { a };
    let far = 1.0 - exp_bounded(bounded * horner(bounded, FAR));
    let magnitude = if a < BOUNDARY { near } else { far };
    magnitude.copysign(x)
}

/// The standard normal distribution function for gelu: `0.5 (1 + erf(x / sqrt 2))`, with a product by
/// `FRAC_1_SQRT_2`. The absolute error is at most 2^-24; exactly 0 below about `-5.5`.
#[inline(always)]
pub fn normal_cdf(x: f32) -> f32 {
    0.5 * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// The exact gelu, `x * normal_cdf(x)`. Where the second factor is 0 the result is `-0`, so `gelu(-inf) = -0`.
///
/// The error is below `2^-22 |x|`. For large negative `x` the relative error grows as the result vanishes.
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    let cdf = normal_cdf(x);
    let product = x * cdf;
    if cdf == 0.0 { -0.0 } else { product }
}
