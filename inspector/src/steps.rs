//! Descriptions of a plan's steps, shared by reports and pictures.

use crate::names;
use autobatch_ir::graph::{Binary, GraphData, Op};
use autobatch_ir::plan::{Code, Kernel, KernelId, Origin, Place, Plan, ProdInit, Stage, Step, StoreId};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The numbers of operands of a step by kind of access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reads {
    /// Operands whose rows are a constant distance apart.
    pub direct: u32,
    /// Operands with one row for all lanes.
    pub shared: u32,
    /// Operands read through a table of row numbers.
    pub gathered: u32,
    /// Operands that are lists.
    pub lists: u32,
    /// Rows of all lists.
    pub list_rows: u64,
    /// Bound indices.
    pub indices: u32,
    /// Bound floats.
    pub inputs: u32,
}

impl Reads {
    /// Counts the operands of a step.
    #[must_use]
    pub fn of(plan: &Plan, step: &Step) -> Self {
        let mut reads = Self::default();
        for &operand in plan.operands(step) {
            match operand.origin {
                Origin::Words => reads.indices += 1,
                Origin::Floats => reads.inputs += 1,
                Origin::Field(_) if operand.is_list() => {
                    reads.lists += 1;
                    reads.list_rows += operand.address.listed(&plan.tables, &plan.groups, step.rows);
                }
                Origin::Field(_) if operand.is_gathered() => reads.gathered += 1,
                Origin::Field(_) => match operand.address.steps() {
                    Some((_, 0)) if step.rows > 1 => reads.shared += 1,
                    _ => reads.direct += 1,
                },
            }
        }
        reads
    }

    /// `2 direct, 1 gathered`
    #[must_use]
    pub fn text(&self) -> String {
        let lists = match self.lists {
            0 => String::new(),
            1 => format!("list of {} rows", self.list_rows),
            many => format!("{many} lists of {} rows", self.list_rows),
        };
        let counted = |number: u32, kind: &str| match number {
            0 => String::new(),
            _ => format!("{number} {kind}"),
        };
        let parts = [
            counted(self.direct, "direct"),
            counted(self.shared, "shared"),
            counted(self.gathered, "gathered"),
            lists,
            counted(self.indices, "index"),
            counted(self.inputs, "input"),
        ];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        if parts.is_empty() { "-".to_owned() } else { parts.join(", ") }
    }
}

/// The kinds of steps of a plan. Steps of one kind execute the same kernel with the same stores.
///
/// The two directions of a bidirectional LSTM share a kernel but have different weights, so they are
/// two kinds.
#[derive(Clone, Debug)]
pub struct Kinds {
    /// The kind of each step.
    of_step: Vec<usize>,
    /// The steps of each kind.
    steps: Vec<Vec<usize>>,
    /// The kernel of each kind, in order of first execution.
    kernels: Vec<KernelId>,
    names: Vec<String>,
}

impl Kinds {
    /// Finds the kinds of a verified plan.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        Self::with_graph(plan, None)
    }

    /// Finds the kinds of a verified plan. With its graph, kinds have the names of exported cells: cells with equal
    /// bodies share a kernel, and the plan alone does not know their names.
    #[must_use]
    pub fn with_graph(plan: &Plan, graph: Option<&GraphData>) -> Self {
        let mut known: BTreeMap<(KernelId, &[StoreId]), usize> = BTreeMap::new();
        let mut all: Vec<(KernelId, &[StoreId])> = Vec::new();
        let mut of_step = Vec::with_capacity(plan.steps.len());
        let mut steps: Vec<Vec<usize>> = Vec::new();
        for (number, step) in plan.steps.iter().enumerate() {
            let key = (step.kernel, plan.stores(step));
            let kind = *known.entry(key).or_insert_with(|| {
                all.push(key);
                steps.push(Vec::new());
                all.len() - 1
            });
            of_step.push(kind);
            steps[kind].push(number);
        }
        let exported = |kind: usize| {
            let (graph, &step) = (graph?, steps[kind].first()?);
            exported_name(plan, graph, &plan.steps[step])
        };
        let exported: Vec<Option<String>> = (0..all.len()).map(exported).collect();
        let names = kind_names(plan, &all, &exported);
        Self { of_step, steps, kernels: all.into_iter().map(|(kernel, _)| kernel).collect(), names }
    }

    /// The kind of a step.
    #[must_use]
    pub fn of_step(&self, step: usize) -> usize {
        self.of_step[step]
    }

    /// The name of the kind of a step.
    #[must_use]
    pub fn step_name(&self, step: usize) -> &str {
        &self.names[self.of_step[step]]
    }

    /// The names of all kinds; they are distinct.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The kernel of a kind.
    #[must_use]
    pub fn kernel<'p>(&self, plan: &'p Plan, kind: usize) -> &'p Kernel {
        &plan.kernels[self.kernels[kind].index()]
    }

    /// The steps of a kind, with their numbers.
    pub fn steps<'p>(&self, plan: &'p Plan, kind: usize) -> impl Iterator<Item = (usize, &'p Step)> {
        self.steps[kind].iter().map(|&number| (number, &plan.steps[number]))
    }
}

