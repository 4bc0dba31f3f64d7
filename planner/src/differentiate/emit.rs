//! The steps in reverse: rows for contributions, operands, waves, finals.

use super::Gradients;
use super::contributions::Contributions;
use super::edit::{
    add_slab, close_wave, drop_unused_kernels, edges_before, fold_kernel, gradient_name, grow, kernel_id,
    only_lanes, operand_field, push_step, recount, segments,
};
use super::kernel::{Derivative, From};
use crate::PlanError;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{AppId, SigId, ValueId};
use autobatch_ir::plan::{
    FieldId, Final, FinalPart, FinalSum, Kernel, Operand, Place, Plan, PlanOutput, Reg, RegKind, Store,
    StoreId, StoreKind, View,
};
use autobatch_ir::types::{DType, Type};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// What was decided before rows are numbered.
pub(super) struct Parts<'a> {
    /// Per value.
    pub(super) needs: &'a [bool],
    /// Per application.
    pub(super) live: &'a [bool],
    pub(super) derivatives: &'a BTreeMap<SigId, Option<Arc<Derivative>>>,
    /// Per parameter.
    pub(super) params: &'a [bool],
}

/// No step.
const NONE: u32 = u32::MAX;

/// A forward step and its reverse.
pub(super) struct Back {
    /// The forward step.
    step: usize,
    sig: SigId,
    derivative: Arc<Derivative>,
    /// The live lanes.
    lanes: Vec<u32>,
    /// Per gradient of an operand where its contributions are.
    pub(super) rows: Vec<Rows>,
    /// The gradients by operand, ascending.
    pub(super) groups: Vec<Group>,
    /// The first row of what it keeps for finals.
    kept: u32,
    /// The first row of what the forward step saves.
    saved: u32,
}

/// Rows of contributions that a result in reverse writes.
pub(super) struct Rows {
    field: FieldId,
    pub(super) first: u32,
    /// Of edges, how many come before each lane.
    pub(super) before: Vec<u32>,
}

/// The results in reverse that contribute to one operand.
pub(super) struct Group {
    pub(super) operand: u32,
    pub(super) list: bool,
    pub(super) uses: Range<usize>,
}

/// Fields that differentiation adds.
#[derive(Default)]
struct NewFields {
    /// Of contributions to gradients of values of a field.
    contributions: BTreeMap<FieldId, FieldId>,
    /// The first field of what is saved and kept for a signature.
    saved: BTreeMap<SigId, FieldId>,
    kept: BTreeMap<SigId, FieldId>,
}

pub(super) fn emit(
    plan: &mut Plan,
    graph: &GraphData,
    parts: &Parts<'_>,
    request: &Gradients<'_>,
) -> Result<(), PlanError> {
    let mut work = Work { graph, parts, fields: NewFields::default(), backs: Vec::new(), at: Vec::new() };
    let values = field_of_values(plan, graph);
    work.collect(plan)?;
    work.save(plan)?;
    let forward_steps = plan.steps.len();
    let seeds = work.seeds(plan, request, &values)?;
    let contributions = Contributions::new(&work, &seeds, request);
    let forward_waves: Vec<Range<usize>> = plan.waves().collect();
    work.seed_steps(plan, &seeds, request);
    // Backs stand in descending order of their steps, and waves are played in that of their backs.
    let mut ahead = 0..work.backs.len();
    for wave in forward_waves.into_iter().rev() {
        while let Some(back) = ahead.clone().next().filter(|&back| work.backs[back].step >= wave.start) {
            work.step(plan, back, &contributions, &values);
            ahead.start += 1;
        }
        close_wave(plan);
    }
    work.outputs(plan, request, &contributions, &values)?;
    work.finals(plan);
    plan.normalise();
    recount(plan, forward_steps);
    Ok(())
}

/// The field and row of every value that a step makes.
fn field_of_values(plan: &Plan, graph: &GraphData) -> Vec<(FieldId, u32)> {
    let mut values = vec![(FieldId(NONE), 0); graph.arena.values()];
    for step in &plan.steps {
        let first_results = plan.lanes(step).iter().map(|&app| graph.arena.app(app).results as usize);
        for (result, &place) in plan.places(step).iter().enumerate() {
            let slots = first_results.clone().map(|first| first + result);
            match place {
                Place::Rows { field, start } => {
                    slots.zip(start..).for_each(|(slot, row)| values[slot] = (field, row));
                }
                Place::Table { field, at } => {
                    let rows = &plan.tables[at as usize..];
                    slots.zip(rows).for_each(|(slot, &row)| values[slot] = (field, row));
                }
                Place::Edges { .. } => unreachable!("forward steps write rows"),
            }
        }
    }
    values
}

