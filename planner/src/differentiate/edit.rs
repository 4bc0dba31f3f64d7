//! Edits of a plan: adds slabs, rows and steps, and selects lanes of operands.

use crate::PlanError;
use crate::lower::{Run, numbered, progression, run_at_the_end};
use autobatch_ir::graph::{ListFold, Op};
use autobatch_ir::plan::{
    Field, FieldId, Kernel, KernelId, ListSource, Operand, Plan, PortRole, Reg, RegKind, ResultRole, Roles,
    Slab, SlabId, SlabKind, Stage, View,
};
use autobatch_ir::types::Type;
use std::sync::Arc;

/// The field whose rows an operand reads.
pub(super) fn operand_field(operand: Operand) -> Option<FieldId> {
    match operand {
        Operand::Rows { field, .. } | Operand::Table { field, .. } | Operand::Segments { field, .. } => {
            Some(field)
        }
        _ => None,
    }
}

/// Adds a node slab with fields of these types; gives its first field.
pub(super) fn add_slab(plan: &mut Plan, types: &[Type]) -> FieldId {
    let first = plan.fields.len() as u32;
    let slab = SlabId(plan.slabs.len() as u32);
    for (number, &ty) in (0..).zip(types) {
        plan.fields.push(Field { slab, name: numbered(b'g', number), ty });
    }
    plan.slabs.push(Slab { kind: SlabKind::Node, rows: 0, fields: first..plan.fields.len() as u32 });
    FieldId(first)
}

/// Adds rows to the slab of a field; gives the first of them.
pub(super) fn grow(plan: &mut Plan, field: FieldId, rows: u32) -> Result<u32, PlanError> {
    let slab = plan.field(field).slab;
    let slab = &mut plan.slabs[slab.index()];
    let first = slab.rows;
    slab.rows = first.checked_add(rows).ok_or(PlanError::TooLarge)?;
    Ok(first)
}

pub(super) fn kernel_id(plan: &mut Plan, kernel: &Arc<Kernel>) -> KernelId {
    // Mostly an earlier step has the same allocation.
    let kernels = &plan.kernels;
    let known = kernels.iter().position(|known| Arc::ptr_eq(known, kernel));
    let known = known.or_else(|| kernels.iter().position(|known| known == kernel));
    KernelId(known.unwrap_or_else(|| {
        plan.kernels.push(Arc::clone(kernel));
        plan.kernels.len() - 1
    }) as u32)
}

/// Removes kernels that no step executes. `numbers` is working memory.
pub(super) fn drop_unused_kernels(plan: &mut Plan, numbers: &mut Vec<u32>) {
    const UNUSED: u32 = u32::MAX;
    numbers.clear();
    numbers.resize(plan.kernels.len(), UNUSED);
    plan.steps.iter().for_each(|step| numbers[step.kernel.index()] = 0);
    let used = numbers.iter_mut().filter(|number| **number != UNUSED);
    used.zip(0..).for_each(|(number, new)| *number = new);
    let mut old = numbers.iter();
    plan.kernels.retain(|_| old.next() != Some(&UNUSED));
    plan.steps.iter_mut().for_each(|step| step.kernel = KernelId(numbers[step.kernel.index()]));
}

/// Ends a wave, unless it is empty.
pub(super) fn close_wave(plan: &mut Plan) {
    let end = plan.steps.len() as u32;
    if plan.waves.last().copied().unwrap_or(0) < end {
        plan.waves.push(end);
    }
}

/// Appends lists to the tables; gives the operand that names them.
pub(super) fn segments<'a>(
    tables: &mut Vec<u32>,
    field: FieldId,
    lists: impl ExactSizeIterator<Item = &'a [u32]>,
) -> Operand {
    append_lists(tables, field, lists, |tables, list| tables.extend_from_slice(list))
}

/// Appends to the tables the list that `append` makes of each item; gives the operand that names them.
#[inline]
fn append_lists<T>(
    tables: &mut Vec<u32>,
    field: FieldId,
    items: impl ExactSizeIterator<Item = T>,
    append: impl Fn(&mut Vec<u32>, T),
) -> Operand {
    let offsets = tables.len();
    let first = offsets + items.len() + 1;
    tables.resize(first, 0);
    for (end, item) in (offsets + 1..first).zip(items) {
        append(tables, item);
        tables[end] = (tables.len() - first) as u32;
    }
    Operand::Segments { field, offsets: offsets as u32, items: first as u32 }
}

/// An operand of some lanes of a step of `rows` rows.
pub(super) fn only_lanes(tables: &mut Vec<u32>, operand: Operand, lanes: &[u32], rows: u32) -> Operand {
    if lanes.len() == rows as usize {
        return operand;
    }
    let run = match operand {
        Operand::Rows { start, stride, .. }
        | Operand::Words { start, stride }
        | Operand::Floats { start, stride } => {
            progression(tables, lanes.iter().map(|lane| start + lane * stride))
        }
        Operand::Table { at, .. } | Operand::WordTable { at } | Operand::FloatTable { at } => {
            let first = tables.len();
            for lane in lanes {
                tables.push(tables[(at + lane) as usize]);
            }
            run_at_the_end(tables, first)
        }
        Operand::Segments { field, offsets, items } => {
            return append_lists(tables, field, lanes.iter(), |tables, lane| {
                let bound = |at: u32| (items + tables[(offsets + at) as usize]) as usize;
                tables.extend_from_within(bound(*lane)..bound(lane + 1));
            });
        }
    };
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

/// The kernel that sums the contributions to a gradient.
pub(super) fn sum_kernel(ty: Type) -> Kernel {
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
        roles: Some(Roles { ports: vec![PortRole::Contributions], results: vec![ResultRole::Gradient] }),
    }
}
