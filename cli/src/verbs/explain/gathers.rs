//! Gathered operands of a plan, each with its reason.
//!
//! The analysis goes through the steps and records which step last wrote each row. If the rows of a
//! gathered operand come from several steps, they could be a range only if those steps wrote adjacent
//! blocks. If they come from one step, they could be a range unless another operand reads them in
//! another order.

use super::Report;
use super::copies::Copies;
use super::kernels::share_of_rows;
use autobatch_inspector::steps::{Kinds, for_each_written_row};
use autobatch_inspector::text::{count, table};
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::{FieldId, Plan, Stage};
use serde::Serialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Maximum number of steps in a reason.
const MAX_STEPS: usize = 4;

/// A gathered operand.
#[derive(Debug, Serialize)]
pub(super) struct Gather {
    step: u32,
    kernel: String,
    port: u32,
    rows: u32,
    reason: Reason,
}

/// Why an operand is gathered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Reason {
    /// The operand is a list, whose order the model determines.
    List,
    /// The operand lists the contributions of a value's readers to its gradient.
    Contributions,
    /// Several lanes read the same row.
    Repeats,
    /// Several steps wrote the rows.
    SeveralSteps(Vec<u32>),
    /// One step wrote the rows, and several operands read them.
    SeveralReaders { written: u32, readers: u32 },
    /// One step wrote the rows in another order; this operand is their only reader.
    OtherOrder { written: u32 },
}

impl Reason {
    /// The reason without details, for totals.
    fn kind(&self) -> &'static str {
        match self {
            Self::List => "the model determines the order of the elements of a list",
            Self::Contributions => "a gradient sums up the contributions of all readers of its value",
            Self::Repeats => "several lanes read the same row",
            Self::SeveralSteps(_) => "several steps wrote the rows",
            Self::SeveralReaders { .. } => "the rows have several readers, and no order fits all of them",
            Self::OtherOrder { .. } => "one step wrote the rows in another order",
        }
    }

    fn text(&self) -> String {
        match self {
            Self::List | Self::Contributions | Self::Repeats => self.kind().to_owned(),
            Self::SeveralSteps(steps) => {
                let shown: Vec<String> = steps.iter().take(MAX_STEPS).map(u32::to_string).collect();
                let more = if steps.len() > MAX_STEPS {
                    format!(" and {} more", steps.len() - MAX_STEPS)
                } else {
                    String::new()
                };
                format!("steps {}{more} wrote the rows", shown.join(", "))
            }
            Self::SeveralReaders { written, readers } => {
                format!("the rows of step {written} have {readers} readers, and no order fits all of them")
            }
            Self::OtherOrder { written } => format!("step {written} wrote the rows in another order"),
        }
    }
}

impl Gather {
    /// All gathered operands of a plan, in the order of steps.
    pub(super) fn all(plan: &Plan, graph: Option<&GraphData>) -> Vec<Self> {
        let kinds = Kinds::with_graph(plan, graph);
        let readers = readers(plan);
        let mut writer = Writers::default();
        let mut gathers = Vec::new();
        for (number, step) in plan.steps.iter().enumerate() {
            for (port, &operand) in plan.operands(step).iter().enumerate() {
                let Some(field) = operand.field().filter(|_| operand.is_gathered()) else { continue };
                let mut rows = Vec::new();
                operand.for_each_row(plan, step.rows, |row| rows.push(row));
                let writers: BTreeSet<u32> = rows.iter().map(|&row| writer.of(field, row)).collect();
                let distinct: BTreeSet<u32> = rows.iter().copied().collect();
                let reason = match writers.first() {
                    _ if operand.is_list() => list_reason(plan, number),
                    _ if distinct.len() < rows.len() => Reason::Repeats,
                    Some(&written) if writers.len() == 1 => match readers.get(&(field.0, written)) {
                        Some(&readers) if readers > 1 => Reason::SeveralReaders { written, readers },
                        _ => Reason::OtherOrder { written },
                    },
                    _ => Reason::SeveralSteps(writers.into_iter().collect()),
                };
                let kernel = kinds.step_name(number).to_owned();
                gathers.push(Self {
                    step: number as u32,
                    kernel,
                    port: port as u32,
                    rows: rows.len() as u32,
                    reason,
                });
            }
            for &place in plan.places(step) {
                for_each_written_row(plan, step, place, |_, row| {
                    writer.set(place.field(), row, number as u32)
                });
            }
        }
        gathers
    }
}

