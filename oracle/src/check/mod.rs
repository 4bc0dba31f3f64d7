//! The proof that a plan computes what its graph says.
//!
//! It shares no code with any planner, and looks at nothing but the graph and the plan:
//! * **Lanes.** The plan is executed on the *names* of values. Each row holds the name of the value
//!   that was last written there; each operand of each lane must hold exactly the value (the list of
//!   values in the same order, the bound number of the same place) that the graph gives to the
//!   node behind the lane; the results get the node's names. At the end every output
//!   place holds the wanted value.
//! * **Kernels.** Once per kernel and signature, both are expanded to terms in a normal form and
//!   compared; see `terms`. Cells are inlined, so the comparison is against what the model wrote.
//! * **The reverse**, of plans that make gradients: every use of a value contributes once, in graph
//!   order; see `reverse`. What a derivative kernel computes is *compared*, with the reference's reverse mode of
//!   the one node, bit for bit on random numbers; it is not proved for all numbers, and
//!   [`Proof`] says so.
//! * **Promises.** Parameter arguments, nodes of their own, shared values, outputs, and the
//!   certificate's bound.
//!
//! Terms that are equal have equal bits by the definitions of [`numeric`](autobatch_ir::numeric), so the
//! forward part of a plan that passes has the bits of the graph. The converse does not hold: a plan may be right in a way
//! that the normal form does not see, and is refused.
//!
//! *Cost.* One look per operand and lane; a row's name stands in a flat table. A derivative kernel is
//! executed a few times, whatever the number of its lanes.

mod body;
mod bound;
mod kernel;
mod lanes;
mod report;
mod reverse;
mod terms;

#[cfg(test)]
mod tests;

pub use report::{Disagreement, Disagreements, Held, MAX_DISAGREEMENTS, Proof};
pub use reverse::PROBES;

use autobatch_ir::graph::{Callee, GraphData, Op};
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_ir::module::ParamKind;
use autobatch_ir::plan::{Kernel, Mode, OutputKey, Plan, RegKind, Step, StoreId, StoreKind, Verified};
use autobatch_ir::types::Type;
use lanes::Lanes;

/// What the plan is to be compared with.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The values wanted besides the graph's own outputs.
    pub values: &'a [ValueId],
    /// Whether dropout draws noise.
    pub training: bool,
}

/// Proves that a plan computes what a verified graph says. Of a plan with a reverse, the losses are
/// those that it has seeds for; see [`Proof::losses`]. Where a node has several results
/// that may be losses, which seed is whose is told by order alone: [`check_losses`] knows. A constant that is
/// brought in once more, as it is, counts as a loss if the plan gives its gradient.
///
/// A loss that leads to nothing that gets a gradient has no seed, so here the bound of a plan for training is that
/// of all nodes that it executes.
///
/// # Errors
/// Everything that the two disagree about, up to [`MAX_DISAGREEMENTS`].
pub fn check(plan: &Verified<Plan>, graph: &GraphData, wanted: Wanted<'_>) -> Result<Proof, Disagreements> {
    prove(plan, graph, wanted, None)
}

/// As [`check`], of a plan whose reverse must begin with these losses and their factors.
///
/// # Errors
/// Everything that the two disagree about, up to [`MAX_DISAGREEMENTS`].
pub fn check_losses(
    plan: &Verified<Plan>,
    graph: &GraphData,
    wanted: Wanted<'_>,
    losses: &[(ValueId, f32)],
) -> Result<Proof, Disagreements> {
    prove(plan, graph, wanted, Some(losses))
}

