//! The footprint of a plan: the memory and the work of executing it, computed before anything is allocated.
//!
//! A few kilobytes of a file can describe gigabytes of rows, temporaries or parameters. So each executor computes the
//! footprint of a plan first, compares it with its [`Limits`], and then allocates what the footprint says.
//! [`Footprint::of`] computes the part that every executor shares; an executor adds the temporaries of its threads and the
//! copies that it makes of constants and weights, and the sums of shards.

use super::{
    Address, Group, Kernel, ListSource, Origin, Plan, Reduction, ReductionSum, RegId, Slab, Stage, Step,
    StepOperand, Store, StoreKind,
};
use crate::graph::Op;
use crate::types::Type;
use serde::Serialize;
use std::fmt;

/// The memory and the work of executing a plan once. All sums saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Footprint {
    /// Bytes of the rows of all slabs.
    pub slabs: u64,
    /// Bytes of the plan itself: its steps, operands, lanes and tables.
    pub tables: u64,
    /// Bytes of bound words and floats.
    pub bindings: u64,
    /// Bytes of parameters and of states of optimisers, as `f32`.
    pub parameters: u64,
    /// Bytes of the gradients of parameters.
    pub gradients: u64,
    /// Bytes of the copies that an executor makes of constants and weights, and of the sums of shards.
    pub copies: u64,
    /// Bytes of the temporaries of the largest kernel, and of scratch space, on each thread.
    pub per_thread: u64,
    /// The number of threads.
    pub threads: u64,
    /// Bytes that steps read and write.
    pub traffic: u64,
    /// Floating-point operations of the steps and reductions, by definition of the ops.
    pub work: u64,
}

impl Footprint {
    /// The footprint of a plan without the memory that depends on the executor: `copies`, `per_thread` and `threads` are 0.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let stores = |of: fn(&StoreKind) -> bool| {
            let own = plan.stores.iter().filter(|store| of(&store.kind));
            own.map(store_bytes).fold(0, u64::saturating_add)
        };
        let each = |of: fn(&Plan, &Step) -> u64| {
            plan.steps.iter().map(|step| of(plan, step)).fold(0, u64::saturating_add)
        };
        Self {
            slabs: plan.slab_bytes(),
            tables: table_bytes(plan),
            bindings: 4 * (u64::from(plan.words) + plan.all_floats()),
            parameters: stores(|kind| !matches!(kind, StoreKind::Grad(_))),
            gradients: stores(|kind| matches!(kind, StoreKind::Grad(_))),
            traffic: each(Plan::traffic_of),
            work: each(Plan::work_of).saturating_add(reduction_work(plan)),
            ..Self::default()
        }
    }

    /// All bytes.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.memory_parts().into_iter().map(|part| part.1).fold(0, u64::saturating_add)
    }

    /// The parts of the memory by name, in bytes.
    #[must_use]
    pub fn memory_parts(&self) -> [(&'static str, u64); 7] {
        [
            ("slabs", self.slabs),
            ("plan", self.tables),
            ("bindings", self.bindings),
            ("parameters", self.parameters),
            ("gradients", self.gradients),
            ("copies of weights and constants", self.copies),
            ("temporaries", self.per_thread.saturating_mul(self.threads)),
        ]
    }

    /// Compares the footprint with limits.
    ///
    /// # Errors
    /// If it exceeds one of them.
    pub fn check(&self, limits: Limits) -> Result<(), OverLimit> {
        let over = |limit: Limit| Err(OverLimit { footprint: *self, limit });
        match limits {
            Limits { memory: Some(most), .. } if self.memory() > most => over(Limit::Memory(most)),
            Limits { work: Some(most), .. } if self.work > most => over(Limit::Work(most)),
            _ => Ok(()),
        }
    }
}

/// Limits on the footprints of plans that an executor accepts. The default has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes.
    pub memory: Option<u64>,
    /// The most floating-point operations.
    pub work: Option<u64>,
}

impl Limits {
    /// No limits.
    pub const NONE: Self = Self { memory: None, work: None };

    /// A limit on memory only.
    #[must_use]
    pub const fn of_memory(bytes: u64) -> Self {
        Self { memory: Some(bytes), work: None }
    }
}

/// The limit that a footprint exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// This number of bytes.
    Memory(u64),
    /// This number of floating-point operations.
    Work(u64),
}