/// The reason of a list operand. A step of the reverse that does not differentiate a list sums up gradients.
fn list_reason(plan: &Plan, number: usize) -> Reason {
    let differentiates = |stage: &Stage| {
        matches!(
            stage,
            Stage::SegGrad { .. }
                | Stage::MeanGrad { .. }
                | Stage::AttendGrad { .. }
                | Stage::AttendPull { .. }
        )
    };
    let sums_gradients =
        number >= plan.forward_steps() && !plan.kernel(&plan.steps[number]).stages.iter().any(differentiates);
    if sums_gradients { Reason::Contributions } else { Reason::List }
}

/// The step that last wrote each row of each field. Rows are added when a step writes them.
#[derive(Default)]
struct Writers(BTreeMap<(u32, u32), u32>);

impl Writers {
    fn of(&self, field: FieldId, row: u32) -> u32 {
        self.0.get(&(field.0, row)).copied().unwrap_or(0)
    }

    fn set(&mut self, field: FieldId, row: u32, step: u32) {
        self.0.insert((field.0, row), step);
    }
}

/// The number of operands that read rows of a field, by the step that wrote the rows.
fn readers(plan: &Plan) -> BTreeMap<(u32, u32), u32> {
    let mut writer = Writers::default();
    let mut readers = BTreeMap::new();
    for (number, step) in plan.steps.iter().enumerate() {
        for &operand in plan.operands(step) {
            let mut rows = Vec::new();
            let Some(field) = operand.for_each_row(plan, step.rows, |row| rows.push(row)) else {
                continue;
            };
            let written: BTreeSet<u32> = rows.iter().map(|&row| writer.of(field, row)).collect();
            written.into_iter().for_each(|written| *readers.entry((field.0, written)).or_default() += 1);
        }
        for &place in plan.places(step) {
            for_each_written_row(plan, step, place, |_, row| writer.set(place.field(), row, number as u32));
        }
    }
    readers
}

/// The gathered rows of one port of a kernel.
#[derive(Default)]
struct Total {
    rows: u64,
    /// Rows by reason.
    reasons: BTreeMap<&'static str, u64>,
}

/// The totals by kernel and port.
pub(super) fn summary(plan: &Plan, graph: Option<&GraphData>) -> String {
    let gathers = Gather::all(plan, graph);
    if gathers.is_empty() {
        return "gathered: none; all operand rows are direct\n".to_owned();
    }
    let mut totals: BTreeMap<(String, u32), Total> = BTreeMap::new();
    for gather in &gathers {
        let total = totals.entry((gather.kernel.clone(), gather.port)).or_default();
        total.rows += u64::from(gather.rows);
        *total.reasons.entry(gather.reason.kind()).or_default() += u64::from(gather.rows);
    }
    let mut totals: Vec<_> = totals.into_iter().collect();
    totals.sort_by_key(|(_, total)| std::cmp::Reverse(total.rows));
    let mut rows = Vec::new();
    for ((kernel, port), Total { rows: total, reasons }) in totals {
        let main = reasons.into_iter().max_by_key(|(reason, rows)| (*rows, std::cmp::Reverse(*reason)));
        let main = main.map_or("", |(reason, _)| reason).to_owned();
        rows.push(vec![format!("  {kernel}.{port}"), count(total), main]);
    }
    format!("gathered ({}; --gathers lists the operands)\n{}", share_of_rows(plan), table(&rows, &[0, 2]))
}

/// The report of all gathered operands and copied rows.
pub(super) fn report(plan: &Plan, graph: Option<&GraphData>) -> Report {
    let (gathers, copies) = (Gather::all(plan, graph), Copies::all(plan));
    let json = json!({
        "gathered": gathers, "gathered_rows": plan.certificate.gathered,
        "direct_rows": plan.certificate.direct, "copies": copies, "copied_rows": plan.certificate.copied,
    });
    let mut text = String::new();
    let _ = writeln!(text, "gathered: {}", share_of_rows(plan));
    let mut rows = vec![["step", "operand", "rows", "reason"].map(str::to_owned).to_vec()];
    for Gather { step, kernel, port, rows: lanes, reason } in gathers {
        rows.push(vec![step.to_string(), format!("{kernel}.{port}"), count(lanes), reason.text()]);
    }
    if rows.len() > 1 {
        text += &table(&rows, &[1, 3]);
    }
    Report { text: text + &Copies::text(&copies, plan), json }
}
