//! Instructions of fused kernels. Each is a function that computes a block of elements.
//!
//! The common operations of optimisers are compiled per instruction set: arithmetic and roots, sums of products,
//! flushed numbers, and steps along a quotient. An optimiser mostly computes `keep * old + (1 - keep) * new`, flushed:
//! seven instructions of a kernel, one instruction here. Every rounding stays; nothing is contracted. All other
//! operations use [`elementwise`](crate::kernels::elementwise).

use crate::kernels::elementwise::{Elements, ElementsMut, run};
use crate::kernels::isa::{Isa, compiled_per_isa};
use autobatch_ir::graph::{Binary, Unary};
use autobatch_ir::numeric::scalar;
use autobatch_ir::plan::Code;
use autobatch_ir::types::DType;

/// Elements of a block.
pub(super) const BLOCK: usize = 128;
/// Elements computed together: one or two vectors.
const LANES: usize = 16;
/// The maximum number of inputs of an instruction.
pub(super) const MAX_INPUTS: usize = 4;

/// The operation of an instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FusedOp {
    Plain(Code, DType),
    /// `a`, or 0 if `|a| < limit`.
    Flush(f32),
    /// `a * b + c` with two roundings, flushed if there is a limit.
    ProductAndTerm(Option<f32>),
    /// `a * b + c * d` with three roundings, flushed if there is a limit.
    TwoProducts(Option<f32>),
    /// `sqrt(a) * b + c` with three roundings.
    RootProductAndTerm,
    /// `a - b * c / d` with three roundings.
    LessQuotient,
}

impl FusedOp {
    pub(super) const COPY: Self = Self::Plain(Code::Copy, DType::F32);
}

/// Computes one instruction on one block.
///
/// # Safety
/// The instruction's instruction set is available. The table has a block for each operand of the instruction. Inputs
/// are initialised. No one else accesses the output, which overlaps an input only if both are the same elements.
type BlockFn = unsafe fn(&Instr, *const *mut f32);

/// An instruction: its function and the numbers of its operands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instr {
    pub(super) function: BlockFn,
    isa: Isa,
    op: FusedOp,
    /// Numbers of smaller magnitude are flushed.
    limit: f32,
    arity: u32,
    inputs: [u32; MAX_INPUTS],
    output: u32,
}

impl Instr {
    pub(super) fn new(isa: Isa, op: FusedOp, operands: &[u32], output: u32) -> Self {
        let mut inputs = [0; MAX_INPUTS];
        inputs[..operands.len()].copy_from_slice(operands);
        let limit = match op {
            FusedOp::Flush(limit) => Some(limit),
            FusedOp::ProductAndTerm(limit) | FusedOp::TwoProducts(limit) => limit,
            FusedOp::Plain(..) | FusedOp::RootProductAndTerm | FusedOp::LessQuotient => None,
        };
        let (function, limit) = (function_of(isa, op), limit.unwrap_or(0.0));
        Self { function, isa, op, limit, arity: operands.len() as u32, inputs, output }
    }
}

/// The function of an operation.
fn function_of(isa: Isa, op: FusedOp) -> BlockFn {
    match op {
        FusedOp::Flush(_) => compiled::<Sum<0, true>>(isa),
        FusedOp::ProductAndTerm(None) => compiled::<Sum<1, false>>(isa),
        FusedOp::ProductAndTerm(Some(_)) => compiled::<Sum<1, true>>(isa),
        FusedOp::TwoProducts(None) => compiled::<Sum<2, false>>(isa),
        FusedOp::TwoProducts(Some(_)) => compiled::<Sum<2, true>>(isa),
        FusedOp::RootProductAndTerm => compiled::<RootProductAndTerm>(isa),
        FusedOp::LessQuotient => compiled::<LessQuotient>(isa),
        FusedOp::Plain(Code::Copy, _) => compiled::<Copied>(isa),
        FusedOp::Plain(Code::Unary(Unary::Sqrt), _) => compiled::<Sqrt>(isa),
        FusedOp::Plain(Code::Unary(Unary::Square), _) => compiled::<Square>(isa),
        FusedOp::Plain(Code::Binary(Binary::Add), DType::F32) => compiled::<Add>(isa),
        FusedOp::Plain(Code::Binary(Binary::Sub), DType::F32) => compiled::<Sub>(isa),
        FusedOp::Plain(Code::Binary(Binary::Mul), DType::F32) => compiled::<Mul>(isa),
        FusedOp::Plain(Code::Binary(Binary::Div), DType::F32) => compiled::<Div>(isa),
        FusedOp::Plain(Code::Binary(Binary::Max), DType::F32) => compiled::<Max>(isa),
        FusedOp::Plain(..) => elementwise,
    }
}

/// A function of one element of each input.
trait Function {
    const ARITY: usize;
    fn of(operands: [f32; MAX_INPUTS], limit: f32) -> f32;
}

macro_rules! functions {
    ($($name:ident: $arity:literal |$a:pat_param, $b:pat_param, $c:pat_param, $d:pat_param| $value:expr;)*) => {$(
        struct $name;
        impl Function for $name {
            const ARITY: usize = $arity;
            #[inline(always)]
            fn of([$a, $b, $c, $d]: [f32; MAX_INPUTS], _: f32) -> f32 {
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

/// The sum of `PRODUCTS` products and the remaining input, if there is one; flushed or not.
struct Sum<const PRODUCTS: usize, const FLUSH: bool>;

impl<const PRODUCTS: usize, const FLUSH: bool> Function for Sum<PRODUCTS, FLUSH> {
    const ARITY: usize = [1, 3, 4][PRODUCTS];

    #[inline(always)]
    fn of([a, b, c, d]: [f32; MAX_INPUTS], limit: f32) -> f32 {
        let sum = match PRODUCTS {
            0 => a,
            1 => scalar::add(scalar::mul(a, b), c),
            _ => scalar::add(scalar::mul(a, b), scalar::mul(c, d)),
        };
        if FLUSH && scalar::abs(sum) < limit { 0.0 } else { sum }
    }
}

compiled_per_isa! {
    fn compiled<F: Function> -> unsafe fn(instr: &Instr, table: *const *mut f32) = block::<F>
}

/// # Safety
/// As for [`BlockFn`].
#[inline(always)]
unsafe fn block<F: Function>(instr: &Instr, table: *const *mut f32) {
    // SAFETY: the caller guarantees the operands and their blocks.
    unsafe {
        let at = |operand: u32| *table.add(operand as usize);
        let inputs: [*const f32; MAX_INPUTS] = std::array::from_fn(|number| {
            at(instr.inputs[if number < F::ARITY { number } else { 0 }]).cast_const()
        });
        let output = at(instr.output);
        for first in (0..BLOCK).step_by(LANES) {
            let operands: [[f32; LANES]; MAX_INPUTS] =
                std::array::from_fn(|number| match number < F::ARITY {
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
/// As for [`BlockFn`].
unsafe fn elementwise(instr: &Instr, table: *const *mut f32) {
    let FusedOp::Plain(code, dtype) = instr.op else { unreachable!("fused operations are compiled") };
    // SAFETY: the caller guarantees the operands and their blocks.
    unsafe {
        let at = |operand: u32| *table.add(operand as usize);
        let inputs = instr.inputs.map(|input| Elements { base: at(input), stride: BLOCK, single: false });
        let output = ElementsMut { base: at(instr.output), stride: BLOCK };
        run(instr.isa, code, dtype, 1, BLOCK, &inputs[..instr.arity as usize], output);
    }
}
