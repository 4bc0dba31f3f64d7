//! One vector register with the same interface on every instruction set: the operations of the product kernels.
//!
//! The methods have no `target_feature` attribute. They are `inline(always)` and are compiled only inside functions
//! that enable the features (the wrappers in [`super::kernel_set`]), so the intrinsics inline there. One macro makes an
//! implementation from the names of its functions.

/// A vector of `WIDTH` lanes of `f32`. A panel of packed weights is `VECTORS * WIDTH` columns wide.
///
/// # Safety
/// Methods require the instruction set of the implementor. Pointers must be valid for the accessed lanes: all `WIDTH`
/// for `load` and `store`, the first `count` (less than `WIDTH`) for `load_first` and `store_first`. Pointers need the
/// alignment of `f32` only.
pub(super) trait Lanes {
    type Vector: Copy;
    const WIDTH: usize;
    const VECTORS: usize;
    const PANEL: usize = Self::WIDTH * Self::VECTORS;

    unsafe fn splat(x: f32) -> Self::Vector;
    unsafe fn load(from: *const f32) -> Self::Vector;
    unsafe fn store(to: *mut f32, v: Self::Vector);
    /// Loads `count` lanes. The other lanes are zero; their memory is not accessed.
    unsafe fn load_first(from: *const f32, count: usize) -> Self::Vector;
    /// Stores `count` lanes. The memory of the other lanes is not accessed.
    unsafe fn store_first(to: *mut f32, v: Self::Vector, count: usize);
    /// `x * y + acc` with one rounding per lane.
    unsafe fn fma(x: Self::Vector, y: Self::Vector, acc: Self::Vector) -> Self::Vector;
    unsafe fn add(x: Self::Vector, y: Self::Vector) -> Self::Vector;
    unsafe fn div(x: Self::Vector, y: Self::Vector) -> Self::Vector;
    /// `y` where `y > x` or `y` is NaN, else `x`: the maximum of `numeric::scalar`.
    unsafe fn max(x: Self::Vector, y: Self::Vector) -> Self::Vector;
    /// Prefetches the cache line at `from`, which may lie outside of every allocation.
    #[inline(always)]
    unsafe fn prefetch_first(_from: *const f32) {}
    /// Like `prefetch_first`, but only to the L2 cache.
    #[inline(always)]
    unsafe fn prefetch_second(_from: *const f32) {}
}

/// Implements [`Lanes`] from function names, or expressions where the order of arguments differs.
macro_rules! lanes {
    (
        $(#[$meta:meta])* $name:ident: $vector:ty, $width:literal wide, $vectors:literal a panel;
        $splat:path, $load:path, $store:path, $add:path, $div:path;
        |$x:ident, $y:ident, $acc:ident| $fma:expr;
        |$left:ident, $right:ident| $max:expr;
        |$from:ident, $from_count:ident| $load_first:expr;
        |$to:ident, $v:ident, $to_count:ident| $store_first:expr;
        $($prefetch:ident: $hint:path),*
    ) => {
        $(#[$meta])*
        pub(in crate::kernels) struct $name;

        // SAFETY of every block: the caller guarantees the instruction set and the memory of the accessed lanes. Lanes
        // beyond a count are neither read nor written, and a prefetch never faults.
        #[allow(clippy::undocumented_unsafe_blocks, reason = "the comment above covers every block")]
        #[allow(unused_unsafe, reason = "some of the functions are safe where their features are enabled")]
        impl Lanes for $name {
            type Vector = $vector;
            const WIDTH: usize = $width;
            const VECTORS: usize = $vectors;

            #[inline(always)]
            unsafe fn splat(x: f32) -> $vector {
                unsafe { $splat(x) }
            }

            #[inline(always)]
            unsafe fn load(from: *const f32) -> $vector {
                unsafe { $load(from) }
            }

            #[inline(always)]
            unsafe fn store(to: *mut f32, v: $vector) {
                unsafe { $store(to, v) }
            }

            #[inline(always)]
            unsafe fn load_first($from: *const f32, $from_count: usize) -> $vector {
                unsafe { $load_first }
            }

            #[inline(always)]
            unsafe fn store_first($to: *mut f32, $v: $vector, $to_count: usize) {
                unsafe { $store_first }
            }

            #[inline(always)]
            unsafe fn fma($x: $vector, $y: $vector, $acc: $vector) -> $vector {
                unsafe { $fma }
            }

            #[inline(always)]
            unsafe fn add(x: $vector, y: $vector) -> $vector {
                unsafe { $add(x, y) }
            }

            #[inline(always)]
            unsafe fn div(x: $vector, y: $vector) -> $vector {
                unsafe { $div(x, y) }
            }

            #[inline(always)]
            unsafe fn max($left: $vector, $right: $vector) -> $vector {
                unsafe { $max }
            }

            $(
                #[inline(always)]
                unsafe fn $prefetch(from: *const f32) {
                    unsafe { _mm_prefetch::<{ $hint }>(from.cast()) }
                }
            )*
        }
    };
}

/// The rows of a square of [`transpose`].
pub(super) const SQUARE: usize = 16;

/// Stores element `e` of row `r` at `to[e * SQUARE + r]`, for some elements of each of the rows.
///
/// # Safety
/// The instruction set of `L` is available. The elements of the rows are readable, and the square of them is writable.
#[inline(always)]
pub(super) unsafe fn transpose<L: Lanes>(rows: &[*const f32; SQUARE], elements: usize, to: *mut f32) {
    let mut done = 0;
    // SAFETY: as for this function; the width tells the instruction set.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        while L::WIDTH == 16 && done + 16 <= elements {
            x86::transpose_16(rows, done, to.add(done * SQUARE));
            done += 16;
        }
        while L::WIDTH == 8 && done + 8 <= elements {
            x86::transpose_8(rows, 0, done, to.add(done * SQUARE));
            x86::transpose_8(rows, 8, done, to.add(done * SQUARE));
            done += 8;
        }
    }
    for element in done..elements {
        for (number, row) in rows.iter().enumerate() {
            // SAFETY: as for this function.
            unsafe { *to.add(element * SQUARE + number) = *row.add(element) };
        }
    }
}

