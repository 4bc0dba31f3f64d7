//! Constant folding: elementwise ops of constants become constants, and neutral constants vanish.
//!
//! *Needs* a verified graph. *Ensures* the same bits of every value (all NaNs are equal) and of every gradient.
//!
//! *How.* One walk in arena order, which knows the values whose elements are all one number. It computes with the functions of
//! the plan interpreter. These rewrites are exact for *every* x, also for signed zeros, infinities and denormals:
//! * `x * 1`, `1 * x`, `x / 1`: multiplication and division by one never round;
//! * `x + -0`, `-0 + x`: a sum of zeros is `-0` only if both are, so `-0 + -0 = -0` and
//!   `+0 + -0 = +0`; `x + +0` is *not* `x`, because it turns `-0` into `+0`;
//! * `x - +0` is `x + -0`; `x - -0` is not `x`;
//! * for integers `x + 0`, `0 + x`, `x - 0`, `x * 1`, `1 * x`;
//! * a cast to the type of the operand;
//! * `select` by a constant, in inference. In training it stays: it gives zeros as the gradient of the operand that was not
//!   selected, and adding a zero can change the sign of another zero.
//!
//! Each rewrite passes the gradient on unchanged (`g * 1`, or `g`). If x has other readers, the sum of their gradients would change
//! its order, so in training x must have no other reader. `x * 0` (NaN, and the sign), `x - x` and `max(x, x)` are not neutral.
//!
//! *Not folded*: an operand whose shape differs from the result; marked nodes; bodies of cells, which are compiled only
//! once.
//!
//! *Cost.* Linear. A graph without constants to fold is not copied.
//!
//! ```text
//! %1 = fill f32[4] {value=1.0}   %2 = mul(%0, %1)   %3 = exp(%1)      %4 = add(%2, %3)
//! %1 = fill f32[4] {value=1.0}                      %2 = fill ..2.71   %3 = add(%0, %2)
//! ```

use super::pass::{Change, Context, count, marked};
use autobatch_ir::graph::rebuild::Rebuild;
use autobatch_ir::graph::{Binary, Callee, GraphData, Op, Signature};
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_ir::plan::Code;
use autobatch_ir::plan::Mode;
use autobatch_ir::plan::row_ops::map_element;
use autobatch_ir::types::{DType, Type};

/// The rewrite of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Stays,
    /// Its result is a constant of these bits.
    Constant(u32),
    /// Its result is this operand.
    Operand(ValueId),
}

/// Folds constants.
pub(crate) fn fold(graph: &GraphData, context: &Context<'_>) -> Option<Change> {
    let fates = fates(graph, context);
    let folded = fates.iter().filter(|&&fate| fate != Fate::Stays).count();
    if folded == 0 {
        return None;
    }
    let mut rebuild = Rebuild::new(graph);
    for node in graph.arena.ids() {
        let result = || ValueId::new(graph.arena.results(node).start);
        match fates[node.index()] {
            Fate::Stays => {
                rebuild.copy(node);
            }
            Fate::Constant(bits) => {
                let ty = graph.type_of(result());
                let signature = Signature {
                    callee: Callee::Op(Op::Fill { ty, bits }),
                    operands: Box::default(),
                    params: Box::default(),
                    param_types: Box::default(),
                    results: [rebuild.ty(ty)].into(),
                };
                let sig = rebuild.sig(signature);
                let value = rebuild.apply(node, sig, &[], graph.arena.node(node).site);
                rebuild.name(result(), value);
            }
            Fate::Operand(value) => {
                let value = rebuild.renaming(value).expect("an operand is named before its reader");
                rebuild.name(result(), value);
            }
        }
    }
    let (graph, renaming) = rebuild.finish();
    Some(Change { graph, renaming, note: format!("{} folded", count(folded, "node")) })
}

