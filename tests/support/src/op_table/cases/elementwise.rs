//! Elementwise functions, comparisons, selection and conversion.

use super::{Gradient, OpCase, TRUE, entry, good};
use autobatch_ir::DType;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Points on both sides of zero, none at a kink.
const X: [f32; 4] = [-1.5, -0.25, 0.5, 2.0];
/// Points above zero.
const P: [f32; 4] = [0.25, 0.5, 1.5, 4.0];
/// Two operands without ties.
const A: [f32; 3] = [-1.5, 0.5, 2.0];
const B: [f32; 3] = [0.25, -2.0, 1.5];
/// Values of the normal distribution function and of the error function at `X`.
const NORMAL: [f64; 4] =
    [0.066_807_201_268_858_07, 0.401_293_674_317_076_3, 0.691_462_461_274_013_1, 0.977_249_868_051_820_8];
const ERF: [f64; 4] =
    [-0.966_105_146_475_310_7, -0.276_326_390_168_236_9, 0.520_499_877_813_046_5, 0.995_322_265_018_952_7];

macro_rules! unary {
    ($($name:ident($points:ident) = $f:expr;)*) => {$(
        pub(super) fn $name() -> OpCase {
            let f: fn(f64) -> f64 = $f;
            let numbers = $points.map(|x| f(f64::from(x))).to_vec();
            entry(
                vec![
                    good(&["f32[4]"], vec![numbers.clone()], |g, _| vec![g.input(&$points).$name()]),
                    good(&["f32[2,1,2]"], vec![numbers], |g, _| vec![g.input_shaped([2, 1, 2], &$points).$name()]),
                ],
                TRUE,
                "expected f32 elements, found u32",
                |g, _| vec![g.index(1).$name()],
            )
        }
    )*};
}

unary! {
    neg(X) = |x| -x;
    abs(X) = f64::abs;
    exp(X) = f64::exp;
    log(P) = f64::ln;
    sqrt(P) = f64::sqrt;
    rsqrt(P) = |x| 1.0 / x.sqrt();
    square(X) = |x| x * x;
    recip(X) = |x| 1.0 / x;
    tanh(X) = f64::tanh;
    sigmoid(X) = |x| 1.0 / (1.0 + (-x).exp());
    relu(X) = |x| x.max(0.0);
    gelu(X) = |x| x * NORMAL[at(x)];
    silu(X) = |x| x / (1.0 + (-x).exp());
    softplus(X) = |x| x.exp().ln_1p();
    sin(X) = f64::sin;
    cos(X) = f64::cos;
    erf(X) = |x| ERF[at(x)];
    sign(X) = f64::signum;
}

/// Returns the position of a point in `X`.
fn at(x: f64) -> usize {
    X.iter().position(|&point| f64::from(point) == x).expect("X contains the point")
}

pub(super) fn leaky_relu() -> OpCase {
    entry(
        vec![good(&["f32[4]"], vec![vec![-0.375, -0.0625, 0.5, 2.0]], |g, _| {
            vec![g.input(&X).leaky_relu(0.25)]
        })],
        TRUE,
        "the attribute must be a finite number, found NaN",
        |g, _| vec![g.input(&X).leaky_relu(f32::NAN)],
    )
}

pub(super) fn elu() -> OpCase {
    let numbers = vec![0.5 * (-1.5f64).exp_m1(), 0.5 * (-0.25f64).exp_m1(), 0.5, 2.0];
    entry(
        vec![good(&["f32[4]"], vec![numbers], |g, _| vec![g.input(&X).elu(0.5)])],
        TRUE,
        "the attribute must be a finite number, found inf",
        |g, _| vec![g.input(&X).elu(f32::INFINITY)],
    )
}

pub(super) fn clamp() -> OpCase {
    entry(
        vec![good(&["f32[4]"], vec![vec![-1.0, -0.25, 0.5, 0.75]], |g, _| {
            vec![g.input(&X).clamp(-1.0, 0.75)]
        })],
        TRUE,
        "the lower bound 1 must not exceed the upper bound 0",
        |g, _| vec![g.input(&X).clamp(1.0, 0.0)],
    )
}