/// A plan takes more memory or work than a limit allows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OverLimit {
    /// The footprint of the plan.
    pub footprint: Footprint,
    /// The exceeded limit.
    pub limit: Limit,
}

impl fmt::Display for OverLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let footprint = &self.footprint;
        match self.limit {
            Limit::Memory(most) => write!(
                f,
                "executing the plan takes {} bytes of memory ({footprint}), the memory limit is {most}; plan a smaller minibatch, or raise the limit",
                footprint.memory()
            ),
            Limit::Work(most) => write!(
                f,
                "executing the plan takes {} floating-point operations, the work limit is {most}; plan a smaller minibatch, or raise the limit",
                footprint.work
            ),
        }
    }
}

impl std::error::Error for OverLimit {}

crate::debug_as_display!(OverLimit);

/// The parts of the memory that are not empty, largest first.
impl fmt::Display for Footprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = self.memory_parts();
        parts.sort_by_key(|part| std::cmp::Reverse(part.1));
        let present = parts.into_iter().filter(|part| part.1 > 0);
        for (number, (name, bytes)) in present.enumerate() {
            let separator = if number == 0 { "" } else { ", " };
            write!(f, "{separator}{name} {bytes}")?;
        }
        Ok(())
    }
}

impl Plan {
    /// Bytes of all slabs.
    #[must_use]
    pub fn slab_bytes(&self) -> u64 {
        let row_bytes = |slab: &Slab| -> u64 {
            let fields = &self.fields[slab.fields.start as usize..slab.fields.end as usize];
            fields.iter().map(|field| u64::from(field.width()) * 4).sum()
        };
        self.slabs.iter().map(|slab| row_bytes(slab) * u64::from(slab.rows)).sum()
    }

    /// The floating-point operations of a step, by definition of the ops.
    #[must_use]
    pub fn work_of(&self, step: &Step) -> u64 {
        let stage = |stage: &Stage| stage_work(self, step, stage);
        self.kernel(step).stages.iter().map(stage).fold(0, u64::saturating_add)
    }

    /// The bytes that a step names: its operands, results, parameters and row numbers.
    #[must_use]
    pub fn traffic_of(&self, step: &Step) -> u64 {
        let (kernel, rows) = (self.kernel(step), u64::from(step.rows));
        let ports = self.operands(step).iter().enumerate();
        let operands = ports.map(|(port, &operand)| operand_words(self, step, port, operand));
        let widths = self.places(step).iter().map(|place| u64::from(self.field(place.field()).width()));
        let results = widths.map(|width| rows.saturating_mul(width));
        let params = (0..kernel.params.len()).map(|port| param_words(kernel, rows, port));
        operands.chain(results).chain(params).fold(0, u64::saturating_add).saturating_mul(4)
    }
}

fn store_bytes(store: &Store) -> u64 {
    4 * store.ty.shape.elements() as u64
}

fn table_bytes(plan: &Plan) -> u64 {
    let of = |bytes: usize| bytes as u64;
    let kernel = |kernel: &Kernel| {
        of(size_of_val(&kernel.regs[..]))
            + of(size_of_val(&kernel.stages[..]))
            + of(size_of_val(&kernel.results[..]))
    };
    of(size_of_val(&plan.steps[..]))
        + of(size_of_val(&plan.operands[..]))
        + of(size_of_val(&plan.groups[..]))
        + of(size_of_val(&plan.places[..]))
        + of(size_of_val(&plan.store_args[..]))
        + of(size_of_val(&plan.lanes[..]))
        + of(size_of_val(&plan.tables[..]))
        + of(size_of_val(&plan.outputs[..]))
        + plan.kernels.iter().map(|own| kernel(own)).sum::<u64>()
}

fn reduction_work(plan: &Plan) -> u64 {
    let rows = |sum: &Reduction| -> u64 {
        sum.parts.iter().map(|part| u64::from(part.lanes) * u64::from(part.each)).sum()
    };
    let work = |sum: &Reduction| {
        let store = &plan.stores[sum.store.index()];
        let per_row = match sum.sum {
            ReductionSum::Wgrad { k, n, .. } => 2 * u64::from(k) * u64::from(n),
            ReductionSum::Colsum | ReductionSum::Tgrad => store.ty.shape.width() as u64,
            ReductionSum::Lgrad => 4 * store.ty.shape.elements() as u64,
        };
        rows(sum).saturating_mul(per_row)
    };
    plan.reductions.iter().map(work).fold(0, u64::saturating_add)
}

