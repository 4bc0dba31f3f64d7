//! Elementwise instructions over rows: every function of `ir::numeric::scalar`, compiled once for each instruction set.
//!
//! **Bits.** One Rust function defines an instruction; here it is inlined into loops that are compiled with the features of each
//! instruction set. Lanes of a vector and the scalar twin therefore compute the same, tail elements included: the last elements of a
//! row are computed in a whole vector as well, of which only some are kept.

use super::isa::Isa;
#[cfg(target_arch = "x86_64")]
use super::lanes::{Avx512, Lanes};
use autobatch_ir::graph::{Binary, Compare, Unary};
use autobatch_ir::numeric::{Real, scalar};
use autobatch_ir::plan::Code;
use autobatch_ir::types::DType;
#[cfg(target_arch = "x86_64")]
use std::mem::transmute;

#[cfg(target_arch = "x86_64")]
type Vector512 = <Avx512 as Lanes>::Vector;

/// Elements computed together.
const BLOCK: usize = 16;

/// An operand: where row 0 begins, how far apart rows are, and whether a row is a single element that stands for all.
#[derive(Clone, Copy, Debug)]
pub struct Elements {
    /// The first element of row 0. All elements are one word.
    pub base: *const f32,
    /// Words from row to row.
    pub stride: usize,
    /// Whether each row has one element only.
    pub single: bool,
}

/// The rows that an instruction writes.
#[derive(Clone, Copy, Debug)]
pub struct ElementsMut {
    /// The first element of row 0.
    pub base: *mut f32,
    /// Words from row to row.
    pub stride: usize,
}

/// Computes `rows` rows of `width` elements.
///
/// # Safety
/// `isa` is available. `sources` holds as many operands as `code` takes; each has `rows` rows of `width` initialised words (of one, where
/// `single`), which hold values of `dtype` (truth values where `code` takes them) and which nobody writes meanwhile. The rows of `out` are
/// writable, touched by nobody else, and overlap an operand only where they are the same elements.
pub unsafe fn run(
    isa: Isa,
    code: Code,
    dtype: DType,
    (rows, width): (usize, usize),
    sources: &[Elements],
    out: ElementsMut,
) {
    let work = Work { code, dtype, rows, width, sources, out, masks: false };
    match isa {
        // SAFETY: the caller vouches for the instruction set and for the memory.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { run_avx512(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { run_avx2(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => unsafe { work.run() },
        // SAFETY: as above.
        _ => unsafe { work.run() },
    }
}

/// # Safety
/// As for [`run`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")]
unsafe fn run_avx512(work: Work<'_>) {
    // SAFETY: the caller vouches for the memory; masks are part of the instruction set.
    unsafe { Work { masks: true, ..work }.run() };
}

/// # Safety
/// As for [`run`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn run_avx2(work: Work<'_>) {
    // SAFETY: the caller vouches for the memory.
    unsafe { work.run() };
}

#[derive(Clone, Copy)]
struct Work<'a> {
    code: Code,
    dtype: DType,
    rows: usize,
    width: usize,
    sources: &'a [Elements],
    out: ElementsMut,
    /// Whether the ends of rows are read and written under a mask, which AVX-512 has. A constant wherever it is asked.
    masks: bool,
}

