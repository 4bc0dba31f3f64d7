//! The declarations of a plan: stores, bindings, slabs and fields.

use super::field_name;
use crate::order::Rows;
use crate::pipeline::Context;
use crate::storage::Storage;
use autobatch_ir::plan::{Plan, Store, StoreKind};

/// Writes the declarations. The plan's lists of declarations are empty.
pub(super) fn declare(context: &Context<'_>, storage: &Storage, rows: &Rows, plan: &mut Plan) {
    let graph = context.graph;
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
