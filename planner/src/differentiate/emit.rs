//! The steps in reverse: what forward steps save, operands, waves, the gradients of values.

use super::Gradients;
use super::backs::{Back, Backs, ContributionFields};
use super::contributions::Contributions;
use super::edit::{
    add_slab, begin_step, close_wave, drop_unused_kernels, end_step, fold_kernel, grow, kernel_id,
    only_lanes, segments,
};
use super::kernel::{Derivative, RowSource};
use super::signatures::Signatures;
use crate::PlanError;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_ir::plan::{FieldId, Kernel, Operand, OutputKey, Place, Plan, PlanOutput, PortRole};
use std::sync::Arc;

/// Lists for a while. Kept from plan to plan.
#[derive(Default)]
pub(super) struct Lists {
    places: Vec<Place>,
    kernels: Vec<u32>,
    asked: Vec<Asked>,
    /// Kernels that fold gradients that are wanted themselves.
    folds: Vec<Arc<Kernel>>,
}

/// A value whose gradient is wanted.
struct Asked {
    /// The field of the value.
    field: FieldId,
    value: ValueId,
    /// The field and row of its gradient.
    found: (FieldId, u32),
}

/// What steps are made of.
#[derive(Clone, Copy)]
pub(super) struct Emitter<'a> {
    pub(super) graph: &'a GraphData,
    pub(super) sigs: &'a Signatures,
    pub(super) backs: &'a Backs,
}

