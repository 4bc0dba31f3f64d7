//! The steps in reverse: rows for contributions, operands, waves, finals.

use super::Gradients;
use super::kernel::{Derivative, From};
use crate::PlanError;
use crate::lower::{Run, progression};
use autobatch_ir::graph::{GraphData, ListFold, Op};
use autobatch_ir::id::{AppId, SigId, ValueId};
use autobatch_ir::plan::{
    Field, FieldId, Final, FinalPart, FinalSum, Kernel, KernelId, ListSource, Operand, Place, Plan,
    PlanOutput, Reg, RegKind, Slab, SlabId, SlabKind, Stage, Step, Store, StoreId, StoreKind, View,
};
use autobatch_ir::types::{DType, Type};
use std::collections::BTreeMap;
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
struct Back {
    /// The forward step.
    step: usize,
    sig: SigId,
    derivative: Arc<Derivative>,
    /// The live lanes.
    lanes: Vec<u32>,
    /// Per gradient of an operand where its contributions are.
    rows: Vec<Rows>,
    /// The first row of what it keeps for finals.
    kept: u32,
    /// The first row of what the forward step saves.
    saved: u32,
}

/// Rows of contributions that a result in reverse writes.
struct Rows {
    field: FieldId,
    first: u32,
    /// Of edges, how many come before each lane.
    before: Vec<u32>,
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
    let contributions = work.contributions(&seeds, request);
    let forward_waves: Vec<std::ops::Range<usize>> = plan.waves().collect();
    work.seed_steps(plan, &seeds, request);
    for wave in forward_waves.into_iter().rev() {
        let backs: Vec<usize> =
            (0..work.backs.len()).filter(|&back| wave.contains(&work.backs[back].step)).collect();
        backs.iter().for_each(|&back| work.step(plan, back, &contributions, &values));
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
        for (lane, &app) in plan.lanes(step).iter().enumerate() {
            for (slot, &place) in graph.arena.results(app).zip(plan.places(step)) {
                values[slot] = match place {
                    Place::Rows { field, start } => (field, start + lane as u32),
                    Place::Table { field, at } => (field, plan.tables[at as usize + lane]),
                    Place::Edges { .. } => unreachable!("forward steps write rows"),
                };
            }
        }
    }
    values
}

/// Contributions to the gradients of values, in the order of the graph.
struct Contributions {
    /// Where those of each value begin, and where the last one's end.
    start: Vec<u32>,
    rows: Vec<u32>,
}

impl Contributions {
    fn of(&self, value: ValueId) -> &[u32] {
        &self.rows[self.start[value.index()] as usize..self.start[value.index() + 1] as usize]
    }
}

