//! The reductions that make the gradients of parameters.

use super::emit::Emitter;
use super::reverse_steps::{ReverseStep, ReverseSteps};
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::{Plan, Reduction, ReductionPart, ReductionSum, Store, StoreId, StoreKind};
use autobatch_ir::types::{DType, Type};

/// The suffix of the name of a parameter's gradient.
const SUFFIX: &str = ".grad";

/// Working memory of reductions, reused from plan to plan.
#[derive(Default)]
pub(super) struct Reductions {
    /// Per parameter the store of its gradient, if it gets one.
    stores: Vec<Option<StoreId>>,
    /// Parameters whose names end like names of gradients, sorted by name.
    suffixed: Vec<u32>,
    parts: Vec<Part>,
}

/// A part of a reduction.
struct Part {
    /// The reduction.
    of: (StoreId, ReductionSum),
    /// Its place among all parts.
    number: u32,
    part: ReductionPart,
}

impl Reductions {
    /// Adds stores for gradients, and one reduction for each block of each parameter, over the steps in forward order.
    pub(super) fn add(
        &mut self,
        plan: &mut Plan,
        (graph, params): (&GraphData, &[bool]),
        (reverse_steps, emitter): (&ReverseSteps, &Emitter<'_>),
    ) {
        let Self { stores, suffixed, parts } = self;
        let decls = &graph.module.params;
        let name = |&param: &u32| decls[param as usize].name.as_str();
        suffixed.clear();
        suffixed.extend(
            (0..decls.len() as u32).filter(|param| name(param).trim_end_matches('_').ends_with(SUFFIX)),
        );
        suffixed.sort_unstable_by_key(|param| name(param));
        stores.clear();
        for ((param, decl), &wanted) in (0..).zip(decls).zip(params) {
            stores.push(wanted.then(|| {
                let ty = Type::new(DType::F32, decl.ty.shape);
                // Two gradients never have one name, but a parameter may have the name of a gradient.
                let mut name = [&decl.name, SUFFIX].concat();
                while suffixed.binary_search_by(|own| decls[*own as usize].name.cmp(&name)).is_ok() {
                    name.push('_');
                }
                plan.stores.push(Store { name, ty, kind: StoreKind::Grad(StoreId(param)) });
                StoreId(plan.stores.len() as u32 - 1)
            }));
        }
        parts.clear();
        for back in reverse_steps.all.iter().rev() {
            let lanes = reverse_steps.lanes(back).len() as u32;
            for lane in &emitter.derivative(back).reductions {
                let Some(store) = stores[argument(plan, back, lane.param).index()] else { continue };
                let x = lane.x.map(|from| emitter.operand(plan, back, from));
                let dy = emitter.operand(plan, back, lane.dy);
                let part = ReductionPart { lanes, each: lane.each, x, dy };
                parts.push(Part { of: (store, lane.sum), number: parts.len() as u32, part });
            }
        }
        parts.sort_unstable_by_key(|part| (part.of, part.number));
        for parts in parts.chunk_by(|a, b| a.of == b.of) {
            let (store, sum) = parts[0].of;
            let parts = parts.iter().map(|part| part.part).collect();
            plan.reductions.push(Reduction { store, sum, parts });
        }
    }
}

/// The store that the forward step names for an argument of its signature: that of a parameter.
fn argument(plan: &Plan, back: &ReverseStep, param: u32) -> StoreId {
    plan.stores(&plan.steps[back.step])[param as usize]
}
