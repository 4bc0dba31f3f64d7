//! Loops of elementwise instructions: they apply a function of one, two or three elements to rows, block by block.
//!
//! Everything is inlined into functions that enable the features of an instruction set. A block is one or two vectors.

use super::{Elements, Work};
#[cfg(target_arch = "x86_64")]
use crate::kernels::lanes::{Avx512, Lanes};
#[cfg(target_arch = "x86_64")]
use std::mem::transmute;

#[cfg(target_arch = "x86_64")]
type Vector512 = <Avx512 as Lanes>::Vector;

/// Elements computed together.
const BLOCK: usize = 16;

impl Work<'_> {
    #[inline(always)]
    pub(super) fn map1(self, f: impl Fn(f32) -> f32 + Copy) {
        let (a, out) = (self.sources[0], self.out);
        let contiguous = !a.single && a.stride == self.width && out.stride == self.width;
        let (rows, width) = if contiguous { (1, self.rows * self.width) } else { (self.rows, self.width) };
        for row in 0..rows {
            // SAFETY: row `row` of each operand is readable, that of the result is writable.
            unsafe {
                let (x, y) = (a.base.add(row * a.stride), out.base.add(row * out.stride));
                if a.single {
                    let value = f(*x);
                    (0..width).for_each(|i| *y.add(i) = value);
                    continue;
                }
                let whole = width / BLOCK * BLOCK;
                for i in (0..whole).step_by(BLOCK) {
                    keep_blocks_apart();
                    store(y.add(i), map_block(load(x.add(i)), f));
                }
                if whole < width {
                    let block = map_block(self.load_some(x.add(whole), width - whole), f);
                    self.store_some(y.add(whole), block, width - whole);
                }
            }
        }
    }

    #[inline(always)]
    pub(super) fn map2(self, f: impl Fn(f32, f32) -> f32 + Copy) {
        let (a, b, out) = (self.sources[0], self.sources[1], self.out);
        let dense = |e: Elements| !e.single && e.stride == self.width;
        let contiguous = dense(a) && dense(b) && out.stride == self.width;
        let (rows, width) = if contiguous { (1, self.rows * self.width) } else { (self.rows, self.width) };
        for row in 0..rows {
            // SAFETY: row `row` of each operand is readable, that of the result is writable.
            unsafe {
                let (x, y) = (a.base.add(row * a.stride), b.base.add(row * b.stride));
                let z = out.base.add(row * out.stride);
                match (a.single, b.single) {
                    (false, false) => self.zip_row::<false, false>(x, y, z, width, f),
                    (false, true) => self.zip_row::<false, true>(x, y, z, width, f),
                    (true, false) => self.zip_row::<true, false>(x, y, z, width, f),
                    (true, true) => {
                        let value = f(*x, *y);
                        (0..width).for_each(|i| *z.add(i) = value);
                    }
                }
            }
        }
    }

    /// Applies `f` to one row. `X` and `Y` say which operand is a single element.
    ///
    /// # Safety
    /// As for [`super::run`].
    #[inline(always)]
    unsafe fn zip_row<const X: bool, const Y: bool>(
        self,
        x: *const f32,
        y: *const f32,
        z: *mut f32,
        width: usize,
        f: impl Fn(f32, f32) -> f32 + Copy,
    ) {
        // SAFETY: as for this function.
        unsafe {
            let single_x = if X { [*x; BLOCK] } else { [0.0; BLOCK] };
            let single_y = if Y { [*y; BLOCK] } else { [0.0; BLOCK] };
            let whole = width / BLOCK * BLOCK;
            for i in (0..whole).step_by(BLOCK) {
                keep_blocks_apart();
                let p = if X { single_x } else { load(x.add(i)) };
                let q = if Y { single_y } else { load(y.add(i)) };
                store(z.add(i), zip_block(p, q, f));
            }
            let rest = width - whole;
            if rest > 0 {
                let p = if X { single_x } else { self.load_some(x.add(whole), rest) };
                let q = if Y { single_y } else { self.load_some(y.add(whole), rest) };
                self.store_some(z.add(whole), zip_block(p, q, f), rest);
            }
        }
    }

    #[inline(always)]
    pub(super) fn select(self) {
        let [first, second, third] = [self.sources[0], self.sources[1], self.sources[2]];
        for row in 0..self.rows {
            let out = self.out.base.wrapping_add(row * self.out.stride);
            for i in (0..self.width).step_by(BLOCK) {
                let len = (self.width - i).min(BLOCK);
                // SAFETY: elements `i..i + len` of the row are readable in each operand and writable in the result.
                unsafe {
                    let a = self.load_block(first, row, i, len);
                    let b = self.load_block(second, row, i, len);
                    let c = self.load_block(third, row, i, len);
                    let result = self.choose(a, b, c);
                    match len {
                        BLOCK => store(out.add(i), result),
                        _ => self.store_some(out.add(i), result, len),
                    }
                }
            }
        }
    }

    /// Selects `a` in lanes where the word of `condition` is not 0, else `b`.
    #[inline(always)]
    fn choose(&self, condition: [f32; BLOCK], a: [f32; BLOCK], b: [f32; BLOCK]) -> [f32; BLOCK] {
        // Without intrinsics the compiler splits these vectors into lanes.
        #[cfg(target_arch = "x86_64")]
        if self.masks {
            use std::arch::x86_64::{__m512i, _mm512_mask_blend_ps, _mm512_test_epi32_mask};
            // SAFETY: the instruction set has masks, and a block of words has the size of a vector.
            return unsafe {
                let words = transmute::<[f32; BLOCK], __m512i>(condition);
                let (a, b) =
                    (transmute::<[f32; BLOCK], Vector512>(a), transmute::<[f32; BLOCK], Vector512>(b));
                let mask = _mm512_test_epi32_mask(words, words);
                transmute::<Vector512, [f32; BLOCK]>(_mm512_mask_blend_ps(mask, b, a))
            };
        }
        std::array::from_fn(|lane| if condition[lane].to_bits() != 0 { a[lane] } else { b[lane] })
    }

    /// Loads elements `i..i + len` of a row, or repeats its single element.
    ///
    /// # Safety
    /// The elements are readable; `len` is at most a block.
    #[inline(always)]
    unsafe fn load_block(&self, from: Elements, row: usize, i: usize, len: usize) -> [f32; BLOCK] {
        let x = from.base.wrapping_add(row * from.stride);
        // SAFETY: as for this function.
        unsafe {
            match from.single {
                true => [*x; BLOCK],
                false if len == BLOCK => load(x.add(i)),
                false => self.load_some(x.add(i), len),
            }
        }
    }

    /// Loads `len` elements, followed by zeros.
    ///
    /// # Safety
    /// `len` elements from `from` on are readable; `len` is less than a block.
    #[inline(always)]
    unsafe fn load_some(&self, from: *const f32, len: usize) -> [f32; BLOCK] {
        #[cfg(target_arch = "x86_64")]
        if self.masks {
            // SAFETY: the caller guarantees the elements; a block of floats has the size of a vector.
            return unsafe { transmute::<Vector512, [f32; BLOCK]>(Avx512::load_first(from, len)) };
        }
        let mut block = [0.0; BLOCK];
        // SAFETY: the caller guarantees the elements, and the block is local.
        unsafe { copy_some(from, block.as_mut_ptr(), len) };
        block
    }

    /// Stores the first `len` elements of a block.
    ///
    /// # Safety
    /// `len` elements from `to` on are writable; `len` is less than a block.
    #[inline(always)]
    unsafe fn store_some(&self, to: *mut f32, block: [f32; BLOCK], len: usize) {
        #[cfg(target_arch = "x86_64")]
        if self.masks {
            // SAFETY: the caller guarantees the elements; a block of floats has the size of a vector.
            return unsafe { Avx512::store_first(to, transmute::<[f32; BLOCK], Vector512>(block), len) };
        }
        // SAFETY: the caller guarantees the elements, and the block is local.
        unsafe { copy_some(block.as_ptr(), to, len) };
    }
}

