//! Elementwise instructions over strided rows: every function of `ir::numeric::scalar`, compiled per instruction set.
//!
//! **Bits.** One Rust function defines each instruction. It is inlined into loops that are compiled with the features
//! of each instruction set, so all variants compute the same bits. The last elements of a row are computed in a whole
//! vector too; only the existing elements are stored.
//!
//! Updates of whole arrays use the module `fused_update` instead; its head says why there are two engines.

mod loops;

use super::isa::Isa;
use autobatch_ir::graph::{Binary, Compare, Unary};
use autobatch_ir::numeric::{Real, scalar};
use autobatch_ir::plan::Code;
use autobatch_ir::types::DType;

/// The rows of an operand.
#[derive(Clone, Copy, Debug)]
pub struct Elements {
    /// The first element of row 0. Every element is one 32-bit word.
    pub base: *const f32,
    /// Words from row to row.
    pub stride: usize,
    /// True if each row is a single element, used for all elements of the result row.
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
/// `isa` is available. `sources` holds as many operands as `code` takes. Each has `rows` rows of `width` initialised
/// words (one word if `single`) of type `dtype` (truth values where `code` takes them), which no one writes during the
/// call. The rows of `out` are writable and not accessed by anyone else. They overlap an operand only if they are the
/// same elements.
pub unsafe fn run(
    isa: Isa,
    code: Code,
    dtype: DType,
    rows: usize,
    width: usize,
    sources: &[Elements],
    out: ElementsMut,
) {
    let work = Work { code, dtype, rows, width, sources, out, masks: false };
    match isa {
        // SAFETY: the caller guarantees the instruction set and the memory.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { run_avx512(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { run_avx2(work) },
        // SAFETY: as above.
        _ => unsafe { work.run() },
    }
}

/// # Safety
/// As for [`run`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")]
unsafe fn run_avx512(work: Work<'_>) {
    // SAFETY: the caller guarantees the memory; masks are part of the instruction set.
    unsafe { Work { masks: true, ..work }.run() };
}

/// # Safety
/// As for [`run`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn run_avx2(work: Work<'_>) {
    // SAFETY: the caller guarantees the memory.
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
    /// True if the ends of rows use masked loads and stores (AVX-512). After inlining it is a constant.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only AVX-512 reads it"))]
    masks: bool,
}

impl Work<'_> {
    /// # Safety
    /// As for [`run`].
    #[inline(always)]
    unsafe fn run(self) {
        let float = self.dtype == DType::F32;
        // SAFETY: every arm reads exactly the operands of its code.
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
                Code::Select => self.select(),
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
                _ => unreachable!("{} has no slope: the verifier rejects it", unary.spelling()),
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

    /// Integer arithmetic. Addition, subtraction and multiplication give the same words for both signs.
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
                    unreachable!("integers have no division: the verifier rejects it")
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
                // One arm per comparison keeps the dispatch out of the loop.
                _ => match compare {
                    Compare::Eq => self.map2(|a, b| truth(a == b)),
                    Compare::Ne => self.map2(|a, b| truth(a != b)),
                    Compare::Lt => self.map2(|a, b| truth(a < b)),
                    Compare::Le => self.map2(|a, b| truth(a <= b)),
                    Compare::Gt => self.map2(|a, b| truth(a > b)),
                    Compare::Ge => self.map2(|a, b| truth(a >= b)),
                },
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

/// Converts one word. Numbers convert like Rust's saturating `as`; nonzero is true, and true is 1.
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
