//! Lowering: batches with rows become steps with operands.
//!
//! *Needs* ordered batches. *Ensures* a complete plan: an operand whose rows are consecutive, or a
//! constant distance apart, or all the same, is named without a table; every other has one. Lists
//! become segments, in the order in which the model named them. *Cost.* Linear in operands.

use crate::cluster::Clusters;
use crate::order::{Order, field_of};
use crate::storage::Storage;
use autobatch_ir::graph::{GraphData, OperandKind, ParamArg};
use autobatch_ir::id::{AppId, SigId, ValueId};
use autobatch_ir::plan::{
    Certificate, FieldId, Kernel, KernelId, Mode, Operand, Place, Plan, PlanOutput, Step, Store, StoreKind,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What lowering needs besides the order.
pub(crate) struct Lowering<'a> {
    pub(crate) graph: &'a GraphData,
    pub(crate) clusters: &'a Clusters,
    pub(crate) storage: &'a Storage,
    pub(crate) order: &'a Order,
    pub(crate) mode: Mode,
    pub(crate) bound: u32,
}

impl Lowering<'_> {
    /// The finished plan. `kernel_of` finds or compiles the kernel of a signature.
    pub(crate) fn plan(
        &self,
        outputs: Vec<(String, ValueId)>,
        mut kernel_of: impl FnMut(SigId) -> Arc<Kernel>,
    ) -> Plan {
        let mut plan = self.frame();
        let mut kernels: BTreeMap<SigId, KernelId> = BTreeMap::new();
        for batch in &self.order.batches {
            let kernel = *kernels.entry(batch.sig).or_insert_with(|| {
                let kernel = kernel_of(batch.sig);
                let known = plan.kernels.iter().position(|known| **known == *kernel);
                let number = known.unwrap_or_else(|| {
                    plan.kernels.push(kernel);
                    plan.kernels.len() - 1
                });
                KernelId(number as u32)
            });
            self.step(&mut plan, kernel, batch);
        }
        self.finish(&mut plan, outputs);
        plan
    }

    fn frame(&self) -> Plan {
        let module = &self.graph.module;
        let store = |decl: &autobatch_ir::module::ParamDecl| Store {
            name: decl.name.clone(),
            ty: decl.ty,
            kind: StoreKind::Param(decl.kind),
        };
        let mut slabs = self.storage.slabs.clone();
        for (slab, &rows) in slabs.iter_mut().zip(&self.order.slab_rows) {
            slab.rows = rows;
        }
        Plan {
            module: module.name.clone(),
            structure: self.graph.structure(),
            mode: self.mode,
            stores: module.params.iter().map(store).collect(),
            words: self.graph.bindings.words.len() as u32,
            floats: self.graph.bindings.floats.len() as u32,
            slabs,
            fields: self.storage.fields.clone(),
            kernels: Vec::new(),
            steps: Vec::with_capacity(self.order.batches.len()),
            waves: Vec::new(),
            operands: Vec::new(),
            places: Vec::new(),
            store_args: Vec::new(),
            lanes: Vec::with_capacity(self.clusters.nodes.len()),
            tables: Vec::new(),
            finals: Vec::new(),
            outputs: Vec::new(),
            certificate: Certificate::default(),
        }
    }

    fn step(&self, plan: &mut Plan, kernel: KernelId, batch: &crate::order::Batch) {
        let signature = self.graph.sigs.get(batch.sig);
        let (operands, places) = (plan.operands.len() as u32, plan.places.len() as u32);
        let (stores, lanes) = (plan.store_args.len() as u32, plan.lanes.len() as u32);
        for place in 0..signature.operands.len() {
            let operand = self.operand(plan, batch, place);
            plan.operands.push(operand);
        }
        for &(field, block) in &self.storage.sigs[batch.sig.index()].results {
            plan.places.push(Place::Rows { field, start: batch.rows[block as usize] });
        }
        for &arg in &signature.params {
            match arg {
                ParamArg::Module(param) => plan.store_args.push(Plan::store_of(param)),
                ParamArg::Port(_) => unreachable!("verified graphs name parameters of the module"),
            }
        }
        plan.lanes.extend_from_slice(&batch.lanes);
        if plan.steps.len() as u32 == plan.waves.last().copied().unwrap_or(0) || self.opens_wave(plan) {
            plan.waves.push(plan.steps.len() as u32 + 1);
        } else if let Some(end) = plan.waves.last_mut() {
            *end += 1;
        }
        plan.steps.push(Step {
            kernel,
            rows: batch.lanes.len() as u32,
            operands: operands..plan.operands.len() as u32,
            places: places..plan.places.len() as u32,
            stores: stores..plan.store_args.len() as u32,
            lanes: lanes..plan.lanes.len() as u32,
        });
    }

    /// Whether the batch about to be lowered belongs to another wave than the one before.
    fn opens_wave(&self, plan: &Plan) -> bool {
        let number = plan.steps.len();
        let batches = &self.order.batches;
        number == 0 || batches[number - 1].wave != batches[number].wave
    }

    fn operand(&self, plan: &mut Plan, batch: &crate::order::Batch, place: usize) -> Operand {
        let operand = |app: AppId| self.graph.arena.operands(app)[place];
        match operand(batch.lanes[0]).kind() {
            Some(OperandKind::Value(first)) if self.graph.arena.is_list(first, &self.graph.sigs) => {
                self.segments(plan, batch, place)
            }
            Some(OperandKind::Value(first)) => {
                let field = FieldId(field_of(self.graph, self.storage, first) as u32);
                let row = |app: AppId| {
                    let value = operand(app).as_value().expect("one type of node takes one kind of operand");
                    self.order.row_of[value.index()]
                };
                let rows = batch.lanes.len() as u64;
                match progression(plan, batch.lanes.iter().map(|&app| row(app))) {
                    Run::Steady { start, stride } => {
                        plan.certificate.direct += rows;
                        Operand::Rows { field, start, stride }
                    }
                    Run::Table(at) => {
                        plan.certificate.tabled += rows;
                        Operand::Table { field, at }
                    }
                }
            }
            Some(OperandKind::Index(_)) => {
                let slot = |app: AppId| match operand(app).kind() {
                    Some(OperandKind::Index(slot)) => slot,
                    _ => unreachable!("one type of node takes one kind of operand"),
                };
                match progression(plan, batch.lanes.iter().map(|&app| slot(app))) {
                    Run::Steady { start, stride } => Operand::Words { start, stride },
                    Run::Table(at) => Operand::WordTable { at },
                }
            }
            Some(OperandKind::Data(_)) => {
                let slot = |app: AppId| match operand(app).kind() {
                    Some(OperandKind::Data(slot)) => slot,
                    _ => unreachable!("one type of node takes one kind of operand"),
                };
                match progression(plan, batch.lanes.iter().map(|&app| slot(app))) {
                    Run::Steady { start, stride } => Operand::Floats { start, stride },
                    Run::Table(at) => Operand::FloatTable { at },
                }
            }
            None => unreachable!("verified graphs hold known operands"),
        }
    }

    fn segments(&self, plan: &mut Plan, batch: &crate::order::Batch, place: usize) -> Operand {
        let offsets = plan.tables.len() as u32;
        let mut field = None;
        let mut total = 0u32;
        plan.tables.push(0);
        let lists = batch.lanes.iter().map(|&app| {
            let list = self.graph.arena.operands(app)[place].as_value().expect("a list is a value");
            self.graph.arena.operands(self.graph.arena.producer(list))
        });
        for items in lists.clone() {
            total += items.len() as u32;
            plan.tables.push(total);
        }
        let items_at = plan.tables.len() as u32;
        for item in lists.flatten().filter_map(|item| item.as_value()) {
            field.get_or_insert_with(|| field_of(self.graph, self.storage, item));
            plan.tables.push(self.order.row_of[item.index()]);
        }
        plan.certificate.tabled += u64::from(total);
        // A step whose lists are all empty reads nothing; any field will do.
        Operand::Segments { field: FieldId(field.unwrap_or(0) as u32), offsets, items: items_at }
    }

    fn finish(&self, plan: &mut Plan, outputs: Vec<(String, ValueId)>) {
        plan.outputs = outputs
            .into_iter()
            .map(|(name, value)| PlanOutput {
                name,
                field: FieldId(field_of(self.graph, self.storage, value) as u32),
                row: self.order.row_of[value.index()],
            })
            .collect();
        let batches = plan.steps.iter().filter(|step| !plan.kernel(step).source).count();
        let moving = plan.steps.iter().filter(|step| plan.kernel(step).only_moves());
        plan.certificate.copied = moving.map(|step| u64::from(step.rows) * step.places.len() as u64).sum();
        plan.certificate.batches = batches as u32;
        plan.certificate.bound = self.bound;
        plan.certificate.slab_bytes = plan.slab_bytes();
    }
}

/// Rows of an operand: steady, or through a table that was appended to the plan.
pub(crate) enum Run {
    Steady { start: u32, stride: u32 },
    Table(u32),
}

/// Recognises `start + lane * stride`; one lane is a range.
pub(crate) fn progression(plan: &mut Plan, mut rows: impl Iterator<Item = u32> + Clone) -> Run {
    let all = rows.clone();
    let start = rows.next().unwrap_or(0);
    let Some(second) = rows.next() else { return Run::Steady { start, stride: 1 } };
    if let Some(stride) = second.checked_sub(start) {
        let mut expected = u64::from(second);
        let steady = rows.all(|row| {
            expected += u64::from(stride);
            u64::from(row) == expected
        });
        if steady {
            return Run::Steady { start, stride };
        }
    }
    let at = plan.tables.len() as u32;
    plan.tables.extend(all);
    Run::Table(at)
}