pub(super) use portable::Portable;
#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};

mod portable {
    use super::Lanes;
    use autobatch_ir::numeric::scalar;

    type Vector = [f32; 4];

    lanes! {
        /// Four lanes in portable Rust, with the panel shape of NEON.
        Portable: Vector, 4 wide, 4 a panel;
        splat, load, store, add, div;
        |x, y, acc| std::array::from_fn(|lane| x[lane].mul_add(y[lane], acc[lane]));
        |x, y| std::array::from_fn(|lane| scalar::max(x[lane], y[lane]));
        |from, count| {
            let mut v = [0.0; 4];
            std::ptr::copy_nonoverlapping(from, v.as_mut_ptr(), count);
            v
        };
        |to, v, count| std::ptr::copy_nonoverlapping(v.as_ptr(), to, count);
    }

    #[inline(always)]
    fn splat(x: f32) -> Vector {
        [x; 4]
    }

    /// # Safety
    /// Four floats from `from` on are readable.
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Vector {
        // SAFETY: the caller guarantees the floats; an array has the alignment of its elements.
        unsafe { from.cast::<Vector>().read() }
    }

    /// # Safety
    /// Four floats from `to` on are writable.
    #[inline(always)]
    unsafe fn store(to: *mut f32, v: Vector) {
        // SAFETY: as above.
        unsafe { to.cast::<Vector>().write(v) }
    }

    #[inline(always)]
    fn add(x: Vector, y: Vector) -> Vector {
        std::array::from_fn(|lane| x[lane] + y[lane])
    }

    #[inline(always)]
    fn div(x: Vector, y: Vector) -> Vector {
        std::array::from_fn(|lane| x[lane] / y[lane])
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Lanes, SQUARE};
    use std::arch::x86_64::*;

    lanes! {
        /// Sixteen lanes; the ends of rows use masks.
        Avx512: __m512, 16 wide, 2 a panel;
        _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_add_ps, _mm512_div_ps;
        |x, y, acc| _mm512_fmadd_ps(x, y, acc);
        |x, y| {
            let later = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(y, x) | _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(y, y);
            _mm512_mask_blend_ps(later, x, y)
        };
        |from, count| _mm512_maskz_loadu_ps(low_bits(count), from);
        |to, v, count| _mm512_mask_storeu_ps(to, low_bits(count), v);
        prefetch_first: _MM_HINT_T0, prefetch_second: _MM_HINT_T1
    }

    lanes! {
        /// Eight lanes.
        Avx2: __m256, 8 wide, 2 a panel;
        _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_add_ps, _mm256_div_ps;
        |x, y, acc| _mm256_fmadd_ps(x, y, acc);
        |x, y| {
            let (greater, nan) = (_mm256_cmp_ps::<_CMP_GT_OQ>(y, x), _mm256_cmp_ps::<_CMP_UNORD_Q>(y, y));
            _mm256_blendv_ps(x, y, _mm256_or_ps(greater, nan))
        };
        |from, count| _mm256_maskload_ps(from, low_lanes(count));
        |to, v, count| _mm256_maskstore_ps(to, low_lanes(count), v);
        prefetch_first: _MM_HINT_T0, prefetch_second: _MM_HINT_T1
    }

