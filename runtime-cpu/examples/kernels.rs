//! Measures the product kernels on one core, relative to a register-only loop of fused multiply-adds that alternates with them.
//!
//! `cargo run --release -p autobatch-runtime-cpu --example kernels [seconds per line] [values, or a size such as 600x150]`

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use autobatch_runtime_cpu::kernels::{
    Isa, Matrix, PackedWeights, Product, Rows, RowsMut, RowsPart, RowsRun, Scratch, Start, WeightGrad,
    column_sums, multiply, peak_flops,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(0.15), |word| word.parse())?;
    let budget = Duration::from_secs_f64(seconds);
    let isa = Isa::detect()?;
    println!("{isa}; GFLOP/s: best, median, best as a part of the peak beside it");
    if std::env::args().nth(2).as_deref() == Some("values") {
        return values(isa, budget);
    }
    products(isa, budget)?;
    gradients(isa, budget)?;
    if std::env::args().nth(2).is_none() {
        packing(isa, budget)?;
        values(isa, budget)?;
    }
    Ok(())
}

fn products(isa: Isa, budget: Duration) -> Result<(), Box<dyn std::error::Error>> {
    let only = std::env::args().nth(2).unwrap_or_default();
    for (n, k) in [(64, 64), (256, 128), (600, 150), (1024, 512), (2048, 512), (2560, 1024)] {
        if !format!("{n}x{k}").contains(&only) {
            continue;
        }
        let w = floats(k * n);
        let weights = PackedWeights::pack(isa, Matrix::new(&w, n, k, n))?;
        for rows in [1, 2, 4, 6, 8, 16, 64, 256] {
            let x = floats(2 * rows * k);
            let table: Vec<u32> = (0..rows as u32).map(|r| r * 7919 % (2 * rows as u32)).collect();
            let mut out = vec![0.0; rows * n];
            let mut scratch = Scratch::new();
            let shared = Rows::shared(&x);
            let kinds =
                [("range", Rows::range(&x, k, 0)), ("table", Rows::table(&x, k, &table)), ("shared", shared)];
            for (kind, operand) in kinds {
                let parts = [RowsPart { rows: operand, k }];
                let product = Product::new(&weights, &parts, Start::Zero);
                let flops = 2.0 * (rows * n * k) as f64;
                let work = || {
                    let out = RowsMut::new(&mut out, n);
                    product.run(0..rows, out, &mut scratch).expect("the sizes agree");
                };
                report(&format!("product {kind} rows {rows} n {n} k {k}"), isa, flops, budget, work);
            }
        }
    }
    Ok(())
}

fn gradients(isa: Isa, budget: Duration) -> Result<(), Box<dyn std::error::Error>> {
    let only = std::env::args().nth(2).unwrap_or_default();
    for (n, k) in [(50, 50), (100, 50), (256, 128), (600, 150), (1024, 512), (2048, 512), (2500, 1000)] {
        for rows in [1, 16, 64, 300, 2000, 20_000] {
            if rows * n * k > 5_000_000_000 || !format!("{n}x{k}").contains(&only) {
                continue;
            }
            let (x, dy) = (floats(rows * k), floats(rows * n));
            let table: Vec<u32> = (0..rows).map(|r| (r * 7919 % rows) as u32).collect();
            let mut out = vec![0.0; k * n];
            let mut scratch = Scratch::new();
            let dy = [RowsRun { rows: Rows::range(&dy, n, 0), count: rows }];
            for (kind, x) in [("range", Rows::range(&x, k, 0)), ("table", Rows::table(&x, k, &table))] {
                let x = [RowsRun { rows: x, count: rows }];
                let grad = WeightGrad { isa, k, n, x: &x, dy: &dy, accumulate: false };
                let flops = 2.0 * (rows * n * k) as f64;
                report(&format!("wgrad {kind} rows {rows} n {n} k {k}"), isa, flops, budget, || {
                    grad.run(RowsMut::new(&mut out, n), &mut scratch).expect("the sizes agree");
                });
            }
        }
    }
    let (rows, n) = (1000, 600);
    let dy = floats(rows * n);
    let run = [RowsRun { rows: Rows::range(&dy, n, 0), count: rows }];
    let mut sums = vec![0.0; n];
    let (best, _) = time(budget, || column_sums(isa, &run, &mut sums, false).expect("the sizes agree"));
    println!("column sums {rows} x {n}: {:.1} GB/s", (rows * n * 4) as f64 / best / 1e9);
    Ok(())
}

