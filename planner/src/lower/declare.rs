//! The declarations of a plan: stores, bindings, slabs and fields, with the names of fields.

use super::Places;
use autobatch_ir::plan::{Plan, Store, StoreKind};

/// Writes the declarations. The plan's lists of declarations are empty.
pub(super) fn declare(places: &Places<'_>, plan: &mut Plan) {
    let Places { context, storage, rows } = *places;
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

/// A letter or a sign, followed by a number, in a string of exactly that length. `format!` takes longer: the names of a large plan
/// took a tenth of planning.
pub(crate) fn numbered<T: for<'a> From<&'a str>>(letter: u8, number: u32) -> T {
    let mut bytes = [letter; MAX_LEN];
    spell(&mut bytes, number).into()
}

/// The name of a slab's field by its position: `a`, `b`, .., `z`, `f26`, ..
pub(crate) fn field_name(number: usize) -> String {
    match u8::try_from(number) {
        Ok(letter @ 0..26) => char::from(b'a' + letter).to_string(),
        _ => numbered(b'f', number as u32),
    }
}

/// The length of a sign and ten digits.
const MAX_LEN: usize = 11;

/// Writes a number behind the last sign before it.
fn spell(signs: &mut [u8; MAX_LEN], number: u32) -> &str {
    let (mut at, mut rest) = (signs.len(), number);
    loop {
        at -= 1;
        signs[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    std::str::from_utf8(&signs[at - 1..]).expect("a letter and digits are text")
}
