//! The high-precision twin: `f64` by the standard library, with the special cases of the f32
//! definitions.

use super::{Real, scalar};

/// The error function by its Taylor series below 2.5 (all terms positive after the factor
/// `exp(-x^2)`), by a continued fraction of erfc above; errors of a few 2^-53.
fn erf(x: f64) -> f64 {
    let a = x.abs();
    if a.is_nan() {
        return x;
    }
    let magnitude = if a < 2.5 {
        // erf(x) = 2/sqrt(pi) exp(-x^2) sum of 2^n x^(2n+1) / (1 3 5 .. (2n+1))
        let (mut term, mut sum, mut n) = (a, a, 1.0);
        while term > sum * 1e-17 {
            n += 2.0;
            term *= 2.0 * a * a / n;
            sum += term;
        }
        std::f64::consts::FRAC_2_SQRT_PI * (-a * a).exp() * sum
    } else if a < 6.0 {
        // erfc(x) = exp(-x^2)/sqrt(pi) / (x + (1/2)/(x + (2/2)/(x + (3/2)/(x + ..))))
        let fraction = (1..=80).rev().fold(a, |inner, i| a + f64::from(i) * 0.5 / inner);
        1.0 - 0.5 * std::f64::consts::FRAC_2_SQRT_PI * (-a * a).exp() / fraction
    } else {
        1.0
    };
    magnitude.copysign(x)
}

/// `value` within the domain of the f32 definition, NaN beyond.
fn within_trig_limit(x: f64, value: f64) -> f64 {
    if x.abs() <= f64::from(scalar::TRIG_LIMIT) { value } else { f64::NAN }
}

fn flag(condition: bool) -> f64 {
    f64::from(u8::from(condition))
}

impl Real for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
    const INFINITY: f64 = f64::INFINITY;
    const NEG_INFINITY: f64 = f64::NEG_INFINITY;
    const NAN: f64 = f64::NAN;

    fn from_f64(x: f64) -> f64 {
        x
    }
    fn from_f32(x: f32) -> f64 {
        f64::from(x)
    }
    fn to_f64(self) -> f64 {
        self
    }
    fn to_f32(self) -> f32 {
        self as f32
    }
    fn is_nan(self) -> bool {
        f64::is_nan(self)
    }
    fn is_finite(self) -> bool {
        f64::is_finite(self)
    }

    fn add(self, b: f64) -> f64 {
        self + b
    }
    fn sub(self, b: f64) -> f64 {
        self - b
    }
    fn mul(self, b: f64) -> f64 {
        self * b
    }
    fn div(self, b: f64) -> f64 {
        self / b
    }
    fn fma(self, b: f64, c: f64) -> f64 {
        self.mul_add(b, c)
    }
    fn pow(self, b: f64) -> f64 {
        self.powf(b)
    }
    fn min(self, b: f64) -> f64 {
        if b < self || b.is_nan() { b } else { self }
    }
    fn max(self, b: f64) -> f64 {
        if b > self || b.is_nan() { b } else { self }
    }
    fn lt(self, b: f64) -> f64 {
        flag(self < b)
    }
    fn le(self, b: f64) -> f64 {
        flag(self <= b)
    }
    fn gt(self, b: f64) -> f64 {
        flag(self > b)
    }
    fn ge(self, b: f64) -> f64 {
        flag(self >= b)
    }
    fn eq(self, b: f64) -> f64 {
        flag(self == b)
    }
    fn ne(self, b: f64) -> f64 {
        flag(self != b)
    }
    fn select(self, a: f64, b: f64) -> f64 {
        if self != 0.0 { a } else { b }
    }

    fn neg(self) -> f64 {
        -self
    }
    fn abs(self) -> f64 {
        f64::abs(self)
    }
    fn sqrt(self) -> f64 {
        f64::sqrt(self)
    }
    fn rsqrt(self) -> f64 {
        1.0 / f64::sqrt(self)
    }
    fn recip(self) -> f64 {
        1.0 / self
    }
    fn square(self) -> f64 {
        self * self
    }
    fn sign(self) -> f64 {
        if self == 0.0 { self } else { f64::signum(self) }
    }
    fn relu(self) -> f64 {
        if self <= 0.0 { 0.0 } else { self }
    }
    fn leaky_relu(self, slope: f64) -> f64 {
        if self < 0.0 { slope * self } else { self }
    }
    fn clamp(self, low: f64, high: f64) -> f64 {
        if self < low {
            low
        } else if self > high {
            high
        } else {
            self
        }
    }
    fn exp(self) -> f64 {
        f64::exp(self)
    }
    fn expm1(self) -> f64 {
        f64::exp_m1(self)
    }
    fn log(self) -> f64 {
        f64::ln(self)
    }
    fn log1p_of_unit(self) -> f64 {
        f64::ln_1p(self)
    }
    fn tanh(self) -> f64 {
        f64::tanh(self)
    }
    fn sigmoid(self) -> f64 {
        let e = f64::exp(-f64::abs(self));
        if self < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) }
    }
    fn silu(self) -> f64 {
        if self == f64::NEG_INFINITY { -0.0 } else { self * Real::sigmoid(self) }
    }
    fn softplus(self) -> f64 {
        Real::relu(self) + f64::exp(-f64::abs(self)).ln_1p()
    }
    fn elu(self, alpha: f64) -> f64 {
        if self > 0.0 { self } else { alpha * self.exp_m1() }
    }
    fn erf(self) -> f64 {
        erf(self)
    }
    fn normal_cdf(self) -> f64 {
        0.5 * (1.0 + erf(self * std::f64::consts::FRAC_1_SQRT_2))
    }
    fn gelu(self) -> f64 {
        if self == f64::NEG_INFINITY { -0.0 } else { self * Real::normal_cdf(self) }
    }
    fn sin(self) -> f64 {
        within_trig_limit(self, f64::sin(self))
    }
    fn cos(self) -> f64 {
        within_trig_limit(self, f64::cos(self))
    }
}