macro_rules! binary {
    ($($name:ident($a:ident, $b:ident) = $f:expr;)*) => {$(
        pub(super) fn $name() -> OpCase {
            let f: fn(f64, f64) -> f64 = $f;
            let wide = |x: f32| f64::from(x);
            let pairs = (0..3).map(|at| f(wide($a[at]), wide($b[at]))).collect();
            let scalar = (0..3).map(|at| f(wide($a[at]), 0.75)).collect();
            let number = (0..3).map(|at| f(wide($a[at]), 1.25)).collect();
            let rows = [0, 1, 2, 1, 2, 0].into_iter().zip([0, 1, 2, 0, 1, 2]);
            let rows = rows.map(|(a, b)| f(wide($a[a]), wide($b[b]))).collect();
            entry(
                vec![
                    good(&["f32[3]"], vec![pairs], |g, _| vec![g.input(&$a).$name(g.input(&$b))]),
                    good(&["f32[3]"], vec![scalar], |g, _| {
                        vec![g.input(&$a).$name(g.input_shaped([], &[0.75]))]
                    }),
                    good(&["f32[3]"], vec![number], |g, _| vec![g.input(&$a).$name(1.25)]),
                    good(&["f32[2,3]"], vec![rows], |g, _| {
                        let rows = [$a[0], $a[1], $a[2], $a[1], $a[2], $a[0]];
                        vec![g.input_shaped([2, 3], &rows).$name(g.input(&$b))]
                    }),
                ],
                TRUE,
                "operands must have one shape, found f32[3] and f32[2]",
                |g, _| vec![g.input(&A).$name(g.input(&[1.0, 2.0]))],
            )
        }
    )*};
}

mod float_pairs {
    use super::*;
    const BASE: [f32; 3] = [0.5, 1.5, 2.0];
    binary! {
        add(A, B) = |a, b| a + b;
        sub(A, B) = |a, b| a - b;
        mul(A, B) = |a, b| a * b;
        minimum(A, B) = f64::min;
        maximum(A, B) = f64::max;
    }
    binary! {
        div(A, B) = |a, b| a / b;
        pow(BASE, B) = f64::powf;
    }
}

macro_rules! with_integers {
    ($($name:ident = $unsigned:expr, $signed:expr;)*) => {$(
        pub(super) fn $name() -> OpCase {
            let mut case = float_pairs::$name();
            case.examples.push(good(&["u32[2]"], vec![$unsigned.to_vec()], |g, _| {
                vec![g.indices(&[7, 5]).$name(g.indices(&[3, 5]))]
            }));
            case.examples.push(good(&["i32[2]"], vec![$signed.to_vec()], |g, _| {
                let [a, b] = [[-7.0, 5.0], [3.0, -2.0]].map(|x| g.input(&x).cast(DType::I32));
                vec![a.$name(b)]
            }));
            // Conversion has no derivative, so the gradients of the floats behind the i32 operands are zero.
            case
        }
    )*};
}

with_integers! {
    add = [10.0, 10.0], [-4.0, 3.0];
    sub = [4.0, 0.0], [-10.0, 7.0];
    mul = [21.0, 25.0], [-21.0, -10.0];
    minimum = [3.0, 5.0], [-7.0, -2.0];
    maximum = [7.0, 5.0], [3.0, 5.0];
}

pub(super) fn div() -> OpCase {
    let mut case = float_pairs::div();
    case.bad.message = "expected f32 elements, found u32[1]";
    case.bad.attempt = super::Attempt::Emit(|g, _| vec![g.indices(&[1]).div(g.indices(&[2]))]);
    case
}

pub(super) fn pow() -> OpCase {
    float_pairs::pow()
}

macro_rules! compare {
    ($($name:ident = $floats:expr, $words:expr;)*) => {$(
        pub(super) fn $name() -> OpCase {
            entry(
                vec![
                    good(&["bool[3]"], vec![$floats.map(f64::from).to_vec()], |g, _| {
                        vec![g.input(&[1.0, 2.0, -0.0]).$name(g.input(&[2.0, 1.0, 0.0]))]
                    }),
                    good(&["bool[3]"], vec![$words.map(f64::from).to_vec()], |g, _| {
                        vec![g.indices(&[1, u32::MAX, 4]).$name(g.indices(&[2, 1, 4]))]
                    }),
                ],
                Gradient::None("booleans have no derivative"),
                "operands must have one element type, found f32[2] and u32",
                |g, _| vec![g.input(&[1.0, 2.0]).$name(g.index(1))],
            )
        }
    )*};
}

