//! The steps of the reverse: saved registers, operands, waves, and the gradients of values.

use super::contributions::Contributions;
use super::edit::{add_slab, close_wave, drop_unused_kernels, grow, kernel_id, sum_kernel};
use super::emitter::Emitter;
use super::input::Input;
use super::kernel::{GradientOf, GradientRows};
use super::operands::{segments, with_offsets};
use super::pulls::Pulls;
use super::reverse_steps::{ContributionFields, ReverseStep};
use crate::error::PlanError;
use crate::ids::{PartId, SaveId, WaveId};
use crate::steps::append_step;
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_ir::plan::{FieldId, Kernel, OutputKey, Place, Plan, PlanOutput, PortRole};
use std::sync::Arc;

/// Working memory of emission, reused from plan to plan.
#[derive(Default)]
pub(super) struct Lists {
    places: Vec<Place>,
    kernels: Vec<u32>,
    requested: Vec<Requested>,
    /// Kernels that sum requested gradients.
    sums: Vec<Arc<Kernel>>,
}

/// A value whose gradient is requested.
struct Requested {
    /// The field of the value.
    field: FieldId,
    value: ValueId,
    /// The field and row of its gradient.
    found: (FieldId, u32),
}

/// The contributions to gradients, which the steps of the reverse sum.
pub(super) struct Gathered<'a> {
    pub(super) fields: &'a ContributionFields,
    pub(super) contributions: &'a Contributions,
    pub(super) pulls: &'a Pulls,
}

