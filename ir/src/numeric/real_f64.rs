//! The high-precision variant: `f64` with the mathematics of the standard library and the special
//! cases of the f32 definitions.

use super::{Real, scalar};

/// The error function: a Taylor series below 2.5, whose terms are positive apart from the factor
/// `exp(-x^2)`, and a continued fraction of erfc above. Errors are a few units of 2^-53.
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

/// `value` inside the domain of the f32 definition, NaN outside.
fn within_trig_limit(x: f64, value: f64) -> f64 {
    if x.abs() <= f64::from(scalar::TRIG_LIMIT) { value } else { f64::NAN }
}

fn flag(condition: bool) -> f64 {
    f64::from(u8::from(condition))
}

/// Defines methods: `name(self, arguments) = expression`.
macro_rules! methods {
    ($($name:ident($this:ident $(, $argument:ident)*) = $value:expr;)*) => {
        $(fn $name($this $(, $argument: f64)*) -> f64 {
            $value
        })*
    };
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
    fn to_f32(self) -> f32 {
        self as f32
    }
    fn is_nan(self) -> bool {
        f64::is_nan(self)
    }
    fn is_finite(self) -> bool {
        f64::is_finite(self)
    }

    methods! {
        to_f64(self) = self;
        add(self, b) = self + b;
        sub(self, b) = self - b;
        mul(self, b) = self * b;
        div(self, b) = self / b;
        fma(self, b, c) = self.mul_add(b, c);
        pow(self, b) = self.powf(b);
        min(self, b) = if b < self || b.is_nan() { b } else { self };
        max(self, b) = if b > self || b.is_nan() { b } else { self };
        lt(self, b) = flag(self < b);
        le(self, b) = flag(self <= b);
        gt(self, b) = flag(self > b);
        ge(self, b) = flag(self >= b);
        eq(self, b) = flag(self == b);
        ne(self, b) = flag(self != b);
        select(self, a, b) = if self != 0.0 { a } else { b };
        neg(self) = -self;
        abs(self) = f64::abs(self);
        sqrt(self) = f64::sqrt(self);
        rsqrt(self) = 1.0 / f64::sqrt(self);
        recip(self) = 1.0 / self;
        square(self) = self * self;
        sign(self) = if self == 0.0 { self } else { f64::signum(self) };
        relu(self) = if self <= 0.0 { 0.0 } else { self };
        leaky_relu(self, slope) = if self < 0.0 { slope * self } else { self };
        clamp(self, low, high) = match self {
            x if x < low => low,
            x if x > high => high,
            x => x,
        };
        exp(self) = f64::exp(self);
        expm1(self) = f64::exp_m1(self);
        log(self) = f64::ln(self);
        log1p_of_unit(self) = f64::ln_1p(self);
        tanh(self) = f64::tanh(self);
        sigmoid(self) = {
            let e = f64::exp(-f64::abs(self));
            if self < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) }
        };
        silu(self) = if self == f64::NEG_INFINITY { -0.0 } else { self * Real::sigmoid(self) };
        softplus(self) = Real::relu(self) + f64::exp(-f64::abs(self)).ln_1p();
        elu(self, alpha) = if self > 0.0 { self } else { alpha * self.exp_m1() };
        erf(self) = erf(self);
        normal_cdf(self) = 0.5 * (1.0 + erf(self * std::f64::consts::FRAC_1_SQRT_2));
        gelu(self) = if self == f64::NEG_INFINITY { -0.0 } else { self * Real::normal_cdf(self) };
        sin(self) = within_trig_limit(self, f64::sin(self));
        cos(self) = within_trig_limit(self, f64::cos(self));
    }
}
