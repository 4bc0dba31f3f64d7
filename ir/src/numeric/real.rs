//! The trait [`Real`]. An interpreter that is generic over it runs with the defined bits (`f32`) or
//! in high precision (`f64`).

use std::fmt::Debug;

use super::scalar;

/// A number type with every elementwise op. The folds of [`row`](super::row), [`loss`](super::loss),
/// [`list`](super::list), [`product`](super::product) and [`noise`](super::noise) are generic over it.
///
/// * For `f32` every method is the function of the same name in [`scalar`](super::scalar), which
///   defines the bits. The folds use only these methods, so their bits are defined too.
/// * For `f64` the methods compute the same formulas with the standard library (and a series for erf). Their bits are not
///   defined; errors are a few units of 2^-53. The f64 results measure the error of f32 and support finite differences.
///
/// The trait deliberately has no operators: an interpreter names ops, and `a.mul(b).add(c)` cannot be
/// mistaken for `fma`. On a *concrete* `f32` the inherent methods of the same names (`max`, `exp`,
/// ..) take precedence over the trait's; such code should call [`scalar`](super::scalar) instead.
///
/// The comparison operators of `PartialOrd` are IEEE comparisons; `lt` .. `ne` here are the ops, with results 1 and 0.
pub trait Real: Copy + PartialOrd + Debug + Default + Send + Sync + 'static {
    /// `+0`.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Positive infinity, the identity of a minimum.
    const INFINITY: Self;
    /// Negative infinity, the identity of a maximum.
    const NEG_INFINITY: Self;
    /// A quiet NaN.
    const NAN: Self;

    /// The nearest number, ties to even.
    fn from_f64(x: f64) -> Self;
    /// The same number.
    fn from_f32(x: f32) -> Self;
    /// The same number.
    fn to_f64(self) -> f64;
    /// The nearest f32, ties to even.
    fn to_f32(self) -> f32;
    /// Whether this is a NaN.
    fn is_nan(self) -> bool;
    /// Whether this is neither infinite nor NaN.
    fn is_finite(self) -> bool;

    /// `self + b`.
    fn add(self, b: Self) -> Self;
    /// `self - b`.
    fn sub(self, b: Self) -> Self;
    /// `self * b`.
    fn mul(self, b: Self) -> Self;
    /// `self / b`.
    fn div(self, b: Self) -> Self;
    /// `self * b + c` with one rounding.
    fn fma(self, b: Self, c: Self) -> Self;
    /// `self` to the power `b`, by the rules of [`scalar::pow`].
    fn pow(self, b: Self) -> Self;
    /// The smaller, by the rules of [`scalar::min`].
    fn min(self, b: Self) -> Self;
    /// The larger, by the rules of [`scalar::max`].
    fn max(self, b: Self) -> Self;
    /// 1 where `self < b`, else 0.
    fn lt(self, b: Self) -> Self;
    /// 1 where `self <= b`, else 0.
    fn le(self, b: Self) -> Self;
    /// 1 where `self > b`, else 0.
    fn gt(self, b: Self) -> Self;
    /// 1 where `self >= b`, else 0.
    fn ge(self, b: Self) -> Self;
    /// 1 where `self == b`, else 0.
    fn eq(self, b: Self) -> Self;
    /// 1 where `self != b`, else 0.
    fn ne(self, b: Self) -> Self;
    /// `a` where `self != 0`, else `b`.
    fn select(self, a: Self, b: Self) -> Self;

    /// The negated number.
    fn neg(self) -> Self;
    /// The absolute value.
    fn abs(self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// `1 / sqrt(self)`.
    fn rsqrt(self) -> Self;
    /// `1 / self`.
    fn recip(self) -> Self;
    /// `self * self`.
    fn square(self) -> Self;
    /// -1, 1, or the zero or NaN itself.
    fn sign(self) -> Self;
    /// 0 where `self <= 0`, else `self`.
    fn relu(self) -> Self;
    /// `slope * self` where `self < 0`, else `self`.
    fn leaky_relu(self, slope: Self) -> Self;
    /// `self` limited to a range, by the rules of [`scalar::clamp`].
    fn clamp(self, low: Self, high: Self) -> Self;
    /// `e^self`.
    fn exp(self) -> Self;
    /// `e^self - 1`.
    fn expm1(self) -> Self;
    /// The natural logarithm.
    fn log(self) -> Self;
    /// `log(1 + self)` for `0 <= self <= 1`.
    fn log1p_of_unit(self) -> Self;
    /// The hyperbolic tangent.
    fn tanh(self) -> Self;
    /// `1 / (1 + e^-self)`.
    fn sigmoid(self) -> Self;
    /// `self * sigmoid(self)`.
    fn silu(self) -> Self;
    /// `log(1 + e^self)`.
    fn softplus(self) -> Self;
    /// `self` where positive, else `alpha * expm1(self)`.
    fn elu(self, alpha: Self) -> Self;
    /// The error function.
    fn erf(self) -> Self;
    /// The standard normal distribution function.
    fn normal_cdf(self) -> Self;
    /// `self * normal_cdf(self)`.
    fn gelu(self) -> Self;
    /// The sine; NaN beyond [`scalar::TRIG_LIMIT`].
    fn sin(self) -> Self;
    /// The cosine; NaN beyond [`scalar::TRIG_LIMIT`].
    fn cos(self) -> Self;

    // Slopes for the derivative rules, composed of the ops above so that both types compute the same
    // formula.

    /// `relu'`: 1 where `self > 0`, else 0 (also at 0 and NaN).
    #[inline(always)]
    fn relu_slope(self) -> Self {
        self.gt(Self::ZERO)
    }
    /// `leaky_relu'`: 1 where `self > 0`, else `slope` (also at 0 and NaN).
    #[inline(always)]
    fn leaky_relu_slope(self, slope: Self) -> Self {
        if self > Self::ZERO { Self::ONE } else { slope }
    }
    /// `tanh'` from the *result* `y`: `1 - y^2`, as `fma(-y, y, 1)`.
    #[inline(always)]
    fn tanh_slope_of_result(self) -> Self {
        self.neg().fma(self, Self::ONE)
    }
    /// `sigmoid'` from the *result* `y`: `y (1 - y)`.
    #[inline(always)]
    fn sigmoid_slope_of_result(self) -> Self {
        self.mul(Self::ONE.sub(self))
    }
    /// `silu'`: `s + (x s) (1 - s)` with `s = sigmoid(x)`, and 0 where `s` is 0.
    #[inline(always)]
    fn silu_slope(self) -> Self {
        let s = self.sigmoid();
        let slope = self.mul(s).fma(Self::ONE.sub(s), s);
        // Where 1 - s is 0 the product would be inf * 0 for an infinite x.
        let upper = if s == Self::ONE { Self::ONE } else { slope };
        if s == Self::ZERO { Self::ZERO } else { upper }
    }
    /// `softplus'`: the sigmoid.
    #[inline(always)]
    fn softplus_slope(self) -> Self {
        self.sigmoid()
    }
    /// `elu'`: 1 where `self > 0`, else `alpha * exp(self)`.
    #[inline(always)]
    fn elu_slope(self, alpha: Self) -> Self {
        let below = alpha.mul(self.exp());
        if self > Self::ZERO { Self::ONE } else { below }
    }
    /// `erf'`: `(2 / sqrt pi) exp(-x^2)`.
    #[inline(always)]
    fn erf_slope(self) -> Self {
        Self::from_f64(std::f64::consts::FRAC_2_SQRT_PI).mul(self.square().neg().exp())
    }
    /// The standard normal density: `(1 / sqrt(2 pi)) exp(-0.5 x^2)`.
    #[inline(always)]
    fn normal_pdf(self) -> Self {
        let exponent = Self::from_f64(-0.5).mul(self.square());
        Self::from_f64(0.398_942_280_401_432_7).mul(exponent.exp())
    }
    /// `gelu'`: `fma(x, pdf(x), cdf(x))`, and only `cdf(x)` where the density is 0.
    #[inline(always)]
    fn gelu_slope(self) -> Self {
        let (cdf, pdf) = (self.normal_cdf(), self.normal_pdf());
        let slope = self.fma(pdf, cdf);
        if pdf == Self::ZERO { cdf } else { slope }
    }
    /// `clamp'`: 1 where `low <= self <= high`, else 0.
    #[inline(always)]
    fn clamp_slope(self, low: Self, high: Self) -> Self {
        if self >= low && self <= high { Self::ONE } else { Self::ZERO }
    }
}

