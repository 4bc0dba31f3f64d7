//! The declarations of a plan: stores, bindings, slabs and fields.

use super::places::Places;
use crate::spelling::field_name;
use autobatch_ir::plan::{Certificate, Plan, Store, StoreKind};

/// Writes the declarations. Those of a growing plan replace the earlier ones.
pub(super) fn declare(places: &Places<'_>, plan: &mut Plan) {
    let Places { context, storage, rows } = *places;
    let graph = context.graph;
    let Certificate { batches, copied, direct, gathered, .. } = plan.certificate;
    plan.certificate = Certificate { batches, copied, direct, gathered, ..Certificate::default() };
    plan.stores.clear();
    plan.slabs.clear();
    plan.fields.clear();
    plan.outputs.clear();
    plan.module = graph.module.name.clone();
    plan.structure = graph.structure();
    plan.mode = context.request.mode;
    plan.stores.extend(graph.module.params.iter().map(|decl| Store {
        name: decl.name.clone(),
        ty: decl.ty,
        kind: StoreKind::Param(decl.kind),
    }));
    plan.words = graph.bindings.words.len() as u32;
    plan.floats = graph.bindings.floats.len() as u32;
    plan.slabs.extend_from_slice(&storage.slabs);
    plan.fields.extend_from_slice(&storage.fields);
    for (slab, &rows) in plan.slabs.iter_mut().zip(&rows.slab_rows) {
        slab.rows = rows;
        let own = &mut plan.fields[slab.fields.start as usize..slab.fields.end as usize];
        own.iter_mut().enumerate().for_each(|(number, field)| field.name = field_name(number));
    }
}