/// The name of the exported cell that a step computes. `None` for ops, and if the kernel has another name than the cell.
fn exported_name(plan: &Plan, graph: &GraphData, step: &Step) -> Option<String> {
    let &node = plan.lanes(step).first()?;
    let sig = (node.index() < graph.arena.len()).then(|| graph.arena.node(node).sig)?;
    let cell = graph.module.callee_name(graph.sigs.get(sig).callee);
    (plan.kernel(step).name == cell).then(|| names::callee(graph, sig))
}

/// The names of kinds. Kinds of exported cells have the names of the exports. Other kinds of one kernel are distinguished by the first weight that differs, kernels
/// of one name by the kernel's number.
fn kind_names(plan: &Plan, all: &[(KernelId, &[StoreId])], exported: &[Option<String>]) -> Vec<String> {
    let name_of = |kernel: KernelId| plan.kernels[kernel.index()].name.as_str();
    // The stores of the first two kinds of each kernel, and the kernels of each name.
    let mut twins: BTreeMap<KernelId, Vec<&[StoreId]>> = BTreeMap::new();
    let mut namesakes: BTreeMap<&str, BTreeSet<KernelId>> = BTreeMap::new();
    for &(kernel, stores) in all {
        let twins = twins.entry(kernel).or_default();
        if twins.len() < 2 {
            twins.push(stores);
        }
        namesakes.entry(name_of(kernel)).or_default().insert(kernel);
    }
    let is_unique = |name: &String| exported.iter().flatten().filter(|&other| other == name).count() == 1;
    let name = |(&(kernel, stores), exported): (&(KernelId, &[StoreId]), &Option<String>)| {
        if let Some(name) = exported.clone().filter(is_unique) {
            return name;
        }
        let twin = twins[&kernel].iter().find(|&&given| given != stores);
        let weight = twin.and_then(|given| stores.iter().zip(*given).find(|(mine, theirs)| mine != theirs));
        let weight =
            weight.map_or_else(String::new, |(mine, _)| format!("[@{}]", plan.stores[mine.index()].name));
        let name = name_of(kernel);
        let number = if namesakes[name].len() > 1 { format!(" {kernel}") } else { String::new() };
        format!("{name}{weight}{number}")
    };
    all.iter().zip(exported).map(name).collect()
}

/// `211x256x640`: rows, inner dimension and columns of each matrix product of a step.
#[must_use]
pub fn products(kernel: &Kernel, rows: u32) -> String {
    let product = |stage: &Stage| match stage {
        Stage::Prod { dst, rows: own, parts, .. } => {
            let own = (*own).max(1);
            let inner: u64 = parts.iter().map(|part| u64::from(part.source.width / own)).sum();
            Some(format!("{}x{inner}x{}", u64::from(rows) * u64::from(own), dst.width / own))
        }
        Stage::LabelLoss { param, x, .. } => {
            Some(format!("{rows}x{}x{}", x.width, kernel.params[param.index()].shape.rows()))
        }
        _ => None,
    };
    let all: Vec<String> = kernel.stages.iter().filter_map(product).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(" + ") }
}