fn stage_work(plan: &Plan, step: &Step, stage: &Stage) -> u64 {
    let rows = u64::from(step.rows);
    let port_values =
        |port: RegId| plan.operands(step)[port.index()].address.listed(&plan.tables, &plan.groups, step.rows);
    match stage {
        Stage::Prod { dst, rows: matrix_rows, parts, .. } => {
            let columns = u64::from(dst.width / matrix_rows);
            let part = |width: u32| 2 * u64::from(width) * columns;
            rows.saturating_mul(parts.iter().map(|own| part(own.source.width)).fold(0, u64::saturating_add))
        }
        Stage::Map { width, code } => rows.saturating_mul(u64::from(*width) * code.len() as u64),
        Stage::Row { op, sources, dsts } => {
            let all = || sources.iter().map(|(view, _)| view).chain(dsts).map(|view| u64::from(view.width));
            let row = match (op, &sources[..], &dsts[..]) {
                (Op::Matmul, [(_, left), _], [dst]) => 2 * u64::from(dst.width) * left.shape.width() as u64,
                _ => all().sum(),
            };
            rows.saturating_mul(row)
        }
        Stage::Seg { lists, elements, .. } => {
            let list = |(list, ty): (&ListSource, &Type)| {
                let values = match list {
                    ListSource::Port(port) => port_values(*port),
                    ListSource::Views(views) => rows * views.len() as u64,
                };
                values.saturating_mul(ty.shape.elements() as u64)
            };
            lists.iter().zip(elements).map(list).fold(0, u64::saturating_add)
        }
        Stage::SegGrad { lists, elements, .. } => {
            let list = |(&port, ty): (&RegId, &Type)| {
                port_values(port).saturating_mul(2 * ty.shape.elements() as u64)
            };
            lists.iter().zip(elements).map(list).fold(0, u64::saturating_add)
        }
        Stage::AttendGrad { query, keys, values, dy, .. } => {
            let list = |(port, view): (RegId, &super::View)| {
                port_values(port).saturating_mul(2 * u64::from(view.width))
            };
            list((*keys, query)).saturating_add(list((*values, dy)))
        }
        Stage::AttendPull { key, value, readers, .. } => {
            port_values(*readers).saturating_mul(2 * (u64::from(key.width) + u64::from(value.width)))
        }
        Stage::Lookup { .. } => 0,
        Stage::MeanGrad { dst, .. } => rows.saturating_mul(u64::from(dst.width)),
        Stage::LabelLoss { param, slope, .. } => {
            let elements = plan.kernel(step).params[param.index()].shape.elements() as u64;
            rows.saturating_mul(2 * elements * if slope.is_some() { 2 } else { 1 })
        }
    }
}

/// The words of an operand of a step, and of its row numbers.
fn operand_words(plan: &Plan, step: &Step, port: usize, operand: StepOperand) -> u64 {
    let rows = u64::from(step.rows);
    let width = || plan.kernel(step).regs[port].ty.shape.elements() as u64;
    match (operand.origin, operand.address) {
        (Origin::Field(_), Address::Steps { stride: 0, .. }) => width(),
        (_, Address::Steps { .. }) => rows.saturating_mul(width()),
        (_, Address::Table { .. }) => rows.saturating_mul(width() + 1),
        (_, Address::Lists { .. }) => {
            let each = operand.field().map_or(0, |field| u64::from(plan.field(field).width())) + 1;
            let listed = operand.address.listed(&plan.tables, &plan.groups, step.rows);
            listed.saturating_mul(each).saturating_add(rows + 1)
        }
        (_, Address::Groups { count, .. }) => {
            let width = operand.field().map_or(0, |field| u64::from(plan.field(field).width()));
            let [direct, gathered] = operand.direct_and_gathered(plan, step.rows);
            let rows = direct.saturating_mul(width).saturating_add(gathered.saturating_mul(width + 1));
            rows.saturating_add(u64::from(count) * size_of::<Group>() as u64 / 4)
        }
    }
}

/// The words of a parameter that a step reads: the rows that it looks up, or all elements.
fn param_words(kernel: &Kernel, rows: u64, port: usize) -> u64 {
    let looked_up = kernel.stages.iter().find_map(|stage| match stage {
        Stage::Lookup { param, dst, .. } if param.index() == port => Some(rows * u64::from(dst.width)),
        _ => None,
    });
    looked_up.unwrap_or(kernel.params[port].shape.elements() as u64)
}
