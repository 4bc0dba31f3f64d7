//! Compares the product kernels with the crate `gemm` (built with AVX-512 kernels) on one core, alternating the two.
//!
//! `cargo run --release --manifest-path runtime-cpu/compare-gemm/Cargo.toml`
//!
//! `gemm` takes unpacked operands, as its interface requires. Our weights are packed, as they are between the steps of a plan.

use std::time::{Duration, Instant};

use autobatch_runtime_cpu::kernels::{
    Isa, Matrix, PackedWeights, Part, Product, Rows, RowsMut, Scratch, Start,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let isa = Isa::detect()?;
    println!("{isa}; GFLOP/s of this crate and of gemm, best of short alternating runs");
    for (n, k) in [(256, 128), (600, 150), (1024, 512), (2048, 512)] {
        let w = floats(k * n);
        let weights = PackedWeights::pack(isa, Matrix::new(&w, n, k, n))?;
        for rows in [1, 4, 16, 64, 256] {
            let x = floats(rows * k);
            let parts = [Part {
                rows: Rows::range(&x, k, 0),
                k,
            }];
            let product = Product::new(&weights, &parts, Start::Zero);
            let mut out = vec![0.0; rows * n];
            let mut scratch = Scratch::new();
            let (mut ours, mut theirs) = (f64::INFINITY, f64::INFINITY);
            for _ in 0..8 {
                ours = ours.min(best(|| {
                    product
                        .run(0..rows, RowsMut::new(&mut out, n), &mut scratch)
                        .expect("the sizes agree");
                }));
                theirs = theirs.min(best(|| multiply(rows, n, k, &mut out, &x, &w)));
            }
            let flops = 2.0 * (rows * n * k) as f64 / 1e9;
            println!(
                "rows {rows} n {n} k {k}: {:.1}, {:.1}, ratio {:.2}",
                flops / ours,
                flops / theirs,
                theirs / ours
            );
        }
    }
    Ok(())
}

/// `out = x . w` by `gemm`, row-major, one thread.
fn multiply(rows: usize, n: usize, k: usize, out: &mut [f32], x: &[f32], w: &[f32]) {
    // SAFETY: the three matrices have `rows * n`, `rows * k` and `k * n` elements.
    unsafe {
        gemm::gemm(
            rows,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            false,
            x.as_ptr(),
            1,
            k as isize,
            w.as_ptr(),
            1,
            n as isize,
            0.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

/// The minimum seconds of one call, measured for about 20 ms.
fn best(mut work: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(20) {
        let start = Instant::now();
        work();
        let once = start.elapsed().as_secs_f64();
        let repeats = ((20e-6 / once) as usize).clamp(1, 100);
        let start = Instant::now();
        for _ in 0..repeats {
            work();
        }
        best = best.min(start.elapsed().as_secs_f64() / repeats as f64);
    }
    best
}

fn floats(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i % 251) as f32 / 251.0 - 0.5).collect()
}