impl Emitter<'_> {
    /// Makes forward steps save the registers that their reverse reads.
    pub(super) fn save(&self, plan: &mut Plan, Lists { places, kernels, .. }: &mut Lists) {
        places.clear();
        places.append(&mut plan.places);
        let saving = |back: &&ReverseStep| !self.derivative(back).saves.is_empty();
        let mut reverse_steps = self.reverse_steps.all.iter().rev().filter(saving).peekable();
        for number in 0..plan.steps.len() {
            let start = plan.places.len() as u32;
            let old = plan.steps[number].places.clone();
            plan.places.extend_from_slice(&places[old.start as usize..old.end as usize]);
            if let Some(back) = reverse_steps.next_if(|back| back.step == number) {
                let derivative = self.derivative(back);
                let saves = (0..derivative.saves.len() as u32).map(SaveId);
                plan.places.extend(
                    saves.map(|save| Place::Rows { field: self.saved(back, save), start: back.saved }),
                );
                plan.steps[number].kernel = kernel_id(plan, &derivative.forward);
            }
            plan.steps[number].places = start..plan.places.len() as u32;
        }
        drop_unused_kernels(plan, kernels);
    }

    /// Emits the steps of the reverse, in the waves of the forward steps, backwards.
    pub(super) fn steps(&self, plan: &mut Plan, forward_waves: usize, gathered: &Gathered<'_>) {
        // ReverseSteps stand in descending order of their steps, and waves are executed in that of their reverse_steps.
        let mut reverse_steps = self.reverse_steps.all.iter().peekable();
        for wave in (0..forward_waves).rev() {
            let start = wave.checked_sub(1).map_or(0, |before| plan.waves[before] as usize);
            while let Some(back) = reverse_steps.next_if(|back| back.step >= start) {
                self.step(plan, back, gathered);
            }
            close_wave(plan);
            gathered.pulls.emit(plan, WaveId(wave as u32), self);
            close_wave(plan);
        }
    }

    fn step(&self, plan: &mut Plan, back: &ReverseStep, gathered: &Gathered<'_>) {
        let Gathered { fields, contributions, .. } = gathered;
        let derivative = self.derivative(back);
        let forward = plan.steps[back.step].clone();
        let kernel = kernel_id(plan, &derivative.kernel);
        append_step(plan, kernel, |plan, start| {
            for &lane in self.reverse_steps.lanes(back) {
                plan.lanes.push(plan.lanes[(forward.lanes.start + lane) as usize]);
            }
            for &role in derivative.ports() {
                let operand = match role {
                    PortRole::Gradient(result) => {
                        let place = plan.places(&forward)[result as usize];
                        let field = fields.get(place.field()).unwrap_or(FieldId(0));
                        let slot = |&node: &NodeId| {
                            self.input.graph.arena.node(node).results as usize + result as usize
                        };
                        let results = plan.lanes[start.lanes..].iter().map(|node| ValueId::new(slot(node)));
                        segments(&mut plan.tables, field, results.map(|value| contributions.of(value)))
                    }
                    other => {
                        let operand = self.operand(plan, back, other);
                        let of_edges = |of: &GradientOf| {
                            other == PortRole::Operand(of.operand) && of.rows == GradientRows::Edges
                        };
                        match derivative.gradients.iter().any(of_edges) {
                            true => with_offsets(plan, operand, (plan.lanes.len() - start.lanes) as u32),
                            false => operand,
                        }
                    }
                };
                plan.operands.push(operand);
            }
            let own = derivative.gradients.iter().zip(self.reverse_steps.rows(back));
            for (of, rows) in own.filter(|(of, _)| of.rows != GradientRows::Pulled) {
                let (field, first) = (rows.field, rows.first);
                let list = derivative.ports().iter().position(|role| *role == PortRole::Operand(of.operand));
                let lists = list.and_then(|port| plan.operands[start.operands + port].address.lists());
                plan.places.push(match lists.filter(|_| of.rows == GradientRows::Edges) {
                    Some((offsets, _)) => Place::Edges { field, start: first, offsets },
                    None => Place::Rows { field, start: first },
                });
            }
            for part in (0..derivative.parts.len() as u32).map(PartId) {
                plan.places.push(Place::Rows { field: self.part(back, part), start: back.parts });
            }
            let stores = forward.stores.start as usize..forward.stores.end as usize;
            plan.store_args.extend_from_within(stores);
        });
    }

    /// Emits the steps that sum requested gradients, and their outputs.
    pub(super) fn outputs(
        &self,
        plan: &mut Plan,
        fields: &mut ContributionFields,
        contributions: &Contributions,
        Lists { requested, sums, .. }: &mut Lists,
    ) -> Result<(), PlanError> {
        let Input { gradients, places, .. } = self.input;
        requested.clear();
        let nowhere = (FieldId(0), 0);
        let all = gradients.values.iter();
        requested.extend(all.map(|&value| Requested { field: places.of(value).0, value, found: nowhere }));
        requested.sort_unstable_by_key(|own| (own.field, own.value));
        requested.dedup_by_key(|own| own.value);
        for of_field in requested.chunk_by_mut(|a, b| a.field == b.field) {
            let from = fields.get_or_add(plan, of_field[0].field);
            self.sum(plan, of_field, from, contributions, sums)?;
        }
        close_wave(plan);
        for &value in gradients.values {
            let key = (places.of(value).0, value);
            let at = requested.binary_search_by_key(&key, |own| (own.field, own.value));
            let (field, row) = requested[at.expect("every requested value is listed")].found;
            plan.outputs.push(PlanOutput { key: OutputKey::Gradient(value), field, row });
        }
        Ok(())
    }

    /// Emits the step that sums the requested gradients of the values of one field.
    fn sum(
        &self,
        plan: &mut Plan,
        requested: &mut [Requested],
        from: FieldId,
        contributions: &Contributions,
        sums: &mut Vec<Arc<Kernel>>,
    ) -> Result<(), PlanError> {
        let ty = plan.field(requested[0].field).ty;
        let to = add_slab(plan, &[ty]);
        grow(plan, to, requested.len() as u32)?;
        let known = sums.iter().position(|kernel| kernel.regs[1].ty == ty).unwrap_or_else(|| {
            sums.push(Arc::new(sum_kernel(ty)));
            sums.len() - 1
        });
        let kernel = kernel_id(plan, &sums[known]);
        append_step(plan, kernel, |plan, _| {
            let lists = requested.iter().map(|own| contributions.of(own.value));
            let operand = segments(&mut plan.tables, from, lists);
            plan.operands.push(operand);
            plan.places.push(Place::Rows { field: to, start: 0 });
            plan.lanes.extend(requested.iter().map(|own| self.input.graph.arena.producer(own.value)));
        });
        requested.iter_mut().zip(0..).for_each(|(own, row)| own.found = (to, row));
        Ok(())
    }
}
