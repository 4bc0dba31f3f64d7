//! Edits of a plan: slabs, rows, steps, operands of some lanes.

use crate::PlanError;
use crate::lower::{Run, progression};
use autobatch_ir::graph::{ListFold, Op};
use autobatch_ir::id::AppId;
use autobatch_ir::plan::{
    Field, FieldId, Kernel, KernelId, ListSource, Operand, Place, Plan, Reg, RegKind, Slab, SlabId, SlabKind,
    Stage, Step, StoreId, View,
};
use autobatch_ir::types::Type;
use std::sync::Arc;

/// A name that no store has yet.
pub(super) fn gradient_name(plan: &Plan, param: &str) -> String {
    let mut name = format!("{param}.grad");
    while plan.stores.iter().any(|store| store.name == name) {
        name.push('_');
    }
    name
}

/// The field that an operand reads rows of.
pub(super) fn operand_field(operand: Operand) -> Option<FieldId> {
    match operand {
        Operand::Rows { field, .. } | Operand::Table { field, .. } | Operand::Segments { field, .. } => {
            Some(field)
        }
        _ => None,
    }
}

/// How many edges come before each lane, and how many rows there are in all.
pub(super) fn edges_before(plan: &Plan, operand: Operand, edges: bool, lanes: &[u32]) -> (Vec<u32>, u32) {
    let Operand::Segments { offsets, .. } = operand else { return (Vec::new(), lanes.len() as u32) };
    if !edges {
        return (Vec::new(), lanes.len() as u32);
    }
    let mut total = 0;
    let mut before = Vec::with_capacity(lanes.len());
    for &lane in lanes {
        let offset = |at: u32| plan.tables[(offsets + at) as usize];
        before.push(total);
        total += offset(lane + 1) - offset(lane);
    }
    (before, total)
}

/// A slab of one row after the other with these fields; gives the first.
pub(super) fn add_slab(plan: &mut Plan, types: &[Type]) -> FieldId {
    let first = plan.fields.len() as u32;
    let slab = SlabId(plan.slabs.len() as u32);
    for (number, &ty) in types.iter().enumerate() {
        plan.fields.push(Field { slab, name: format!("g{number}"), ty });
    }
    plan.slabs.push(Slab { kind: SlabKind::App, rows: 0, fields: first..plan.fields.len() as u32 });
    FieldId(first)
}

/// The first of so many new rows of a field's slab.
pub(super) fn grow(plan: &mut Plan, field: FieldId, rows: u32) -> Result<u32, PlanError> {
    let slab = plan.field(field).slab;
    let slab = &mut plan.slabs[slab.index()];
    let first = slab.rows;
    slab.rows = first.checked_add(rows).ok_or(PlanError::TooLarge)?;
    Ok(first)
}

pub(super) fn kernel_id(plan: &mut Plan, kernel: &Arc<Kernel>) -> KernelId {
    // Mostly it is the very kernel of an earlier step.
    let kernels = &plan.kernels;
    let known = kernels.iter().position(|known| Arc::ptr_eq(known, kernel));
    let known = known.or_else(|| kernels.iter().position(|known| known == kernel));
    KernelId(known.unwrap_or_else(|| {
        plan.kernels.push(Arc::clone(kernel));
        plan.kernels.len() - 1
    }) as u32)
}

/// Forgets kernels that no step plays any more.
pub(super) fn drop_unused_kernels(plan: &mut Plan) {
    let mut used = vec![false; plan.kernels.len()];
    plan.steps.iter().for_each(|step| used[step.kernel.index()] = true);
    let mut renumbered = Vec::with_capacity(used.len());
    let mut kept = 0;
    for &used in &used {
        renumbered.push(kept);
        kept += u32::from(used);
    }
    let mut number = 0;
    plan.kernels.retain(|_| {
        number += 1;
        used[number - 1]
    });
    plan.steps.iter_mut().for_each(|step| step.kernel = KernelId(renumbered[step.kernel.index()]));
}

pub(super) fn push_step(
    plan: &mut Plan,
    kernel: &Arc<Kernel>,
    lanes: &[AppId],
    operands: Vec<Operand>,
    places: Vec<Place>,
    stores: &[StoreId],
) {
    let kernel = kernel_id(plan, kernel);
    let starts = [plan.operands.len(), plan.places.len(), plan.store_args.len(), plan.lanes.len()];
    plan.operands.extend(operands);
    plan.places.extend(places);
    plan.store_args.extend_from_slice(stores);
    plan.lanes.extend_from_slice(lanes);
    let range = |start: usize, end: usize| start as u32..end as u32;
    plan.steps.push(Step {
        kernel,
        rows: lanes.len() as u32,
        operands: range(starts[0], plan.operands.len()),
        places: range(starts[1], plan.places.len()),
        stores: range(starts[2], plan.store_args.len()),
        lanes: range(starts[3], plan.lanes.len()),
    });
}

