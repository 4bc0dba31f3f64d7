//! Constant folding: elementwise ops of constants are constants, and neutral constants vanish.
//!
//! *Needs* a verified graph. *Ensures* the same bits of every value, NaN being equal to NaN as in the
//! contract, and the same bits of gradients.
//!
//! *How.* One walk in arena order that knows which values are one number throughout. It computes by
//! the functions that the plan interpreter is made of. What vanishes, with the reason that it is
//! exact for *every* x, signed zeros, infinities and denormals included (nothing here flushes):
//! * `x * 1`, `1 * x`, `x / 1`: multiplication and division by one round nothing;
//! * `x + -0`, `-0 + x`: a sum of zeros is `-0` only if both are, so `-0 + -0 = -0` and
//!   `+0 + -0 = +0`; `x + +0` is *not* `x`, as it turns `-0` into `+0`;
//! * `x - +0` is `x + -0`; `x - -0` is not `x`;
//! * for integers `x + 0`, `0 + x`, `x - 0`, `x * 1`, `1 * x`;
//! * a cast to the operand's own type;
//! * `select` by a constant, in inference. In training it stays: it gives zeros as the gradient of
//!   what was not chosen, and adding a zero can change the sign of another.
//!
//! Each hands its gradient on unchanged (`g * 1`, or `g`), but where x has other readers their
//! contributions would be summed in another order; so in training x must have this one reader.
//! What only looks neutral stays: `x * 0` (NaN, and the sign), `x - x`, `max(x, x)`.
//!
//! *Refuses* a neutral operand where the result has another shape than x, or where x is bound and may be an
//! index (out of range, a bound one is refused and a computed one takes the last); marked nodes; and
//! the bodies of cells, which are compiled once and not once an instance.
//!
//! *Cost.* Linear; a graph with nothing to fold is scanned, not copied.
//!
//! ```text
//! %1 = fill f32[4] {value=1.0}   %2 = mul(%0, %1)   %3 = exp(%1)      %4 = add(%2, %3)
//! %1 = fill f32[4] {value=1.0}                      %2 = fill ..2.71   %3 = add(%0, %2)
//! ```

use super::{Change, Context, count, marked};
use autobatch_ir::graph::rebuild::Rebuild;
use autobatch_ir::graph::{Binary, Callee, GraphData, Op, Signature};
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_ir::plan::Code;
use autobatch_ir::plan::Mode;
use autobatch_ir::plan::row_ops::map_element;
use autobatch_ir::types::{DType, Type};

/// What becomes of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Stays,
    /// Its result is a constant of these bits.
    Constant(u32),
    /// Its result is this operand.
    Operand(ValueId),
}

/// Computes what can be computed without bindings.
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
            // A promise about the readers of x says nothing about those of `x * 1`.
            Fate::Operand(value) if marked[graph.arena.producer(value).index()] => Fate::Stays,
            Fate::Operand(value) if is_bound_index(graph, value) => Fate::Stays,
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

/// Whether indices are bound here. One out of range is refused, and one that was computed takes
/// the last, so what is computed of it is not it.
fn is_bound_index(graph: &GraphData, value: ValueId) -> bool {
    let callee = graph.signature(graph.arena.producer(value)).callee;
    matches!(callee, Callee::Op(Op::Input(ty)) if ty.dtype == DType::U32)
}

/// How often each value is read, by nodes and from outside; in training, where it matters.
fn readers(graph: &GraphData, context: &Context<'_>) -> Vec<u32> {
    if context.mode != Mode::Train {
        return Vec::new();
    }
    let mut readers = vec![0; graph.arena.values()];
    let operands = graph.arena.operand_pool().iter().filter_map(|operand| operand.as_value());
    operands.chain(context.kept(graph)).for_each(|value| readers[value.index()] += 1);
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

/// Whether the constant with these bits, in this place, leaves every other operand as it is.
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