impl Emitter<'_> {
    pub(super) fn derivative(&self, back: &Back) -> &Arc<Derivative> {
        self.sigs[back.sig].derivative().expect("steps that have a reverse have a derivative")
    }

    /// The field of a register that forward steps save.
    fn saved(&self, back: &Back, save: u32) -> FieldId {
        let first = self.sigs[back.sig].saved.expect("signatures that save something have fields for it");
        FieldId(first.0 + save)
    }

    /// The field of a register that steps in reverse keep.
    fn kept(&self, back: &Back, kept: u32) -> FieldId {
        let first = self.sigs[back.sig].kept.expect("signatures that keep something have fields for it");
        FieldId(first.0 + kept)
    }

    /// Forward steps leave behind what their reverse reads.
    pub(super) fn save(&self, plan: &mut Plan, Lists { places, kernels, .. }: &mut Lists) {
        places.clear();
        places.append(&mut plan.places);
        let saving = |back: &&Back| !self.derivative(back).saves.is_empty();
        let mut backs = self.backs.all().iter().rev().filter(saving).peekable();
        for number in 0..plan.steps.len() {
            let start = plan.places.len() as u32;
            let old = plan.steps[number].places.clone();
            plan.places.extend_from_slice(&places[old.start as usize..old.end as usize]);
            if let Some(back) = backs.next_if(|back| back.step == number) {
                let derivative = self.derivative(back);
                let saves = 0..derivative.saves.len() as u32;
                plan.places.extend(
                    saves.map(|save| Place::Rows { field: self.saved(back, save), start: back.saved }),
                );
                plan.steps[number].kernel = kernel_id(plan, &derivative.forward);
            }
            plan.steps[number].places = start..plan.places.len() as u32;
        }
        drop_unused_kernels(plan, kernels);
    }

    /// The steps in reverse, in the waves of the forward steps backwards.
    pub(super) fn steps(
        &self,
        plan: &mut Plan,
        forward_waves: usize,
        (fields, contributions): (&ContributionFields, &Contributions),
    ) {
        // Backs stand in descending order of their steps, and waves are executed in that of their backs.
        let mut backs = self.backs.all().iter().peekable();
        for wave in (0..forward_waves).rev() {
            let start = wave.checked_sub(1).map_or(0, |before| plan.waves[before] as usize);
            while let Some(back) = backs.next_if(|back| back.step >= start) {
                self.step(plan, back, (fields, contributions));
            }
            close_wave(plan);
        }
    }

    fn step(
        &self,
        plan: &mut Plan,
        back: &Back,
        (fields, contributions): (&ContributionFields, &Contributions),
    ) {
        let derivative = self.derivative(back);
        let forward = plan.steps[back.step].clone();
        let begun = begin_step(plan);
        for &lane in self.backs.lanes(back) {
            plan.lanes.push(plan.lanes[(forward.lanes.start + lane) as usize]);
        }
        for &role in derivative.ports() {
            let operand = match role {
                PortRole::Gradient(result) => {
                    let place = plan.places(&forward)[result as usize];
                    let field = fields.get(place.field()).unwrap_or(FieldId(0));
                    let slot =
                        |&node: &NodeId| self.graph.arena.node(node).results as usize + result as usize;
                    let results = plan.lanes[begun.lanes..].iter().map(|node| ValueId::new(slot(node)));
                    segments(&mut plan.tables, field, results.map(|value| contributions.of(value)))
                }
                other => self.operand(plan, back, RowSource::Port(other)),
            };
            plan.operands.push(operand);
        }
        for (of, rows) in derivative.gradients.iter().zip(self.backs.rows(back)) {
            let (field, start) = (rows.field, rows.first);
            let list = derivative.ports().iter().position(|role| *role == PortRole::Operand(of.operand));
            plan.places.push(match (of.edges, list.map(|port| plan.operands[begun.operands + port])) {
                (true, Some(Operand::Segments { offsets, .. })) => Place::Edges { field, start, offsets },
                _ => Place::Rows { field, start },
            });
        }
        for kept in 0..derivative.kept.len() as u32 {
            plan.places.push(Place::Rows { field: self.kept(back, kept), start: back.kept });
        }
        let stores = forward.stores.start as usize..forward.stores.end as usize;
        plan.store_args.extend_from_within(stores);
        end_step(plan, &derivative.kernel, begun);
    }

    /// Where a step in reverse or a final finds something of its forward step, live lanes only.
    pub(super) fn operand(&self, plan: &mut Plan, back: &Back, from: RowSource) -> Operand {
        let step = &plan.steps[back.step];
        let rows = |field: FieldId, start: u32| Operand::Rows { field, start, stride: 1 };
        let of_all = match from {
            RowSource::Port(PortRole::Operand(place)) => plan.operands(step)[place as usize],
            RowSource::Port(PortRole::Result(result)) => match plan.places(step)[result as usize] {
                Place::Rows { field, start } => rows(field, start),
                Place::Table { field, at } => Operand::Table { field, at },
                Place::Edges { .. } => unreachable!("forward steps write rows"),
            },
            RowSource::Port(PortRole::Saved(save)) => rows(self.saved(back, save), back.saved),
            RowSource::Part(kept) => return rows(self.kept(back, kept), back.kept),
            RowSource::Contribution(number) => {
                let own = &self.backs.rows(back)[number as usize];
                return rows(own.field, own.first);
            }
            RowSource::Port(PortRole::Gradient(_) | PortRole::Contributions) => {
                unreachable!("reductions take rows of the node, not of its readers")
            }
        };
        only_lanes(&mut plan.tables, of_all, self.backs.lanes(back), step.rows)
    }

    /// Steps that fold the gradients that are wanted themselves; `place` is where a value is.
    pub(super) fn outputs(
        &self,
        plan: &mut Plan,
        request: &Gradients<'_>,
        (fields, contributions): (&mut ContributionFields, &Contributions),
        place: &dyn Fn(ValueId) -> (FieldId, u32),
        Lists { asked, folds, .. }: &mut Lists,
    ) -> Result<(), PlanError> {
        asked.clear();
        let nowhere = (FieldId(0), 0);
        asked.extend(request.values.iter().map(|&value| Asked {
            field: place(value).0,
            value,
            found: nowhere,
        }));
        asked.sort_unstable_by_key(|asked| (asked.field, asked.value));
        asked.dedup_by_key(|asked| asked.value);
        for wanted in asked.chunk_by_mut(|a, b| a.field == b.field) {
            let ty = plan.field(wanted[0].field).ty;
            let from = fields.get_or_add(plan, wanted[0].field);
            let to = add_slab(plan, &[ty]);
            grow(plan, to, wanted.len() as u32)?;
            let begun = begin_step(plan);
            let lists = wanted.iter().map(|asked| contributions.of(asked.value));
            let operand = segments(&mut plan.tables, from, lists);
            plan.operands.push(operand);
            plan.places.push(Place::Rows { field: to, start: 0 });
            plan.lanes.extend(wanted.iter().map(|asked| self.graph.arena.producer(asked.value)));
            let known = folds.iter().position(|fold| fold.regs[1].ty == ty).unwrap_or_else(|| {
                folds.push(Arc::new(fold_kernel(ty)));
                folds.len() - 1
            });
            end_step(plan, &folds[known], begun);
            wanted.iter_mut().zip(0..).for_each(|(asked, row)| asked.found = (to, row));
        }
        close_wave(plan);
        for &value in request.values {
            let key = (place(value).0, value);
            let at = asked.binary_search_by_key(&key, |asked| (asked.field, asked.value));
            let (field, row) = asked[at.expect("every value that is wanted is listed")].found;
            plan.outputs.push(PlanOutput { key: OutputKey::Gradient(value), field, row });
        }
        Ok(())
    }
}
