//! Estimates of the memory and the work behind a file, so that a case skips files that declare too much.
//!
//! A small file may declare a large computation. That is no defect: the limits of the library reject it where a caller asks. A
//! case must end within its budget, so it computes only what stays below [`MOST`].

use autobatch_ir::graph::{Arena, Callee, GraphData};
use autobatch_ir::id::{SigId, ValueId};
use autobatch_ir::module::Module;
use autobatch_ir::plan::{Plan, UpdatePlan};

/// The most elements that a case computes or stores.
const MOST: u64 = 1 << 16;
/// The most elements that the lanes of a plan compute or read together.
const MOST_WORK: u64 = 1 << 21;

/// Returns whether parameters of the module are few enough to be initialised.
pub(crate) fn is_small_module(module: &Module) -> bool {
    let elements = module.params.iter().map(|param| param.ty.shape.elements() as u64);
    elements.fold(0, u64::saturating_add) <= MOST
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

/// Returns whether a plan is small enough to be executed and proven.
pub(crate) fn is_small_plan(plan: &Plan) -> bool {
    let stores = plan.stores.iter().map(|store| store.ty.shape.elements() as u64);
    let registers = plan.kernels.iter().flat_map(|kernel| &kernel.regs);
    let registers = registers.map(|reg| reg.ty.shape.elements() as u64);
    let rows = plan.steps.iter().map(|step| u64::from(step.rows));
    let lanes = plan.reductions.iter().flat_map(|sum| &sum.parts).map(|part| u64::from(part.lanes));
    let bound = [u64::from(plan.words), u64::from(plan.floats), plan.slab_bytes()];
    let held = stores.chain(registers).chain(rows).chain(lanes).chain(bound).fold(0, u64::saturating_add);
    held <= 4 * MOST && work_of(plan) <= MOST_WORK
}

/// Adds the elements that the lanes of all steps compute or read.
fn work_of(plan: &Plan) -> u64 {
    let elements =
        |store: &autobatch_ir::plan::StoreId| plan.stores[store.index()].ty.shape.elements() as u64;
    let steps = plan.steps.iter().map(|step| {
        let registers = plan.kernel(step).regs.iter().map(|reg| reg.ty.shape.elements() as u64).sum::<u64>();
        let stores = plan.stores(step).iter().map(elements).sum::<u64>();
        u64::from(step.rows).saturating_mul(registers.saturating_add(stores))
    });
    steps.fold(0, u64::saturating_add)
}

/// Returns whether an update plan is small enough to be executed.
pub(crate) fn is_small_update(plan: &UpdatePlan) -> bool {
    let stores = plan.stores.iter().map(|store| store.ty.shape.elements() as u64);
    let registers = plan.kernels.iter().flat_map(|kernel| &kernel.regs);
    let registers = registers.map(|reg| reg.ty.shape.elements() as u64);
    stores.chain(registers).chain([u64::from(plan.floats)]).fold(0, u64::saturating_add) <= MOST
}
