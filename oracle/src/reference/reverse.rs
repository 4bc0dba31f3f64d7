//! Reverse evaluation, with the summation order that the [module](super) defines.

use super::datum::{Datum, Run};
use super::derivative::{self, Partial};
use super::error::{Checked, RunError, RunFault, malformed};
use super::frame::{Frame, Scope};
use super::uses::{ParamUse, add};
use autobatch_ir::graph::{Callee, Op};
use autobatch_ir::id::{CellId, NodeId, ParamId, ValueId};
use autobatch_ir::numeric::Real;
use std::ops::Range;
use std::sync::Arc;

/// The gradient of one value; `None` if no path leads to a loss.
type Gradient<T> = Option<Arc<[T]>>;

/// The gradients of the losses with respect to values and parameters.
#[derive(Clone, Debug)]
pub struct Gradients<T> {
    values: Vec<Gradient<T>>,
    params: Vec<Option<Vec<T>>>,
}

impl<T> Gradients<T> {
    /// The gradient of a value; `None` if no result of its node leads to a loss.
    #[must_use]
    pub fn value(&self, id: ValueId) -> Option<&[T]> {
        self.values.get(id.index())?.as_deref()
    }

    /// The gradient of a parameter or table, dense; `None` if no node that takes it leads to a loss.
    #[must_use]
    pub fn param(&self, id: ParamId) -> Option<&[T]> {
        self.params.get(id.index())?.as_deref()
    }
}

/// The gradients of an evaluated graph.
pub(crate) fn gradients<T: Real>(
    scope: &Scope<'_, T>,
    run: &Run<T>,
    losses: &[(ValueId, impl Into<f64> + Copy)],
) -> Result<Gradients<T>, RunError> {
    let graph = scope.graph;
    if run.slots.len() < graph.arena.values() {
        return Err(RunFault::Malformed("the run belongs to another graph".to_owned()).into());
    }
    let mut pending = Pending::new(run.slots.len());
    for &(value, scale) in losses.iter().rev() {
        match run.floats(value) {
            Some(elements) if value.index() < graph.arena.values() => {
                pending.push(value.index(), vec![T::from_f64(scale.into()); elements.len()].into());
            }
            _ => return Err(RunFault::Loss { found: spell(scope, value) }.into()),
        }
    }
    let mut uses = Vec::new();
    let frame = Frame::of(scope, &graph.arena, run.slots.clone());
    let values = walk(&frame, &mut pending, &mut uses)?;
    let mut params: Vec<Option<Vec<T>>> = vec![None; graph.module.params.len()];
    for ParamUse { param, share } in uses.iter().rev() {
        let shape = graph.module.param_shape(*param);
        let gradient = params[param.index()].get_or_insert_with(|| vec![T::ZERO; shape.elements()]);
        share.add_to(gradient, shape.width());
    }
    Ok(Gradients { values, params })
}

fn spell<T>(scope: &Scope<'_, T>, value: ValueId) -> String {
    if value.index() < scope.graph.arena.values() {
        format!("{value}: {}", scope.graph.type_of(value))
    } else {
        format!("{value}, which does not exist")
    }
}

/// Contributions to values, in descending order of uses, because the traversal runs in reverse.
struct Pending<T>(Vec<Vec<Arc<[T]>>>);

impl<T: Real> Pending<T> {
    fn new(slots: usize) -> Self {
        Self(vec![Vec::new(); slots])
    }

    fn push(&mut self, slot: usize, contribution: Arc<[T]>) {
        self.0[slot].push(contribution);
    }

    /// All contributions to a slot, in ascending order.
    fn take(&mut self, slot: usize) -> Vec<Arc<[T]>> {
        let mut contributions = std::mem::take(&mut self.0[slot]);
        contributions.reverse();
        contributions
    }

    /// The sum of the contributions: a left fold in ascending order that starts with the first.
    fn fold(&mut self, slot: usize) -> Gradient<T> {
        let mut ascending = self.take(slot).into_iter();
        let first = ascending.next()?;
        let Some(second) = ascending.next() else { return Some(first) };
        let mut sum = first.to_vec();
        add(&mut sum, &second);
        ascending.for_each(|more| add(&mut sum, &more));
        Some(sum.into())
    }
}

