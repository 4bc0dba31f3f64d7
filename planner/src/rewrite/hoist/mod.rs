//! Hoisting: computes the part of a recurrent cell that depends only on inputs for all steps at once, before the recurrence.
//!
//! A step of an LSTM multiplies `[x h]` by one weight. Only `h` waits for the previous step. The products with `x` can be one large
//! batch over all steps of all instances, which reads that half of the weight once instead of once per step.
//!
//! *Needs* a verified graph. *Ensures* the same bits of every value. A product is a chain over ascending rows of the weight, so
//! only its *first* factors can be hoisted; the rest continues the chain with `affine_rows{onto}`.
//!
//! *How.* An operand of a call is free if, in the whole graph, no value at this operand depends on a node of the same signature. A
//! call with free and other operands is a recurrence. Its cell is split: products of free operands, the first factors of other
//! products, and everything that these need (a looked-up row, a dropout mask from outside) move to a cell of their own. Values that
//! cross become ports of the other cell. Either all calls of a signature are split, or none.
//!
//! *Cost model*, with the default [`CostTable`](crate::schedule::CostTable): the hoisted weights are read in one batch instead of
//! one batch per node on the longest path. In return, every node writes and reads a row per crossing value, and there is one more
//! step. It pays if steps have few rows, not if they have hundreds.
//!
//! *Not hoisted*: cells that draw noise; marked nodes; factors after the first that is not free. In training also everything that
//! would change the order of a gradient sum: cells whose rest reads a hoisted port or a source of both halves; cells that use a
//! parameter in the rest before a use in the hoisted half; products of joined vectors with other readers; calls that pass one value
//! to both halves. So gradients keep their bits.
//!
//! *Cost.* One walk over the graph, two more per recurrence, and a copy if something is hoisted.
//!
//! ```text
//! cell @step[@0](%0, %1) { %2 = affine[@0](%0, %1)  %3 = tanh(%2)  return %3 }
//! cell @before.step[@0](%0) { %1 = affine_rows{row=0}[@0](%0)  return %1 }
//! cell @rest.step[@0](%0, %1) { %2 = affine_rows{row=4 onto}[@0](%1, %0)  %3 = tanh(%2)  return %3 }
//! ```

mod body;
mod cells;
mod recurrence;

use super::pass::{Change, Context, count};
use crate::schedule::CostTable;
use autobatch_ir::graph::rebuild::{Extension, Rebuild, Renaming};
use autobatch_ir::graph::{Callee, GraphData, Op, Operand, ParamArg};
use autobatch_ir::id::{SigId, ValueId};
use autobatch_ir::plan::Mode;
use body::{BodyPart, Half, Plan, cut};
use cells::{Call, declare};
use recurrence::{Recurrent, recurrent};
use std::borrow::Cow;

