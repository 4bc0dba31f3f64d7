//! Arrivals: rows that hold the gradients that arrive at a pause, and the steps that write them.
//!
//! An arriving gradient is a seed, as the factor of a loss is. Its row comes from bound floats instead of a constant. The steps
//! stand in the first wave after the pause.

use super::edit::{grow, kernel_id};
use super::input::Input;
use super::reverse_steps::ContributionFields;
use crate::error::PlanError;
use crate::steps::append_step;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::{
    Address, FieldId, Kernel, Origin, OutputKey, Pause, Place, Plan, PortRole, Reg, RegId, RegKind,
    ResultRole, Roles, StepOperand, View,
};
use autobatch_ir::types::Type;
use std::collections::HashMap;
use std::sync::Arc;

/// The number of kernels above which the next plan starts with none.
const MAX_KERNELS: usize = 64;

/// A value that needs a gradient and whose own gradient arrives.
struct Arrival {
    /// The field of the value; after it got a row, the field of contributions.
    field: FieldId,
    /// The place of the value in the request.
    number: u32,
    /// The place of its gradient among the bound floats.
    float: u32,
}

/// The arrivals of a plan. Its memory is reused from plan to plan.
#[derive(Default)]
pub(super) struct Arrivals {
    arrivals: Vec<Arrival>,
    /// Per arriving value of the request the row of its gradient, if it needs one.
    pub(super) rows: Vec<Option<u32>>,
    kernels: Vec<Arc<Kernel>>,
}

impl Arrivals {
    /// Declares the pause after the waves so far, and allocates a row for each gradient that the reverse reads.
    pub(super) fn collect(
        &mut self,
        plan: &mut Plan,
        input: &Input<'_>,
        needs: &[bool],
        fields: &mut ContributionFields,
    ) -> Result<(), PlanError> {
        let Input { graph, places, arriving, .. } = *input;
        let Self { arrivals, rows, .. } = self;
        arrivals.clear();
        rows.clear();
        rows.resize(arriving.len(), None);
        if arriving.is_empty() {
            return Ok(());
        }
        let mut float = plan.floats;
        for (number, &value) in (0..).zip(arriving) {
            if needs[value.index()] {
                arrivals.push(Arrival { field: places.of(value).0, number, float });
            }
            let width = graph.type_of(value).shape.elements();
            let end = u32::try_from(width).ok().and_then(|width| float.checked_add(width));
            float = end.ok_or(PlanError::TooLarge)?;
        }
        arrivals.sort_unstable_by_key(|arrival| (arrival.field, arrival.number));
        for group in arrivals.chunk_by_mut(|a, b| a.field == b.field) {
            let field = fields.get_or_add(plan, group[0].field);
            let first = grow(plan, field, group.len() as u32)?;
            for (row, arrival) in (first..).zip(group) {
                arrival.field = field;
                rows[arrival.number as usize] = Some(row);
            }
        }
        arrivals.sort_unstable_by_key(|arrival| (arrival.field, arrival.number));
        plan.pause = Some(pause(plan, graph, arriving));
        Ok(())
    }

    /// One source step for each field, in the wave of the other seeds.
    pub(super) fn steps(&mut self, plan: &mut Plan, input: &Input<'_>) {
        let Input { graph, arriving, .. } = *input;
        let Self { arrivals, rows, kernels } = self;
        if kernels.len() > MAX_KERNELS {
            kernels.clear();
        }
        for group in arrivals.chunk_by(|a, b| a.field == b.field) {
            let Arrival { field, number, .. } = group[0];
            let Some(start) = rows[number as usize] else { continue };
            let kernel = kernel_id(plan, &bringing(kernels, plan.field(field).ty));
            append_step(plan, kernel, |plan, _| {
                let floats = group.iter().map(|arrival| arrival.float);
                let address = Address::of(&mut plan.tables, floats);
                plan.operands.push(StepOperand { origin: Origin::Floats, address });
                plan.places.push(Place::Rows { field, start });
                let producer = |arrival: &Arrival| graph.arena.producer(arriving[arrival.number as usize]);
                plan.lanes.extend(group.iter().map(producer));
            });
        }
    }
}

/// The pause after the waves so far.
fn pause(plan: &Plan, graph: &GraphData, arriving: &[ValueId]) -> Pause {
    let mut numbers: HashMap<ValueId, u32> = HashMap::with_capacity(plan.outputs.len());
    let named = graph.outputs.iter().map(|output| output.value);
    let wanted = plan.outputs.iter().skip(graph.outputs.len()).filter_map(|output| match output.key {
        OutputKey::Value(value) => Some(value),
        OutputKey::Named(_) | OutputKey::Gradient(_) => None,
    });
    for (number, value) in (0..).zip(named.chain(wanted)) {
        numbers.entry(value).or_insert(number);
    }
    let outputs = arriving.iter().filter_map(|value| numbers.get(value).copied()).collect();
    Pause { waves: plan.waves.len() as u32, outputs }
}

/// The kernel that brings in bound floats of a type, found or made.
fn bringing(kernels: &mut Vec<Arc<Kernel>>, ty: Type) -> Arc<Kernel> {
    if let Some(known) = kernels.iter().find(|known| known.regs[0].ty == ty) {
        return Arc::clone(known);
    }
    let kernel = Arc::new(Kernel {
        name: "arriving".to_owned(),
        ports: 1,
        params: Vec::new(),
        regs: vec![Reg { kind: RegKind::Port, ty }],
        stages: Vec::new(),
        results: vec![View { reg: RegId(0), start: 0, width: ty.shape.elements() as u32 }],
        source: true,
        roles: Some(Roles { ports: vec![PortRole::Arriving], results: vec![ResultRole::Seed] }),
    });
    kernels.push(Arc::clone(&kernel));
    kernel
}
