//! Seeds: rows that hold the factors of losses, and the steps that write them.

use super::edit::{close_wave, grow, kernel_id};
use super::input::Input;
use super::reverse_steps::ContributionFields;
use crate::error::PlanError;
use crate::steps::append_step;
use autobatch_ir::plan::{FieldId, Kernel, Place, Plan, Reg, RegId, RegKind, ResultRole, Roles, View};
use autobatch_ir::types::Type;
use std::sync::Arc;

/// The number of kernels above which the next plan starts with none.
const MAX_KERNELS: usize = 64;

/// A loss that leads to a value that needs a gradient.
struct Seed {
    /// The field of the loss; after it got a row, the field of contributions.
    field: FieldId,
    /// The bits of its factor.
    factor: u32,
    /// The place of the loss in the request.
    loss: u32,
}

/// The seeds of a plan. Its memory is reused from plan to plan.
#[derive(Default)]
pub(super) struct Seeds {
    seeds: Vec<Seed>,
    /// Per loss of the request the row of its seed.
    pub(super) rows: Vec<Option<u32>>,
    kernels: Vec<Arc<Kernel>>,
}

impl Seeds {
    /// Allocates rows for seeds.
    pub(super) fn collect(
        &mut self,
        plan: &mut Plan,
        input: &Input<'_>,
        needs: &[bool],
        fields: &mut ContributionFields,
    ) -> Result<(), PlanError> {
        let Self { seeds, rows, .. } = self;
        seeds.clear();
        rows.clear();
        let losses = input.gradients.losses;
        rows.resize(losses.len(), None);
        for (loss, &(value, factor)) in (0..).zip(losses) {
            if needs[value.index()] {
                seeds.push(Seed { field: input.places.of(value).0, factor: factor.to_bits(), loss });
            }
        }
        seeds.sort_unstable_by_key(|seed| (seed.field, seed.factor, seed.loss));
        for group in seeds.chunk_by_mut(|a, b| (a.field, a.factor) == (b.field, b.factor)) {
            let field = fields.get_or_add(plan, group[0].field);
            let first = grow(plan, field, group.len() as u32)?;
            for (row, seed) in (first..).zip(group) {
                seed.field = field;
                rows[seed.loss as usize] = Some(row);
            }
        }
        seeds.sort_unstable_by_key(|seed| (seed.field, seed.factor, seed.loss));
        Ok(())
    }

    /// One source step for each field and factor.
    pub(super) fn steps(&mut self, plan: &mut Plan, input: &Input<'_>) {
        let Self { seeds, rows, kernels } = self;
        if kernels.len() > MAX_KERNELS {
            kernels.clear();
        }
        for group in seeds.chunk_by(|a, b| (a.field, a.factor) == (b.field, b.factor)) {
            let Seed { field, factor, loss } = group[0];
            let Some(start) = rows[loss as usize] else { continue };
            let reg = Reg { kind: RegKind::Const(factor), ty: plan.field(field).ty };
            let kernel = kernel_id(plan, &constant(kernels, reg));
            append_step(plan, kernel, |plan, _| {
                plan.places.push(Place::Rows { field, start });
                let loss = |seed: &Seed| input.gradients.losses[seed.loss as usize].0;
                plan.lanes.extend(group.iter().map(|seed| input.graph.arena.producer(loss(seed))));
            });
        }
        close_wave(plan);
    }
}

/// The kernel that writes a constant, found or made.
fn constant(kernels: &mut Vec<Arc<Kernel>>, reg: Reg) -> Arc<Kernel> {
    if let Some(known) = kernels.iter().find(|known| known.regs == [reg]) {
        return Arc::clone(known);
    }
    let Reg { ty: Type { shape, .. }, .. } = reg;
    let kernel = Arc::new(Kernel {
        name: "loss'".to_owned(),
        ports: 0,
        params: Vec::new(),
        regs: vec![reg],
        stages: Vec::new(),
        results: vec![View { reg: RegId(0), start: 0, width: shape.elements() as u32 }],
        source: true,
        roles: Some(Roles { ports: Vec::new(), results: vec![ResultRole::Seed] }),
    });
    kernels.push(Arc::clone(&kernel));
    kernel
}