struct Work<'a> {
    graph: &'a GraphData,
    parts: &'a Parts<'a>,
    fields: NewFields,
    backs: Vec<Back>,
    /// Per application its back step and its lane there.
    at: Vec<(u32, u32)>,
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
            let apps: Vec<AppId> = plan.lanes(&step).to_vec();
            let lanes: Vec<u32> =
                (0..step.rows).filter(|&lane| self.parts.live[apps[lane as usize].index()]).collect();
            if lanes.is_empty() {
                continue;
            }
            for (row, &lane) in lanes.iter().enumerate() {
                self.at[apps[lane as usize].index()] = (self.backs.len() as u32, row as u32);
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
            self.backs.push(Back { step: number, sig, derivative, lanes, rows, kept, saved });
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

    /// Every use of every value, in the order of the graph.
    fn contributions(&self, seeds: &[Option<(FieldId, u32)>], request: &Gradients<'_>) -> Contributions {
        let mut start = vec![0u32; self.graph.arena.values() + 1];
        self.for_each_contribution(seeds, request, |value, _| start[value.index() + 1] += 1);
        for value in 1..start.len() {
            start[value] += start[value - 1];
        }
        let mut next = start.clone();
        let mut rows = vec![0; start.last().copied().unwrap_or(0) as usize];
        self.for_each_contribution(seeds, request, |value, row| {
            rows[next[value.index()] as usize] = row;
            next[value.index()] += 1;
        });
        Contributions { start, rows }
    }

    fn for_each_contribution(
        &self,
        seeds: &[Option<(FieldId, u32)>],
        request: &Gradients<'_>,
        mut each: impl FnMut(ValueId, u32),
    ) {
        let graph = self.graph;
        for app in graph.arena.ids() {
            let (back, lane) = self.at[app.index()];
            let Some(back) = self.backs.get(back as usize) else { continue };
            let mut uses = back.derivative.gradients.iter().zip(&back.rows).peekable();
            while let Some((of, _)) = uses.peek() {
                let place = of.operand;
                let of_place = std::iter::from_fn(|| uses.next_if(|(of, _)| of.operand == place));
                let rows: Vec<&Rows> = of_place.map(|(_, rows)| rows).collect();
                let Some(value) = graph.arena.operands(app)[place as usize].as_value() else { continue };
                if !graph.arena.is_list(value, &graph.sigs) {
                    if self.parts.needs[value.index()] {
                        each(value, rows[0].first + lane);
                    }
                    continue;
                }
                let items = graph.arena.operands(graph.arena.producer(value));
                for (number, item) in items.iter().filter_map(|item| item.as_value()).enumerate() {
                    for rows in rows.iter().filter(|_| self.parts.needs[item.index()]) {
                        let edge = rows.before.get(lane as usize).map(|before| before + number as u32);
                        each(item, rows.first + edge.unwrap_or(lane));
                    }
                }
            }
        }
        for (&(value, _), seed) in request.losses.iter().zip(seeds) {
            if let Some((_, row)) = seed {
                each(value, *row);
            }
        }
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
                    let results = apps
                        .iter()
                        .map(|&app| ValueId::new(self.graph.arena.results(app).start + result as usize));
                    let first = self.graph.arena.results(apps[0]).start + result as usize;
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
            plan.outputs.push(PlanOutput { name: format!("grad {value}"), field, row });
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

/// A name that no store has yet.
fn gradient_name(plan: &Plan, param: &str) -> String {
    let mut name = format!("{param}.grad");
    while plan.stores.iter().any(|store| store.name == name) {
        name.push('_');
    }
    name
}

/// The field that an operand reads rows of.
fn operand_field(operand: Operand) -> Option<FieldId> {
    match operand {
        Operand::Rows { field, .. } | Operand::Table { field, .. } | Operand::Segments { field, .. } => {
            Some(field)
        }
        _ => None,
    }
}

/// How many edges come before each lane, and how many rows there are in all.
fn edges_before(plan: &Plan, operand: Operand, edges: bool, lanes: &[u32]) -> (Vec<u32>, u32) {
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
fn add_slab(plan: &mut Plan, types: &[Type]) -> FieldId {
    let first = plan.fields.len() as u32;
    let slab = SlabId(plan.slabs.len() as u32);
    for (number, &ty) in types.iter().enumerate() {
        plan.fields.push(Field { slab, name: format!("g{number}"), ty });
    }
    plan.slabs.push(Slab { kind: SlabKind::App, rows: 0, fields: first..plan.fields.len() as u32 });
    FieldId(first)
}

/// The first of so many new rows of a field's slab.
fn grow(plan: &mut Plan, field: FieldId, rows: u32) -> Result<u32, PlanError> {
    let slab = plan.field(field).slab;
    let slab = &mut plan.slabs[slab.index()];
    let first = slab.rows;
    slab.rows = first.checked_add(rows).ok_or(PlanError::TooLarge)?;
    Ok(first)
}

fn kernel_id(plan: &mut Plan, kernel: &Arc<Kernel>) -> KernelId {
    let known = plan.kernels.iter().position(|known| known == kernel);
    KernelId(known.unwrap_or_else(|| {
        plan.kernels.push(Arc::clone(kernel));
        plan.kernels.len() - 1
    }) as u32)
}

/// Forgets kernels that no step plays any more.
fn drop_unused_kernels(plan: &mut Plan) {
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

fn push_step(
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
fn close_wave(plan: &mut Plan) {
    let end = plan.steps.len() as u32;
    if plan.waves.last().copied().unwrap_or(0) < end {
        plan.waves.push(end);
    }
}

fn segments<'a>(plan: &mut Plan, field: FieldId, lists: impl Iterator<Item = &'a [u32]> + Clone) -> Operand {
    let offsets = plan.tables.len() as u32;
    let mut total = 0;
    plan.tables.push(0);
    for list in lists.clone() {
        total += list.len() as u32;
        plan.tables.push(total);
    }
    let items = plan.tables.len() as u32;
    lists.for_each(|list| plan.tables.extend_from_slice(list));
    Operand::Segments { field, offsets, items }
}

/// An operand of some lanes of a step of `rows` rows.
fn only_lanes(plan: &mut Plan, operand: Operand, lanes: &[u32], rows: u32) -> Operand {
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
fn fold_kernel(ty: Type) -> Kernel {
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
fn recount(plan: &mut Plan, forward: usize) {
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
