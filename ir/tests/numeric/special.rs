//! Special values: NaN, infinities, signed zeros, denormals, interval ends.

use autobatch_ir::numeric::{same_bits, scalar};

const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;
/// The smallest denormal.
const TINY: f32 = f32::from_bits(1);

fn check(name: &str, function: fn(f32) -> f32, table: &[(f32, f32)]) {
    for &(x, expected) in table {
        let got = function(x);
        assert!(
            same_bits(got, expected),
            "{name}({x:e}) is {got:e} ({:#x}), expected {expected:e}",
            got.to_bits()
        );
    }
}

#[test]
fn exponential_functions_return_their_documented_special_values() {
    check(
        "exp",
        scalar::exp,
        &[
            (0.0, 1.0),
            (-0.0, 1.0),
            (TINY, 1.0),
            (INF, INF),
            (-INF, 0.0),
            (NAN, NAN),
            (-NAN, NAN),
            (f32::MAX, INF),
            (f32::MIN, 0.0),
            (-104.0, 0.0),
            (-103.98, 0.0),
            (-103.9, TINY),
            (88.722_84, INF),
            (1.0, std::f32::consts::E),
        ],
    );
    check(
        "expm1",
        scalar::expm1,
        &[
            (0.0, 0.0),
            (-0.0, -0.0),
            (TINY, TINY),
            (-TINY, -TINY),
            (INF, INF),
            (-INF, -1.0),
            (NAN, NAN),
            (-30.0, -1.0),
            (f32::MAX, INF),
        ],
    );
    check(
        "log",
        scalar::log,
        &[
            (0.0, -INF),
            (-0.0, -INF),
            (1.0, 0.0),
            (INF, INF),
            (-INF, NAN),
            (-1.0, NAN),
            (-TINY, NAN),
            (NAN, NAN),
            (TINY, -103.278_93),
            (f32::MAX, 88.722_84),
        ],
    );
    check(
        "tanh",
        scalar::tanh,
        &[
            (0.0, 0.0),
            (-0.0, -0.0),
            (TINY, TINY),
            (-TINY, -TINY),
            (INF, 1.0),
            (-INF, -1.0),
            (NAN, NAN),
            (9.02, 1.0),
            (-f32::MAX, -1.0),
        ],
    );
    check(
        "sigmoid",
        scalar::sigmoid,
        &[
            (0.0, 0.5),
            (-0.0, 0.5),
            (TINY, 0.5),
            (INF, 1.0),
            (-INF, 0.0),
            (NAN, NAN),
            (-104.0, 0.0),
            (-103.9, TINY),
            (20.0, 1.0),
        ],
    );
}

#[test]
fn other_unary_functions_return_their_documented_special_values() {
    check(
        "silu",
        scalar::silu,
        &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -0.0), (NAN, NAN), (-200.0, -0.0)],
    );
    check(
        "softplus",
        scalar::softplus,
        &[(-INF, 0.0), (INF, INF), (NAN, NAN), (0.0, std::f32::consts::LN_2), (f32::MAX, f32::MAX)],
    );
    check(
        "erf",
        scalar::erf,
        &[
            (0.0, 0.0),
            (-0.0, -0.0),
            (INF, 1.0),
            (-INF, -1.0),
            (NAN, NAN),
            (4.0, 1.0),
            (-9.0, -1.0),
            (TINY, TINY),
            (0.1, 0.112_462_915),
        ],
    );
    check(
        "gelu",
        scalar::gelu,
        &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -0.0), (NAN, NAN), (-30.0, -0.0), (30.0, 30.0)],
    );
    check(
        "sin",
        scalar::sin,
        &[(0.0, 0.0), (-0.0, -0.0), (TINY, TINY), (INF, NAN), (-INF, NAN), (NAN, NAN), (1.1e9, NAN)],
    );
    check(
        "cos",
        scalar::cos,
        &[(0.0, 1.0), (-0.0, 1.0), (TINY, 1.0), (INF, NAN), (-INF, NAN), (NAN, NAN), (1.1e9, NAN)],
    );
    check("sqrt", scalar::sqrt, &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-1.0, NAN), (NAN, NAN)]);
    check(
        "rsqrt",
        scalar::rsqrt,
        &[(0.0, INF), (-0.0, -INF), (INF, 0.0), (-1.0, NAN), (4.0, 0.5), (NAN, NAN)],
    );
    check(
        "recip",
        scalar::recip,
        &[(0.0, INF), (-0.0, -INF), (INF, 0.0), (-INF, -0.0), (NAN, NAN), (TINY, INF)],
    );
    check(
        "sign",
        scalar::sign,
        &[(0.0, 0.0), (-0.0, -0.0), (TINY, 1.0), (-TINY, -1.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN)],
    );
    check(
        "relu",
        scalar::relu,
        &[(0.0, 0.0), (-0.0, 0.0), (TINY, TINY), (-TINY, 0.0), (INF, INF), (-INF, 0.0), (NAN, NAN)],
    );
    check("abs", scalar::abs, &[(-0.0, 0.0), (-INF, INF), (NAN, NAN), (-TINY, TINY)]);
}

