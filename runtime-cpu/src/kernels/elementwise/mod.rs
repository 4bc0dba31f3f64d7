//! Elementwise instructions over strided rows: every function of `ir::numeric::scalar`, compiled per instruction set.
//!
//! **Bits.** One Rust function defines each instruction. It is inlined into loops that are compiled with the features
//! of each instruction set, so all variants compute the same bits. The last elements of a row are computed in a whole
//! vector too; only the existing elements are stored.
//!
//! Updates of whole arrays use the module `fused_update` instead; its head says why there are two engines.

mod loops;

pub(super) use loops::{keep_blocks_apart, map_block, zip_block};

use super::isa::{Isa, compiled_per_isa};
use autobatch_ir::graph::{Compare, Unary};
use autobatch_ir::numeric::{Real, scalar};
use autobatch_ir::plan::Code;
use autobatch_ir::plan::row_ops::{cast_element, integer_binary, integer_compare};
use autobatch_ir::types::DType;
use autobatch_ir::{with_binary, with_unary};

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
    // SAFETY: the caller guarantees the instruction set.
    unsafe { compiled(isa)(work) };
}

compiled_per_isa! {
    fn compiled -> unsafe fn(work: Work<'_>) = Work::run; with masks Work::run_masked
}

/// The arguments of [`run`], whose contract holds as long as the value exists.
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
    #[inline(always)]
    fn run_masked(self) {
        Work { masks: true, ..self }.run();
    }

    #[inline(always)]
    fn run(self) {
        let float = self.dtype == DType::F32;
        match self.code {
            Code::Copy => self.map1(|x| x),
            Code::Unary(unary) => with_unary!(unary, |f| self.map1(f)),
            Code::LeakyRelu(slope) => self.map1(|x| scalar::leaky_relu(x, slope.get())),
            Code::Elu(alpha) => self.map1(|x| scalar::elu(x, alpha.get())),
            Code::Clamp(low, high) => self.map1(|x| scalar::clamp(x, low.get(), high.get())),
            Code::Slope(unary) => self.slope(unary),
            Code::Binary(binary) if float => with_binary!(binary, |f| self.map2(f)),
            Code::Binary(binary) => self.words2(|a, b| integer_binary(binary, self.dtype, a, b)),
            Code::Compare(compare) => self.compare(compare),
            Code::Select => self.select(),
            Code::Cast(to) => self.map1(|x| f32::from_bits(cast_element(self.dtype, to, x.to_bits()))),
        }
    }

    #[inline(always)]
    fn slope(self, unary: Unary) {
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

    #[inline(always)]
    fn compare(self, compare: Compare) {
        let truth = |holds: bool| f32::from_bits(u32::from(holds));
        match (self.dtype, compare) {
            // One arm per comparison keeps the dispatch out of the loop.
            (DType::F32, Compare::Eq) => self.map2(|a, b| truth(a == b)),
            (DType::F32, Compare::Ne) => self.map2(|a, b| truth(a != b)),
            (DType::F32, Compare::Lt) => self.map2(|a, b| truth(a < b)),
            (DType::F32, Compare::Le) => self.map2(|a, b| truth(a <= b)),
            (DType::F32, Compare::Gt) => self.map2(|a, b| truth(a > b)),
            (DType::F32, Compare::Ge) => self.map2(|a, b| truth(a >= b)),
            (dtype, _) => self.words2(|a, b| integer_compare(compare, dtype, a, b)),
        }
    }

    /// Computes words of two words.
    #[inline(always)]
    fn words2(self, f: impl Fn(u32, u32) -> u32 + Copy) {
        self.map2(|a, b| f32::from_bits(f(a.to_bits(), b.to_bits())));
    }
}
