//! Reverse evaluation, with the summation order that the [module](super) defines.

use super::datum::{Datum, Run};
use super::derivative::{self, Addend, Link, Partial};
use super::error::{Checked, RunError, RunFault, malformed};
use super::frame::{Frame, Scope};
use super::uses::{ParamUse, add};
use autobatch_ir::graph::{Callee, GraphData, Op, Operand};
use autobatch_ir::id::{CellId, NodeId, ParamId, SigId, ValueId};
use autobatch_ir::numeric::{Real, tree};
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
    shards: &[NodeId],
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
    // Ascending uses, which stay in their order inside of a signature.
    uses.reverse();
    in_order_of_sums(graph, &mut uses);
    let params = sum_in_tree(0..shards.len() + 1, &|shard| {
        let begins = shard.checked_sub(1).map(|before| Some(shards[before]));
        let belongs = |node: Option<NodeId>| {
            begins.is_none_or(|first| first <= node)
                && shards.get(shard).is_none_or(|next| node < Some(*next))
        };
        let mut params: Vec<Option<Vec<T>>> = vec![None; graph.module.params.len()];
        for ParamUse { param, share, .. } in uses.iter().filter(|own| belongs(own.node)) {
            let shape = graph.module.param_shape(*param);
            let gradient = params[param.index()].get_or_insert_with(|| vec![T::ZERO; shape.elements()]);
            share.add_to(gradient, shape.width());
        }
        params
    });
    Ok(Gradients { values, params })
}

/// Adds the gradients of shards in the order of their tree.
fn sum_in_tree<T: Real>(
    node: Range<usize>,
    leaf: &impl Fn(usize) -> Vec<Option<Vec<T>>>,
) -> Vec<Option<Vec<T>>> {
    if node.len() == 1 {
        return leaf(node.start);
    }
    let middle = tree::middle(&node);
    let (mut sums, right) = (sum_in_tree(node.start..middle, leaf), sum_in_tree(middle..node.end, leaf));
    for (sum, right) in sums.iter_mut().zip(right) {
        match (sum, right) {
            (Some(sum), Some(right)) => add(sum, &right),
            (sum @ None, right) => *sum = right,
            (Some(_), None) => {}
        }
    }
    sums
}

/// Sorts the uses of parameters from the order of the nodes to that of the sums: by signature, place in its body, and node.
fn in_order_of_sums<T>(graph: &GraphData, uses: &mut Vec<ParamUse<T>>) {
    let ranks = graph.sigs.ranks(&graph.types);
    let mut keyed: Vec<((u32, usize), ParamUse<T>)> = Vec::with_capacity(uses.len());
    let (mut before, mut place) = (None, 0);
    for own in uses.drain(..) {
        place = if own.node == before { place + 1 } else { 0 };
        before = own.node;
        let rank = own.node.map_or(0, |node| ranks[graph.arena.node(node).sig.index()]);
        keyed.push(((rank, place), own));
    }
    keyed.sort_by_key(|(key, _)| *key);
    uses.extend(keyed.into_iter().map(|(_, own)| own));
}

fn spell<T>(scope: &Scope<'_, T>, value: ValueId) -> String {
    if value.index() < scope.graph.arena.values() {
        format!("{value}: {}", scope.graph.type_of(value))
    } else {
        format!("{value}, which does not exist")
    }
}

/// A contribution to the gradient of a slot.
enum Contribution<T> {
    Addend(Addend<T>),
    /// Chains stand where the last node of the chain contributes.
    Chain(Chain<T>),
}

/// The contributions of all nodes that attend to an item. Links descend by node.
struct Chain<T> {
    key: ChainKey,
    links: Vec<Link<T>>,
}

/// A chain goes over the nodes of one signature, for one use of one operand, that attend to the item together with a partner.
#[derive(PartialEq, Eq)]
struct ChainKey {
    sig: SigId,
    operand: usize,
    number: usize,
    partner: Operand,
}

impl<T: Real> Contribution<T> {
    fn elements(&self) -> Arc<[T]> {
        let links = match self {
            Self::Addend(addend) => return addend.elements(),
            Self::Chain(chain) => &chain.links,
        };
        let mut sum = vec![T::ZERO; links.first().map_or(0, |link| link.row.len())];
        links.iter().rev().for_each(|link| link.add_to(&mut sum));
        sum.into()
    }
}