fn fates(graph: &GraphData, context: &Context<'_>) -> Vec<Fate> {
    let marked = marked(graph);
    let readers = readers(graph, context);
    let mut constants: Vec<Option<u32>> = vec![None; graph.arena.values()];
    let mut fates = vec![Fate::Stays; graph.arena.len()];
    for node in graph.arena.ids() {
        let Callee::Op(op) = graph.signature(node).callee else { continue };
        let result = graph.arena.results(node).start;
        if let Op::Fill { bits, .. } = op {
            constants[result] = Some(bits);
            continue;
        }
        if marked[node.index()] {
            continue;
        }
        let fate = match fate(graph, context, node, op, &constants) {
            Fate::Operand(value) if context.mode == Mode::Train && readers[value.index()] > 1 => Fate::Stays,
            // A mark on x does not extend to the readers of `x * 1`.
            Fate::Operand(value) if marked[graph.arena.producer(value).index()] => Fate::Stays,
            fate => fate,
        };
        match fate {
            Fate::Stays => {}
            Fate::Constant(bits) => constants[result] = Some(bits),
            Fate::Operand(value) => constants[result] = constants[value.index()],
        }
        fates[node.index()] = fate;
    }
    fates
}

/// Number of readers of each value, requests included. Empty in inference, which does not need it.
fn readers(graph: &GraphData, context: &Context<'_>) -> Vec<u32> {
    if context.mode != Mode::Train {
        return Vec::new();
    }
    let mut readers = vec![0; graph.arena.values()];
    let operands = graph.arena.operand_pool().iter().filter_map(|operand| operand.as_value());
    operands.chain(context.requested(graph)).for_each(|value| readers[value.index()] += 1);
    readers
}

fn fate(graph: &GraphData, context: &Context<'_>, node: NodeId, op: Op, constants: &[Option<u32>]) -> Fate {
    let Some(code) = Code::of(op) else { return Fate::Stays };
    let operands = graph.arena.operands(node);
    let mut known = [None; 3];
    for (slot, operand) in known.iter_mut().zip(operands) {
        let Some(value) = operand.as_value() else { return Fate::Stays };
        *slot = constants[value.index()];
    }
    let signature = graph.signature(node);
    let ty = |place: usize| graph.ty(signature.operands[place]);
    let result = graph.ty(signature.results[0]);
    let operand = |place: usize| match operands[place].as_value() {
        Some(value) if ty(place) == result => Fate::Operand(value),
        _ => Fate::Stays,
    };
    if known[..operands.len()].iter().all(Option::is_some) {
        let dtype = ty(if op == Op::Select { 1 } else { 0 }).dtype;
        return Fate::Constant(map_element(code, dtype, known.map(Option::unwrap_or_default)));
    }
    match (op, known) {
        (Op::Binary(binary), [_, Some(bits), _]) if is_neutral(binary, 1, bits, result) => operand(0),
        (Op::Binary(binary), [Some(bits), ..]) if is_neutral(binary, 0, bits, result) => operand(1),
        (Op::Cast(to), _) if to == ty(0).dtype => operand(0),
        (Op::Select, [Some(flag), ..]) if context.mode != Mode::Train => {
            operand(if flag != 0 { 1 } else { 2 })
        }
        _ => Fate::Stays,
    }
}

/// Whether a constant with these bits, as this operand, leaves every other operand unchanged.
fn is_neutral(binary: Binary, place: usize, bits: u32, ty: Type) -> bool {
    const ONE: u32 = 1.0f32.to_bits();
    const MINUS_ZERO: u32 = (-0.0f32).to_bits();
    match (ty.dtype, binary, place) {
        (DType::F32, Binary::Mul, _) | (DType::F32, Binary::Div, 1) => bits == ONE,
        (DType::F32, Binary::Add, _) => bits == MINUS_ZERO,
        (DType::F32, Binary::Sub, 1) => bits == 0,
        (DType::I32 | DType::U32, Binary::Add, _) | (DType::I32 | DType::U32, Binary::Sub, 1) => bits == 0,
        (DType::I32 | DType::U32, Binary::Mul, _) => bits == 1,
        _ => false,
    }
}
