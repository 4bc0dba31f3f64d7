//! One vector register seen alike on every instruction set: the few operations the product kernels need.
//!
//! The methods carry no `target_feature` of their own. They are `inline(always)` and reach machine code only inside a function that enables
//! the features (the wrappers in [`super::twins`]), so that the intrinsics inline there.

/// A vector of `WIDTH` lanes of `f32`. A panel of packed weights is `VECTORS * WIDTH` columns wide.
///
/// # Safety
/// Every method may be called only where the instruction set of the implementor is available, and pointers must be valid for the lanes
/// touched: all `WIDTH` for `load` and `store`, the first `count` (less than `WIDTH`) for `load_first` and `store_first`. No pointer needs
/// to be aligned beyond `f32`.
pub(super) trait Lanes {
    type Vector: Copy;
    const WIDTH: usize;
    const VECTORS: usize;
    const PANEL: usize = Self::WIDTH * Self::VECTORS;

    unsafe fn splat(x: f32) -> Self::Vector;
    unsafe fn load(from: *const f32) -> Self::Vector;
    unsafe fn store(to: *mut f32, v: Self::Vector);
    /// Lanes from `count` on are zero, and their memory is not touched.
    unsafe fn load_first(from: *const f32, count: usize) -> Self::Vector;
    /// Memory of the lanes from `count` on is not touched.
    unsafe fn store_first(to: *mut f32, v: Self::Vector, count: usize);
    /// `x * y + acc` with one rounding per lane.
    unsafe fn fma(x: Self::Vector, y: Self::Vector, acc: Self::Vector) -> Self::Vector;
    unsafe fn add(x: Self::Vector, y: Self::Vector) -> Self::Vector;
    /// Asks for the cache line at `from`, which may lie outside of every allocation.
    #[inline(always)]
    unsafe fn prefetch_first(_from: *const f32) {}
    /// As `prefetch_first`, but only as far as the second-level cache.
    #[inline(always)]
    unsafe fn prefetch_second(_from: *const f32) {}
}

/// Four lanes in portable Rust: free of intrinsics, so that Miri can run it, and of the same panel shape as NEON.
pub(super) struct Portable;

impl Lanes for Portable {
    type Vector = [f32; 4];
    const WIDTH: usize = 4;
    const VECTORS: usize = 4;

    #[inline(always)]
    unsafe fn splat(x: f32) -> [f32; 4] {
        [x; 4]
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> [f32; 4] {
        // SAFETY: the caller's pointer is valid for four floats.
        unsafe { from.cast::<[f32; 4]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, v: [f32; 4]) {
        // SAFETY: the caller's pointer is valid for four floats.
        unsafe { to.cast::<[f32; 4]>().write_unaligned(v) }
    }

    #[inline(always)]
    unsafe fn load_first(from: *const f32, count: usize) -> [f32; 4] {
        let mut v = [0.0; 4];
        for (lane, slot) in v.iter_mut().enumerate().take(count) {
            // SAFETY: lane < count, and the caller's pointer is valid for `count` floats.
            *slot = unsafe { from.add(lane).read() };
        }
        v
    }

    #[inline(always)]
    unsafe fn store_first(to: *mut f32, v: [f32; 4], count: usize) {
        for (lane, x) in v.into_iter().enumerate().take(count) {
            // SAFETY: lane < count, and the caller's pointer is valid for `count` floats.
            unsafe { to.add(lane).write(x) };
        }
    }

    #[inline(always)]
    unsafe fn fma(x: [f32; 4], y: [f32; 4], acc: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|lane| x[lane].mul_add(y[lane], acc[lane]))
    }

    #[inline(always)]
    unsafe fn add(x: [f32; 4], y: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|lane| x[lane] + y[lane])
    }
}

/// Sixteen lanes, with masks for the ends of rows.
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx512;

