//! The loops of elementwise instructions: a function of one, two or three elements over rows, in blocks that are vectors.
//!
//! Everything is inlined into the functions of an instruction set, whose features it is compiled with.

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
    /// # Safety
    /// As for [`super::run`].
    #[inline(always)]
    pub(super) unsafe fn map1(self, f: impl Fn(f32) -> f32 + Copy) {
        let (a, out) = (self.sources[0], self.out);
        let contiguous = !a.single && a.stride == self.width && out.stride == self.width;
        let (rows, width) = if contiguous { (1, self.rows * self.width) } else { (self.rows, self.width) };
        for row in 0..rows {
            // SAFETY: row `row` of each is readable or writable; a single element fills a block by itself.
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

    /// # Safety
    /// As for [`super::run`].
    #[inline(always)]
    pub(super) unsafe fn map2(self, f: impl Fn(f32, f32) -> f32 + Copy) {
        let (a, b, out) = (self.sources[0], self.sources[1], self.out);
        let dense = |e: Elements| !e.single && e.stride == self.width;
        let contiguous = dense(a) && dense(b) && out.stride == self.width;
        let (rows, width) = if contiguous { (1, self.rows * self.width) } else { (self.rows, self.width) };
        for row in 0..rows {
            // SAFETY: row `row` of each is readable or writable.
            unsafe {
                let (x, y) = (a.base.add(row * a.stride), b.base.add(row * b.stride));
                let z = out.base.add(row * out.stride);
                let whole = width / BLOCK * BLOCK;
                match (a.single, b.single) {
                    (false, false) => {
                        for i in (0..whole).step_by(BLOCK) {
                            keep_blocks_apart();
                            store(z.add(i), zip_block(load(x.add(i)), load(y.add(i)), f));
                        }
                        if whole < width {
                            let rest = width - whole;
                            let (p, q) =
                                (self.load_some(x.add(whole), rest), self.load_some(y.add(whole), rest));
                            self.store_some(z.add(whole), zip_block(p, q, f), rest);
                        }
                    }
                    (false, true) => {
                        let single = [*y; BLOCK];
                        for i in (0..whole).step_by(BLOCK) {
                            keep_blocks_apart();
                            store(z.add(i), zip_block(load(x.add(i)), single, f));
                        }
                        if whole < width {
                            let rest = width - whole;
                            self.store_some(
                                z.add(whole),
                                zip_block(self.load_some(x.add(whole), rest), single, f),
                                rest,
                            );
                        }
                    }
                    (true, false) => {
                        let single = [*x; BLOCK];
                        for i in (0..whole).step_by(BLOCK) {
                            keep_blocks_apart();
                            store(z.add(i), zip_block(single, load(y.add(i)), f));
                        }
                        if whole < width {
                            let rest = width - whole;
                            self.store_some(
                                z.add(whole),
                                zip_block(single, self.load_some(y.add(whole), rest), f),
                                rest,
                            );
                        }
                    }
                    (true, true) => {
                        let value = f(*x, *y);
                        (0..width).for_each(|i| *z.add(i) = value);
                    }
                }
            }
        }
    }

    /// # Safety
    /// As for [`super::run`].
    #[inline(always)]
    pub(super) unsafe fn select(self) {
        let [first, second, third] = [self.sources[0], self.sources[1], self.sources[2]];
        for row in 0..self.rows {
            let out = self.out.base.wrapping_add(row * self.out.stride);
            for i in (0..self.width).step_by(BLOCK) {
                let len = (self.width - i).min(BLOCK);
                // SAFETY: elements `i..i + len` of row `row` of each are readable or writable.
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

    /// Lane by lane `a` where the word of `condition` is not 0, else `b`.
    ///
    /// # Safety
    /// As for [`super::run`].
    #[inline(always)]
    unsafe fn choose(&self, condition: [f32; BLOCK], a: [f32; BLOCK], b: [f32; BLOCK]) -> [f32; BLOCK] {
        // Left to themselves, compilers take these vectors apart lane by lane.
        #[cfg(target_arch = "x86_64")]
        if self.masks {
            use std::arch::x86_64::{__m512i, _mm512_mask_blend_ps, _mm512_test_epi32_mask};
            // SAFETY: the instruction set has masks; a vector is a block of words.
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

    /// Elements `i..i + len` of a row, or so many times its one element.
    ///
    /// # Safety
    /// They are readable; `len` is at most a block.
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

    /// The first `len` elements from `from` on, then zeros.
    ///
    /// # Safety
    /// `len` elements, less than a block, are readable.
    #[inline(always)]
    unsafe fn load_some(&self, from: *const f32, len: usize) -> [f32; BLOCK] {
        #[cfg(target_arch = "x86_64")]
        if self.masks {
            // SAFETY: the caller vouches for the elements; a vector is a block of floats.
            return unsafe { transmute::<Vector512, [f32; BLOCK]>(Avx512::load_first(from, len)) };
        }
        let mut block = [0.0; BLOCK];
        // SAFETY: the caller vouches for the elements, and the block is new.
        unsafe { copy_some(from, block.as_mut_ptr(), len) };
        block
    }

    /// # Safety
    /// `len` elements from `to` on, less than a block, are writable.
    #[inline(always)]
    unsafe fn store_some(&self, to: *mut f32, block: [f32; BLOCK], len: usize) {
        #[cfg(target_arch = "x86_64")]
        if self.masks {
            // SAFETY: the caller vouches for the elements; a block of floats is a vector.
            return unsafe { Avx512::store_first(to, transmute::<[f32; BLOCK], Vector512>(block), len) };
        }
        // SAFETY: the caller vouches for the elements, and the block is our own.
        unsafe { copy_some(block.as_ptr(), to, len) };
    }
}

/// Keeps the compiler from widening over several blocks, which takes gathers: a block is a vector already, or two.
#[inline(always)]
fn keep_blocks_apart() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: no instruction at all.
    unsafe {
        std::arch::asm!("", options(nomem, nostack, preserves_flags));
    }
}

#[inline(always)]
fn map_block(x: [f32; BLOCK], f: impl Fn(f32) -> f32) -> [f32; BLOCK] {
    let mut y = [0.0; BLOCK];
    for (y, x) in y.iter_mut().zip(x) {
        *y = f(x);
    }
    y
}

#[inline(always)]
fn zip_block(x: [f32; BLOCK], y: [f32; BLOCK], f: impl Fn(f32, f32) -> f32) -> [f32; BLOCK] {
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
    // SAFETY: the caller vouches for the block; floats are aligned to their own size.
    unsafe { from.cast::<[f32; BLOCK]>().read() }
}

/// # Safety
/// A block from `to` on is writable.
#[inline(always)]
unsafe fn store(to: *mut f32, block: [f32; BLOCK]) {
    // SAFETY: the caller vouches for the block; floats are aligned to their own size.
    unsafe { to.cast::<[f32; BLOCK]>().write(block) };
}

/// The same pieces of two runs of `len` elements, at most a block: neighbours where `len` is a power of two, overlapping where it is not.
///
/// # Safety
/// Both runs are as long as said and do not overlap.
#[inline(always)]
unsafe fn copy_some(from: *const f32, to: *mut f32, len: usize) {
    // SAFETY: every piece lies within the first `len` elements, which the caller vouches for.
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