fn prove(
    plan: &Verified<Plan>,
    graph: &GraphData,
    wanted: Wanted<'_>,
    losses: Option<&[(ValueId, f32)]>,
) -> Result<Proof, Disagreements> {
    let mut report = Disagreements::default();
    structure(plan, graph, &mut report);
    parameters(plan, graph, &mut report);
    let named = graph.outputs.iter().map(|output| (OutputKey::named(&output.name), output.value));
    let values = wanted.values.iter().map(|&value| (OutputKey::Value(value), value));
    let outputs: Vec<(OutputKey, ValueId)> = named.chain(values).collect();
    let mut proof = Proof::default();
    if report.found().is_empty() {
        proof = Lanes::new(plan, graph, wanted.training, &mut report).execute(&outputs, losses);
        let known = |value: &ValueId| value.index() < graph.arena.values();
        let of_losses = losses.unwrap_or(&proof.losses).iter().map(|loss| loss.0);
        let of_gradients = of_losses.chain(proof.values.iter().copied());
        let any = losses.is_none() && plan.mode == Mode::Train;
        let executed = plan.lanes.iter().filter(|_| any).filter(|node| node.index() < graph.arena.len());
        let executed = executed.filter_map(|&node| graph.arena.results(node).next().map(ValueId::new));
        let wanted = outputs.iter().map(|output| output.1).chain(of_gradients).chain(executed);
        let values: Vec<ValueId> = wanted.filter(known).collect();
        let proved = bound::path_sum(graph, &values);
        let claimed = plan.certificate.bound;
        if u64::from(claimed) > proved {
            report.push(Disagreement::Bound { proved, claimed });
        }
    }
    if report.found().is_empty() { Ok(proof) } else { Err(report) }
}

fn structure(plan: &Plan, graph: &GraphData, report: &mut Disagreements) {
    let numbers = [
        ("structure", graph.structure(), plan.structure),
        ("bound words", graph.bindings.words.len() as u128, u128::from(plan.words)),
        ("bound floats", graph.bindings.floats.len() as u128, u128::from(plan.floats)),
    ];
    for (what, expected, found) in numbers {
        if expected != found {
            report.push(Disagreement::Structure { what, expected, found });
        }
    }
}

/// The first stores are the module's parameters.
fn parameters(plan: &Plan, graph: &GraphData, report: &mut Disagreements) {
    let declared = graph.module.params.iter().map(|decl| (&decl.name, decl.ty, StoreKind::Param(decl.kind)));
    let held = plan.stores.iter().map(|store| (&store.name, store.ty, store.kind));
    let spell = |decl: Option<(&String, Type, StoreKind)>| match decl {
        Some((name, ty, StoreKind::Param(ParamKind::Param))) => format!("param @{name}: {ty}"),
        Some((name, ty, StoreKind::Param(ParamKind::Table))) => format!("table @{name}: {ty}"),
        Some((name, ty, StoreKind::Grad(_))) => format!("the gradient @{name}: {ty}"),
        Some((name, ty, StoreKind::State(_))) => format!("the state @{name}: {ty}"),
        None => "nothing".to_owned(),
    };
    let params = graph
        .module
        .params
        .len()
        .max(plan.stores.iter().take_while(|store| matches!(store.kind, StoreKind::Param(_))).count());
    let mut pairs = (declared.map(Some).chain(std::iter::repeat(None)))
        .zip(held.map(Some).chain(std::iter::repeat(None)))
        .take(params)
        .enumerate();
    if let Some((number, (expected, found))) = pairs.find(|(_, (expected, found))| expected != found) {
        let store = StoreId(number as u32);
        report.push(Disagreement::Parameter { store, expected: spell(expected), found: spell(found) });
    }
}

/// Whether a step brings a constant of the graph into a field, perhaps one more. What brings other bits in is none: the
/// gradient of a constant begins with the factor of a loss.
fn brings_constant(plan: &Plan, graph: &GraphData, step: &Step) -> bool {
    let bits = constant_bits(plan.kernel(step));
    let mut lanes = plan.lanes(step).iter();
    bits.is_some() && lanes.all(|&node| node.index() < graph.arena.len() && constant(graph, node) == bits)
}

/// The bits of the elements of a node that is a constant.
fn constant(graph: &GraphData, node: NodeId) -> Option<u32> {
    let sig = graph.arena.node(node).sig;
    match graph.sigs.get(sig).callee {
        Callee::Op(Op::Fill { bits, .. }) => Some(bits),
        _ => None,
    }
}

/// The bits that a kernel of nothing but a constant gives.
fn constant_bits(kernel: &Kernel) -> Option<u32> {
    match (&kernel.results[..], kernel.ports, kernel.stages.len()) {
        ([result], 0, 0) => match kernel.regs.get(result.reg as usize)?.kind {
            RegKind::Const(bits) => Some(bits),
            _ => None,
        },
        _ => None,
    }
}