#[test]
fn piecewise_functions_preserve_nan_and_signed_zeros() {
    for (x, expected) in [(-0.0, -0.0), (NAN, NAN), (-2.0, -0.5), (3.0, 3.0), (-INF, -INF)] {
        assert!(same_bits(scalar::leaky_relu(x, 0.25), expected), "leaky_relu({x:e})");
    }
    for (x, expected) in [(-0.0, -0.0), (NAN, NAN), (-INF, -2.0), (3.0, 3.0), (INF, INF)] {
        assert!(same_bits(scalar::elu(x, 2.0), expected), "elu({x:e})");
    }
    for (x, expected) in [(NAN, NAN), (-5.0, -1.0), (5.0, 2.0), (-0.0, -0.0), (INF, 2.0), (-INF, -1.0)] {
        assert!(same_bits(scalar::clamp(x, -1.0, 2.0), expected), "clamp({x:e})");
    }
}

#[test]
fn min_and_max_propagate_nan_and_take_the_first_of_ties() {
    for (a, b, low, high) in [
        (1.0, 2.0, 1.0, 2.0),
        (2.0, 1.0, 1.0, 2.0),
        (NAN, 1.0, NAN, NAN),
        (1.0, NAN, NAN, NAN),
        (NAN, INF, NAN, NAN),
        (-INF, NAN, NAN, NAN),
        (0.0, -0.0, 0.0, 0.0),
        (-0.0, 0.0, -0.0, -0.0),
        (-INF, INF, -INF, INF),
    ] {
        assert!(same_bits(scalar::min(a, b), low), "min({a:e}, {b:e})");
        assert!(same_bits(scalar::max(a, b), high), "max({a:e}, {b:e})");
    }
}

#[test]
fn pow_follows_ieee_754() {
    let table = [
        (NAN, 0.0, 1.0),
        (NAN, -0.0, 1.0),
        (1.0, NAN, 1.0),
        (1.0, INF, 1.0),
        (-1.0, INF, 1.0),
        (-1.0, -INF, 1.0),
        (-1.0, NAN, NAN),
        (2.0, NAN, NAN),
        (NAN, 2.0, NAN),
        (0.0, 2.0, 0.0),
        (-0.0, 3.0, -0.0),
        (-0.0, 2.0, 0.0),
        (0.0, -1.0, INF),
        (-0.0, -1.0, -INF),
        (-0.0, -2.0, INF),
        (0.0, INF, 0.0),
        (0.0, -INF, INF),
        (0.5, INF, 0.0),
        (2.0, INF, INF),
        (0.5, -INF, INF),
        (2.0, -INF, 0.0),
        (INF, 2.0, INF),
        (INF, -2.0, 0.0),
        (-INF, 3.0, -INF),
        (-INF, 2.0, INF),
        (-INF, -3.0, -0.0),
        (-INF, 0.5, INF),
        (-INF, -0.5, 0.0),
        (-2.0, 3.0, -8.0),
        (-2.0, 2.0, 4.0),
        (-2.0, -1.0, -0.5),
        (-2.0, 0.5, NAN),
        (-8.0, 1.0 / 3.0, NAN),
        (-1.0, 16_777_215.0, -1.0),
        (-1.0, 16_777_216.0, 1.0),
        (10.0, 10.0, 1e10),
        (3.0, 4.0, 81.0),
        (2.0, -149.0, TINY),
        (2.0, -151.0, 0.0),
        (2.0, 128.0, INF),
        (TINY, 0.5, 3.743_392e-23),
        (9.0, 0.5, 3.0),
        (-TINY, 3.0, -0.0),
        (f32::MIN, 3.0, -INF),
    ];
    for (x, y, expected) in table {
        let got = scalar::pow(x, y);
        assert!(same_bits(got, expected), "pow({x:e}, {y:e}) is {got:e}, expected {expected:e}");
    }
}

#[test]
fn integer_powers_representable_in_f32_are_exact() {
    for base in -9i32..=9 {
        for exponent in 0..=7u32 {
            let expected = base.pow(exponent);
            if expected.abs() < 1 << 24 {
                assert_eq!(scalar::pow(base as f32, exponent as f32), expected as f32, "{base}^{exponent}");
            }
        }
    }
}

#[test]
fn odd_functions_are_odd_in_every_bit() {
    for bits in (0..0x7f80_0000u32).step_by(9973) {
        let x = f32::from_bits(bits);
        for (name, function) in
            [("tanh", scalar::tanh as fn(f32) -> f32), ("erf", scalar::erf), ("sin", scalar::sin)]
        {
            assert!(same_bits(function(-x), -function(x)), "{name}({x:e})");
        }
    }
}

#[test]
fn multiply_then_add_rounds_twice() {
    let (a, c) = (1.0 + f32::EPSILON, -(1.0 + 2.0 * f32::EPSILON));
    assert_eq!(scalar::add(scalar::mul(a, a), c), 0.0);
    assert_eq!(scalar::fma(a, a, c), f32::EPSILON * f32::EPSILON);
}

#[test]
fn comparisons_with_nan_are_false_except_not_equal() {
    for compare in [scalar::lt, scalar::le, scalar::gt, scalar::ge, scalar::eq] {
        assert_eq!(compare(NAN, 1.0), 0.0);
        assert_eq!(compare(1.0, NAN), 0.0);
    }
    assert_eq!(scalar::ne(NAN, NAN), 1.0);
    assert_eq!(
        [
            scalar::lt(1.0, 2.0),
            scalar::le(2.0, 2.0),
            scalar::gt(1.0, 2.0),
            scalar::ge(2.0, 2.0),
            scalar::eq(0.0, -0.0)
        ],
        [1.0, 1.0, 0.0, 1.0, 1.0]
    );
    assert_eq!(
        [scalar::select(1.0, 2.0, NAN), scalar::select(-0.0, NAN, 3.0), scalar::select(NAN, 4.0, 5.0)],
        [2.0, 3.0, 4.0]
    );
}