/// The gradients of every value of a frame. Uses of parameters are appended in descending order. Contributions to the
/// values of lists from ports stay in `pending`.
fn walk<T: Real>(
    frame: &Frame<'_, T>,
    pending: &mut Pending<T>,
    uses: &mut Vec<ParamUse<T>>,
) -> Result<Vec<Gradient<T>>, RunError> {
    let Frame { arena, slots, .. } = frame;
    let mut gradients: Vec<Gradient<T>> = vec![None; slots.len()];
    for node in arena.ids().rev() {
        let made = arena.results(node);
        for slot in made.clone() {
            gradients[slot] = pending.fold(slot);
        }
        if gradients[made.clone()].iter().all(Option::is_none) {
            continue;
        }
        if frame.is_graph() {
            for (gradient, value) in gradients[made.clone()].iter_mut().zip(&slots[made.clone()]) {
                if let (None, Some(Datum::Floats(elements))) = (&gradient, value) {
                    *gradient = Some(vec![T::ZERO; elements.len()].into());
                }
            }
        }
        let results = &gradients[made];
        let Some(partials) = partials(frame, node, results, uses)? else { continue };
        distribute(frame, node, partials, pending).map_err(|fault| frame.blame(node, fault))?;
    }
    Ok(gradients)
}

/// The contributions of one node to the gradients of its operands; `None` for ports and lists. At least one result must
/// have a gradient. Uses of parameters are appended in descending order.
pub(crate) fn partials<T: Real>(
    frame: &Frame<'_, T>,
    node: NodeId,
    results: &[Gradient<T>],
    uses: &mut Vec<ParamUse<T>>,
) -> Result<Option<Vec<Partial<T>>>, RunError> {
    let blame = |fault| frame.blame(node, fault);
    let partials = match frame.signature(node).callee {
        Callee::Op(Op::Port(_) | Op::List | Op::Append) => return Ok(None),
        Callee::Op(op) => {
            let call = frame.call(node).map_err(blame)?;
            let made: Option<Vec<Datum<T>>> =
                frame.slots[frame.arena.results(node)].iter().cloned().collect();
            let made = made.ok_or_else(|| blame(RunFault::Malformed("a value is missing".to_owned())))?;
            let found = derivative::derive(&op, &call, &made, results).map_err(blame)?;
            uses.extend(found.params.into_iter().rev());
            found.operands
        }
        Callee::Cell(cell) => through_cell(frame, node, cell, results, uses)?,
    };
    Ok(Some(partials))
}

/// Adds contributions to the values of a node's operands, in descending order.
fn distribute<T: Real>(
    frame: &Frame<'_, T>,
    node: NodeId,
    partials: Vec<Partial<T>>,
    pending: &mut Pending<T>,
) -> Checked<()> {
    let operands = frame.arena.operands(node);
    if operands.len() != partials.len() {
        return malformed("an operand has no partial derivative");
    }
    for (operand, partial) in operands.iter().zip(partials).rev() {
        let Some(id) = operand.as_value() else { continue };
        match (partial, &frame.slots[id.index()]) {
            (Partial::None, _) => {}
            (Partial::One(contribution), Some(Datum::Floats(_))) => pending.push(id.index(), contribution),
            (Partial::Many(contributions), Some(Datum::List(items))) => {
                for (item, contributions) in items.iter().zip(contributions).rev() {
                    for contribution in contributions.into_iter().rev() {
                        pending.push(item.index(), contribution);
                    }
                }
            }
            _ => return malformed(format!("{id} has a gradient of the wrong kind")),
        }
    }
    Ok(())
}

/// The reverse of a cell call: evaluates its body again and traverses it in reverse.
fn through_cell<T: Real>(
    frame: &Frame<'_, T>,
    node: NodeId,
    cell: CellId,
    results: &[Gradient<T>],
    uses: &mut Vec<ParamUse<T>>,
) -> Result<Vec<Partial<T>>, RunError> {
    let mut inner = frame.enter(node, cell).map_err(|fault| frame.blame(node, fault))?;
    inner.evaluate()?;
    let mut pending = Pending::new(inner.slots.len());
    let body = &frame.scope.graph.module.cell_decl(cell).body;
    for (id, gradient) in body.results.iter().zip(results).rev() {
        if let Some(gradient) = gradient {
            pending.push(id.index(), Arc::clone(gradient));
        }
    }
    let gradients = walk(&inner, &mut pending, uses)?;
    let partial = |(port, list): (usize, &Option<Range<usize>>)| match list {
        Some(items) => Partial::Many(items.clone().map(|item| pending.take(item)).collect()),
        None => gradients[port].clone().map_or(Partial::None, Partial::One),
    };
    Ok(inner.lists.iter().enumerate().map(partial).collect())
}
