//! Measures the peak floating-point rate of a core, the reference for the speed of products.

use super::isa::{Isa, IsaError};
use std::hint::black_box;
use std::time::Instant;

/// Steps of a loop. It lasts a few microseconds, less than a scheduler slice on a busy machine.
const STEPS: usize = if cfg!(miri) { 2 } else { 2000 };
/// Number of loops; the fastest counts.
const LOOPS: usize = 20;

/// The peak floating-point operations per second of the calling thread, measured with independent fused multiply-adds
/// in registers (two operations each).
///
/// Clock rates change, so each call measures again, in about 100 µs. Call it beside the code that is compared with it.
///
/// # Errors
/// If this machine lacks the instruction set.
pub fn peak_flops(isa: Isa) -> Result<f64, IsaError> {
    let isa = isa.required()?;
    let mut best = f64::INFINITY;
    for _ in 0..LOOPS {
        let start = Instant::now();
        let lanes = match isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the instruction set is available.
            Isa::Avx512 => unsafe { fma512(STEPS) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Isa::Avx2 => unsafe { fma256(STEPS) },
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => fma_neon(STEPS),
            _ => fma_portable(STEPS),
        };
        let flops = (STEPS * lanes * 2) as f64;
        best = best.min(start.elapsed().as_secs_f64().max(1e-9) / flops);
    }
    Ok(1.0 / best)
}

/// Runs independent chains of fused multiply-adds that stay in registers.
macro_rules! chains {
    ($steps:expr, $count:literal, $splat:expr, $fma:expr) => {{
        let x = $splat(black_box(0.5));
        let mut acc = [$splat(black_box(0.25)); $count];
        for _ in 0..$steps {
            for a in &mut acc {
                *a = $fma(*a, x, x);
            }
        }
        // One accumulator at a time: a reference to the array would keep it in memory.
        for a in acc {
            black_box(a);
        }
    }};
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn fma512(steps: usize) -> usize {
    use std::arch::x86_64::{_mm512_fmadd_ps, _mm512_set1_ps};
    chains!(steps, 20, |x| _mm512_set1_ps(x), |a, b, c| _mm512_fmadd_ps(a, b, c));
    20 * 16
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn fma256(steps: usize) -> usize {
    use std::arch::x86_64::{_mm256_fmadd_ps, _mm256_set1_ps};
    chains!(steps, 12, |x| _mm256_set1_ps(x), |a, b, c| _mm256_fmadd_ps(a, b, c));
    12 * 8
}

#[cfg(target_arch = "aarch64")]
fn fma_neon(steps: usize) -> usize {
    use std::arch::aarch64::{vdupq_n_f32, vfmaq_f32};
    // SAFETY: every aarch64 machine has NEON.
    unsafe {
        chains!(steps, 16, |x| vdupq_n_f32(x), |a, b, c| vfmaq_f32(a, b, c));
    }
    16 * 4
}

fn fma_portable(steps: usize) -> usize {
    chains!(steps, 16, |x: f32| x, |a: f32, b, c| a.mul_add(b, c));
    16
}
