//! Limits on graphs, checked before the interpreter allocates memory.
//!
//! A few dozen cells that each call the previous one twice describe 2^30 nodes, and a long chain of cells could exhaust
//! the stack. Two passes, over the bodies and over the graph, count both. Signatures are inferred again, so ops need
//! not check operands.

use super::error::{Checked, RunFault, malformed};
use autobatch_ir::graph::infer::infer;
use autobatch_ir::graph::verify::MAX_NESTING;
use autobatch_ir::graph::{Arena, Callee, GraphData, Op, Signature};
use autobatch_ir::id::{SigId, TypeId};
use autobatch_ir::types::Type;

/// The maximum number of elements of all nodes together.
const MAX_ELEMENTS: u64 = 1 << 34;

/// The cost of evaluating a body once.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    elements: u64,
    work: u64,
    depth: u32,
}

/// The cost of one call of a signature.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallCost {
    /// The elements that it reads and makes.
    pub(crate) elements: u64,
    /// The multiplications of its products, and one operation for each element.
    pub(crate) work: u64,
}

/// Checks that a graph is small enough to evaluate and that its signatures are consistent.
pub(crate) fn check(graph: &GraphData) -> Checked<()> {
    for signature in graph.sigs.items() {
        check_signature(graph, signature)?;
    }
    let cells = cells(graph)?;
    let Cost { elements, depth, .. } = cost_of(graph, &graph.arena, &cells)?;
    if elements > MAX_ELEMENTS {
        return Err(RunFault::TooLarge { elements, limit: MAX_ELEMENTS });
    }
    if depth > MAX_NESTING {
        return Err(RunFault::TooDeep { depth, limit: MAX_NESTING });
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

/// The cost of each signature of a checked graph.
pub(crate) fn of_signatures(graph: &GraphData) -> Checked<Vec<CallCost>> {
    let cells = cells(graph)?;
    Ok(graph.sigs.items().iter().map(|signature| of_signature(graph, &cells, signature)).collect())
}

fn of_signature(graph: &GraphData, cells: &[Cost], signature: &Signature) -> CallCost {
    let of_types =
        |ids: &[TypeId]| ids.iter().map(|&ty| graph.ty(ty)).map(|ty| ty.shape.elements() as u64).sum::<u64>();
    let own = of_types(&signature.operands) + of_types(&signature.results);
    let (elements, work) = match signature.callee {
        Callee::Op(op) => (0, products(graph, op, signature)),
        Callee::Cell(cell) => (cells[cell.index()].elements, cells[cell.index()].work),
    };
    CallCost { elements: own.saturating_add(elements), work: own.saturating_add(work) }
}

/// The work of a call of each signature of a graph that grows, as far as it was asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct SignatureWork {
    cells: Option<Vec<Cost>>,
    work: Vec<Option<u64>>,
}

impl SignatureWork {
    /// The work of a call; `None` if the graph is malformed.
    pub(super) fn of(&mut self, graph: &GraphData, sig: SigId) -> Option<u64> {
        if self.cells.is_none() {
            self.cells = Some(cells(graph).ok()?);
        }
        let cells = self.cells.as_deref()?;
        self.work.resize(graph.sigs.items().len(), None);
        let work = || of_signature(graph, cells, graph.sigs.get(sig)).work;
        Some(*self.work[sig.index()].get_or_insert_with(work))
    }
}

/// The products with the rows of labels: logits and slope.
const PRODUCTS_OF_LABEL_LOSS: u64 = 2;

/// The multiplications of an op.
fn products(graph: &GraphData, op: Op, signature: &Signature) -> u64 {
    let ty = |ids: &[TypeId]| ids.first().map(|&id| graph.ty(id).shape);
    let result = ty(&signature.results);
    let (rows, elements) = result.map_or((0, 0), |shape| (shape.rows() as u64, shape.elements() as u64));
    match op {
        Op::Affine { .. } | Op::AffineRows { .. } => {
            rows.saturating_mul(ty(&signature.param_types).map_or(0, |shape| shape.elements() as u64))
        }
        Op::LabelLoss => {
            let rows = ty(&signature.param_types).map_or(0, |shape| shape.elements() as u64);
            rows.saturating_mul(PRODUCTS_OF_LABEL_LOSS)
        }
        Op::Matmul => {
            elements.saturating_mul(ty(&signature.operands).map_or(0, |shape| shape.width() as u64))
        }
        _ => 0,
    }
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
        let own = types.map(|ty| ty.shape.elements() as u64).sum::<u64>() + 1;
        let (elements, work) = match signature.callee {
            Callee::Op(op) => (0, products(graph, op, signature)),
            Callee::Cell(cell) => {
                let Some(callee) = cells.get(cell.index()) else {
                    return malformed(format!("{cell} is called before it is declared"));
                };
                total.depth = total.depth.max(callee.depth);
                (callee.elements, callee.work)
            }
        };
        total.elements = total.elements.saturating_add(own).saturating_add(elements);
        total.work = total.work.saturating_add(own).saturating_add(work);
    }
    Ok(total)
}
