//! Reverse evaluation, with the summation order that the [module](super) defines.

use super::datum::{Datum, Run};
use super::derivative::{self, Partial};
use super::error::{Checked, RunError, RunFault, malformed};
use super::frame::{Level, Scope, Slots, call, enter, evaluate};
use super::uses::{ParamUse, add};
use autobatch_ir::graph::{Callee, Op};
use autobatch_ir::id::{CellId, NodeId, ParamId, ValueId};
use autobatch_ir::numeric::Real;
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
    let values = walk(scope, &Level::top(graph), &run.slots, &mut pending, &mut uses)?;
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

/// Contributions to values whose uses are not all processed yet. They arrive in descending order of
/// uses, since the traversal runs in reverse.
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

/// The gradients of every value of a level. Uses of parameters are appended in descending order.
/// Contributions to the values of lists from ports stay in `pending`.
fn walk<T: Real>(
    scope: &Scope<'_, T>,
    level: &Level<'_>,
    slots: &Slots<T>,
    pending: &mut Pending<T>,
    uses: &mut Vec<ParamUse<T>>,
) -> Result<Vec<Gradient<T>>, RunError> {
    let mut gradients: Vec<Gradient<T>> = vec![None; slots.len()];
    for node in level.arena.ids().rev() {
        let made = level.arena.results(node);
        for slot in made.clone() {
            gradients[slot] = pending.fold(slot);
        }
        if gradients[made.clone()].iter().all(Option::is_none) {
            continue;
        }
        if level.is_graph() {
            for (gradient, value) in gradients[made.clone()].iter_mut().zip(&slots[made.clone()]) {
                if let (None, Some(Datum::Floats(elements))) = (&gradient, value) {
                    *gradient = Some(vec![T::ZERO; elements.len()].into());
                }
            }
        }
        let results = &gradients[made];
        let Some(partials) = partials(scope, level, slots, node, results, uses)? else { continue };
        distribute(level, slots, node, partials, pending).map_err(|fault| level.blame(scope, node, fault))?;
    }
    Ok(gradients)
}

/// The contributions of one node to the gradients of its operands; `None` for ports and lists. At
/// least one result must have a gradient. Uses of parameters are appended in descending order.
pub(crate) fn partials<T: Real>(
    scope: &Scope<'_, T>,
    level: &Level<'_>,
    slots: &Slots<T>,
    node: NodeId,
    results: &[Gradient<T>],
    uses: &mut Vec<ParamUse<T>>,
) -> Result<Option<Vec<Partial<T>>>, RunError> {
    let signature = scope.graph.sigs.get(level.arena.node(node).sig);
    let blame = |fault| level.blame(scope, node, fault);
    let partials = match signature.callee {
        Callee::Op(Op::Port(_) | Op::List) => return Ok(None),
        Callee::Op(op) => {
            let call = call(scope, level, slots, node, signature).map_err(blame)?;
            let made: Option<Vec<Datum<T>>> = slots[level.arena.results(node)].iter().cloned().collect();
            let made = made.ok_or_else(|| blame(RunFault::Malformed("a value is missing".to_owned())))?;
            let found = derivative::derive(&op, &call, &made, results).map_err(blame)?;
            uses.extend(found.params.into_iter().rev());
            found.operands
        }
        Callee::Cell(cell) => through_cell(scope, level, slots, node, cell, results, uses)?,
    };
    Ok(Some(partials))
}

/// Adds contributions to the values of a node's operands, in descending order.
fn distribute<T: Real>(
    level: &Level<'_>,
    slots: &Slots<T>,
    node: NodeId,
    partials: Vec<Partial<T>>,
    pending: &mut Pending<T>,
) -> Checked<()> {
    let operands = level.arena.operands(node);
    if operands.len() != partials.len() {
        return malformed("an operand has no partial derivative");
    }
    for (operand, partial) in operands.iter().zip(partials).rev() {
        let Some(id) = operand.as_value() else { continue };
        match (partial, &slots[id.index()]) {
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
    scope: &Scope<'_, T>,
    level: &Level<'_>,
    slots: &Slots<T>,
    node: NodeId,
    cell: CellId,
    results: &[Gradient<T>],
    uses: &mut Vec<ParamUse<T>>,
) -> Result<Vec<Partial<T>>, RunError> {
    let blame = |fault| level.blame(scope, node, fault);
    let entered = enter(scope, level, slots, node, cell).map_err(blame)?;
    let inner = evaluate(scope, &entered.level, entered.slots)?;
    let mut pending = Pending::new(inner.len());
    for (id, gradient) in entered.body.results.iter().zip(results).rev() {
        if let Some(gradient) = gradient {
            pending.push(id.index(), Arc::clone(gradient));
        }
    }
    let gradients = walk(scope, &entered.level, &inner, &mut pending, uses)?;
    let partial = |(port, list): (usize, &Option<std::ops::Range<usize>>)| match list {
        Some(items) => Partial::Many(items.clone().map(|item| pending.take(item)).collect()),
        None => gradients[port].clone().map_or(Partial::None, Partial::One),
    };
    Ok(entered.lists.iter().enumerate().map(partial).collect())
}
