//! Lowering: turns batches with rows into steps with operands.
//!
//! *Needs* ordered batches and the kernels of their signatures. *Ensures* a complete plan. An operand whose rows are consecutive, or
//! a constant distance apart, or all the same, is direct; every other operand is gathered through a table. Lists become segments, in
//! the order of the model. *Cost.* Linear in operands.

mod buffers;
mod kernel_numbers;
mod outputs;
mod places;
mod run;
mod spelling;

pub(crate) use places::Places;
pub(crate) use run::{Run, progression, run_at_the_end};
pub(crate) use spelling::{field_name, numbered};

use crate::kernels::Kernels;
use crate::order::{Batch, Rows};
use crate::pipeline::Context;
use crate::schedule::Batches;
use crate::storage::Storage;
use autobatch_ir::graph::{GraphData, OperandKind, ParamArg};
use autobatch_ir::plan::{FieldId, KernelId, Operand, Place, Plan, Step, Store, StoreKind};
use buffers::PlanBuffers;
use kernel_numbers::KernelNumbers;
use outputs::OutputMemory;

/// Scratch memory of [`lower`].
#[derive(Debug, Default)]
pub(crate) struct Memory {
    kernel_ids: Vec<Option<KernelId>>,
    kernel_numbers: KernelNumbers,
    runs: Vec<SlotRun>,
    outputs: OutputMemory,
    pub(crate) buffers: PlanBuffers,
}

/// The rows that a slot of a step reads.
#[derive(Clone, Copy, Debug)]
struct SlotRun {
    slot: usize,
    run: Run,
}

/// Writes the steps of all batches. The plan begins with the steps of an `earlier` plan, if there is one.
pub(crate) fn lower(
    context: &Context<'_>,
    memory: &mut Memory,
    kernels: &Kernels,
    batches: &Batches,
    storage: &Storage,
    rows: &Rows,
    earlier: Option<Plan>,
) -> Plan {
    let graph = context.graph;
    let Memory { kernel_ids, kernel_numbers, runs, outputs, buffers } = memory;
    let plan = earlier.map_or_else(|| buffers.lend(), buffers::continued);
    let (first_step, first_wave) = (plan.steps.len(), plan.waves.len() as u32);
    let mut writer = Writer { graph, storage, rows, first_wave, plan, runs };
    writer.declare(context);
    kernel_numbers.clear();
    kernel_ids.clear();
    kernel_ids.resize(graph.sigs.items().len(), None);
    for (number, batch) in rows.batches.iter().enumerate() {
        let kernel = *kernel_ids[batch.sig.index()].get_or_insert_with(|| {
            KernelId(kernel_numbers.number(&mut writer.plan.kernels, kernels.of(batch.sig)))
        });
        match storage.sigs[batch.sig.index()].is_copied() {
            false => writer.write_batch(number, batch, kernel),
            true => writer.write_copies(number, batch, kernel),
        }
    }
    let mut plan = writer.plan;
    let places = Places { graph, existing: context.existing, storage, rows };
    outputs::add_outputs(context, outputs, &places, &mut plan);
    outputs::certify(&mut plan, first_step, batches);
    plan
}

/// Writes steps into a plan.
struct Writer<'a> {
    graph: &'a GraphData,
    storage: &'a Storage,
    rows: &'a Rows,
    /// The number of the first new wave.
    first_wave: u32,
    plan: Plan,
    /// The slots of the current step's operands.
    runs: &'a mut Vec<SlotRun>,
}

/// Where the lists of a step begin in those of the plan.
struct StepStart {
    operands: u32,
    places: u32,
    stores: u32,
}

/// How many operands of a batch are written, by their kind.
struct OperandCursor {
    /// The next slot of an operand that is a value and no list.
    slot: usize,
    bound: usize,
    lists: usize,
}