/// Delegates methods to the functions of the same names in `scalar`.
macro_rules! by_scalar {
    ($($name:ident($($argument:ident),*);)*) => {
        $(#[inline(always)]
        fn $name(self $(, $argument: f32)*) -> f32 {
            scalar::$name(self $(, $argument)*)
        })*
    };
}

impl Real for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;
    const INFINITY: f32 = f32::INFINITY;
    const NEG_INFINITY: f32 = f32::NEG_INFINITY;
    const NAN: f32 = f32::NAN;

    #[inline(always)]
    fn from_f64(x: f64) -> f32 {
        x as f32
    }
    #[inline(always)]
    fn from_f32(x: f32) -> f32 {
        x
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }
    #[inline(always)]
    fn is_nan(self) -> bool {
        f32::is_nan(self)
    }
    #[inline(always)]
    fn is_finite(self) -> bool {
        f32::is_finite(self)
    }

    by_scalar! {
        add(b); sub(b); mul(b); div(b); fma(b, c); pow(b); min(b); max(b);
        lt(b); le(b); gt(b); ge(b); eq(b); ne(b); select(a, b);
        neg(); abs(); sqrt(); rsqrt(); recip(); square(); sign(); relu(); leaky_relu(slope); clamp(low, high);
        exp(); expm1(); log(); log1p_of_unit(); tanh(); sigmoid(); silu(); softplus(); elu(alpha);
        erf(); normal_cdf(); gelu(); sin(); cos();
    }
}