pub(super) struct Work<'a> {
    pub(super) graph: &'a GraphData,
    pub(super) parts: &'a Parts<'a>,
    fields: NewFields,
    pub(super) backs: Vec<Back>,
    /// Per application its back step and its lane there.
    pub(super) at: Vec<(u32, u32)>,
}

impl Work<'_> {
    /// Finds the steps with live lanes, last first, and gives rows to what they contribute and keep.
    fn collect(&mut self, plan: &mut Plan) -> Result<(), PlanError> {
        self.at = vec![(NONE, 0); self.graph.arena.len()];
        for number in (0..plan.steps.len()).rev() {
            let step = plan.steps[number].clone();
            let sig = self.graph.arena.app(plan.lanes(&step)[0]).sig;
            let Some(Some(derivative)) = self.parts.derivatives.get(&sig) else { continue };
            let derivative = Arc::clone(derivative);
            let back = self.backs.len() as u32;
            let mut lanes = Vec::with_capacity(step.rows as usize);
            for (lane, app) in (0..).zip(plan.lanes(&step)) {
                if self.parts.live[app.index()] {
                    self.at[app.index()] = (back, lanes.len() as u32);
                    lanes.push(lane);
                }
            }
            if lanes.is_empty() {
                continue;
            }
            let mut rows = Vec::with_capacity(derivative.gradients.len());
            for (of, made) in derivative.gradients.iter().zip(&derivative.kernel.results) {
                let operand = plan.operands(&step)[of.operand as usize];
                let (before, count) = edges_before(plan, operand, of.edges, &lanes);
                let field = operand_field(operand).expect("bound numbers want no gradients");
                let ty = derivative.kernel.regs[made.reg as usize].ty;
                // A step whose lists are all empty names any field: what it makes nobody reads.
                let field = match plan.field(field).ty.shape.elements() == made.width as usize {
                    true => self.contribution_field(plan, field),
                    false => add_slab(plan, &[ty.element()]),
                };
                rows.push(Rows { field, first: grow(plan, field, count)?, before });
            }
            let mut own =
                |map: fn(&mut NewFields) -> &mut BTreeMap<SigId, FieldId>, types: &[Type], rows: u32| {
                    if types.is_empty() {
                        return Ok(0);
                    }
                    let first = *map(&mut self.fields).entry(sig).or_insert_with(|| add_slab(plan, types));
                    grow(plan, first, rows)
                };
            let kept = own(|fields| &mut fields.kept, &derivative.kept, lanes.len() as u32)?;
            let saved = own(|fields| &mut fields.saved, &derivative.saves, step.rows)?;
            let groups = groups(self.graph, sig, &derivative);
            self.backs.push(Back { step: number, sig, derivative, lanes, rows, groups, kept, saved });
        }
        Ok(())
    }

    fn contribution_field(&mut self, plan: &mut Plan, field: FieldId) -> FieldId {
        let ty = plan.field(field).ty;
        *self.fields.contributions.entry(field).or_insert_with(|| add_slab(plan, &[ty]))
    }

    /// Forward steps leave behind what their reverse reads.
    fn save(&mut self, plan: &mut Plan) -> Result<(), PlanError> {
        let mut places = Vec::with_capacity(plan.places.len());
        let mut of_step: BTreeMap<usize, &Back> = BTreeMap::new();
        for back in self.backs.iter().filter(|back| !back.derivative.saves.is_empty()) {
            of_step.insert(back.step, back);
        }
        for number in 0..plan.steps.len() {
            let start = places.len() as u32;
            places.extend_from_slice(plan.places(&plan.steps[number]));
            if let Some(back) = of_step.get(&number) {
                let first = self.fields.saved[&back.sig];
                let saves = back.derivative.saves.len() as u32;
                places.extend(
                    (0..saves).map(|save| Place::Rows { field: FieldId(first.0 + save), start: back.saved }),
                );
                plan.steps[number].kernel = kernel_id(plan, &back.derivative.forward);
            }
            plan.steps[number].places = start..places.len() as u32;
        }
        plan.places = places;
        drop_unused_kernels(plan);
        Ok(())
    }

    /// The rows of losses that lead anywhere, by the order of the request.
    fn seeds(
        &mut self,
        plan: &mut Plan,
        request: &Gradients<'_>,
        values: &[(FieldId, u32)],
    ) -> Result<Vec<Option<(FieldId, u32)>>, PlanError> {
        let mut groups: BTreeMap<(FieldId, u32), Vec<usize>> = BTreeMap::new();
        for (number, &(value, scale)) in request.losses.iter().enumerate() {
            if self.parts.needs[value.index()] {
                let field = values[value.index()].0;
                groups.entry((field, scale.to_bits())).or_default().push(number);
            }
        }
        let mut seeds = vec![None; request.losses.len()];
        for ((field, _), losses) in groups {
            let field = self.contribution_field(plan, field);
            let first = grow(plan, field, losses.len() as u32)?;
            for (row, loss) in losses.into_iter().enumerate() {
                seeds[loss] = Some((field, first + row as u32));
            }
        }
        Ok(seeds)
    }

    /// One source step for each field and factor.
    fn seed_steps(&self, plan: &mut Plan, seeds: &[Option<(FieldId, u32)>], request: &Gradients<'_>) {
        let mut groups: BTreeMap<(FieldId, u32), Vec<(u32, AppId)>> = BTreeMap::new();
        for (&(value, scale), seed) in request.losses.iter().zip(seeds) {
            if let Some((field, row)) = *seed {
                let app = self.graph.arena.producer(value);
                groups.entry((field, scale.to_bits())).or_default().push((row, app));
            }
        }
        for ((field, bits), rows) in groups {
            let reg = Reg { kind: RegKind::Const(bits), ty: plan.field(field).ty };
            let width = plan.field(field).width();
            let kernel = Kernel {
                name: "loss'".to_owned(),
                ports: 0,
                params: Vec::new(),
                regs: vec![reg],
                stages: Vec::new(),
                results: vec![View { reg: 0, start: 0, width }],
                source: true,
            };
            let start = rows[0].0;
            let lanes: Vec<AppId> = rows.iter().map(|row| row.1).collect();
            push_step(plan, &Arc::new(kernel), &lanes, Vec::new(), vec![Place::Rows { field, start }], &[]);
        }
        close_wave(plan);
    }

    fn step(
        &mut self,
        plan: &mut Plan,
        back: usize,
        contributions: &Contributions,
        values: &[(FieldId, u32)],
    ) {
        let back = &self.backs[back];
        let forward = plan.steps[back.step].clone();
        let apps: Vec<AppId> = back.lanes.iter().map(|&lane| plan.lanes(&forward)[lane as usize]).collect();
        let mut operands = Vec::with_capacity(back.derivative.ports.len());
        for &port in &back.derivative.ports {
            operands.push(match port {
                From::Gradient(result) => {
                    let slot = |app: AppId| self.graph.arena.app(app).results as usize + result as usize;
                    let results = apps.iter().map(|&app| ValueId::new(slot(app)));
                    let first = slot(apps[0]);
                    let field = self.fields.contributions.get(&values[first].0);
                    segments(
                        plan,
                        field.copied().unwrap_or(FieldId(0)),
                        results.map(|value| contributions.of(value)),
                    )
                }
                other => self.operand(plan, back, other),
            });
        }
        let mut places: Vec<Place> = Vec::with_capacity(back.derivative.kernel.results.len());
        for (of, rows) in back.derivative.gradients.iter().zip(&back.rows) {
            let (field, start) = (rows.field, rows.first);
            let list = back.derivative.ports.iter().position(|port| *port == From::Operand(of.operand));
            places.push(match (of.edges, list.map(|port| operands[port])) {
                (true, Some(Operand::Segments { offsets, .. })) => Place::Edges { field, start, offsets },
                _ => Place::Rows { field, start },
            });
        }
        if let Some(first) = self.fields.kept.get(&back.sig) {
            let kept = 0..back.derivative.kept.len() as u32;
            places.extend(kept.map(|kept| Place::Rows { field: FieldId(first.0 + kept), start: back.kept }));
        }
        let stores = plan.stores(&forward).to_vec();
        push_step(plan, &back.derivative.kernel, &apps, operands, places, &stores);
    }

    /// Where a step in reverse or a final finds something of its forward step, live lanes only.
    fn operand(&self, plan: &mut Plan, back: &Back, from: From) -> Operand {
        let step = plan.steps[back.step].clone();
        match from {
            From::Operand(place) => {
                let operand = plan.operands(&step)[place as usize];
                only_lanes(plan, operand, &back.lanes, step.rows)
            }
            From::Result(result) => {
                let operand = match plan.places(&step)[result as usize] {
                    Place::Rows { field, start } => Operand::Rows { field, start, stride: 1 },
                    Place::Table { field, at } => Operand::Table { field, at },
                    Place::Edges { .. } => unreachable!("forward steps write rows"),
                };
                only_lanes(plan, operand, &back.lanes, step.rows)
            }
            From::Save(save) => {
                let field = FieldId(self.fields.saved[&back.sig].0 + save);
                let operand = Operand::Rows { field, start: back.saved, stride: 1 };
                only_lanes(plan, operand, &back.lanes, step.rows)
            }
            From::Kept(kept) => {
                let field = FieldId(self.fields.kept[&back.sig].0 + kept);
                Operand::Rows { field, start: back.kept, stride: 1 }
            }
            From::Contribution(number) => {
                let rows = &back.rows[number as usize];
                Operand::Rows { field: rows.field, start: rows.first, stride: 1 }
            }
            From::Gradient(_) => unreachable!("finals take what steps in reverse keep"),
        }
    }

    /// Steps that fold the gradients that are wanted themselves.
    fn outputs(
        &mut self,
        plan: &mut Plan,
        request: &Gradients<'_>,
        contributions: &Contributions,
        values: &[(FieldId, u32)],
    ) -> Result<(), PlanError> {
        let mut groups: BTreeMap<FieldId, Vec<ValueId>> = BTreeMap::new();
        for &value in request.values {
            groups.entry(values[value.index()].0).or_default().push(value);
        }
        let mut found: BTreeMap<ValueId, (FieldId, u32)> = BTreeMap::new();
        for (field, mut wanted) in groups {
            wanted.sort_unstable();
            wanted.dedup();
            let ty = plan.field(field).ty;
            let from = self.contribution_field(plan, field);
            let to = add_slab(plan, &[ty]);
            grow(plan, to, wanted.len() as u32)?;
            let operand = segments(plan, from, wanted.iter().map(|&value| contributions.of(value)));
            let lanes: Vec<AppId> = wanted.iter().map(|&value| self.graph.arena.producer(value)).collect();
            push_step(
                plan,
                &Arc::new(fold_kernel(ty)),
                &lanes,
                vec![operand],
                vec![Place::Rows { field: to, start: 0 }],
                &[],
            );
            found.extend(wanted.into_iter().enumerate().map(|(row, value)| (value, (to, row as u32))));
        }
        close_wave(plan);
        for value in request.values {
            let (field, row) = found[value];
            plan.outputs.push(PlanOutput { name: format!("grad {value}").into(), field, row });
        }
        Ok(())
    }

    /// One final for each block of each parameter, over the steps in forward order.
    fn finals(&self, plan: &mut Plan) {
        let mut stores: BTreeMap<usize, StoreId> = BTreeMap::new();
        for (param, _) in self.parts.params.iter().enumerate().filter(|(_, wanted)| **wanted) {
            let decl = &self.graph.module.params[param];
            let id = StoreId(plan.stores.len() as u32);
            let kind = StoreKind::Grad(StoreId(param as u32));
            plan.stores.push(Store {
                name: gradient_name(plan, &decl.name),
                ty: Type::new(DType::F32, decl.ty.shape),
                kind,
            });
            stores.insert(param, id);
        }
        let mut finals: BTreeMap<(StoreId, FinalSum), Vec<FinalPart>> = BTreeMap::new();
        for back in self.backs.iter().rev() {
            let step_stores = plan.stores(&plan.steps[back.step]).to_vec();
            for lane in &back.derivative.finals {
                let Some(&store) = stores.get(&step_stores[lane.param as usize].index()) else { continue };
                let x = lane.x.map(|from| self.operand(plan, back, from));
                let dy = self.operand(plan, back, lane.dy);
                let part = FinalPart { lanes: back.lanes.len() as u32, each: lane.each, x, dy };
                finals.entry((store, lane.sum)).or_default().push(part);
            }
        }
        plan.finals = finals.into_iter().map(|((store, sum), parts)| Final { store, sum, parts }).collect();
    }
}

/// The gradients of a signature by operand. A derivative lists them in ascending order.
fn groups(graph: &GraphData, sig: SigId, derivative: &Derivative) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (number, of) in derivative.gradients.iter().enumerate() {
        match groups.last_mut() {
            Some(last) if last.operand == of.operand => last.uses.end = number + 1,
            _ => {
                let list = graph.ty(graph.sigs.get(sig).operands[of.operand as usize]).is_list;
                groups.push(Group { operand: of.operand, list, uses: number..number + 1 });
            }
        }
    }
    groups
}