/// Contributions to values, in descending order of uses, because the traversal runs in reverse.
struct Pending<T>(Vec<Vec<Contribution<T>>>);

impl<T: Real> Pending<T> {
    fn new(slots: usize) -> Self {
        Self((0..slots).map(|_| Vec::new()).collect())
    }

    fn push(&mut self, slot: usize, contribution: Arc<[T]>) {
        self.add(slot, Addend::Row(contribution));
    }

    fn add(&mut self, slot: usize, addend: Addend<T>) {
        self.0[slot].push(Contribution::Addend(addend));
    }

    fn link(&mut self, slot: usize, key: ChainKey, link: Link<T>) {
        for known in &mut self.0[slot] {
            if let Contribution::Chain(chain) = known
                && chain.key == key
            {
                return chain.links.push(link);
            }
        }
        self.0[slot].push(Contribution::Chain(Chain { key, links: vec![link] }));
    }

    /// All contributions to an item of a list port, in ascending order.
    fn take(&mut self, slot: usize) -> Vec<Addend<T>> {
        let descending = std::mem::take(&mut self.0[slot]).into_iter().rev();
        let addend = |contribution: Contribution<T>| match contribution {
            Contribution::Addend(addend) => addend,
            chain => Addend::Row(chain.elements()),
        };
        descending.map(addend).collect()
    }

    /// The sum of the contributions: a left fold in ascending order that starts with the first.
    fn fold(&mut self, slot: usize) -> Gradient<T> {
        let descending = std::mem::take(&mut self.0[slot]).into_iter();
        let mut ascending = descending.rev().map(|contribution| contribution.elements());
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
        let first = uses.len();
        let Some(partials) = partials(frame, node, results, uses)? else { continue };
        if frame.is_graph() {
            uses[first..].iter_mut().for_each(|own| own.node = Some(node));
        }
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
    for (place, (operand, partial)) in operands.iter().zip(partials).enumerate().rev() {
        let Some(id) = operand.as_value() else { continue };
        let mut partners = None;
        match (partial, &frame.slots[id.index()]) {
            (Partial::None, _) => {}
            (Partial::One(contribution), Some(Datum::Floats(_))) => pending.push(id.index(), contribution),
            (Partial::Many(contributions), Some(Datum::List(items))) => {
                for (item, (slot, addends)) in items.iter().zip(contributions).enumerate().rev() {
                    for (number, addend) in addends.into_iter().enumerate().rev() {
                        let at = Receiver { node, operand: place, list: id, item, number };
                        receive(frame, at, slot.index(), addend, &mut partners, pending);
                    }
                }
            }
            _ => return malformed(format!("{id} has a gradient of the wrong kind")),
        }
    }
    Ok(())
}

/// The item of an operand that gets a contribution, and the number of the contribution there.
#[derive(Clone, Copy)]
struct Receiver {
    node: NodeId,
    operand: usize,
    list: ValueId,
    item: usize,
    number: usize,
}

/// Adds a contribution to an item of a list. A link leaves a body if both lists are ports of it, and joins a chain in the graph.
/// `partners` holds an earlier partner with its items.
fn receive<T: Real>(
    frame: &Frame<'_, T>,
    at: Receiver,
    slot: usize,
    addend: Addend<T>,
    partners: &mut Option<(ValueId, Vec<Operand>)>,
    pending: &mut Pending<T>,
) {
    let Addend::Link(link) = addend else { return pending.add(slot, addend) };
    let partner = frame.arena.operands(at.node).get(link.partner).and_then(|partner| partner.as_value());
    let sigs = &frame.scope.graph.sigs;
    match partner {
        Some(partner) if frame.is_graph() => {
            if partners.as_ref().is_none_or(|known| known.0 != partner) {
                *partners = Some((partner, frame.arena.items(partner, sigs).into_owned()));
            }
            let items = partners.iter().flat_map(|(_, items)| items);
            let Some(&partner) = items.clone().nth(at.item) else { return };
            let sig = frame.arena.node(at.node).sig;
            let Receiver { operand, number, .. } = at;
            pending.link(slot, ChainKey { sig, operand, number, partner }, link);
        }
        Some(partner) if [at.list, partner].iter().all(|list| list.index() < frame.lists.len()) => {
            pending.add(slot, Addend::Link(Link { partner: partner.index(), ..link }));
        }
        _ => pending.push(slot, Addend::Link(link).elements()),
    }
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
