//! Measures the peak floating-point rate of a core, the reference for the speed of products.

use super::isa::{Isa, IsaError};
use super::kernel_set::KernelSet;
use super::lanes::Lanes;
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
    let chains = KernelSet::of(isa.required()?).chains;
    let mut best = f64::INFINITY;
    for _ in 0..LOOPS {
        let start = Instant::now();
        // SAFETY: the instruction set is available.
        let lanes = unsafe { chains(STEPS) };
        let flops = (STEPS * lanes * 2) as f64;
        best = best.min(start.elapsed().as_secs_f64().max(1e-9) / flops);
    }
    Ok(1.0 / best)
}

/// Runs `COUNT` independent chains of fused multiply-adds that stay in registers. Returns the number of their lanes.
///
/// # Safety
/// The instruction set of `L` is available.
#[inline(always)]
pub(super) unsafe fn run_chains<L: Lanes, const COUNT: usize>(steps: usize) -> usize {
    // SAFETY: as for this function.
    unsafe {
        let x = L::splat(black_box(0.5));
        let mut acc = [L::splat(black_box(0.25)); COUNT];
        for _ in 0..steps {
            for a in &mut acc {
                *a = L::fma(*a, x, x);
            }
        }
        // One accumulator at a time: a reference to the array would keep it in memory.
        for a in acc {
            black_box(a);
        }
    }
    COUNT * L::WIDTH
}
