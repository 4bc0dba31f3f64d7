//! Errors against f64 in units in the last place, over every n-th bit pattern. `AUTOBATCH_TEST=long` uses a
//! smaller stride, and tests `exp`, `tanh` and `sigmoid` for all patterns.

use autobatch_ir::numeric::{Real, scalar};

use crate::Random;
use crate::vector::{Function, unary};
use autobatch_testing::trials::trials;

/// 2^128, the first number beyond f32.
const LIMIT: f64 = f64::from_bits((1023 + 128) << 52);

/// The error of `got` in units in the last place of f32 at `expected`. It is 0 for two NaN or equal infinities;
/// an overflow to infinity counts as 2^128.
fn ulps(got: f32, expected: f64) -> f64 {
    if expected.is_nan() || got.is_nan() {
        return if expected.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if f64::from(got) == expected {
        return 0.0;
    }
    let got = f64::from(got).clamp(-LIMIT, LIMIT);
    let expected = expected.clamp(-LIMIT, LIMIT);
    // The exponent field of `expected`, bounded to that of normal f32 numbers; then 1 / 2^(exponent - 23).
    let exponent = (expected.abs().to_bits() >> 52).clamp(1023 - 126, 1023 + 127);
    (got - expected).abs() * f64::from_bits((2 * 1023 + 23 - exponent) << 52)
}

/// The largest error of the function `name` over the inputs, and its input.
#[expect(clippy::print_stdout, reason = "the documentation quotes the measured errors")]
fn worst(name: &str, oracle: impl Fn(f64) -> f64 + Sync) -> (f64, f32) {
    const BLOCK: u64 = 1 << 12;
    let function = unary(name);
    let stride: u64 = match name {
        "exp" | "tanh" | "sigmoid" => trials(1023, 1),
        _ => trials(1023, 61),
    };
    let count = (1u64 << 32).div_ceil(stride);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let examine = |thread: u64| {
        let mut worst = (0.0, 0.0);
        let (mut inputs, mut outputs) = (vec![0.0f32; BLOCK as usize], vec![0.0f32; BLOCK as usize]);
        for start in (thread * BLOCK..count).step_by((threads * BLOCK) as usize) {
            for (i, x) in (start..).zip(&mut inputs) {
                *x = f32::from_bits((i * stride) as u32);
            }
            match function.loops.last() {
                Some((_, run)) => run(&inputs, &mut outputs),
                None => outputs.iter_mut().zip(&inputs).for_each(|(y, &x)| *y = (function.plain)(x)),
            }
            for (&x, &y) in inputs.iter().zip(&outputs) {
                let error = ulps(y, oracle(f64::from(x)));
                if error > worst.0 {
                    worst = (error, x);
                }
            }
        }
        worst
    };
    let results: Vec<(f64, f32)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(move || examine(thread))).collect();
        handles.into_iter().map(|handle| handle.join().expect("the closure does not panic")).collect()
    });
    let worst = results.into_iter().fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a });
    println!("{name}: at most {:.3} units off, at {:e} ({:#010x})", worst.0, worst.1, worst.1.to_bits());
    worst
}

fn assert_within(name: &str, bound: f64, oracle: impl Fn(f64) -> f64 + Sync) {
    let (error, x) = worst(name, oracle);
    assert!(error <= bound, "{name}: {error} units off at {x:e}, bound {bound}");
}

#[test]
fn exp_is_within_its_bound() {
    assert_within("exp", 0.9, f64::exp);
}

#[test]
fn expm1_is_within_its_bound() {
    assert_within("expm1", 1.63, f64::exp_m1);
}

#[test]
fn tanh_is_within_its_bound() {
    assert_within("tanh", 1.33, f64::tanh);
}

#[test]
fn sigmoid_is_within_its_bound() {
    assert_within("sigmoid", 1.97, <f64 as Real>::sigmoid);
}

#[test]
fn log_is_within_its_bound() {
    assert_within("log", 0.86, f64::ln);
}

#[test]
fn softplus_is_within_its_bound() {
    assert_within("softplus", 1.69, <f64 as Real>::softplus);
}

#[test]
fn erf_is_within_its_bound() {
    // The oracle is slow. Below 2^-14 the cubic term is under 2^-29 of the result; above 4 the
    // result is 1.
    assert_within("erf", 1.11, |x| {
        if x.abs() < 6.1e-5 {
            x * std::f64::consts::FRAC_2_SQRT_PI * (1.0 - x * x / 3.0)
        } else if x.abs() > 4.5 {
            1f64.copysign(x)
        } else {
            <f64 as Real>::erf(x)
        }
    });
}

#[test]
fn sine_and_cosine_are_within_their_bound() {
    assert_within("sin", 0.51, <f64 as Real>::sin);
    assert_within("cos", 0.51, <f64 as Real>::cos);
}

#[test]
fn gelu_and_silu_have_small_absolute_errors() {
    for i in -4_000_000..4_000_000i32 {
        if i % 7 != 0 {
            continue;
        }
        let x = i as f32 * 1e-5;
        let wide = f64::from(x);
        // Rounding alone costs 2^-24 |x| in the product and again in the second factor.
        let bound = wide.abs() * 2f64.powi(-22) + 1e-45;
        let gelu = f64::from(scalar::gelu(x)) - <f64 as Real>::gelu(wide);
        assert!(gelu.abs() <= bound, "gelu({x:e}) is {gelu:e} off");
        let silu = f64::from(scalar::silu(x)) - <f64 as Real>::silu(wide);
        assert!(silu.abs() <= bound, "silu({x:e}) is {silu:e} off");
    }
}

#[test]
fn pow_is_within_its_bound() {
    let seed = 5;
    println!("seed {seed}");
    let mut random = Random(seed);
    let mut worst = 0f64;
    let count = trials(500_000, 100_000_000);
    for i in 0..count {
        let x = f32::from_bits(random.bits() as u32);
        let y = match i % 4 {
            0 => f32::from_bits(random.bits() as u32),
            1 => random.number(40.0).trunc(),
            _ => random.number(3.0),
        };
        let error = ulps(scalar::pow(x, y), f64::from(x).powf(f64::from(y)));
        assert!(error <= 0.51, "pow({x:e}, {y:e}) = {:e}: {error} units off", scalar::pow(x, y));
        worst = worst.max(error);
    }
    println!("pow: at most {worst:.4} units off");
}

#[test]
fn exp_tanh_sigmoid_and_erf_are_nearly_monotone() {
    // They are not monotone in the last place (the error exceeds half a unit), but never decrease by more than
    // one place.
    let rising: [(&str, Function); 4] =
        [("exp", scalar::exp), ("tanh", scalar::tanh), ("sigmoid", scalar::sigmoid), ("erf", scalar::erf)];
    for (name, function) in rising {
        let mut before = function(-12.0);
        for i in -1_200_000..1_200_000i32 {
            let x = i as f32 * 1e-5;
            let now = function(x);
            assert!(now >= before || now == before.next_down(), "{name} falls at {x:e}: {before:e}, {now:e}");
            before = now;
        }
    }
}