/// Prevents the compiler from vectorising across blocks, which would need gathers.
#[inline(always)]
pub(in crate::kernels) fn keep_blocks_apart() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the assembly is empty.
    unsafe {
        std::arch::asm!("", options(nomem, nostack, preserves_flags));
    }
}

#[inline(always)]
pub(in crate::kernels) fn map_block(x: [f32; BLOCK], f: impl Fn(f32) -> f32) -> [f32; BLOCK] {
    let mut y = [0.0; BLOCK];
    for (y, x) in y.iter_mut().zip(x) {
        *y = f(x);
    }
    y
}

#[inline(always)]
pub(in crate::kernels) fn zip_block(
    x: [f32; BLOCK],
    y: [f32; BLOCK],
    f: impl Fn(f32, f32) -> f32,
) -> [f32; BLOCK] {
    let mut z = [0.0; BLOCK];
    for (z, (x, y)) in z.iter_mut().zip(x.into_iter().zip(y)) {
        *z = f(x, y);
    }
    z
}

/// # Safety
/// A block from `from` on is readable.
#[inline(always)]
unsafe fn load(from: *const f32) -> [f32; BLOCK] {
    // SAFETY: the caller guarantees the block; an array of floats has the alignment of a float.
    unsafe { from.cast::<[f32; BLOCK]>().read() }
}

/// # Safety
/// A block from `to` on is writable.
#[inline(always)]
unsafe fn store(to: *mut f32, block: [f32; BLOCK]) {
    // SAFETY: the caller guarantees the block; an array of floats has the alignment of a float.
    unsafe { to.cast::<[f32; BLOCK]>().write(block) };
}

/// Copies `len` elements, at most a block, in one or two pieces of fixed size. The pieces overlap if needed.
///
/// # Safety
/// `from` is readable and `to` writable for `len` elements, without overlap.
#[inline(always)]
unsafe fn copy_some(from: *const f32, to: *mut f32, len: usize) {
    // SAFETY: every piece lies within the first `len` elements, which the caller guarantees.
    unsafe {
        let copy = |at: usize, size: usize| match size {
            16 => to.add(at).cast::<[f32; 16]>().write(from.add(at).cast::<[f32; 16]>().read()),
            8 => to.add(at).cast::<[f32; 8]>().write(from.add(at).cast::<[f32; 8]>().read()),
            4 => to.add(at).cast::<[f32; 4]>().write(from.add(at).cast::<[f32; 4]>().read()),
            2 => to.add(at).cast::<[f32; 2]>().write(from.add(at).cast::<[f32; 2]>().read()),
            _ => to.add(at).write(from.add(at).read()),
        };
        match len {
            0 => {}
            1 => copy(0, 1),
            2..=3 => {
                copy(0, 2);
                copy(len - 2, 2);
            }
            4..=7 => {
                copy(0, 4);
                copy(len - 4, 4);
            }
            8..=15 => {
                copy(0, 8);
                copy(len - 8, 8);
            }
            _ => copy(0, 16),
        }
    }
}
