//! Lowering: batches with rows become steps with operands.
//!
//! *Needs* ordered batches. *Ensures* a complete plan: an operand whose rows are consecutive, or a
//! constant distance apart, or all the same, is named without a table; every other has one. Lists
//! become segments, in the order in which the model named them. *Cost.* Linear in operands.

mod draft;
mod numbered;

pub(crate) use draft::Draft;
pub(crate) use numbered::numbered;

use crate::PlanError;
use crate::grow::Placed;
use crate::order::{Batch, Order, field_of};
use crate::storage::{Storage, field_name};
use autobatch_ir::graph::{GraphData, OperandKind, ParamArg};
use autobatch_ir::id::{SigId, ValueId};
use autobatch_ir::plan::{
    Certificate, FieldId, Kernel, KernelId, Mode, Operand, OutputKey, Place, Plan, PlanOutput, Step, Store,
    StoreKind,
};
use std::sync::Arc;

/// What lowering needs besides the order.
pub(crate) struct Lowering<'a> {
    pub(crate) graph: &'a GraphData,
    pub(crate) storage: &'a Storage,
    pub(crate) order: &'a Order,
    pub(crate) mode: Mode,
    pub(crate) bound: u32,
    /// Values to read after the run, besides the graph's own outputs.
    pub(crate) asked: &'a [ValueId],
}

/// How far the operands of a batch were looked at.
struct Met<'a> {
    /// The slot of the next that is a value and no list.
    slot: usize,
    /// How many were bound, and how many were lists.
    bound: usize,
    lists: usize,
    /// The runs of slots.
    runs: &'a mut Vec<(usize, Run)>,
}