    /// [`transpose`](super::transpose) of 16 elements from one on.
    ///
    /// # Safety
    /// AVX-512 is available. As for [`transpose`](super::transpose).
    #[inline(always)]
    pub(super) unsafe fn transpose_16(rows: &[*const f32; SQUARE], element: usize, to: *mut f32) {
        // SAFETY: as for this function.
        unsafe {
            let mut square = [_mm512_setzero_ps(); SQUARE];
            for (row, from) in square.iter_mut().zip(rows) {
                *row = _mm512_loadu_ps(from.add(element));
            }
            // Within parts of four elements: pairs of rows, then pairs of pairs.
            let mut parts = [_mm512_setzero_ps(); SQUARE];
            for (rows, parts) in square.as_chunks::<4>().0.iter().zip(parts.as_chunks_mut::<4>().0) {
                let double = |x| _mm512_castps_pd(x);
                let low = [0, 2].map(|row| double(_mm512_unpacklo_ps(rows[row], rows[row + 1])));
                let high = [0, 2].map(|row| double(_mm512_unpackhi_ps(rows[row], rows[row + 1])));
                *parts = [
                    _mm512_castpd_ps(_mm512_unpacklo_pd(low[0], low[1])),
                    _mm512_castpd_ps(_mm512_unpackhi_pd(low[0], low[1])),
                    _mm512_castpd_ps(_mm512_unpacklo_pd(high[0], high[1])),
                    _mm512_castpd_ps(_mm512_unpackhi_pd(high[0], high[1])),
                ];
            }
            // Parts of four rows lie in four vectors: the first and third, and the second and fourth parts of two at a time.
            for column in 0..4 {
                let [a, b, c, d] = [0, 4, 8, 12].map(|rows| parts[rows + column]);
                let even = [_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0x88>(c, d)];
                let odd = [_mm512_shuffle_f32x4::<0xdd>(a, b), _mm512_shuffle_f32x4::<0xdd>(c, d)];
                for (place, column_of) in [
                    (0, _mm512_shuffle_f32x4::<0x88>(even[0], even[1])),
                    (4, _mm512_shuffle_f32x4::<0x88>(odd[0], odd[1])),
                    (8, _mm512_shuffle_f32x4::<0xdd>(even[0], even[1])),
                    (12, _mm512_shuffle_f32x4::<0xdd>(odd[0], odd[1])),
                ] {
                    _mm512_storeu_ps(to.add((place + column) * SQUARE), column_of);
                }
            }
        }
    }

    /// [`transpose`](super::transpose) of eight elements from one on, for eight rows from `first` on.
    ///
    /// # Safety
    /// AVX2 is available. As for [`transpose`](super::transpose).
    #[inline(always)]
    pub(super) unsafe fn transpose_8(
        rows: &[*const f32; SQUARE],
        first: usize,
        element: usize,
        to: *mut f32,
    ) {
        // SAFETY: as for this function.
        unsafe {
            let mut square = [_mm256_setzero_ps(); 8];
            for (row, from) in square.iter_mut().zip(&rows[first..]) {
                *row = _mm256_loadu_ps(from.add(element));
            }
            let mut parts = [_mm256_setzero_ps(); 8];
            for (rows, parts) in square.as_chunks::<4>().0.iter().zip(parts.as_chunks_mut::<4>().0) {
                let low = [0, 2].map(|row| _mm256_unpacklo_ps(rows[row], rows[row + 1]));
                let high = [0, 2].map(|row| _mm256_unpackhi_ps(rows[row], rows[row + 1]));
                *parts = [
                    _mm256_shuffle_ps::<0x44>(low[0], low[1]),
                    _mm256_shuffle_ps::<0xee>(low[0], low[1]),
                    _mm256_shuffle_ps::<0x44>(high[0], high[1]),
                    _mm256_shuffle_ps::<0xee>(high[0], high[1]),
                ];
            }
            for column in 0..4 {
                let (a, b) = (parts[column], parts[4 + column]);
                let to = to.add(first);
                _mm256_storeu_ps(to.add(column * SQUARE), _mm256_permute2f128_ps::<0x20>(a, b));
                _mm256_storeu_ps(to.add((4 + column) * SQUARE), _mm256_permute2f128_ps::<0x31>(a, b));
            }
        }
    }

    #[inline(always)]
    fn low_bits(count: usize) -> __mmask16 {
        ((1u32 << count) - 1) as __mmask16
    }

    /// A mask with all bits set in the first `count` lanes.
    ///
    /// # Safety
    /// AVX2 is available.
    #[inline(always)]
    unsafe fn low_lanes(count: usize) -> __m256i {
        // SAFETY: the caller guarantees AVX2; `count` is at most eight, so the cast keeps its value.
        unsafe {
            _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
        }
    }
}

#[cfg(target_arch = "aarch64")]
pub(super) use arm::Neon;

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::Lanes;
    use std::arch::aarch64::*;

    lanes! {
        /// Four lanes of Arm NEON.
        Neon: float32x4_t, 4 wide, 4 a panel;
        vdupq_n_f32, vld1q_f32, vst1q_f32, vaddq_f32, vdivq_f32;
        |x, y, acc| vfmaq_f32(acc, x, y);
        |x, y| {
            // Only NaN differs from itself.
            let later = vorrq_u32(vcgtq_f32(y, x), vmvnq_u32(vceqq_f32(y, y)));
            vbslq_f32(later, y, x)
        };
        |from, count| {
            let mut lanes = [0.0f32; 4];
            std::ptr::copy_nonoverlapping(from, lanes.as_mut_ptr(), count);
            vld1q_f32(lanes.as_ptr())
        };
        |to, v, count| {
            let mut lanes = [0.0f32; 4];
            vst1q_f32(lanes.as_mut_ptr(), v);
            std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, count);
        };
    }
}