/// Multiply-adds of the matrix products of one lane.
#[must_use]
pub fn multiply_adds(kernel: &Kernel) -> u64 {
    let one = |stage: &Stage| match stage {
        Stage::Prod { dst, rows, parts, .. } => {
            let inner: u64 = parts.iter().map(|part| u64::from(part.source.width / (*rows).max(1))).sum();
            inner.saturating_mul(u64::from(dst.width))
        }
        // Logits, and the slope.
        Stage::LabelLoss { param, slope, .. } => {
            let elements = kernel.params[param.index()].shape.elements() as u64;
            elements.saturating_mul(if slope.is_some() { 2 } else { 1 })
        }
        _ => 0,
    };
    kernel.stages.iter().map(one).sum()
}

/// The work of a step other than matrix products: `@b, 5 act., 4 mul, 3 add`.
#[must_use]
pub fn other_work(plan: &Plan, step: &Step) -> String {
    let kernel = plan.kernel(step);
    let mut parts: Vec<String> = Vec::new();
    let mut counts: BTreeMap<&'static str, u32> = BTreeMap::new();
    let mut activations = 0;
    for stage in &kernel.stages {
        match stage {
            Stage::Prod { init: ProdInit::Bias(port), .. } => {
                let store = plan.stores(step)[port.index()];
                parts.push(format!("@{}", plan.stores[store.index()].name));
            }
            Stage::Prod { .. } => {}
            Stage::Map { code, .. } => {
                for instr in code {
                    match instr.code {
                        Code::Unary(_) | Code::LeakyRelu(_) | Code::Elu(_) => activations += 1,
                        other => *counts.entry(code_name(other)).or_default() += 1,
                    }
                }
            }
            Stage::Row { op, .. } | Stage::Seg { op, .. } => parts.push(op.spelling().to_owned()),
            Stage::SegGrad { op, .. } => parts.push(format!("reverse of {}", op.spelling())),
            Stage::MeanGrad { .. } => parts.push("reverse of list_mean".to_owned()),
            Stage::AttendGrad { op, .. } => {
                parts.push(format!("reverse of {}, for queries", op.spelling()));
            }
            Stage::AttendPull { op, .. } => {
                parts.push(format!("reverse of {}, for keys and values", op.spelling()));
            }
            Stage::LabelLoss { param, .. } => {
                let store = plan.stores(step)[param.index()];
                parts.push(format!("loss of a row of @{}", plan.stores[store.index()].name));
            }
            Stage::Lookup { param, .. } => {
                let store = plan.stores(step)[param.index()];
                parts.push(format!("row of @{}", plan.stores[store.index()].name));
            }
        }
    }
    if activations > 0 {
        parts.push(format!("{activations} act."));
    }
    parts.extend(counts.into_iter().map(|(name, count)| format!("{count} {name}")));
    if parts.is_empty() { "-".to_owned() } else { parts.join(", ") }
}

fn code_name(code: Code) -> &'static str {
    match code {
        Code::Copy => "copy",
        Code::Slope(_) => "slope",
        Code::Unary(_) | Code::LeakyRelu(_) | Code::Elu(_) => "act.",
        Code::Clamp(..) => "clamp",
        Code::Binary(binary) => binary_name(binary),
        Code::Compare(_) => "compare",
        Code::Select => "select",
        Code::Cast(_) => "cast",
    }
}

fn binary_name(binary: Binary) -> &'static str {
    Op::Binary(binary).spelling()
}

/// Calls `write` with the lane and row of each row that a result writes.
pub fn for_each_written_row(plan: &Plan, step: &Step, place: Place, mut write: impl FnMut(u32, u32)) {
    match place {
        Place::Rows { start, .. } => (0..step.rows).for_each(|lane| write(lane, start + lane)),
        Place::Table { at, .. } => {
            (0..step.rows).for_each(|lane| write(lane, plan.tables[(at + lane) as usize]))
        }
        Place::Edges { start, offsets, .. } => {
            for lane in 0..step.rows {
                let at = (offsets + lane) as usize;
                (plan.tables[at]..plan.tables[at + 1]).for_each(|item| write(lane, start + item));
            }
        }
    }
}

/// The steps that compute nodes, with their numbers. Steps that copy constants and inputs are left out.
pub fn computing(plan: &Plan) -> impl Iterator<Item = (usize, &Step)> {
    plan.steps.iter().enumerate().filter(|(_, step)| !plan.kernel(step).source)
}

/// `9f3c..41`: an abbreviated structure hash.
#[must_use]
pub fn short_hash(structure: u128) -> String {
    let all = format!("{structure:032x}");
    format!("{}..{}", &all[..4], &all[30..])
}
