//! Edits of a plan: adds slabs, rows, kernels and waves.

use crate::error::PlanError;
use crate::spelling::numbered;
use autobatch_ir::graph::{ListFold, Op};
use autobatch_ir::plan::{
    Field, FieldId, Kernel, KernelId, ListSource, Plan, PortRole, Reg, RegId, RegKind, ResultRole, Roles,
    Slab, SlabId, SlabKind, Stage, View,
};
use autobatch_ir::types::Type;
use std::sync::Arc;

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

/// The kernel that sums the contributions to a gradient.
pub(super) fn sum_kernel(ty: Type) -> Kernel {
    let whole = View { reg: RegId(1), start: 0, width: ty.shape.elements() as u32 };
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
            lists: vec![ListSource::Port(RegId(0))],
            elements: vec![ty],
            dst: whole,
        }],
        results: vec![whole],
        source: false,
        roles: Some(Roles { ports: vec![PortRole::Contributions], results: vec![ResultRole::Gradient] }),
    }
}
