//! Limits on graphs, checked before the interpreter allocates memory.
//!
//! A few dozen cells that each call the previous one twice describe 2^30 nodes, and a long chain of cells could exhaust
//! the stack. Two passes, over the bodies and over the graph, count both. Signatures are inferred again, so ops need
//! not check operands.

use super::error::{Checked, RunFault, malformed};
use autobatch_ir::graph::infer::infer;
use autobatch_ir::graph::{Arena, Callee, GraphData, Signature};
use autobatch_ir::id::TypeId;
use autobatch_ir::types::Type;

/// The maximum number of elements of all nodes together.
const MAX_ELEMENTS: u64 = 1 << 34;
/// The maximum depth of nested cell calls.
const MAX_DEPTH: u32 = 200;

/// The cost of evaluating a body once.
#[derive(Clone, Copy, Default)]
struct Cost {
    elements: u64,
    depth: u32,
}

/// Checks that a graph is small enough to evaluate and that its signatures are consistent.
pub(crate) fn check(graph: &GraphData) -> Checked<()> {
    for signature in graph.sigs.items() {
        check_signature(graph, signature)?;
    }
    let cells = cells(graph)?;
    let Cost { elements, depth } = cost_of(graph, &graph.arena, &cells)?;
    if elements > MAX_ELEMENTS {
        return Err(RunFault::TooLarge { elements, limit: MAX_ELEMENTS });
    }
    if depth > MAX_DEPTH {
        return Err(RunFault::TooDeep { depth, limit: MAX_DEPTH });
    }
    Ok(())
}

fn cells(graph: &GraphData) -> Checked<Vec<Cost>> {
    let mut cells = Vec::with_capacity(graph.module.cells.len());
    for cell in &graph.module.cells {
        let cost = cost_of(graph, &cell.body.arena, &cells)?;
        cells.push(Cost { depth: cost.depth + 1, ..cost });
    }
    Ok(cells)
}

/// For each signature of a checked graph, the number of elements that one call evaluates.
pub(crate) fn of_signatures(graph: &GraphData) -> Checked<Vec<u64>> {
    let cells = cells(graph)?;
    let of_types =
        |ids: &[TypeId]| ids.iter().map(|&ty| graph.ty(ty)).map(|ty| ty.shape.elements() as u64).sum::<u64>();
    let cost = |signature: &Signature| {
        let own = of_types(&signature.operands) + of_types(&signature.results);
        match signature.callee {
            Callee::Op(_) => own,
            Callee::Cell(cell) => own.saturating_add(cells[cell.index()].elements),
        }
    };
    Ok(graph.sigs.items().iter().map(cost).collect())
}

fn check_signature(graph: &GraphData, signature: &Signature) -> Checked<()> {
    let known = |ids: &[TypeId]| -> Checked<Vec<Type>> {
        let ty = |id: &TypeId| match graph.types.items().get(id.index()) {
            Some(&ty) => Ok(ty),
            None => malformed(format!("there is no {id}")),
        };
        ids.iter().map(ty).collect()
    };
    let operands = known(&signature.operands)?;
    let (params, results) = (known(&signature.param_types)?, known(&signature.results)?);
    if params.len() != signature.params.len() {
        return malformed("a signature has parameters without types");
    }
    let found = match signature.callee {
        Callee::Op(op) => match infer(&op, &operands, &params) {
            Ok(found) => found,
            Err(error) => return malformed(format!("{}: {error}", op.spelling())),
        },
        Callee::Cell(cell) => {
            let Some(decl) = graph.module.cells.get(cell.index()) else {
                return malformed(format!("there is no {cell}"));
            };
            let (body, types) = (&decl.body, decl.body.arena.value_types());
            let result = |id: &autobatch_ir::ValueId| types.get(id.index()).copied();
            let made: Option<Vec<TypeId>> = body.results.iter().map(result).collect();
            match (types.get(..body.ports), made) {
                (Some(ports), Some(made)) if *ports == *signature.operands => known(&made)?,
                _ => return malformed(format!("a signature does not fit {cell}")),
            }
        }
    };
    if found == results { Ok(()) } else { malformed("a signature and its callee have different results") }
}

fn cost_of(graph: &GraphData, arena: &Arena, cells: &[Cost]) -> Checked<Cost> {
    let mut total = Cost::default();
    for node in arena.nodes() {
        let Some(signature) = graph.sigs.items().get(node.sig.index()) else {
            return malformed(format!("there is no {}", node.sig));
        };
        let types = signature.results.iter().map(|&ty| graph.ty(ty)).filter(|ty| !ty.is_list);
        let mut elements = types.map(|ty| ty.shape.elements() as u64).sum::<u64>() + 1;
        if let Callee::Cell(cell) = signature.callee {
            let Some(callee) = cells.get(cell.index()) else {
                return malformed(format!("{cell} is called before it is declared"));
            };
            elements = elements.saturating_add(callee.elements);
            total.depth = total.depth.max(callee.depth);
        }
        total.elements = total.elements.saturating_add(elements);
    }
    Ok(total)
}
