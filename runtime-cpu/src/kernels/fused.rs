//! What updates of optimisers spend their time with, several instructions at once: sums of products, and
//! numbers that are flushed.
//!
//! A line in cache is bound by loads and stores, and an optimiser is mostly `keep * old + (1 - keep) * new`,
//! flushed: seven instructions, one pass here. Every rounding stays: nothing is contracted.

use super::elementwise::{Elements, ElementsMut};
use super::isa::Isa;

/// Elements computed together.
const BLOCK: usize = 16;

/// What is computed of up to four operands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fused {
    /// `a`, or 0 where `|a| < limit`.
    Flush(f32),
    /// `a * b + c`, two roundings; flushed if there is a limit.
    ProductAndTerm(Option<f32>),
    /// `a * b + c * d`, three roundings; flushed if there is a limit.
    TwoProducts(Option<f32>),
}

/// Computes `count` elements.
///
/// # Safety
/// `isa` is available. Each operand has `count` readable, initialised floats, or one if `single`; `out` has as
/// many writable ones that nobody else touches and that overlap an operand only where they are the same elements.
pub(crate) unsafe fn run(isa: Isa, fused: Fused, count: usize, operands: &[Elements; 4], out: ElementsMut) {
    match isa {
        // SAFETY: the caller vouches for the instruction set and for the memory.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { run_avx512(fused, count, operands, out.base) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { run_avx2(fused, count, operands, out.base) },
        // SAFETY: as above.
        _ => unsafe { play(fused, count, operands, out.base) },
    }
}

/// # Safety
/// As for [`run`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")]
unsafe fn run_avx512(fused: Fused, count: usize, operands: &[Elements; 4], out: *mut f32) {
    // SAFETY: the caller vouches for the memory.
    unsafe { play(fused, count, operands, out) };
}

/// # Safety
/// As for [`run`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn run_avx2(fused: Fused, count: usize, operands: &[Elements; 4], out: *mut f32) {
    // SAFETY: the caller vouches for the memory.
    unsafe { play(fused, count, operands, out) };
}

/// # Safety
/// As for [`run`].
#[inline(always)]
unsafe fn play(fused: Fused, count: usize, operands: &[Elements; 4], out: *mut f32) {
    // SAFETY: as for this function; every arm reads the operands that it takes.
    unsafe {
        match fused {
            Fused::Flush(limit) => sum::<0, true>(count, operands, limit, out),
            Fused::ProductAndTerm(None) => sum::<1, false>(count, operands, 0.0, out),
            Fused::ProductAndTerm(Some(limit)) => sum::<1, true>(count, operands, limit, out),
            Fused::TwoProducts(None) => sum::<2, false>(count, operands, 0.0, out),
            Fused::TwoProducts(Some(limit)) => sum::<2, true>(count, operands, limit, out),
        }
    }
}

/// With so many products, and flushed or not.
///
/// # Safety
/// As for [`run`].
#[inline(always)]
unsafe fn sum<const PRODUCTS: usize, const FLUSH: bool>(
    count: usize,
    operands: &[Elements; 4],
    limit: f32,
    out: *mut f32,
) {
    let [a, b, c, d] = *operands;
    let whole = count / BLOCK * BLOCK;
    for first in (0..whole).step_by(BLOCK) {
        // SAFETY: the block lies inside the operands that this sum takes, and inside the result.
        unsafe {
            let mut sums = block(a, first);
            if PRODUCTS > 0 {
                let (factors, terms) = (block(b, first), block(c, first));
                let others = if PRODUCTS > 1 { block(d, first) } else { terms };
                for lane in 0..BLOCK {
                    let term = if PRODUCTS > 1 { terms[lane] * others[lane] } else { terms[lane] };
                    sums[lane] = sums[lane] * factors[lane] + term;
                }
            }
            if FLUSH {
                for sum in &mut sums {
                    *sum = if sum.abs() < limit { 0.0 } else { *sum };
                }
            }
            out.add(first).cast::<[f32; BLOCK]>().write_unaligned(sums);
        }
    }
    for at in whole..count {
        // SAFETY: as above, for one element.
        unsafe {
            let mut sum = element(a, at);
            if PRODUCTS > 0 {
                let term = element(c, at);
                let term = if PRODUCTS > 1 { term * element(d, at) } else { term };
                sum = sum * element(b, at) + term;
            }
            if FLUSH {
                sum = if sum.abs() < limit { 0.0 } else { sum };
            }
            out.add(at).write(sum);
        }
    }
}

/// # Safety
/// The operand has these elements.
#[inline(always)]
unsafe fn block(operand: Elements, first: usize) -> [f32; BLOCK] {
    // SAFETY: the caller vouches for the elements.
    unsafe {
        match operand.single {
            true => [*operand.base; BLOCK],
            false => operand.base.add(first).cast::<[f32; BLOCK]>().read_unaligned(),
        }
    }
}

/// # Safety
/// The operand has this element.
#[inline(always)]
unsafe fn element(operand: Elements, at: usize) -> f32 {
    // SAFETY: the caller vouches for the element.
    unsafe { *operand.base.add(if operand.single { 0 } else { at }) }
}