impl Writer<'_> {
    /// Declares stores, bindings, slabs and fields. The plan's lists of declarations are empty.
    fn declare(&mut self, context: &Context<'_>) {
        let Self { graph, storage, rows, plan, .. } = self;
        let module = &graph.module;
        plan.module = module.name.clone();
        plan.structure = graph.structure();
        plan.mode = context.request.mode;
        plan.stores.extend(module.params.iter().map(|decl| Store {
            name: decl.name.clone(),
            ty: decl.ty,
            kind: StoreKind::Param(decl.kind),
        }));
        plan.words = graph.bindings.words.len() as u32;
        plan.floats = graph.bindings.floats.len() as u32;
        plan.slabs.extend_from_slice(&storage.slabs);
        plan.fields.extend_from_slice(&storage.fields);
        for (slab, &rows) in plan.slabs.iter_mut().zip(&rows.slab_rows) {
            slab.rows = rows;
            let own = &mut plan.fields[slab.fields.start as usize..slab.fields.end as usize];
            own.iter_mut().enumerate().for_each(|(number, field)| field.name = field_name(number));
        }
    }

    /// Writes the step of a batch.
    fn write_batch(&mut self, number: usize, batch: &Batch, kernel: KernelId) {
        let signature = self.graph.sigs.get(batch.sig);
        let storage = &self.storage.sigs[batch.sig.index()];
        let slots = self.rows.slots(number);
        let start = self.start_step();
        for &(field, block) in &storage.results {
            self.write_place(field, batch, slots.start + block as usize);
        }
        self.runs.clear();
        let mut cursor = OperandCursor { slot: slots.start + storage.blocks.len(), bound: 0, lists: 0 };
        for port in 0..signature.operands.len() {
            let operand = self.next_operand(batch, port, &mut cursor);
            self.plan.operands.push(operand);
        }
        for &arg in &signature.params {
            match arg {
                ParamArg::Module(param) => self.plan.store_args.push(Plan::store_of(param)),
                ParamArg::Port(_) => unreachable!("verified graphs name parameters of the module"),
            }
        }
        self.end_step(batch, kernel, start);
    }

    /// Writes a batch of copied constants: a step for each field of its copy.
    fn write_copies(&mut self, number: usize, batch: &Batch, kernel: KernelId) {
        let slot = self.rows.slots(number).start;
        for field in self.storage.sigs[batch.sig.index()].fields_of(batch.copy) {
            let start = self.start_step();
            self.write_place(field, batch, slot);
            self.end_step(batch, kernel, start);
        }
    }

    fn start_step(&self) -> StepStart {
        let Plan { operands, places, store_args, .. } = &self.plan;
        StepStart {
            operands: operands.len() as u32,
            places: places.len() as u32,
            stores: store_args.len() as u32,
        }
    }

    fn write_place(&mut self, field: FieldId, batch: &Batch, slot: usize) {
        self.plan.places.push(Place::Rows { field, start: self.rows.result_start(batch, slot) });
    }

    /// Appends a step whose operands, places and store arguments are in the plan.
    fn end_step(&mut self, batch: &Batch, kernel: KernelId, start: StepStart) {
        self.extend_wave(batch);
        let plan = &mut self.plan;
        let lanes = plan.lanes.len() as u32;
        plan.lanes.extend_from_slice(self.rows.nodes(batch));
        plan.steps.push(Step {
            kernel,
            rows: batch.lanes.len() as u32,
            operands: start.operands..plan.operands.len() as u32,
            places: start.places..plan.places.len() as u32,
            stores: start.stores..plan.store_args.len() as u32,
            lanes: lanes..plan.lanes.len() as u32,
        });
    }

    /// Counts a step of the batch to its wave. The first wave of the batches is the first new wave of the plan.
    fn extend_wave(&mut self, batch: &Batch) {
        let wave = self.first_wave + batch.wave.0 - self.rows.batches[0].wave.0;
        let Plan { waves, steps, .. } = &mut self.plan;
        if waves.len() as u32 <= wave {
            waves.push(steps.len() as u32 + 1);
        } else if let Some(end) = waves.last_mut() {
            *end += 1;
        }
    }

    /// The operand at a port, the next of its kind.
    fn next_operand(&mut self, batch: &Batch, port: usize, cursor: &mut OperandCursor) -> Operand {
        let first = self.graph.arena.operands(self.rows.nodes(batch)[0])[port].kind();
        match first {
            Some(OperandKind::Value(first)) if self.graph.arena.is_list(first, &self.graph.sigs) => {
                cursor.lists += 1;
                self.segments(batch, port, cursor.lists - 1)
            }
            Some(OperandKind::Value(_)) => {
                cursor.slot += 1;
                self.value_operand(batch, port, cursor.slot - 1)
            }
            Some(kind @ (OperandKind::Index(_) | OperandKind::Data(_))) => {
                let run = progression(&mut self.plan.tables, self.rows.bound(batch, cursor.bound));
                cursor.bound += 1;
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

    /// The operand of a slot. A slot that names the same rows as an earlier one repeats its run.
    fn value_operand(&mut self, batch: &Batch, port: usize, slot: usize) -> Operand {
        let field = self.storage.port_field(batch.sig, port);
        let Self { rows, plan, runs, .. } = self;
        let lanes = batch.lanes.len();
        let twin = rows.twin(slot).and_then(|twin| runs.iter().find(|run| run.slot == twin));
        let run = match twin.map(|twin| twin.run) {
            Some(Run::Table(at)) => {
                let copy = plan.tables.len() as u32;
                plan.tables.extend_from_within(at as usize..at as usize + lanes);
                Run::Table(copy)
            }
            Some(steady) => steady,
            None => progression(&mut plan.tables, rows.slot_rows(batch, slot)),
        };
        runs.push(SlotRun { slot, run });
        match run {
            Run::Steady { start, stride } => {
                plan.certificate.direct += lanes as u64;
                Operand::Rows { field, start, stride }
            }
            Run::Table(at) => {
                plan.certificate.gathered += lanes as u64;
                Operand::Table { field, at }
            }
        }
    }

    /// The segments of a port that takes lists.
    fn segments(&mut self, batch: &Batch, port: usize, nth: usize) -> Operand {
        let Self { storage, rows, plan, .. } = self;
        let offsets = plan.tables.len();
        plan.tables.resize(offsets + batch.lanes.len() + 1, 0);
        let items = plan.tables.len();
        for (end, rows) in (offsets + 1..).zip(rows.lists(batch, nth)) {
            plan.tables.extend(rows);
            plan.tables[end] = (plan.tables.len() - items) as u32;
        }
        let total = plan.tables.len() - items;
        plan.certificate.gathered += total as u64;
        // If all lists are empty, the step reads no row, and any field serves.
        let field = if total == 0 { FieldId(0) } else { storage.port_field(batch.sig, port) };
        Operand::Segments { field, offsets: offsets as u32, items: items as u32 }
    }
}
