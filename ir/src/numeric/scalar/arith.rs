//! Arithmetic, comparisons and the piecewise linear functions. Each is exact or rounds once, so only
//! NaN and signed zeros need a definition.

crate::numeric::functions! { f32;
    /// `a + b`, one rounding.
    add(a, b) = a + b;
    /// `a - b`, one rounding.
    sub(a, b) = a - b;
    /// `a * b`, one rounding. A following [`add`] rounds again.
    mul(a, b) = a * b;
    /// `a / b`, one rounding (never a product with a reciprocal).
    div(a, b) = a / b;
    /// `a * b + c` with one rounding: the step of every product.
    fma(a, b, c) = a.mul_add(b, c);
    /// Flips the sign bit, also of zeros and NaN.
    neg(x) = -x;
    /// Clears the sign bit.
    abs(x) = x.abs();
    /// The IEEE square root: correctly rounded, `sqrt(-0) = -0`, NaN below zero.
    sqrt(x) = x.sqrt();
    /// `1 / sqrt(x)`: two roundings, never the estimate instruction. `rsqrt(±0) = ±inf`.
    rsqrt(x) = 1.0 / x.sqrt();
    /// `1 / x`, one rounding.
    recip(x) = 1.0 / x;
    /// `x * x`, one rounding.
    square(x) = x * x;
    /// The sign: `-1`, `1`, or `x` itself for `±0` and NaN.
    sign(x) = {
        let above = if x > 0.0 { 1.0 } else { x };
        if x < 0.0 { -1.0 } else { above }
    };
    /// `0` where `x <= 0`, else `x`. So `relu(-0) = +0`, `relu(NaN)` is NaN, and the slope at 0 is 0.
    relu(x) = if x <= 0.0 { 0.0 } else { x };
    /// `slope * x` where `x < 0`, else `x`. `-0` and NaN pass unchanged.
    leaky_relu(x, slope) = {
        let scaled = slope * x;
        if x < 0.0 { scaled } else { x }
    };
    /// `low` where `x < low`, else `high` where `x > high`, else `x`. NaN stays NaN, and a NaN bound
    /// has no effect. If `low > high`, the lower bound applies for `x < low`, else the upper one.
    clamp(x, low, high) = {
        let upper = if x > high { high } else { x };
        if x < low { low } else { upper }
    };
    /// The smaller operand; NaN if either is NaN; the *first* operand on ties, so `min(+0, -0) = +0` and `min(-0, +0) = -0`.
    ///
    /// As compare and select: `b` where `b < a` or `b` is NaN, else `a`.
    min(a, b) = if (b < a) | b.is_nan() { b } else { a };
    /// The larger operand; NaN if either is NaN; the *first* operand on ties, so `max(+0, -0) = +0` and `max(-0, +0) = -0`.
    ///
    /// As compare and select: `b` where `b > a` or `b` is NaN, else `a`.
    max(a, b) = if (b > a) | b.is_nan() { b } else { a };
    /// `1` where `a < b`, else `0`; every ordered comparison with NaN is `0`.
    lt(a, b) = if a < b { 1.0 } else { 0.0 };
    /// `1` where `a <= b`, else `0`.
    le(a, b) = if a <= b { 1.0 } else { 0.0 };
    /// `1` where `a > b`, else `0`.
    gt(a, b) = if a > b { 1.0 } else { 0.0 };
    /// `1` where `a >= b`, else `0`.
    ge(a, b) = if a >= b { 1.0 } else { 0.0 };
    /// `1` where `a == b`, else `0`. `+0` equals `-0`; NaN equals nothing.
    eq(a, b) = if a == b { 1.0 } else { 0.0 };
    /// `1` where `a != b`, else `0`. NaN differs from everything.
    ne(a, b) = if a != b { 1.0 } else { 0.0 };
    /// `a` where `condition != 0` (a NaN condition counts as true), else `b`. The other operand has no influence.
    select(condition, a, b) = if condition != 0.0 { a } else { b };
}
