//! Differences of two plans.

use super::{Content, Difference, first_difference, numbers, texts};
use autobatch_inspector::steps::{Kinds, multiply_adds, short_hash};
use autobatch_ir::module::ParamKind;
use autobatch_ir::plan::{Kernel, Plan, Store, StoreId, StoreKind};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The differences, the most general first.
pub(super) fn differences(a: &Plan, b: &Plan) -> Vec<Difference> {
    let (one, two) = (&a.certificate, &b.certificate);
    let mode = |plan: &Plan| format!("{:?}", plan.mode).to_lowercase();
    let gap = |plan: &Plan| format!("{:.0} %", plan.certificate.gap() * 100.0);
    let mut all: Vec<Difference> = [
        texts("module", a.module.clone(), b.module.clone()),
        texts("structure", short_hash(a.structure), short_hash(b.structure)),
        texts("mode", mode(a), mode(b)),
        numbers("batches", one.batches.into(), two.batches.into()),
        numbers("reverse batches", one.reverse_batches.into(), two.reverse_batches.into()),
        numbers("bound", one.bound.into(), two.bound.into()),
        texts("gap", gap(a), gap(b)),
        numbers("rows copied", one.copied, two.copied),
        numbers("rows gathered", one.gathered, two.gathered),
        numbers("rows direct", one.direct, two.direct),
        numbers("bytes of slabs", one.slab_bytes, two.slab_bytes),
        numbers("waves", a.waves.len() as u64, b.waves.len() as u64),
        numbers("steps", a.steps.len() as u64, b.steps.len() as u64),
        numbers("bound words", a.words.into(), b.words.into()),
        numbers("bound floats", a.floats.into(), b.floats.into()),
        numbers("parameter-gradient reductions", a.reductions.len() as u64, b.reductions.len() as u64),
        numbers("outputs", a.outputs.len() as u64, b.outputs.len() as u64),
    ]
    .into_iter()
    .flatten()
    .collect();
    let (in_a, in_b) = (shares(a), shares(b));
    for name in in_a.keys().chain(in_b.keys()).collect::<BTreeSet<_>>() {
        let share = |side: &BTreeMap<String, Share>| side.get(name).copied().unwrap_or_default();
        let (x, y) = (share(&in_a), share(&in_b));
        all.extend(numbers(format!("{name}: steps"), x.steps, y.steps));
        all.extend(numbers(format!("{name}: rows"), x.rows, y.rows));
        all.extend(numbers(format!("{name}: multiply-adds per row"), x.multiply_adds, y.multiply_adds));
    }
    all.extend(first_difference("first store that differs", &a.stores, &b.stores, store));
    // Another order changes most lines of the text, so a line is shown only for plans of one order.
    if all.is_empty() && a != b {
        all.extend(line_of_text(a, b));
    }
    let [x, y] = [own_kernels(a, b), own_kernels(b, a)];
    if x.is_some() || y.is_some() {
        let [a, b] = [x, y].map(|names| Content::Text(names.unwrap_or_else(|| "-".to_owned())));
        all.push(Difference { property: "kernels of one plan only".to_owned(), a, b });
    }
    all
}

/// The first line of the text form that differs.
fn line_of_text(a: &Plan, b: &Plan) -> Option<Difference> {
    let (a, b) = (a.to_text(), b.to_text());
    let (a, b): (Vec<&str>, Vec<&str>) = (a.lines().collect(), b.lines().collect());
    let at = (0..a.len().max(b.len())).find(|&line| a.get(line) != b.get(line))?;
    first_difference(format!("line {} of the text", at + 1), &a, &b, |line| line.trim().to_owned())
}

fn store(store: &Store) -> String {
    let of = |of: StoreId| format!("of the store {}", of.0);
    let kind = match store.kind {
        StoreKind::Param(ParamKind::Param) => "param".to_owned(),
        StoreKind::Param(ParamKind::Table) => "table".to_owned(),
        StoreKind::Grad(param) => format!("gradient {}", of(param)),
        StoreKind::State(param) => format!("state {}", of(param)),
    };
    format!("{} {}, {kind}", store.name, store.ty)
}

/// The names of the kernels that the other plan lacks; `None` if there are none.
fn own_kernels(plan: &Plan, other: &Plan) -> Option<String> {
    let lacking = |kernel: &&Arc<Kernel>| !other.kernels.contains(*kernel);
    let names: Vec<&str> = plan.kernels.iter().filter(lacking).map(|kernel| kernel.name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Steps, rows and work per row of a kind of steps.
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
