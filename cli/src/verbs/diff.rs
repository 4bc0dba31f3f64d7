//! `diff`: what differs between two plans, or between two graphs.

use crate::args::DiffArgs;
use crate::console::Console;
use crate::facts::{Kinds, brief, multiply_adds};
use crate::failure::{Answer, Failure};
use crate::files::{Loaded, load};
use crate::words::{count, table};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::Plan;
use std::collections::BTreeMap;
use std::io::Write;

/// Compares two files.
pub fn diff(args: &DiffArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    let rows = match (load(&args.a)?, load(&args.b)?) {
        (Loaded::Plan(a), Loaded::Plan(b)) => plans(&a.into_inner(), &b.into_inner()),
        (Loaded::Graph(a), Loaded::Graph(b)) => graphs(&a, &b),
        (a, _) => {
            let [graph, plan] = match a {
                Loaded::Graph(_) => [&args.a, &args.b],
                Loaded::Plan(_) => [&args.b, &args.a],
            };
            let message = format!("{graph} is a graph and {plan} a plan");
            return Err(Failure::usage(message)
                .help("diff two of a kind; autobatch check GRAPH PLAN compares the two"));
        }
    };
    if rows.is_empty() {
        writeln!(console, "{} and {} say the same", args.a, args.b)?;
        return Ok(Answer::Yes);
    }
    writeln!(console, "a  {}\nb  {}\n", args.a, args.b)?;
    let head = ["", "a", "b", "from a to b"].map(str::to_owned).to_vec();
    let all: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    console.write_all(table(&all, &[0, 3]).as_bytes())?;
    Ok(Answer::No)
}

/// A line for what differs; nothing for what does not.
fn line(what: impl Into<String>, a: u64, b: u64) -> Option<Vec<String>> {
    let change = match (b as f64 - a as f64, a) {
        (_, 0) => "new".to_owned(),
        (_, _) if b == 0 => "gone".to_owned(),
        (change, _) => format!("{change:+} ({:+.0} %)", change * 100.0 / a as f64),
    };
    (a != b).then(|| vec![what.into(), count(a), count(b), change])
}

fn words(what: &str, a: String, b: String) -> Option<Vec<String>> {
    (a != b).then(|| vec![what.to_owned(), a, b])
}

fn plans(a: &Plan, b: &Plan) -> Vec<Vec<String>> {
    let (one, two) = (&a.certificate, &b.certificate);
    let mut rows: Vec<Vec<String>> = [
        words("module", a.module.clone(), b.module.clone()),
        words("structure", brief(a.structure), brief(b.structure)),
        words("mode", format!("{:?}", a.mode).to_lowercase(), format!("{:?}", b.mode).to_lowercase()),
        line("batches", one.batches.into(), two.batches.into()),
        line("batches in reverse", one.reverse_batches.into(), two.reverse_batches.into()),
        line("bound", one.bound.into(), two.bound.into()),
        words("gap", gap_of(a), gap_of(b)),
        line("rows copied", one.copied, two.copied),
        line("rows through tables", one.tabled, two.tabled),
        line("rows in place", one.direct, two.direct),
        line("bytes of slabs", one.slab_bytes, two.slab_bytes),
        line("waves", a.waves.len() as u64, b.waves.len() as u64),
        line("steps", a.steps.len() as u64, b.steps.len() as u64),
    ]
    .into_iter()
    .flatten()
    .collect();
    let (mine, theirs) = (kernels(a), kernels(b));
    let mut names: Vec<&String> = mine.keys().chain(theirs.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let (x, y) = (mine.get(name), theirs.get(name));
        let number = |side: Option<&(u64, u64, u64)>, pick: fn(&(u64, u64, u64)) -> u64| side.map_or(0, pick);
        rows.extend(line(format!("{name}: steps"), number(x, |k| k.0), number(y, |k| k.0)));
        rows.extend(line(format!("{name}: rows"), number(x, |k| k.1), number(y, |k| k.1)));
        rows.extend(line(format!("{name}: multiply-adds a row"), number(x, |k| k.2), number(y, |k| k.2)));
    }
    let shared = a.kernels.iter().filter(|kernel| b.kernels.contains(kernel)).count();
    rows.extend(line(
        "kernels the other lacks",
        (a.kernels.len() - shared) as u64,
        (b.kernels.len() - shared) as u64,
    ));
    if rows.is_empty() && a != b {
        let order = |plan: &Plan| plan.lanes.clone();
        let what = if order(a) == order(b) { "where rows lie" } else { "which lanes stand where" };
        let first = a.steps.iter().zip(&b.steps).position(|(x, y)| {
            (a.lanes(x), a.operands(x), a.places(x)) != (b.lanes(y), b.operands(y), b.places(y))
        });
        let at = first.map_or_else(|| "in pools only".to_owned(), |step| format!("from step {step}"));
        rows.push(vec![what.to_owned(), at, "differs".to_owned()]);
    }
    rows
}

