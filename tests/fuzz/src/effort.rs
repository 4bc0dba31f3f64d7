//! Estimates of the memory and the work behind a file, so that a case skips files that declare too much.
//!
//! A small file may declare a large computation. That is no defect: the limits of the library reject it where a caller asks. A
//! case must end within its budget, so it computes only a small part of them.

use autobatch_ir::graph::{Arena, Callee, GraphData};
use autobatch_ir::id::{SigId, ValueId};
use autobatch_ir::module::Module;
use autobatch_ir::plan::{Limits, Plan, UpdatePlan, Verified};
use autobatch_runtime_cpu::footprint;

/// The most elements that a case computes or stores.
const MOST: u64 = 1 << 16;
/// The footprints of the plans that a case executes. An executor with these limits refuses every other plan.
pub(crate) const LIMITS: Limits = Limits { memory: Some(1 << 22), work: Some(1 << 22) };

/// Returns whether the elements are few enough to be given to an executor.
pub(crate) fn are_few(elements: impl IntoIterator<Item = u64>) -> bool {
    elements.into_iter().fold(0, u64::saturating_add) <= MOST
}

/// Adds the elements of all parameters of a module.
pub(crate) fn parameters(module: &Module) -> u64 {
    module.params.iter().map(|param| param.ty.shape.elements() as u64).fold(0, u64::saturating_add)
}

/// Returns whether parameters of the module are few enough to be initialised.
pub(crate) fn is_small_module(module: &Module) -> bool {
    are_few([parameters(module)])
}

/// Returns whether the values of a graph, with those inside its cells, are few enough to be computed.
pub(crate) fn is_small_graph(graph: &GraphData) -> bool {
    let module = &*graph.module;
    let mut cells: Vec<u64> = Vec::new();
    for cell in &module.cells {
        let body = &cell.body;
        let callee = |sig: SigId| module.sigs.get(sig).callee;
        let types = |value: ValueId| module.types.get(body.arena.type_of(value)).shape.elements() as u64;
        cells.push(work(&body.arena, &cells, callee, types));
    }
    let callee = |sig: SigId| graph.sigs.get(sig).callee;
    let types = |value: ValueId| graph.type_of(value).shape.elements() as u64;
    is_small_module(module) && work(&graph.arena, &cells, callee, types) <= MOST
}

/// Adds the elements of all values and the work of all called cells.
fn work(
    arena: &Arena,
    cells: &[u64],
    callee: impl Fn(SigId) -> Callee,
    elements: impl Fn(ValueId) -> u64,
) -> u64 {
    let values = (0..arena.values()).map(|value| elements(ValueId::new(value)));
    let calls = arena.ids().map(|node| match callee(arena.node(node).sig) {
        Callee::Cell(cell) => cells.get(cell.index()).copied().unwrap_or(u64::MAX),
        Callee::Op(_) => 1,
    });
    values.chain(calls).fold(0, u64::saturating_add)
}

/// Returns whether the footprint of a plan is small enough for the plan to be executed and proven.
pub(crate) fn is_small_plan(plan: &Verified<Plan>) -> bool {
    /// The number of threads of the largest executor.
    const THREADS: usize = 2;
    footprint(plan, THREADS).check(LIMITS).is_ok()
}

/// Returns whether an update plan is small enough to be executed.
pub(crate) fn is_small_update(plan: &UpdatePlan) -> bool {
    let stores = plan.stores.iter().map(|store| store.ty.shape.elements() as u64);
    let registers = plan.kernels.iter().flat_map(|kernel| &kernel.regs);
    let registers = registers.map(|reg| reg.ty.shape.elements() as u64);
    are_few(stores.chain(registers).chain([u64::from(plan.floats)]))
}