impl Lowering<'_> {
    /// The finished plan. `kernel_of` finds or compiles the kernel of a signature; what is added to the plan `afterwards` goes
    /// into kept memory, too, and is told where a value is.
    ///
    /// If there is an `earlier` plan, this one is that plan, longer; nothing is left of it.
    pub(crate) fn plan(
        &self,
        draft: &mut Draft,
        (earlier, placed): (Option<&mut Plan>, &Placed),
        mut kernel_of: impl FnMut(SigId) -> Arc<Kernel>,
        afterwards: impl FnOnce(&mut Plan, &dyn Fn(ValueId) -> (FieldId, u32)) -> Result<(), PlanError>,
    ) -> Result<Plan, PlanError> {
        let growing = earlier.is_some();
        // What grows step by step moves seldom.
        let mut plan = earlier.map_or_else(|| draft.lend(), |earlier| continued(std::mem::take(earlier)));
        self.frame(&mut plan);
        let (first_step, first_wave) = (plan.steps.len(), plan.waves.len() as u32);
        let Draft { kernel_ids, known_kernels, runs, asked, .. } = draft;
        known_kernels.clear();
        kernel_ids.clear();
        kernel_ids.resize(self.graph.sigs.items().len(), None);
        for (number, batch) in self.order.batches.iter().enumerate() {
            let kernel = *kernel_ids[batch.sig.index()].get_or_insert_with(|| {
                KernelId(known_kernels.number(&mut plan.kernels, kernel_of(batch.sig)))
            });
            match self.storage.sigs[batch.sig.index()].homes.is_empty() {
                true => self.step(&mut plan, kernel, (number, first_wave), runs),
                false => self.bring_in(&mut plan, kernel, (number, first_wave)),
            }
        }
        let place = |value| match placed.get(value) {
            Some(place) => place,
            None => (FieldId(field_of(self.graph, self.storage, value) as u32), self.order.row(value)),
        };
        self.finish(&mut plan, first_step, asked, place);
        let added = afterwards(&mut plan, &place);
        match growing {
            true => added.map(|()| plan),
            // The lists come back even where there is no plan.
            false => {
                let settled = draft.settle(plan);
                added.map(|()| settled)
            }
        }
    }

    /// Declares what the plan speaks of. Its lists of declarations are empty.
    fn frame(&self, plan: &mut Plan) {
        let module = &self.graph.module;
        plan.module = module.name.clone();
        plan.structure = self.graph.structure();
        plan.mode = self.mode;
        plan.stores.extend(module.params.iter().map(|decl| Store {
            name: decl.name.clone(),
            ty: decl.ty,
            kind: StoreKind::Param(decl.kind),
        }));
        plan.words = self.graph.bindings.words.len() as u32;
        plan.floats = self.graph.bindings.floats.len() as u32;
        plan.slabs.extend_from_slice(&self.storage.slabs);
        plan.fields.extend_from_slice(&self.storage.fields);
        for (slab, &rows) in plan.slabs.iter_mut().zip(&self.order.slab_rows) {
            slab.rows = rows;
            let own = &mut plan.fields[slab.fields.start as usize..slab.fields.end as usize];
            own.iter_mut().enumerate().for_each(|(number, field)| field.name = field_name(number));
        }
    }

    /// Lowers a batch; `runs` is working memory.
    fn step(
        &self,
        plan: &mut Plan,
        kernel: KernelId,
        (number, first_wave): (usize, u32),
        runs: &mut Vec<(usize, Run)>,
    ) {
        let batch = &self.order.batches[number];
        let signature = self.graph.sigs.get(batch.sig);
        let (operands, places) = (plan.operands.len() as u32, plan.places.len() as u32);
        let stores = plan.store_args.len() as u32;
        let storage = &self.storage.sigs[batch.sig.index()];
        let slots = self.order.slots(number);
        // In normal form the tables of results come before those of operands.
        runs.clear();
        for &(field, block) in &storage.results {
            let place = self.result_place(&mut plan.tables, field, batch, slots.start + block as usize);
            plan.places.push(place);
        }
        let mut met = Met { slot: slots.start + storage.blocks.len(), bound: 0, lists: 0, runs };
        for place in 0..signature.operands.len() {
            let operand = self.operand(plan, batch, place, &mut met);
            plan.operands.push(operand);
        }
        for &arg in &signature.params {
            match arg {
                ParamArg::Module(param) => plan.store_args.push(Plan::store_of(param)),
                ParamArg::Port(_) => unreachable!("verified graphs name parameters of the module"),
            }
        }
        self.push_step(plan, kernel, (number, first_wave), (operands, places, stores));
    }

    /// Lowers a batch of constants with several homes: a step for each field of its block.
    fn bring_in(&self, plan: &mut Plan, kernel: KernelId, (number, first_wave): (usize, u32)) {
        let batch = &self.order.batches[number];
        let slot = self.order.slots(number).start;
        for field in self.storage.sigs[batch.sig.index()].fields_of(batch.home) {
            let start = (plan.operands.len() as u32, plan.places.len() as u32, plan.store_args.len() as u32);
            plan.places.push(self.result_place(&mut plan.tables, field, batch, slot));
            self.push_step(plan, kernel, (number, first_wave), start);
        }
    }

    /// Where a result goes: a range, or through a table that is appended.
    fn result_place(&self, tables: &mut Vec<u32>, field: FieldId, batch: &Batch, slot: usize) -> Place {
        if let Some(start) = self.order.result_start(batch, slot) {
            return Place::Rows { field, start };
        }
        let rows = self.order.slot_rows(batch, slot);
        let start = rows.clone().next().unwrap_or(0);
        if rows.clone().zip(start..).all(|(row, expected)| row == expected) {
            return Place::Rows { field, start };
        }
        let at = tables.len() as u32;
        tables.extend(rows);
        Place::Table { field, at }
    }

    /// Appends the step of a batch, whose operands, places and store arguments begin at `start` and
    /// are in the plan. Waves are numbered from `first_wave` on.
    fn push_step(
        &self,
        plan: &mut Plan,
        kernel: KernelId,
        (number, first_wave): (usize, u32),
        start: (u32, u32, u32),
    ) {
        let batch = &self.order.batches[number];
        let lanes = plan.lanes.len() as u32;
        plan.lanes.extend_from_slice(self.order.nodes(batch));
        if plan.waves.len() as u32 <= first_wave + self.wave(number) {
            plan.waves.push(plan.steps.len() as u32 + 1);
        } else if let Some(end) = plan.waves.last_mut() {
            *end += 1;
        }
        plan.steps.push(Step {
            kernel,
            rows: batch.lanes.len() as u32,
            operands: start.0..plan.operands.len() as u32,
            places: start.1..plan.places.len() as u32,
            stores: start.2..plan.store_args.len() as u32,
            lanes: lanes..plan.lanes.len() as u32,
        });
    }

    /// The wave of a batch, counted without gaps.
    fn wave(&self, number: usize) -> u32 {
        self.order.batches[number].wave - self.order.batches[0].wave
    }

    /// The operand of a batch that comes behind those that were `met`.
    fn operand(&self, plan: &mut Plan, batch: &Batch, place: usize, met: &mut Met<'_>) -> Operand {
        let nodes = self.order.nodes(batch);
        match self.graph.arena.operands(nodes[0])[place].kind() {
            Some(OperandKind::Value(first)) if self.graph.arena.is_list(first, &self.graph.sigs) => {
                met.lists += 1;
                self.segments(plan, batch, place, met.lists - 1)
            }
            Some(OperandKind::Value(_)) => {
                let field = self.storage.place_field(batch.sig, place);
                let rows = nodes.len();
                let Met { slot, runs, .. } = met;
                let twin = self.order.twin(*slot).and_then(|twin| runs.iter().find(|run| run.0 == twin));
                let run = match twin {
                    Some(&(_, Run::Table(at))) => {
                        let copy = plan.tables.len() as u32;
                        plan.tables.extend_from_within(at as usize..at as usize + rows);
                        Run::Table(copy)
                    }
                    Some(&(_, steady)) => steady,
                    None => progression(&mut plan.tables, self.order.slot_rows(batch, *slot)),
                };
                runs.push((*slot, run));
                *slot += 1;
                match run {
                    Run::Steady { start, stride } => {
                        plan.certificate.direct += rows as u64;
                        Operand::Rows { field, start, stride }
                    }
                    Run::Table(at) => {
                        plan.certificate.gathered += rows as u64;
                        Operand::Table { field, at }
                    }
                }
            }
            Some(kind @ (OperandKind::Index(_) | OperandKind::Data(_))) => {
                let run = progression(&mut plan.tables, self.order.bound(batch, met.bound));
                met.bound += 1;
                match (kind, run) {
                    (OperandKind::Data(_), Run::Steady { start, stride }) => {
                        Operand::Floats { start, stride }
                    }
                    (OperandKind::Data(_), Run::Table(at)) => Operand::FloatTable { at },
                    (_, Run::Steady { start, stride }) => Operand::Words { start, stride },
                    (_, Run::Table(at)) => Operand::WordTable { at },
                }
            }
            None => unreachable!("verified graphs hold known operands"),
        }
    }

    fn segments(&self, plan: &mut Plan, batch: &Batch, place: usize, nth: usize) -> Operand {
        let offsets = plan.tables.len();
        plan.tables.resize(offsets + batch.lanes.len() + 1, 0);
        let items = plan.tables.len();
        for (end, rows) in (offsets + 1..).zip(self.order.listed(batch, nth)) {
            plan.tables.extend(rows);
            plan.tables[end] = (plan.tables.len() - items) as u32;
        }
        let total = plan.tables.len() - items;
        plan.certificate.gathered += total as u64;
        // A step whose lists are all empty reads nothing; any field will do.
        let field = if total == 0 { FieldId(0) } else { self.storage.place_field(batch.sig, place) };
        Operand::Segments { field, offsets: offsets as u32, items: items as u32 }
    }

    /// Adds outputs, and to the certificate what the steps from one on do.
    fn finish(
        &self,
        plan: &mut Plan,
        first_step: usize,
        places: &mut Vec<(FieldId, u32)>,
        place: impl Fn(ValueId) -> (FieldId, u32),
    ) {
        let output = |key, (field, row)| PlanOutput { key, field, row };
        let own = self.graph.outputs.iter();
        plan.outputs.extend(own.map(|own| output(OutputKey::named(&own.name), place(own.value))));
        // A minibatch requests thousands of values. This pass only finds their rows, so that many cache misses overlap.
        places.clear();
        places.extend(self.asked.iter().map(|&value| place(value)));
        let asked = self.asked.iter().zip(&*places);
        plan.outputs.extend(asked.map(|(&value, &place)| output(OutputKey::Value(value), place)));
        let steps = &plan.steps[first_step..];
        let batches = steps.iter().filter(|step| !plan.kernel(step).source).count();
        let moving = steps.iter().filter(|step| plan.kernel(step).only_moves());
        let copied: u64 = moving.map(|step| u64::from(step.rows) * step.places.len() as u64).sum();
        plan.certificate.copied += copied;
        plan.certificate.batches += batches as u32;
        plan.certificate.bound = self.bound;
        plan.certificate.slab_bytes = plan.slab_bytes();
    }
}