/// Eight lanes.
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx2;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Avx2, Avx512, Lanes};
    use std::arch::x86_64::*;

    impl Lanes for Avx512 {
        type Vector = __m512;
        const WIDTH: usize = 16;
        const VECTORS: usize = 2;

        #[inline(always)]
        unsafe fn splat(x: f32) -> __m512 {
            // SAFETY: the caller vouches for AVX-512F.
            unsafe { _mm512_set1_ps(x) }
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> __m512 {
            // SAFETY: the caller vouches for AVX-512F and for sixteen floats.
            unsafe { _mm512_loadu_ps(from) }
        }

        #[inline(always)]
        unsafe fn store(to: *mut f32, v: __m512) {
            // SAFETY: the caller vouches for AVX-512F and for sixteen floats.
            unsafe { _mm512_storeu_ps(to, v) }
        }

        #[inline(always)]
        unsafe fn load_first(from: *const f32, count: usize) -> __m512 {
            // SAFETY: the caller vouches for AVX-512F and for `count` floats; masked lanes are not read.
            unsafe { _mm512_maskz_loadu_ps(low_bits(count), from) }
        }

        #[inline(always)]
        unsafe fn store_first(to: *mut f32, v: __m512, count: usize) {
            // SAFETY: the caller vouches for AVX-512F and for `count` floats; masked lanes are not written.
            unsafe { _mm512_mask_storeu_ps(to, low_bits(count), v) }
        }

        #[inline(always)]
        unsafe fn fma(x: __m512, y: __m512, acc: __m512) -> __m512 {
            // SAFETY: the caller vouches for AVX-512F.
            unsafe { _mm512_fmadd_ps(x, y, acc) }
        }

        #[inline(always)]
        unsafe fn add(x: __m512, y: __m512) -> __m512 {
            // SAFETY: the caller vouches for AVX-512F.
            unsafe { _mm512_add_ps(x, y) }
        }

        #[inline(always)]
        unsafe fn prefetch_first(from: *const f32) {
            // SAFETY: a prefetch never faults.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
        }

        #[inline(always)]
        unsafe fn prefetch_second(from: *const f32) {
            // SAFETY: a prefetch never faults.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(from.cast()) }
        }
    }

    #[inline(always)]
    fn low_bits(count: usize) -> __mmask16 {
        ((1u32 << count) - 1) as __mmask16
    }

    impl Lanes for Avx2 {
        type Vector = __m256;
        const WIDTH: usize = 8;
        const VECTORS: usize = 2;

        #[inline(always)]
        unsafe fn splat(x: f32) -> __m256 {
            // SAFETY: the caller vouches for AVX2.
            unsafe { _mm256_set1_ps(x) }
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> __m256 {
            // SAFETY: the caller vouches for AVX2 and for eight floats.
            unsafe { _mm256_loadu_ps(from) }
        }

        #[inline(always)]
        unsafe fn store(to: *mut f32, v: __m256) {
            // SAFETY: the caller vouches for AVX2 and for eight floats.
            unsafe { _mm256_storeu_ps(to, v) }
        }

        #[inline(always)]
        unsafe fn load_first(from: *const f32, count: usize) -> __m256 {
            // SAFETY: the caller vouches for AVX2 and for `count` floats; masked lanes are not read.
            unsafe { _mm256_maskload_ps(from, low_lanes(count)) }
        }

        #[inline(always)]
        unsafe fn store_first(to: *mut f32, v: __m256, count: usize) {
            // SAFETY: the caller vouches for AVX2 and for `count` floats; masked lanes are not written.
            unsafe { _mm256_maskstore_ps(to, low_lanes(count), v) }
        }

        #[inline(always)]
        unsafe fn fma(x: __m256, y: __m256, acc: __m256) -> __m256 {
            // SAFETY: the caller vouches for FMA.
            unsafe { _mm256_fmadd_ps(x, y, acc) }
        }

        #[inline(always)]
        unsafe fn add(x: __m256, y: __m256) -> __m256 {
            // SAFETY: the caller vouches for AVX2.
            unsafe { _mm256_add_ps(x, y) }
        }

        #[inline(always)]
        unsafe fn prefetch_first(from: *const f32) {
            // SAFETY: a prefetch never faults.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
        }

        #[inline(always)]
        unsafe fn prefetch_second(from: *const f32) {
            // SAFETY: a prefetch never faults.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(from.cast()) }
        }
    }

    /// All bits set in the first `count` lanes.
    ///
    /// # Safety
    /// AVX2 must be available.
    #[inline(always)]
    unsafe fn low_lanes(count: usize) -> __m256i {
        // SAFETY: the caller vouches for AVX2; `count` is at most eight, so the cast keeps its value.
        unsafe {
            _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
        }
    }
}

/// Four lanes of Arm NEON.
#[cfg(target_arch = "aarch64")]
pub(super) struct Neon;

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::{Lanes, Neon};
    use std::arch::aarch64::*;

    impl Lanes for Neon {
        type Vector = float32x4_t;
        const WIDTH: usize = 4;
        const VECTORS: usize = 4;

        #[inline(always)]
        unsafe fn splat(x: f32) -> float32x4_t {
            // SAFETY: NEON is part of every aarch64 machine.
            unsafe { vdupq_n_f32(x) }
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> float32x4_t {
            // SAFETY: the caller's pointer is valid for four floats.
            unsafe { vld1q_f32(from) }
        }

        #[inline(always)]
        unsafe fn store(to: *mut f32, v: float32x4_t) {
            // SAFETY: the caller's pointer is valid for four floats.
            unsafe { vst1q_f32(to, v) }
        }

        #[inline(always)]
        unsafe fn load_first(from: *const f32, count: usize) -> float32x4_t {
            let mut lanes = [0.0f32; 4];
            // SAFETY: `count` is less than four, and the caller's pointer is valid for as many floats.
            unsafe {
                std::ptr::copy_nonoverlapping(from, lanes.as_mut_ptr(), count);
                vld1q_f32(lanes.as_ptr())
            }
        }

        #[inline(always)]
        unsafe fn store_first(to: *mut f32, v: float32x4_t, count: usize) {
            let mut lanes = [0.0f32; 4];
            // SAFETY: `count` is less than four, and the caller's pointer is valid for as many floats.
            unsafe {
                vst1q_f32(lanes.as_mut_ptr(), v);
                std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, count);
            }
        }

        #[inline(always)]
        unsafe fn fma(x: float32x4_t, y: float32x4_t, acc: float32x4_t) -> float32x4_t {
            // SAFETY: NEON is part of every aarch64 machine.
            unsafe { vfmaq_f32(acc, x, y) }
        }

        #[inline(always)]
        unsafe fn add(x: float32x4_t, y: float32x4_t) -> float32x4_t {
            // SAFETY: NEON is part of every aarch64 machine.
            unsafe { vaddq_f32(x, y) }
        }
    }
}