/// Hoists products out of recurrences.
pub(crate) fn hoist(graph: &GraphData, context: &Context<'_>) -> Option<Change> {
    let mut plans: Vec<(Recurrent, Plan<'_>)> = Vec::new();
    for found in recurrent(graph) {
        let Callee::Cell(cell) = graph.sigs.get(found.sig).callee else { continue };
        let Some(plan) = cut(graph, &graph.module.cell_decl(cell).body, &found.free) else { continue };
        let keeps = context.mode != Mode::Train || keeps_sums(graph, found.sig, &plan);
        if keeps && (context.eager || pays(graph, &found, &plan)) {
            plans.push((found, plan));
        }
    }
    if plans.is_empty() {
        return None;
    }
    let mut extension = Extension::new(graph);
    let calls: Vec<(SigId, [Call; 2])> = plans
        .iter()
        .map(|(found, plan)| (found.sig, declare(&mut extension, graph, found.sig, plan)))
        .collect();
    let hoisted = plans.iter().map(|(found, _)| found.applied).sum();
    let note =
        format!("products of {} hoisted out of {}", count(hoisted, "call"), count(plans.len(), "recurrence"));
    let (graph, renaming) = rewrite(graph, extension, &calls);
    Some(Change { graph, renaming, note })
}

/// Whether the crossing values cost less than reading the weights in all steps but one.
fn pays(graph: &GraphData, found: &Recurrent, plan: &Plan<'_>) -> bool {
    let table = CostTable::default();
    let (product, map) = (table.classes.product, table.classes.map);
    let saved = found.longest.saturating_sub(1) as f64 * plan.weights as f64 * product.weight_ns;
    let types = plan.crossing.iter().map(|&value| graph.ty(plan.body.arena.type_of(value)));
    let row: f64 = types.map(|ty| product.row_ns + 2.0 * ty.shape.elements() as f64 * map.unit_ns).sum();
    saved > found.applied as f64 * row + table.step_ns + product.fixed_ns
}

/// Whether gradients stay the same sums in the same order: no value is read by both halves, the first half uses no parameter after
/// a use in the rest, and vectors that are read through a join have no other reader.
fn keeps_sums(graph: &GraphData, sig: SigId, plan: &Plan<'_>) -> bool {
    let (arena, args) = (&plan.body.arena, &graph.sigs.get(sig).params);
    let [before, rest] = [Half::Before, Half::Rest].map(|half| plan.needed(half));
    if takes_one_value_twice(graph, sig, [&before, &rest]) || plan.shares_joined(graph) {
        return false;
    }
    let mut used_by_rest: Vec<ParamArg> = Vec::new();
    for node in arena.ids() {
        let [before, rest] = [before[node.index()], rest[node.index()]];
        let signature = graph.sigs.get(arena.node(node).sig);
        let is_constant = matches!(signature.callee, Callee::Op(Op::Fill { .. }));
        let is_shared = before && rest && plan.parts[node.index()] == BodyPart::Source && !is_constant;
        let crosses = || plan.reads(Half::Before, node).iter().any(|value| plan.crossing.contains(value));
        if is_shared || (before && crosses()) {
            return false;
        }
        // Two places of a call may hold one parameter.
        let given = |arg: &ParamArg| match *arg {
            ParamArg::Port(port) => args[port as usize],
            module => module,
        };
        let own: Vec<ParamArg> = signature.params.iter().map(given).collect();
        if before && own.iter().any(|arg| used_by_rest.contains(arg)) {
            return false;
        }
        if rest {
            used_by_rest.extend(own);
        }
    }
    true
}

/// Whether a call takes a value in both halves: what these contribute to its gradient would be in another order, if
/// the rest takes it at an earlier place.
fn takes_one_value_twice(graph: &GraphData, sig: SigId, [before, rest]: [&[bool]; 2]) -> bool {
    let arena = &graph.arena;
    let is_list = |value: ValueId| graph.type_of(value).is_list;
    let items = |value: ValueId| match is_list(value) {
        true => arena.items(value, &graph.sigs),
        false => Cow::default(),
    };
    let mut taken: Vec<ValueId> = Vec::new();
    arena.ids().filter(|&node| arena.node(node).sig == sig).any(|node| {
        let values = |half: &[bool], taken: &mut dyn FnMut(ValueId)| {
            let places = arena.operands(node).iter().zip(half).filter(|(_, needed)| **needed);
            for value in places.filter_map(|(operand, _)| operand.as_value()) {
                let own = (!is_list(value)).then_some(value);
                own.into_iter()
                    .chain(items(value).iter().filter_map(|item| item.as_value()))
                    .for_each(&mut *taken);
            }
        };
        taken.clear();
        values(before, &mut |value| taken.push(value));
        taken.sort_unstable();
        let mut both = false;
        values(rest, &mut |value| both |= taken.binary_search(&value).is_ok());
        both
    })
}

fn rewrite(graph: &GraphData, extension: Extension, calls: &[(SigId, [Call; 2])]) -> (GraphData, Renaming) {
    let mut rebuild = Rebuild::over(graph, extension.finish());
    let mut of_sig: Vec<Option<usize>> = vec![None; graph.sigs.items().len()];
    let mut sigs = Vec::with_capacity(calls.len());
    for (number, (sig, halves)) in calls.iter().enumerate() {
        of_sig[sig.index()] = Some(number);
        sigs.push([0, 1].map(|half: usize| rebuild.sig(halves[half].signature.clone())));
    }
    let mut operands: Vec<Operand> = Vec::new();
    for node in graph.arena.ids() {
        let old = graph.arena.node(node);
        let Some(number) = of_sig[old.sig.index()] else {
            rebuild.copy(node);
            continue;
        };
        let ([before, rest], given) = (&calls[number].1, graph.arena.operands(node));
        operands.clear();
        operands.extend(before.places.iter().map(|&place| given[place]));
        let done = rebuild.apply(node, sigs[number][0], &operands, old.site).index();
        operands.clear();
        operands.extend(rest.places.iter().map(|&place| rebuild.renamed(given[place])));
        let crossing = before.signature.results.len();
        operands.extend((done..done + crossing).map(|value| Operand::value(ValueId::new(value))));
        let first = rebuild.append(node, sigs[number][1], &operands, old.site).index();
        for (place, value) in graph.arena.results(node).enumerate() {
            rebuild.name(ValueId::new(value), ValueId::new(first + place));
        }
    }
    rebuild.finish()
}
