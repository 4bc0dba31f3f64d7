//! The f64 functions against known values, their agreement with f32, and the slopes against finite
//! differences.

use autobatch_ir::numeric::Real;

#[test]
fn the_error_function_in_f64_matches_known_values() {
    // Values computed with 40 digits.
    let table = [
        (1e-8, 1.128_379_167_095_512_6e-8),
        (0.1, 0.112_462_916_018_284_9),
        (0.3, 0.328_626_759_459_127_4),
        (0.5, 0.520_499_877_813_046_5),
        (0.75, 0.711_155_633_653_515_1),
        (0.9, 0.796_908_212_422_832),
        (1.0, 0.842_700_792_949_714_9),
        (1.5, 0.966_105_146_475_310_7),
        (2.0, 0.995_322_265_018_952_7),
        (2.5, 0.999_593_047_982_555),
        (3.0, 0.999_977_909_503_001_4),
        (3.9, 0.999_999_965_207_751_4),
        (4.0, 0.999_999_984_582_742_1),
        (5.0, 0.999_999_999_998_462_5),
    ];
    for (x, expected) in table {
        let got = Real::erf(x);
        assert!((got - expected).abs() <= 4e-16 * expected, "erf({x}) is {got}, expected {expected}");
        assert_eq!(Real::erf(-x), -got);
    }
    assert!(Real::erf(f64::NAN).is_nan());
    assert_eq!((Real::erf(f64::INFINITY), Real::erf(-0.0f64).to_bits()), (1.0, (-0.0f64).to_bits()));
}

/// A unary method.
type Method<T> = fn(T) -> T;

/// Every unary method, by name.
fn unary<T: Real>() -> Vec<(&'static str, Method<T>)> {
    vec![
        ("neg", T::neg),
        ("abs", T::abs),
        ("sqrt", T::sqrt),
        ("rsqrt", T::rsqrt),
        ("recip", T::recip),
        ("square", T::square),
        ("sign", T::sign),
        ("relu", T::relu),
        ("exp", T::exp),
        ("expm1", T::expm1),
        ("log", T::log),
        ("tanh", T::tanh),
        ("sigmoid", T::sigmoid),
        ("silu", T::silu),
        ("softplus", T::softplus),
        ("erf", T::erf),
        ("normal_cdf", T::normal_cdf),
        ("gelu", T::gelu),
        ("sin", T::sin),
        ("cos", T::cos),
        ("relu_slope", T::relu_slope),
        ("silu_slope", T::silu_slope),
        ("softplus_slope", T::softplus_slope),
        ("erf_slope", T::erf_slope),
        ("normal_pdf", T::normal_pdf),
        ("gelu_slope", T::gelu_slope),
        ("elu_slope", |x| x.elu_slope(T::from_f64(1.5))),
        ("leaky_relu_slope", |x| x.leaky_relu_slope(T::from_f64(0.25))),
        ("elu", |x| x.elu(T::from_f64(1.5))),
        ("leaky_relu", |x| x.leaky_relu(T::from_f64(0.25))),
        ("clamp", |x| x.clamp(T::from_f64(-1.0), T::from_f64(2.0))),
        ("clamp_slope", |x| x.clamp_slope(T::from_f64(-1.0), T::from_f64(2.0))),
        ("pow 3", |x| x.pow(T::from_f64(3.0))),
        ("min", |x| x.min(T::ONE)),
        ("max", |x| x.max(T::ONE)),
        ("lt", |x| x.lt(T::ONE)),
        ("le", |x| x.le(T::ONE)),
        ("gt", |x| x.gt(T::ONE)),
        ("ge", |x| x.ge(T::ONE)),
        ("eq", |x| x.eq(T::ONE)),
        ("ne", |x| x.ne(T::ONE)),
        ("select", |x| x.select(T::ONE, T::ZERO)),
    ]
}

#[test]
fn both_types_agree_on_ordinary_and_on_special_inputs() {
    let specials = [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    let ordinary = (-400..400).map(|i| i as f32 / 37.0);
    for ((name, narrow), (_, wide)) in unary::<f32>().into_iter().zip(unary::<f64>()) {
        for x in specials.into_iter().chain(ordinary.clone()) {
            let (got, expected) = (f64::from(narrow(x)), wide(f64::from(x)));
            let close = (got - expected).abs() <= 1e-6 * expected.abs().max(x.abs().into()).max(1.0);
            let same_zero =
                expected != 0.0 || x != 0.0 || got.is_sign_negative() == expected.is_sign_negative();
            assert!(
                got == expected && same_zero || (got.is_nan() && expected.is_nan()) || close && same_zero,
                "{name}({x}): f32 {got}, f64 {expected}"
            );
        }
    }
}

#[test]
fn slopes_are_the_derivatives() {
    let pairs: [(&str, Method<f64>, Method<f64>); 9] = [
        ("silu", |x| Real::silu(x), |x| x.silu_slope()),
        ("softplus", |x| Real::softplus(x), |x| x.softplus_slope()),
        ("elu", |x| Real::elu(x, 1.5), |x| x.elu_slope(1.5)),
        ("erf", |x| Real::erf(x), |x| x.erf_slope()),
        ("normal_cdf", |x| Real::normal_cdf(x), |x| x.normal_pdf()),
        ("gelu", |x| Real::gelu(x), |x| x.gelu_slope()),
        ("tanh", |x| Real::tanh(x), |x| Real::tanh(x).tanh_slope_of_result()),
        ("sigmoid", |x| Real::sigmoid(x), |x| Real::sigmoid(x).sigmoid_slope_of_result()),
        ("leaky_relu", |x| Real::leaky_relu(x, 0.25), |x| x.leaky_relu_slope(0.25)),
    ];
    for (name, function, slope) in pairs {
        for i in -300..300 {
            let x = f64::from(i) / 50.0 + 0.003;
            let h = 1e-5;
            let difference = (function(x + h) - function(x - h)) / (2.0 * h);
            assert!(
                (difference - slope(x)).abs() < 1e-8,
                "{name}' at {x}: {} against {difference}",
                slope(x)
            );
        }
    }
}

#[test]
fn slopes_are_finite_at_infinity() {
    for x in [f32::INFINITY, f32::NEG_INFINITY] {
        let limit = if x > 0.0 { 1.0 } else { 0.0 };
        assert_eq!(
            [x.silu_slope(), x.gelu_slope(), x.softplus_slope(), x.elu_slope(1.0), x.relu_slope()],
            [limit; 5]
        );
        assert_eq!(x.erf_slope(), 0.0);
    }
    assert_eq!((0f32.relu_slope(), (-0f32).relu_slope()), (0.0, 0.0));
}
