//! Sine and cosine, computed in f64 and rounded once.
//!
//! The reduction `r = x - n pi/2` in f64 with a two-part `pi/2` leaves an error below 2^-70 for all
//! `|x| <= 2^30`, so neither a table nor a second code path is necessary. The f64 arithmetic halves
//! the vector width, which is acceptable for ops that are rare in models.

use super::horner_f64;

/// The largest magnitude with a defined result; the neighbours of an f32 there are 128 apart.
pub const TRIG_LIMIT: f32 = 1_073_741_824.0;
/// `1.5 * 2^52`: adding it rounds to an integer, stored in the low mantissa bits.
const ROUND_TO_INT: f64 = 6_755_399_441_055_744.0;
/// `pi/2` rounded to f64, and the rounding error.
const HALF_PI_HI: f64 = std::f64::consts::FRAC_PI_2;
const HALF_PI_LO: f64 = 6.123_233_995_736_766e-17;
/// Taylor coefficients suffice: on `|r| <= pi/4` the first omitted term is below 2^-37 (sine) and 2^-40 (cosine).
const SIN: [f64; 5] = [-1.0 / 39_916_800.0, 1.0 / 362_880.0, -1.0 / 5_040.0, 1.0 / 120.0, -1.0 / 6.0];
const COS: [f64; 7] =
    [1.0 / 479_001_600.0, -1.0 / 3_628_800.0, 1.0 / 40_320.0, -1.0 / 720.0, 1.0 / 24.0, -0.5, 1.0];

/// `sin(x + quarter * pi/2)`, NaN outside the domain.
#[inline(always)]
fn sine_of_shifted(x: f32, quarter: u32) -> f32 {
    let wide = f64::from(x);
    let shifted = wide.mul_add(std::f64::consts::FRAC_2_PI, ROUND_TO_INT);
    let n = shifted - ROUND_TO_INT;
    let r = n.mul_add(-HALF_PI_LO, n.mul_add(-HALF_PI_HI, wide));
    let square = r * r;
    let sine = (r * square).mul_add(horner_f64(square, SIN), r);
    let cosine = horner_f64(square, COS);
    let quadrant = (shifted.to_bits() as u32).wrapping_add(quarter);
    let chosen = if quadrant & 1 == 0 { sine } else { cosine };
    let signed = if quadrant & 2 == 0 { chosen } else { -chosen };
    if x.abs() <= TRIG_LIMIT { signed as f32 } else { f32::NAN }
}

/// The sine for `|x| <= 2^30`, at most 0.51 units off. Beyond (and for infinities) the result is NaN
/// rather than a wrong number. `sin(±0) = ±0`.
#[inline(always)]
pub fn sin(x: f32) -> f32 {
    let value = sine_of_shifted(x, 0);
    if x == 0.0 { x } else { value }
}

/// The cosine for `|x| <= 2^30`, at most 0.51 units off; NaN beyond and for infinities. `cos(±0) = 1`.
#[inline(always)]
pub fn cos(x: f32) -> f32 {
    sine_of_shifted(x, 1)
}