impl Work<'_> {
    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn run(self) {
        let float = self.dtype == DType::F32;
        // SAFETY: every arm reads as many operands as its code takes.
        unsafe {
            match self.code {
                Code::Copy => self.map1(|x| x),
                Code::Unary(unary) => self.unary(unary),
                Code::LeakyRelu(slope) => self.map1(|x| scalar::leaky_relu(x, slope.get())),
                Code::Elu(alpha) => self.map1(|x| scalar::elu(x, alpha.get())),
                Code::Clamp(low, high) => self.map1(|x| scalar::clamp(x, low.get(), high.get())),
                Code::Slope(unary) => self.slope(unary),
                Code::Binary(binary) if float => self.binary(binary),
                Code::Binary(binary) => self.integer_binary(binary),
                Code::Compare(compare) => self.compare(compare),
                Code::Select => self.map3(|c, a, b| if c.to_bits() != 0 { a } else { b }),
                Code::Cast(to) => self.cast(to),
            }
        }
    }

    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn unary(self, unary: Unary) {
        // SAFETY: as for this function.
        unsafe {
            match unary {
                Unary::Neg if self.dtype == DType::F32 => self.map1(scalar::neg),
                Unary::Neg => self.map1(|x| f32::from_bits(x.to_bits().wrapping_neg())),
                Unary::Abs => self.map1(scalar::abs),
                Unary::Exp => self.map1(scalar::exp),
                Unary::Log => self.map1(scalar::log),
                Unary::Sqrt => self.map1(scalar::sqrt),
                Unary::Rsqrt => self.map1(scalar::rsqrt),
                Unary::Square => self.map1(scalar::square),
                Unary::Recip => self.map1(scalar::recip),
                Unary::Tanh => self.map1(scalar::tanh),
                Unary::Sigmoid => self.map1(scalar::sigmoid),
                Unary::Relu => self.map1(scalar::relu),
                Unary::Gelu => self.map1(scalar::gelu),
                Unary::Silu => self.map1(scalar::silu),
                Unary::Softplus => self.map1(scalar::softplus),
                Unary::Sin => self.map1(scalar::sin),
                Unary::Cos => self.map1(scalar::cos),
                Unary::Erf => self.map1(scalar::erf),
                Unary::Sign => self.map1(scalar::sign),
            }
        }
    }

    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn slope(self, unary: Unary) {
        // SAFETY: as for this function.
        unsafe {
            match unary {
                Unary::Tanh => self.map1(Real::tanh_slope_of_result),
                Unary::Sigmoid => self.map1(Real::sigmoid_slope_of_result),
                Unary::Relu => self.map1(Real::relu_slope),
                Unary::Gelu => self.map1(Real::gelu_slope),
                Unary::Silu => self.map1(Real::silu_slope),
                Unary::Softplus => self.map1(Real::softplus_slope),
                Unary::Erf => self.map1(Real::erf_slope),
                _ => unreachable!("{} has no slope of its own: the verifier refuses it", unary.spelling()),
            }
        }
    }

    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn binary(self, binary: Binary) {
        // SAFETY: as for this function.
        unsafe {
            match binary {
                Binary::Add => self.map2(scalar::add),
                Binary::Sub => self.map2(scalar::sub),
                Binary::Mul => self.map2(scalar::mul),
                Binary::Div => self.map2(scalar::div),
                Binary::Pow => self.map2(scalar::pow),
                Binary::Min => self.map2(scalar::min),
                Binary::Max => self.map2(scalar::max),
            }
        }
    }

    /// Integers of both signs: addition, subtraction and multiplication are the same words for both.
    ///
    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn integer_binary(self, binary: Binary) {
        let signed = self.dtype == DType::I32;
        let words =
            |f: fn(u32, u32) -> u32| move |a: f32, b: f32| f32::from_bits(f(a.to_bits(), b.to_bits()));
        // SAFETY: as for this function.
        unsafe {
            match (binary, signed) {
                (Binary::Add, _) => self.map2(words(u32::wrapping_add)),
                (Binary::Sub, _) => self.map2(words(u32::wrapping_sub)),
                (Binary::Mul, _) => self.map2(words(u32::wrapping_mul)),
                (Binary::Min, false) => self.map2(words(u32::min)),
                (Binary::Max, false) => self.map2(words(u32::max)),
                (Binary::Min, true) => self.map2(words(|a, b| (a as i32).min(b as i32) as u32)),
                (Binary::Max, true) => self.map2(words(|a, b| (a as i32).max(b as i32) as u32)),
                (Binary::Div | Binary::Pow, _) => {
                    unreachable!("integers are not divided: the verifier refuses it")
                }
            }
        }
    }

    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn compare(self, compare: Compare) {
        let truth = |holds: bool| f32::from_bits(u32::from(holds));
        // SAFETY: as for this function.
        unsafe {
            match self.dtype {
                DType::I32 => {
                    self.map2(|a, b| truth(ordered(compare, &(a.to_bits() as i32), &(b.to_bits() as i32))))
                }
                DType::U32 | DType::Bool => {
                    self.map2(|a, b| truth(ordered(compare, &a.to_bits(), &b.to_bits())))
                }
                _ => self.map2(|a, b| truth(ordered(compare, &a, &b))),
            }
        }
    }

    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn cast(self, to: DType) {
        // SAFETY: as for this function.
        unsafe { self.map1(|x| f32::from_bits(cast_word(x.to_bits(), self.dtype, to))) }
    }

    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn map1(self, f: impl Fn(f32) -> f32 + Copy) {
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
    /// As for [`run`].
    #[inline(always)]
    unsafe fn map2(self, f: impl Fn(f32, f32) -> f32 + Copy) {
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
    /// As for [`run`].
    #[inline(always)]
    unsafe fn map3(self, f: impl Fn(f32, f32, f32) -> f32 + Copy) {
        let sources = [self.sources[0], self.sources[1], self.sources[2]];
        for row in 0..self.rows {
            let out = self.out.base.wrapping_add(row * self.out.stride);
            for i in (0..self.width).step_by(BLOCK) {
                let len = (self.width - i).min(BLOCK);
                // SAFETY: elements `i..i + len` of row `row` of each are readable or writable.
                unsafe {
                    let [a, b, c] = sources.map(|e| {
                        let x = e.base.wrapping_add(row * e.stride);
                        match e.single {
                            true => [*x; BLOCK],
                            false if len == BLOCK => load(x.add(i)),
                            false => self.load_some(x.add(i), len),
                        }
                    });
                    let mut result = [0.0; BLOCK];
                    for (lane, result) in result.iter_mut().enumerate() {
                        *result = f(a[lane], b[lane], c[lane]);
                    }
                    match len {
                        BLOCK => store(out.add(i), result),
                        _ => self.store_some(out.add(i), result, len),
                    }
                }
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

fn ordered<T: PartialOrd>(compare: Compare, a: &T, b: &T) -> bool {
    match compare {
        Compare::Eq => a == b,
        Compare::Ne => a != b,
        Compare::Lt => a < b,
        Compare::Le => a <= b,
        Compare::Gt => a > b,
        Compare::Ge => a >= b,
    }
}

/// Conversion of one word: Rust's `as` between numbers, which saturates; anything but zero is true, and truth is 1.
fn cast_word(word: u32, from: DType, to: DType) -> u32 {
    match (from, to) {
        (DType::F32, DType::I32) => (f32::from_bits(word) as i32) as u32,
        (DType::F32, DType::U32) => f32::from_bits(word) as u32,
        (DType::F32, DType::Bool) => u32::from(f32::from_bits(word) != 0.0),
        (DType::I32, DType::F32) => ((word as i32) as f32).to_bits(),
        (DType::U32 | DType::Bool, DType::F32) => (word as f32).to_bits(),
        (_, DType::Bool) => u32::from(word != 0),
        _ => word,
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

#[cfg(test)]
mod tests {
    use super::*;
    use autobatch_ir::plan::row_ops::has_slope;

    fn play(isa: Isa, code: Code, sources: &[&[f32]], width: usize, rows: usize) -> Vec<u32> {
        let mut out = vec![0.0f32; rows * (width + 3)];
        let elements: Vec<Elements> = sources
            .iter()
            .map(|s| Elements {
                base: s.as_ptr(),
                stride: s.len() / rows,
                single: s.len() == rows && width > 1,
            })
            .collect();
        let to = ElementsMut { base: out.as_mut_ptr(), stride: width + 3 };
        // SAFETY: the operands have `rows` rows and the result is larger than they are.
        unsafe { run(isa, code, DType::F32, (rows, width), &elements, to) };
        out.iter().map(|x| x.to_bits()).collect()
    }

    #[test]
    fn every_instruction_set_gives_the_bits_of_the_scalar_twin() {
        let mut codes: Vec<Code> = Unary::ALL.iter().map(|&u| Code::Unary(u)).collect();
        codes.extend(Unary::ALL.iter().filter(|&&u| has_slope(u)).map(|&u| Code::Slope(u)));
        codes.extend(Binary::ALL.iter().map(|&b| Code::Binary(b)));
        codes.extend(Compare::ALL.iter().map(|&c| Code::Compare(c)));
        codes.extend([
            Code::LeakyRelu(0.1.into()),
            Code::Elu(1.5.into()),
            Code::Clamp((-1.0).into(), 0.5.into()),
        ]);
        for width in [1, 5, 16, 37, 64] {
            let rows = 3;
            let x: Vec<f32> = (0..rows * width).map(|i| (i as f32 * 0.37 - 9.0).sin() * 8.0).collect();
            let y: Vec<f32> = (0..rows * width).map(|i| (i as f32 * 0.11).cos() * 3.0).collect();
            let s: Vec<f32> = y[..rows].to_vec();
            for &code in &codes {
                for operands in [[&x[..], &y], [&x, &s], [&s, &y], [&s, &s]] {
                    let expected = play(Isa::Scalar, code, &operands, width, rows);
                    for isa in Isa::available() {
                        assert_eq!(
                            play(isa, code, &operands, width, rows),
                            expected,
                            "{code:?} {isa:?} {width}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn elements_between_rows_are_not_touched() {
        let x = [1.0f32; 14];
        let out = play(Isa::best(), Code::Unary(Unary::Neg), &[&x], 7, 2);
        assert_eq!(out[7..10], [0, 0, 0]);
        assert_eq!(out[10], (-1.0f32).to_bits());
    }
}
