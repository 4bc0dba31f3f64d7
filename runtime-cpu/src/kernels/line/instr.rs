//! Instructions of lines: a function for each, which computes a block of elements.
//!
//! What optimisers spend their time with is compiled here for each instruction set: arithmetic and roots,
//! sums of products, numbers that are flushed, and steps along a quotient. An optimiser is mostly
//! `keep * old + (1 - keep) * new`, flushed: seven instructions of a kernel, one here. Every rounding
//! stays: nothing is contracted. What else there is goes to [`elementwise`](crate::kernels::elementwise).

use crate::kernels::elementwise::{Elements, ElementsMut, run};
use crate::kernels::isa::Isa;
use autobatch_ir::graph::{Binary, Unary};
use autobatch_ir::numeric::scalar;
use autobatch_ir::plan::Code;
use autobatch_ir::types::DType;

/// Elements of a block.
pub(super) const BLOCK: usize = 128;
/// Elements computed together: a vector, or two.
const LANES: usize = 16;
/// The most operands of an instruction.
pub(super) const OPERANDS: usize = 4;

/// What an instruction computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum What {
    Plain(Code, DType),
    /// `a`, or 0 where `|a| < limit`.
    Flush(f32),
    /// `a * b + c`, two roundings; flushed if there is a limit.
    ProductAndTerm(Option<f32>),
    /// `a * b + c * d`, three roundings; flushed if there is a limit.
    TwoProducts(Option<f32>),
    /// `sqrt(a) * b + c`, three roundings.
    RootProductAndTerm,
    /// `a - b * c / d`, three roundings.
    LessQuotient,
}

/// Executes one instruction on one block.
///
/// # Safety
/// The instruction set that it was made for is available. The table has the places that the
/// instruction names, a block each; operands are initialised, the output is touched by nobody else and
/// overlaps an operand only where both are the same elements.
type Execute = unsafe fn(&Instr, *const *mut f32);

/// An instruction of a line: what executes it, and the places that it reads and writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instr {
    pub(super) execute: Execute,
    isa: Isa,
    what: What,
    /// Below which magnitude a number is flushed.
    limit: f32,
    arity: u32,
    inputs: [u32; OPERANDS],
    output: u32,
}

impl Instr {
    pub(super) fn new(isa: Isa, what: What, operands: &[u32], output: u32) -> Self {
        let mut inputs = [0; OPERANDS];
        inputs[..operands.len()].copy_from_slice(operands);
        let limit = match what {
            What::Flush(limit) => Some(limit),
            What::ProductAndTerm(limit) | What::TwoProducts(limit) => limit,
            What::Plain(..) | What::RootProductAndTerm | What::LessQuotient => None,
        };
        let (execute, limit) = (executor(isa, what), limit.unwrap_or(0.0));
        Self { execute, isa, what, limit, arity: operands.len() as u32, inputs, output }
    }
}

/// What executes an instruction.
fn executor(isa: Isa, what: What) -> Execute {
    match what {
        What::Flush(_) => compiled::<Sum<0, true>>(isa),
        What::ProductAndTerm(None) => compiled::<Sum<1, false>>(isa),
        What::ProductAndTerm(Some(_)) => compiled::<Sum<1, true>>(isa),
        What::TwoProducts(None) => compiled::<Sum<2, false>>(isa),
        What::TwoProducts(Some(_)) => compiled::<Sum<2, true>>(isa),
        What::RootProductAndTerm => compiled::<RootProductAndTerm>(isa),
        What::LessQuotient => compiled::<LessQuotient>(isa),
        What::Plain(Code::Copy, _) => compiled::<Copied>(isa),
        What::Plain(Code::Unary(Unary::Sqrt), _) => compiled::<Sqrt>(isa),
        What::Plain(Code::Unary(Unary::Square), _) => compiled::<Square>(isa),
        What::Plain(Code::Binary(Binary::Add), DType::F32) => compiled::<Add>(isa),
        What::Plain(Code::Binary(Binary::Sub), DType::F32) => compiled::<Sub>(isa),
        What::Plain(Code::Binary(Binary::Mul), DType::F32) => compiled::<Mul>(isa),
        What::Plain(Code::Binary(Binary::Div), DType::F32) => compiled::<Div>(isa),
        What::Plain(Code::Binary(Binary::Max), DType::F32) => compiled::<Max>(isa),
        What::Plain(..) => elementwise,
    }
}

/// A function of one element of each operand.
trait Function {
    const ARITY: usize;
    fn of(operands: [f32; OPERANDS], limit: f32) -> f32;
}

