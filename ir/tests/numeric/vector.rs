//! Scalar functions give the same bits inside `#[target_feature]` loops as in plain
//! calls.

use autobatch_ir::numeric::{same_bits, scalar};

use crate::Random;

/// A unary function.
pub(crate) type Function = fn(f32) -> f32;

/// A loop that applies a unary function to a slice.
pub(crate) type Loop = fn(&[f32], &mut [f32]);

/// A function and its loops for the instruction sets of this machine.
pub(crate) struct Unary {
    pub(crate) name: &'static str,
    pub(crate) plain: Function,
    pub(crate) loops: Vec<(&'static str, Loop)>,
}

/// Defines a module of loops compiled for some target features, each callable only if `detected`
/// is true.
macro_rules! loops_for {
    ($arch:literal, $module:ident, $features:literal, $detected:expr, $($name:ident)*) => {
        #[cfg(target_arch = $arch)]
        pub(crate) mod $module {
            use super::scalar;
            #[cfg(target_arch = "x86_64")]
            use std::arch::is_x86_feature_detected as has;

            pub(crate) fn detected() -> bool {
                $detected
            }

            $(pub(crate) fn $name(x: &[f32], out: &mut [f32]) {
                #[target_feature(enable = $features)]
                fn vectorised(x: &[f32], out: &mut [f32]) {
                    for (result, &x) in out.iter_mut().zip(x) {
                        *result = scalar::$name(x);
                    }
                }
                assert!(detected());
                // SAFETY: the line above has detected the features.
                unsafe { vectorised(x, out) }
            })*
        }
    };
}

/// Applies `loops_for` to each instruction set, and lists the functions.
macro_rules! unary_functions {
    ($($name:ident)*) => {
        loops_for!("aarch64", neon, "neon", true, $($name)*);
        loops_for!("x86_64", avx2, "avx2,fma", has!("avx2") && has!("fma"), $($name)*);
        loops_for!(
            "x86_64",
            avx512,
            "avx512f,avx512dq,fma",
            has!("avx512f") && has!("avx512dq") && has!("fma"),
            $($name)*
        );

        /// Every unary function of `scalar`.
        pub(crate) fn unary_functions() -> Vec<Unary> {
            vec![$({
                #[allow(unused_mut)]
                let mut loops: Vec<(&'static str, Loop)> = Vec::new();
                #[cfg(target_arch = "aarch64")]
                loops.extend([("neon", neon::$name as Loop)]);
                #[cfg(target_arch = "x86_64")]
                {
                    if avx2::detected() {
                        loops.push(("avx2", avx2::$name));
                    }
                    if avx512::detected() {
                        loops.push(("avx512", avx512::$name));
                    }
                }
                Unary { name: stringify!($name), plain: scalar::$name, loops }
            }),*]
        }
    };
}

unary_functions! {
    exp expm1 log log1p_of_unit tanh sigmoid silu softplus erf normal_cdf gelu sin cos
    sqrt rsqrt recip square sign relu neg abs
}

/// The function named `name`.
pub(crate) fn unary(name: &str) -> Unary {
    unary_functions().into_iter().find(|f| f.name == name).expect("the list contains the name")
}

/// Every 8209th bit pattern, and all patterns near the limits of the formats and of the functions'
/// cases.
pub(crate) fn inputs() -> Vec<f32> {
    let mut inputs: Vec<f32> = (0..=u32::MAX).step_by(8209).map(f32::from_bits).collect();
    let borders = [
        0.0,
        1.0,
        0.5,
        0.625,
        0.921_875,
        4.0,
        9.02,
        10.0,
        17.4,
        18.0,
        87.0,
        87.336,
        88.722_84,
        89.0,
        103.97,
        104.0,
        std::f32::consts::FRAC_1_SQRT_2,
        std::f32::consts::SQRT_2,
        std::f32::consts::PI,
        scalar::TRIG_LIMIT,
        f32::MIN_POSITIVE,
        f32::MAX,
        f32::INFINITY,
    ];
    for border in borders {
        for distance in 0..64u32 {
            let bits = f32::to_bits(border).wrapping_add(distance).wrapping_sub(32);
            inputs.extend([f32::from_bits(bits), f32::from_bits(bits ^ 0x8000_0000)]);
        }
    }
    inputs
}

#[test]
fn vector_loops_give_the_bits_of_the_scalar_functions() {
    let inputs = inputs();
    let mut out = vec![0.0; inputs.len()];
    for function in unary_functions() {
        let plain: Vec<f32> = inputs.iter().map(|&x| (function.plain)(x)).collect();
        for (set, run) in &function.loops {
            run(&inputs, &mut out);
            for ((&x, &scalar), &vector) in inputs.iter().zip(&plain).zip(&out) {
                assert!(
                    same_bits(scalar, vector),
                    "{} of {x:e} ({:#010x}): scalar {:#010x}, {set} {:#010x}",
                    function.name,
                    x.to_bits(),
                    scalar.to_bits(),
                    vector.to_bits()
                );
            }
        }
    }
}

/// The functions of several arguments in one loop: a pair in, all results out.
#[inline(always)]
pub(crate) fn many_arguments(a: f32, b: f32) -> [f32; 8] {
    [
        scalar::pow(a, b),
        scalar::min(a, b),
        scalar::max(a, b),
        scalar::clamp(a, -b.abs(), b),
        scalar::elu(a, b),
        scalar::leaky_relu(a, b),
        scalar::add(scalar::mul(a, b), a),
        scalar::fma(a, b, a),
    ]
}

#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
fn many_arguments_neon(a: &[f32], b: &[f32], out: &mut [[f32; 8]]) {
    for ((result, &a), &b) in out.iter_mut().zip(a).zip(b) {
        *result = many_arguments(a, b);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,fma")]
fn many_arguments_avx512(a: &[f32], b: &[f32], out: &mut [[f32; 8]]) {
    for ((result, &a), &b) in out.iter_mut().zip(a).zip(b) {
        *result = many_arguments(a, b);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn many_arguments_avx2(a: &[f32], b: &[f32], out: &mut [[f32; 8]]) {
    for ((result, &a), &b) in out.iter_mut().zip(a).zip(b) {
        *result = many_arguments(a, b);
    }
}

#[test]
fn functions_of_several_arguments_give_the_same_bits_in_vector_loops() {
    let seed = 11;
    println!("seed {seed}");
    let mut random = Random(seed);
    let corners =
        [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-45, f32::MAX];
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for x in corners {
        for y in corners {
            a.push(x);
            b.push(y);
        }
    }
    for _ in 0..20_000 {
        a.push(f32::from_bits(random.bits() as u32));
        b.push(random.number(20.0));
    }
    let check = |set: &str, out: &[[f32; 8]]| {
        for ((&a, &b), vector) in a.iter().zip(&b).zip(out) {
            for (which, (&scalar, &vector)) in many_arguments(a, b).iter().zip(vector).enumerate() {
                assert!(
                    same_bits(scalar, vector),
                    "function {which} of ({a:e}, {b:e}): scalar {scalar:e}, {set} {vector:e}"
                );
            }
        }
    };
    let mut out = vec![[0.0; 8]; a.len()];
    for (result, (&a, &b)) in out.iter_mut().zip(a.iter().zip(&b)) {
        *result = many_arguments(a, b);
    }
    check("itself", &out);
    #[cfg(target_arch = "aarch64")]
    {
        // SAFETY: every machine of this architecture has NEON.
        unsafe { many_arguments_neon(&a, &b, &mut out) };
        check("neon", &out);
    }
    #[cfg(target_arch = "x86_64")]
    {
        if avx2::detected() {
            // SAFETY: the features were detected.
            unsafe { many_arguments_avx2(&a, &b, &mut out) };
            check("avx2", &out);
        }
        if avx512::detected() {
            // SAFETY: the features were detected.
            unsafe { many_arguments_avx512(&a, &b, &mut out) };
            check("avx512", &out);
        }
    }
}