compare! {
    equal = [0, 0, 1], [0, 0, 1];
    not_equal = [1, 1, 0], [1, 1, 0];
    less = [1, 0, 0], [1, 0, 0];
    less_equal = [1, 0, 1], [1, 0, 1];
    greater = [0, 1, 0], [0, 1, 0];
    greater_equal = [0, 1, 1], [0, 1, 1];
}

pub(super) fn select() -> OpCase {
    // A mask selects minus infinity, whose softmax is 0.
    let first = (-3.5f64).exp();
    entry(
        vec![
            good(&["f32[3]"], vec![vec![0.25, 0.5, 2.0]], |g, _| {
                let (a, b) = (g.input(&A), g.input(&B));
                vec![a.greater(b).select(a, b)]
            }),
            good(&["f32[3]"], vec![vec![0.25, -2.0, 1.5]], |g, _| {
                let (a, b) = (g.input(&A), g.input(&B));
                vec![g.index(3).less(g.index(2)).select(a, b)]
            }),
            good(&["u32[2]"], vec![vec![7.0, 8.0]], |g, _| {
                let (a, b) = (g.indices(&[7, 5]), g.indices(&[6, 8]));
                vec![a.greater(b).select(a, b)]
            }),
            good(&["f32[3]"], vec![vec![first / (1.0 + first), 0.0, 1.0 / (1.0 + first)]], |g, _| {
                vec![g.input(&A).mask(&[true, false, true]).softmax()]
            }),
        ],
        TRUE,
        "the condition must be bool, found f32[3]",
        |g, _| vec![g.input(&A).select(g.input(&A), g.input(&B))],
    )
}

const NO_CAST: Gradient = Gradient::None("a conversion has no derivative");

pub(super) fn cast_f32() -> OpCase {
    entry(
        vec![
            good(&["f32[2]"], vec![vec![3.0, 16_777_216.0]], |g, _| {
                vec![g.indices(&[3, 16_777_216]).cast(DType::F32)]
            }),
            good(&["f32[3]"], vec![vec![0.0, 1.0, 1.0]], |g, _| {
                vec![g.input(&A).greater(g.input(&B)).cast(DType::F32)]
            }),
        ],
        NO_CAST,
        "f16 is a storage format of parameters; values are f32",
        |g, _| vec![g.input(&A).cast(DType::F16)],
    )
}

pub(super) fn cast_i32() -> OpCase {
    entry(
        vec![
            good(&["i32[4]"], vec![vec![-1.0, 0.0, 0.0, 2.0]], |g, _| vec![g.input(&X).cast(DType::I32)]),
            good(&["i32"], vec![vec![9.0]], |g, _| vec![g.index(9).cast(DType::I32)]),
        ],
        NO_CAST,
        "operand 0 must be a value, found list f32[3]",
        |g, _| vec![g.list([g.input(&A)]).cast(DType::I32)],
    )
}

pub(super) fn cast_u32() -> OpCase {
    entry(
        vec![
            good(&["u32[2]"], vec![vec![3.0, 0.0]], |g, _| vec![g.input(&[3.75, 0.5]).cast(DType::U32)]),
            good(&["u32[2]"], vec![vec![0.0, 1.0]], |g, _| {
                vec![g.indices(&[2, 3]).equal(g.indices(&[3, 3])).cast(DType::U32)]
            }),
        ],
        NO_CAST,
        "operand 0 must be a value, found list f32[3]",
        |g, _| vec![g.list([g.input(&A)]).cast(DType::U32)],
    )
}

pub(super) fn cast_bool() -> OpCase {
    entry(
        vec![good(&["bool[4]"], vec![vec![1.0, 0.0, 0.0, 1.0]], |g, _| {
            vec![g.input(&[-0.25, 0.0, -0.0, 2.0]).cast(DType::Bool)]
        })],
        NO_CAST,
        "operand 0 must be a value, found list f32[3]",
        |g, _| vec![g.list([g.input(&A)]).cast(DType::Bool)],
    )
}
