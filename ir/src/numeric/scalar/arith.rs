//! Arithmetic, comparisons and the piecewise linear functions: exact or one rounding each, so that
//! only NaN and signed zeros need a definition.

/// `a + b`, one rounding.
#[inline(always)]
pub fn add(a: f32, b: f32) -> f32 {
    a + b
}

/// `a - b`, one rounding.
#[inline(always)]
pub fn sub(a: f32, b: f32) -> f32 {
    a - b
}

/// `a * b`, one rounding; followed by [`add`] it stays two roundings.
#[inline(always)]
pub fn mul(a: f32, b: f32) -> f32 {
    a * b
}

/// `a / b`, one rounding (never a product with a reciprocal).
#[inline(always)]
pub fn div(a: f32, b: f32) -> f32 {
    a / b
}

/// `a * b + c` with one rounding: the step of every product.
#[inline(always)]
pub fn fma(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}

/// Flips the sign bit, of zeros and NaN too.
#[inline(always)]
pub fn neg(x: f32) -> f32 {
    -x
}

/// Clears the sign bit.
#[inline(always)]
pub fn abs(x: f32) -> f32 {
    x.abs()
}

/// The IEEE square root: correctly rounded, `sqrt(-0) = -0`, NaN below zero.
#[inline(always)]
pub fn sqrt(x: f32) -> f32 {
    x.sqrt()
}

/// `1 / sqrt(x)`: two roundings, never the estimate instruction. `rsqrt(±0) = ±inf`.
#[inline(always)]
pub fn rsqrt(x: f32) -> f32 {
    1.0 / x.sqrt()
}

/// `1 / x`, one rounding.
#[inline(always)]
pub fn recip(x: f32) -> f32 {
    1.0 / x
}

/// `x * x`, one rounding.
#[inline(always)]
pub fn square(x: f32) -> f32 {
    x * x
}

/// The sign: `-1`, `1`, or `x` itself for `±0` and NaN.
#[inline(always)]
pub fn sign(x: f32) -> f32 {
    let above = if x > 0.0 { 1.0 } else { x };
    if x < 0.0 { -1.0 } else { above }
}

/// `0` where `x <= 0`, else `x`: so `relu(-0) = +0`, `relu(NaN)` is NaN, and the slope at 0 is 0.
#[inline(always)]
pub fn relu(x: f32) -> f32 {
    if x <= 0.0 { 0.0 } else { x }
}

/// `slope * x` where `x < 0`, else `x`: `-0` and NaN pass through.
#[inline(always)]
pub fn leaky_relu(x: f32, slope: f32) -> f32 {
    let scaled = slope * x;
    if x < 0.0 { scaled } else { x }
}

/// `low` where `x < low`, else `high` where `x > high`, else `x`. NaN stays NaN; a NaN bound does
/// not bound; with `low > high` the lower bound wins for `x < low`, the upper one for the rest.
#[inline(always)]
pub fn clamp(x: f32, low: f32, high: f32) -> f32 {
    let upper = if x > high { high } else { x };
    if x < low { low } else { upper }
}

/// The smaller operand; NaN if either is NaN; the *first* operand on ties, so `min(+0, -0) = +0`
/// and `min(-0, +0) = -0`.
///
/// As compare and select: `b` where `b < a` or `b` is NaN, else `a`.
#[inline(always)]
pub fn min(a: f32, b: f32) -> f32 {
    if (b < a) | b.is_nan() { b } else { a }
}

/// The larger operand; NaN if either is NaN; the *first* operand on ties, so `max(+0, -0) = +0` and
/// `max(-0, +0) = -0`.
///
/// As compare and select: `b` where `b > a` or `b` is NaN, else `a`.
#[inline(always)]
pub fn max(a: f32, b: f32) -> f32 {
    if (b > a) | b.is_nan() { b } else { a }
}

/// `1` where `a < b`, else `0`; every ordered comparison with NaN is `0`.
#[inline(always)]
pub fn lt(a: f32, b: f32) -> f32 {
    if a < b { 1.0 } else { 0.0 }
}

/// `1` where `a <= b`, else `0`.
#[inline(always)]
pub fn le(a: f32, b: f32) -> f32 {
    if a <= b { 1.0 } else { 0.0 }
}

/// `1` where `a > b`, else `0`.
#[inline(always)]
pub fn gt(a: f32, b: f32) -> f32 {
    if a > b { 1.0 } else { 0.0 }
}

/// `1` where `a >= b`, else `0`.
#[inline(always)]
pub fn ge(a: f32, b: f32) -> f32 {
    if a >= b { 1.0 } else { 0.0 }
}

/// `1` where `a == b` (so `+0` equals `-0`, and NaN nothing), else `0`.
#[inline(always)]
pub fn eq(a: f32, b: f32) -> f32 {
    if a == b { 1.0 } else { 0.0 }
}

/// `1` where `a != b` (so NaN differs from all), else `0`.
#[inline(always)]
pub fn ne(a: f32, b: f32) -> f32 {
    if a != b { 1.0 } else { 0.0 }
}

/// `a` where `condition != 0` (a NaN condition counts as true), else `b`. The value not taken has
/// no influence.
#[inline(always)]
pub fn select(condition: f32, a: f32, b: f32) -> f32 {
    if condition != 0.0 { a } else { b }
}