/// Ends a wave, unless nothing was added to it.
pub(super) fn close_wave(plan: &mut Plan) {
    let end = plan.steps.len() as u32;
    if plan.waves.last().copied().unwrap_or(0) < end {
        plan.waves.push(end);
    }
}

pub(super) fn segments<'a>(
    plan: &mut Plan,
    field: FieldId,
    lists: impl ExactSizeIterator<Item = &'a [u32]>,
) -> Operand {
    let offsets = plan.tables.len();
    let items = offsets + lists.len() + 1;
    plan.tables.resize(items, 0);
    for (end, list) in (offsets + 1..items).zip(lists) {
        plan.tables.extend_from_slice(list);
        plan.tables[end] = (plan.tables.len() - items) as u32;
    }
    let (offsets, items) = (offsets as u32, items as u32);
    Operand::Segments { field, offsets, items }
}

/// An operand of some lanes of a step of `rows` rows.
pub(super) fn only_lanes(plan: &mut Plan, operand: Operand, lanes: &[u32], rows: u32) -> Operand {
    if lanes.len() == rows as usize {
        return operand;
    }
    let steady = |start: u32, stride: u32| move |&lane: &u32| start + lane * stride;
    let own: Vec<u32> = match operand {
        Operand::Rows { start, stride, .. }
        | Operand::Words { start, stride }
        | Operand::Floats { start, stride } => lanes.iter().map(steady(start, stride)).collect(),
        Operand::Table { at, .. } | Operand::WordTable { at } | Operand::FloatTable { at } => {
            lanes.iter().map(|&lane| plan.tables[(at + lane) as usize]).collect()
        }
        Operand::Segments { field, offsets, items } => {
            let lists: Vec<Vec<u32>> = lanes
                .iter()
                .map(|&lane| {
                    let range = |at: u32| (items + plan.tables[(offsets + at) as usize]) as usize;
                    plan.tables[range(lane)..range(lane + 1)].to_vec()
                })
                .collect();
            return segments(plan, field, lists.iter().map(Vec::as_slice));
        }
    };
    let run = progression(plan, own.into_iter());
    match (operand, run) {
        (Operand::Rows { field, .. } | Operand::Table { field, .. }, Run::Steady { start, stride }) => {
            Operand::Rows { field, start, stride }
        }
        (Operand::Rows { field, .. } | Operand::Table { field, .. }, Run::Table(at)) => {
            Operand::Table { field, at }
        }
        (Operand::Words { .. } | Operand::WordTable { .. }, Run::Steady { start, stride }) => {
            Operand::Words { start, stride }
        }
        (Operand::Words { .. } | Operand::WordTable { .. }, Run::Table(at)) => Operand::WordTable { at },
        (_, Run::Steady { start, stride }) => Operand::Floats { start, stride },
        (_, Run::Table(at)) => Operand::FloatTable { at },
    }
}

/// The sum of the contributions to a gradient.
pub(super) fn fold_kernel(ty: Type) -> Kernel {
    let whole = View { reg: 1, start: 0, width: ty.shape.elements() as u32 };
    let list = Reg { kind: RegKind::Port, ty: Type { is_list: true, ..ty } };
    let op = Op::ListFold(ListFold::Sum);
    Kernel {
        name: "gradient".to_owned(),
        ports: 1,
        params: Vec::new(),
        regs: vec![list, Reg { kind: RegKind::Temp, ty }],
        stages: vec![Stage::Seg {
            op,
            query: None,
            lists: vec![ListSource::Port(0)],
            elements: vec![ty],
            dst: whole,
        }],
        results: vec![whole],
        source: false,
    }
}

/// The certificate of the whole plan, of which so many steps are forward.
pub(super) fn recount(plan: &mut Plan, forward: usize) {
    let mut own = autobatch_ir::plan::Certificate { bound: plan.certificate.bound, ..Default::default() };
    own.slab_bytes = plan.slab_bytes();
    for (number, step) in plan.steps.iter().enumerate() {
        let (kernel, rows) = (plan.kernel(step), u64::from(step.rows));
        let batches = if number < forward { &mut own.batches } else { &mut own.reverse_batches };
        *batches += u32::from(!kernel.source);
        if kernel.only_moves() {
            own.copied += rows * step.places.len() as u64;
        }
        for operand in plan.operands(step) {
            match *operand {
                Operand::Rows { .. } => own.direct += rows,
                Operand::Table { .. } => own.tabled += rows,
                Operand::Segments { offsets, .. } => {
                    own.tabled += u64::from(plan.tables[offsets as usize + step.rows as usize]);
                }
                _ => {}
            }
        }
    }
    plan.certificate = own;
}
