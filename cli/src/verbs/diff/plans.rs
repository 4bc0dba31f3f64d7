//! What differs between two plans.

use super::{Difference, Said, first, numbers, words};
use crate::facts::{Kinds, brief, multiply_adds};
use autobatch_ir::module::ParamKind;
use autobatch_ir::plan::{Kernel, Plan, Store, StoreId, StoreKind};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What differs, the coarse before the fine.
pub(super) fn differences(a: &Plan, b: &Plan) -> Vec<Difference> {
    let (one, two) = (&a.certificate, &b.certificate);
    let mode = |plan: &Plan| format!("{:?}", plan.mode).to_lowercase();
    let gap = |plan: &Plan| format!("{:.0} %", plan.certificate.gap() * 100.0);
    let mut all: Vec<Difference> = [
        words("module", a.module.clone(), b.module.clone()),
        words("structure", brief(a.structure), brief(b.structure)),
        words("mode", mode(a), mode(b)),
        numbers("batches", one.batches.into(), two.batches.into()),
        numbers("batches in reverse", one.reverse_batches.into(), two.reverse_batches.into()),
        numbers("bound", one.bound.into(), two.bound.into()),
        words("gap", gap(a), gap(b)),
        numbers("rows copied", one.copied, two.copied),
        numbers("rows through tables", one.gathered, two.gathered),
        numbers("rows in place", one.direct, two.direct),
        numbers("bytes of slabs", one.slab_bytes, two.slab_bytes),
        numbers("waves", a.waves.len() as u64, b.waves.len() as u64),
        numbers("steps", a.steps.len() as u64, b.steps.len() as u64),
        numbers("bound words", a.words.into(), b.words.into()),
        numbers("bound floats", a.floats.into(), b.floats.into()),
        numbers("sums of gradients", a.reductions.len() as u64, b.reductions.len() as u64),
        numbers("outputs", a.outputs.len() as u64, b.outputs.len() as u64),
    ]
    .into_iter()
    .flatten()
    .collect();
    let (mine, theirs) = (shares(a), shares(b));
    for name in mine.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
        let share = |side: &BTreeMap<String, Share>| side.get(name).copied().unwrap_or_default();
        let (x, y) = (share(&mine), share(&theirs));
        all.extend(numbers(format!("{name}: steps"), x.steps, y.steps));
        all.extend(numbers(format!("{name}: rows"), x.rows, y.rows));
        all.extend(numbers(format!("{name}: multiply-adds a row"), x.multiply_adds, y.multiply_adds));
    }
    all.extend(first("first store that differs", &a.stores, &b.stores, store));
    // Another order moves every row; of plans of one order the line itself can be shown.
    if all.is_empty() && a != b {
        all.extend(line_of_text(a, b));
    }
    let [x, y] = [lacking(a, b), lacking(b, a)];
    if x.is_some() || y.is_some() {
        let [a, b] = [x, y].map(|names| Said::Words(names.unwrap_or_else(|| "-".to_owned())));
        all.push(Difference { what: "kernels that the other lacks".to_owned(), a, b });
    }
    all
}

/// The first line of the text form that differs.
fn line_of_text(a: &Plan, b: &Plan) -> Option<Difference> {
    let (a, b) = (a.to_text(), b.to_text());
    let (a, b): (Vec<&str>, Vec<&str>) = (a.lines().collect(), b.lines().collect());
    let place = (0..a.len().max(b.len())).find(|&line| a.get(line) != b.get(line))?;
    let what = format!("line {} of the text", place + 1);
    first(what, &a[place.min(a.len())..], &b[place.min(b.len())..], |_, line| line.trim().to_owned())
}

fn store(_: usize, store: &Store) -> String {
    let of = |of: StoreId| format!("of the store {}", of.0);
    let kind = match store.kind {
        StoreKind::Param(ParamKind::Param) => "param".to_owned(),
        StoreKind::Param(ParamKind::Table) => "table".to_owned(),
        StoreKind::Grad(param) => format!("gradient {}", of(param)),
        StoreKind::State(param) => format!("state {}", of(param)),
    };
    format!("{} {}, {kind}", store.name, store.ty)
}

/// The names of the kernels of one plan that the other has under no number, if there are any.
fn lacking(plan: &Plan, other: &Plan) -> Option<String> {
    let lacking = |kernel: &&Arc<Kernel>| !other.kernels.contains(*kernel);
    let names: Vec<&str> = plan.kernels.iter().filter(lacking).map(|kernel| kernel.name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Steps, rows and work a row of a kernel.
#[derive(Clone, Copy, Default)]
struct Share {
    steps: u64,
    rows: u64,
    multiply_adds: u64,
}

fn shares(plan: &Plan) -> BTreeMap<String, Share> {
    let kinds = Kinds::of(plan);
    let mut all: BTreeMap<String, Share> = BTreeMap::new();
    for (number, step) in plan.steps.iter().enumerate() {
        let share = all.entry(kinds.step_name(number).to_owned()).or_default();
        share.steps += 1;
        share.rows += u64::from(step.rows);
        share.multiply_adds = multiply_adds(plan.kernel(step));
    }
    all
}