/// Products of two values without weights packed ahead.
fn values(isa: Isa, budget: Duration) -> Result<(), Box<dyn std::error::Error>> {
    let mut scratch = Scratch::new();
    for (m, k, n) in [
        (1, 100, 100),
        (8, 64, 8),
        (10, 100, 100),
        (100, 100, 1),
        (14, 256, 256),
        (28, 256, 256),
        (30, 128, 30),
        (42, 256, 256),
        (56, 256, 256),
        (128, 512, 512),
        (128, 2000, 500),
        (256, 1024, 1024),
    ] {
        let (a, b) = (floats(m * k), floats(k * n));
        let mut out = vec![0.0; m * n];
        report(&format!("multiply rows {m} n {n} k {k}"), isa, 2.0 * (m * n * k) as f64, budget, || {
            let (a, b) = (Matrix::new(&a, k, m, k), Matrix::new(&b, n, k, n));
            multiply(isa, a, b, RowsMut::new(&mut out, n), false, &mut scratch).expect("the sizes agree");
        });
        report(&format!("the same, transposed, n {n}"), isa, 2.0 * (m * n * k) as f64, budget, || {
            let (a, b) = (Matrix::new(&a, k, m, k), Matrix::new(&b, k, n, k).transposed());
            multiply(isa, a, b, RowsMut::new(&mut out, n), false, &mut scratch).expect("the sizes agree");
        });
    }
    Ok(())
}

fn packing(isa: Isa, budget: Duration) -> Result<(), Box<dyn std::error::Error>> {
    for (n, k) in [(600, 150), (1024, 512), (2560, 1024)] {
        let w = floats(k * n);
        let mut copy = w.clone();
        let mut weights = PackedWeights::zeroed(isa, k, n)?;
        let mut transposed = PackedWeights::zeroed(isa, n, k)?;
        let matrix = Matrix::new(&w, n, k, n);
        let bytes = (k * n * 4) as f64;
        let (best, _) = time(budget, || copy.copy_from_slice(black_box(&w)));
        println!("copy {k} x {n}: {:.1} GB/s", bytes / best / 1e9);
        let (best, _) = time(budget, || weights.fill(0, 0, matrix).expect("it fits"));
        println!("pack {k} x {n}: {:.1} GB/s", bytes / best / 1e9);
        let (best, _) = time(budget, || transposed.fill(0, 0, matrix.transposed()).expect("it fits"));
        println!("pack transposed {k} x {n}: {:.1} GB/s", bytes / best / 1e9);
    }
    Ok(())
}

/// Alternates `work` and the peak loop for about `budget`.
fn report(name: &str, isa: Isa, flops: f64, budget: Duration, mut work: impl FnMut()) {
    let mut peak = 0.0f64;
    let mut best = f64::INFINITY;
    let mut medians = Vec::new();
    for _ in 0..5 {
        peak = peak.max(peak_flops(isa).expect("the instruction set was detected"));
        let (least, median) = time(budget / 5, &mut work);
        best = best.min(least);
        medians.push(median);
    }
    medians.sort_by(f64::total_cmp);
    println!(
        "{name}: {:.1}, {:.1}, {:.0} % of {:.0}",
        flops / best / 1e9,
        flops / medians[2] / 1e9,
        100.0 * flops / best / peak,
        peak / 1e9
    );
}

/// The minimum and median seconds of one call.
fn time(budget: Duration, mut work: impl FnMut()) -> (f64, f64) {
    work();
    let start = Clock::start();
    work();
    let once = start.seconds().max(1e-9);
    let repeats = ((20e-6 / once) as usize).clamp(1, 1000);
    let long = once > 1e-3;
    let mut times = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < budget || times.len() < 3 {
        let start = if long { Clock::start() } else { Clock::wall() };
        for _ in 0..repeats {
            work();
        }
        let seconds = if long { start.seconds() } else { start.start.elapsed().as_secs_f64() };
        times.push(seconds / repeats as f64);
    }
    times.sort_by(f64::total_cmp);
    (times[0], times[times.len() / 2])
}

/// Wall time minus the time that the thread waited for a core, where the system reports it. On a shared machine such waits
/// affect long calls only, not the peak loop.
struct Clock {
    start: Instant,
    waited: f64,
}

impl Clock {
    fn wall() -> Self {
        Clock { start: Instant::now(), waited: 0.0 }
    }

    /// Both ends read the wall time outermost, so a wait between the two readings never shortens the result.
    fn start() -> Self {
        let start = Instant::now();
        Clock { start, waited: Self::waited() }
    }

    fn seconds(&self) -> f64 {
        let waited = Self::waited() - self.waited;
        (self.start.elapsed().as_secs_f64() - waited).max(1e-9)
    }

    /// Seconds in which the thread was ready but did not run.
    fn waited() -> f64 {
        std::fs::read_to_string("/proc/thread-self/schedstat")
            .ok()
            .and_then(|text| text.split_whitespace().nth(1)?.parse::<f64>().ok())
            .map_or(0.0, |nanoseconds| nanoseconds * 1e-9)
    }
}

fn floats(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i % 251) as f32 / 251.0 - 0.5).collect()
}
