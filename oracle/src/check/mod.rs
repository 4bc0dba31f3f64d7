//! The proof that a plan computes its graph.
//!
//! The proof uses no code of the planner. It reads only the graph and the plan.
//! * **Lanes.** The proof executes the plan on the *names* of values. Each row holds the name of the value that was
//!   last written there. Each operand of each lane must hold exactly what the graph gives to the node behind the lane:
//!   the value, the list of values in the same order, or the binding of the same place. The results get the node's
//!   names. At the end every output row holds the requested value.
//! * **Kernels.** The proof expands each kernel and its signature to terms in a normal form and compares them; see
//!   `terms`. It inlines cells, so it compares each kernel with the ops that the model wrote.
//! * **The reverse** of plans that make gradients. Every use of a value contributes once to its gradient, in graph
//!   order; see `reverse`. Derivative kernels are not proved for all numbers. The proof *compares* the result of each
//!   with the reference's derivative of a single node, bit for bit on random numbers, and [`Proof`] says so.
//! * **Promises.** The plan has the parameter arguments and outputs of the graph. Nodes marked `.alone()` are batches
//!   of their own, and shared values are shared. The certificate claims no larger bound than the oracle computes.
//!
//! Equal terms have equal bits, so the forward part of a proved plan has the bits of the graph. The converse does not
//! hold: the proof rejects a correct plan if the normal form does not show that it is correct.
//!
//! *Cost.* One comparison per operand and lane, and a few executions of each derivative kernel.

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
use autobatch_ir::plan::{Kernel, Mode, OutputKey, Plan, RegKind, StoreId, StoreKind, Verified};
use autobatch_ir::types::Type;
use lanes::Lanes;

/// The specification of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The values that were requested besides the graph's own outputs.
    pub values: &'a [ValueId],
    /// True if dropout draws noise.
    pub training: bool,
}

/// Proves that a plan computes a verified graph.
///
/// The function finds the losses in the seeds of the plan; see [`Proof::losses`]. If a node with several results has
/// several seeds, it assigns the seeds to the results in order, which may be wrong; [`check_losses`] takes the losses
/// from the caller. A loss that leads to no gradient has no seed. So for a plan for training, this function computes
/// the bound over all nodes that the plan executes, not only over the nodes that outputs and losses need.
///
/// # Errors
/// All disagreements, up to [`MAX_DISAGREEMENTS`].
pub fn check(plan: &Verified<Plan>, graph: &GraphData, wanted: Wanted<'_>) -> Result<Proof, Disagreements> {
    prove(plan, graph, wanted, None)
}

/// Proves, as [`check`] does, a plan whose reverse must begin with these losses and their factors.
///
/// # Errors
/// All disagreements, up to [`MAX_DISAGREEMENTS`].
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

/// Compares the first stores of the plan with the parameters of the module.
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

/// The bits of the elements of a constant node.
fn constant(graph: &GraphData, node: NodeId) -> Option<u32> {
    let sig = graph.arena.node(node).sig;
    match graph.sigs.get(sig).callee {
        Callee::Op(Op::Fill { bits, .. }) => Some(bits),
        _ => None,
    }
}

/// The bits that a kernel writes if it only writes a constant.
fn constant_bits(kernel: &Kernel) -> Option<u32> {
    match (&kernel.results[..], kernel.ports, kernel.stages.len()) {
        ([result], 0, 0) => match kernel.regs.get(result.reg.index())?.kind {
            RegKind::Const(bits) => Some(bits),
            _ => None,
        },
        _ => None,
    }
}