macro_rules! functions {
    ($($name:ident: $arity:literal |$a:pat_param, $b:pat_param, $c:pat_param, $d:pat_param| $value:expr;)*) => {$(
        struct $name;
        impl Function for $name {
            const ARITY: usize = $arity;
            #[inline(always)]
            fn of([$a, $b, $c, $d]: [f32; OPERANDS], _: f32) -> f32 {
                $value
            }
        }
    )*};
}

functions! {
    Copied: 1 |a, _, _, _| a;
    Sqrt: 1 |a, _, _, _| scalar::sqrt(a);
    Square: 1 |a, _, _, _| scalar::square(a);
    Add: 2 |a, b, _, _| scalar::add(a, b);
    Sub: 2 |a, b, _, _| scalar::sub(a, b);
    Mul: 2 |a, b, _, _| scalar::mul(a, b);
    Div: 2 |a, b, _, _| scalar::div(a, b);
    Max: 2 |a, b, _, _| scalar::max(a, b);
    RootProductAndTerm: 3 |a, b, c, _| scalar::add(scalar::mul(scalar::sqrt(a), b), c);
    LessQuotient: 4 |a, b, c, d| scalar::sub(a, scalar::div(scalar::mul(b, c), d));
}

/// So many products and, if there is an odd operand, that one; flushed or not.
struct Sum<const PRODUCTS: usize, const FLUSH: bool>;

impl<const PRODUCTS: usize, const FLUSH: bool> Function for Sum<PRODUCTS, FLUSH> {
    const ARITY: usize = [1, 3, 4][PRODUCTS];

    #[inline(always)]
    fn of([a, b, c, d]: [f32; OPERANDS], limit: f32) -> f32 {
        let sum = match PRODUCTS {
            0 => a,
            1 => scalar::add(scalar::mul(a, b), c),
            _ => scalar::add(scalar::mul(a, b), scalar::mul(c, d)),
        };
        if FLUSH && scalar::abs(sum) < limit { 0.0 } else { sum }
    }
}

fn compiled<F: Function>(isa: Isa) -> Execute {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => avx512::<F>,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => avx2::<F>,
        _ => portable::<F>,
    }
}

/// # Safety
/// As [`Execute`] says.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")]
unsafe fn avx512<F: Function>(instr: &Instr, table: *const *mut f32) {
    // SAFETY: as for this function.
    unsafe { block::<F>(instr, table) };
}

/// # Safety
/// As [`Execute`] says.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<F: Function>(instr: &Instr, table: *const *mut f32) {
    // SAFETY: as for this function.
    unsafe { block::<F>(instr, table) };
}

/// # Safety
/// As [`Execute`] says.
unsafe fn portable<F: Function>(instr: &Instr, table: *const *mut f32) {
    // SAFETY: as for this function.
    unsafe { block::<F>(instr, table) };
}

/// # Safety
/// As [`Execute`] says.
#[inline(always)]
unsafe fn block<F: Function>(instr: &Instr, table: *const *mut f32) {
    // SAFETY: the caller vouches for the places and for their blocks.
    unsafe {
        let at = |place: u32| *table.add(place as usize);
        let inputs: [*const f32; OPERANDS] = std::array::from_fn(|number| {
            at(instr.inputs[if number < F::ARITY { number } else { 0 }]).cast_const()
        });
        let output = at(instr.output);
        for first in (0..BLOCK).step_by(LANES) {
            let operands: [[f32; LANES]; OPERANDS] = std::array::from_fn(|number| match number < F::ARITY {
                true => inputs[number].add(first).cast::<[f32; LANES]>().read(),
                false => [0.0; LANES],
            });
            let result: [f32; LANES] = std::array::from_fn(|lane| {
                F::of(std::array::from_fn(|number| operands[number][lane]), instr.limit)
            });
            output.add(first).cast::<[f32; LANES]>().write(result);
        }
    }
}

/// # Safety
/// As [`Execute`] says.
unsafe fn elementwise(instr: &Instr, table: *const *mut f32) {
    let What::Plain(code, dtype) = instr.what else { unreachable!("sums have functions of their own") };
    // SAFETY: the caller vouches for the places and for their blocks.
    unsafe {
        let at = |place: u32| *table.add(place as usize);
        let inputs = instr.inputs.map(|place| Elements { base: at(place), stride: BLOCK, single: false });
        let output = ElementsMut { base: at(instr.output), stride: BLOCK };
        run(instr.isa, code, dtype, (1, BLOCK), &inputs[..instr.arity as usize], output);
    }
}