fn gap_of(plan: &Plan) -> String {
    format!("{:.0} %", plan.certificate.gap() * 100.0)
}

/// Steps, rows and work a row of each kernel.
fn kernels(plan: &Plan) -> BTreeMap<String, (u64, u64, u64)> {
    let kinds = Kinds::of(plan);
    let mut all: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
    for (number, step) in plan.steps.iter().enumerate() {
        let entry = all.entry(kinds.step_name(number).to_owned()).or_default();
        *entry = (entry.0 + 1, entry.1 + u64::from(step.rows), multiply_adds(plan.kernel(step)));
    }
    all
}

fn graphs(a: &GraphData, b: &GraphData) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = [
        words("module", a.module.name.clone(), b.module.name.clone()),
        words("structure", brief(a.structure()), brief(b.structure())),
        line("instances", a.instances() as u64, b.instances() as u64),
        line("applications", a.arena.len() as u64, b.arena.len() as u64),
        line("values", a.arena.values() as u64, b.arena.values() as u64),
        line("outputs", a.outputs.len() as u64, b.outputs.len() as u64),
        line("parameters", a.module.params.len() as u64, b.module.params.len() as u64),
        line("cells", a.module.cells.len() as u64, b.module.cells.len() as u64),
        line("bound words", a.bindings.words.len() as u64, b.bindings.words.len() as u64),
        line("bound floats", a.bindings.floats.len() as u64, b.bindings.floats.len() as u64),
    ]
    .into_iter()
    .flatten()
    .collect();
    let (mine, theirs) = (callees(a), callees(b));
    let mut names: Vec<&String> = mine.keys().chain(theirs.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let number = |side: &BTreeMap<String, u64>| side.get(name).copied().unwrap_or(0);
        rows.extend(line(name.as_str(), number(&mine), number(&theirs)));
    }
    let pairs = a.arena.ids().zip(b.arena.ids());
    let same = |x, y| {
        let spell =
            |graph: &GraphData, app| format!("{:?}{:?}", graph.signature(app), graph.arena.operands(app));
        spell(a, x) == spell(b, y)
    };
    if let Some((x, _)) = pairs.into_iter().find(|&(x, y)| !same(x, y)) {
        let spell = |graph: &GraphData| {
            let results = graph.arena.results(x).map(|value| graph.type_of(ValueId::new(value)).to_string());
            let name = graph.module.callee_name(graph.signature(x).callee);
            format!("{x} {name} -> {}", results.collect::<Vec<String>>().join(", "))
        };
        rows.push(vec!["first that differs".to_owned(), spell(a), spell(b)]);
    }
    if rows.is_empty() && a != b {
        rows.push(vec!["bound numbers, names or source lines".to_owned(), "differ".to_owned()]);
    }
    rows
}

/// Applications by signature.
fn callees(graph: &GraphData) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for app in graph.arena.ids() {
        let signature = graph.signature(app);
        let operands: Vec<String> = signature.operands.iter().map(|&ty| graph.ty(ty).to_string()).collect();
        let params: Vec<String> = signature.params.iter().map(|&arg| graph.module.param_name(arg)).collect();
        let separator = if params.is_empty() { "" } else { "; " };
        let name = graph.module.callee_name(signature.callee);
        *all.entry(format!("{name}({}{separator}{})", operands.join(", "), params.join(", ")))
            .or_default() += 1;
    }
    all
}