/// A plan that begins with the steps of an earlier one and declares nothing yet.
fn continued(earlier: Plan) -> Plan {
    let Certificate { batches, copied, direct, gathered, .. } = earlier.certificate;
    let Plan { kernels, steps, waves, operands, places, store_args, lanes, tables, .. } = earlier;
    let certificate = Certificate { batches, copied, direct, gathered, ..Certificate::default() };
    Plan {
        kernels,
        steps,
        waves,
        operands,
        places,
        store_args,
        lanes,
        tables,
        certificate,
        ..Plan::default()
    }
}

/// Rows of an operand: steady, or through a table that was appended to the plan.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Run {
    Steady { start: u32, stride: u32 },
    Table(u32),
}

/// Recognises `start + lane * stride`; one lane is a range. Other rows are appended to the tables.
pub(crate) fn progression(tables: &mut Vec<u32>, rows: impl Iterator<Item = u32> + Clone) -> Run {
    steady(rows.clone()).unwrap_or_else(|| {
        let at = tables.len() as u32;
        tables.extend(rows);
        Run::Table(at)
    })
}

/// The rows that end the tables; they are cut off if they are steady.
pub(crate) fn run_at_the_end(tables: &mut Vec<u32>, first: usize) -> Run {
    match steady(tables[first..].iter().copied()) {
        Some(run) => {
            tables.truncate(first);
            run
        }
        None => Run::Table(first as u32),
    }
}

#[inline]
fn steady(mut rows: impl Iterator<Item = u32>) -> Option<Run> {
    let start = rows.next().unwrap_or(0);
    let Some(second) = rows.next() else { return Some(Run::Steady { start, stride: 1 }) };
    let stride = second.checked_sub(start)?;
    let mut expected = u64::from(second);
    let steady = rows.all(|row| {
        expected += u64::from(stride);
        u64::from(row) == expected
    });
    steady.then_some(Run::Steady { start, stride })
}
