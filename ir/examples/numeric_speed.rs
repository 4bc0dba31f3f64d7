//! Measures the scalar definitions in two kinds of loops: with the base features of the machine, and inside
//! `#[target_feature]` functions, where the compiler widens them. It prints 10^9 elements per second for 4096 elements in
//! cache, the best of 200 rounds.
//!
//! `cargo run --release -p autobatch-ir --example numeric_speed`

use autobatch_ir::numeric::{row, scalar};

/// Prints the speed of a loop that is compiled with features of this machine.
macro_rules! speed {
    ($set:literal, ($($features:literal)?), $name:expr, |$x:ident, $out:ident| $body:expr) => {{
        /// # Safety
        /// The machine must have the features.
        $(#[target_feature(enable = $features)])?
        unsafe fn vectorised($x: &[f32], $out: &mut [f32]) {
            $body
        }
        report($set, $name, |x, out| {
            // SAFETY: the caller has detected the features.
            unsafe { vectorised(x, out) }
        });
    }};
}

/// Prints the speeds of functions for one instruction set.
macro_rules! speeds {
    ($set:literal, $features:tt, $($name:ident)*) => {{
        $(speed!($set, $features, stringify!($name), |x, out| for (result, &x) in out.iter_mut().zip(x) {
            *result = scalar::$name(x);
        });)*
        speed!($set, $features, "softmax of 512", |x, out| for (x, out) in x.chunks(512).zip(out.chunks_mut(512)) {
            row::softmax(x, out);
        });
    }};
}

#[expect(clippy::print_stdout, reason = "the program prints a table")]
fn report(set: &str, name: &str, run: impl Fn(&[f32], &mut [f32])) {
    let x: Vec<f32> = (0..4096u16).map(|i| f32::from(i) / 512.0 - 4.0).collect();
    let mut out = vec![0.0; x.len()];
    let mut best = f64::INFINITY;
    for _ in 0..200 {
        let start = std::time::Instant::now();
        for _ in 0..16 {
            run(std::hint::black_box(&x), std::hint::black_box(&mut out));
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{set:8} {name:16} {:6.2}", 16.0 * x.len() as f64 / best * 1e-9);
}

fn main() {
    speeds!("base", (), exp expm1 log tanh sigmoid silu softplus erf gelu sin cos);
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        if has!("avx2") && has!("fma") {
            speeds!("avx2", ("avx2,fma"), exp expm1 log tanh sigmoid silu softplus erf gelu sin cos);
        }
        if has!("avx512f") && has!("avx512dq") && has!("fma") {
            speeds!("avx512", ("avx512f,avx512dq,fma"), exp expm1 log tanh sigmoid silu softplus erf gelu sin cos);
        }
    }
}
