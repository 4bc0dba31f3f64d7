//! The packed picture: instances against the steps of one kernel.
//!
//! A line is an instance, a column a step; a cell says how many lanes the instance has in the step,
//! or with labels which bound word stands behind its lane. Padding would have made every step as
//! wide as the widest.

use crate::facts::Kinds;
use crate::failure::Failure;
use crate::words::{count, plural, table};
use autobatch_ir::graph::{GraphData, OperandKind};
use autobatch_ir::id::AppId;
use autobatch_ir::plan::Plan;
use std::collections::BTreeMap;

/// Instances and steps that are shown; the rest is counted.
const SHOWN: usize = 48;
const COLUMNS: usize = 32;

pub(super) fn report(
    graph: &GraphData,
    plan: &Plan,
    kernel: Option<&str>,
    labels: bool,
) -> Result<String, Failure> {
    let kinds = Kinds::of(plan);
    let chosen = choose(plan, &kinds, kernel)?;
    let steps: Vec<_> = kinds.steps(plan, chosen).map(|(_, step)| step).collect();
    let instances = instances(graph);
    let columns = steps.len().min(COLUMNS);
    let more = steps.len() - columns;
    // Of each instance how many lanes it has in all, and which in the columns that are shown.
    let mut lines: BTreeMap<Option<usize>, (usize, Vec<Vec<AppId>>)> = BTreeMap::new();
    for (column, step) in steps.iter().enumerate() {
        for &app in plan.lanes(step) {
            let (lanes, shown) =
                lines.entry(instances[app.index()]).or_insert_with(|| (0, vec![Vec::new(); columns]));
            *lanes += 1;
            if let Some(cell) = shown.get_mut(column) {
                cell.push(app);
            }
        }
    }
    let mut lines: Vec<_> = lines.into_iter().collect();
    lines.sort_by_key(|(_, (lanes, _))| std::cmp::Reverse(*lanes));

    let mut rows = Vec::new();
    let head = std::iter::once("instance".to_owned()).chain((0..columns).map(|column| column.to_string()));
    rows.push(head.chain((more > 0).then(|| format!(".. {more} more steps"))).collect::<Vec<_>>());
    for (instance, (_, line)) in lines.iter().take(SHOWN) {
        let name = instance.map_or_else(|| "common".to_owned(), |number| number.to_string());
        let cell = |apps: &Vec<AppId>| match (apps.as_slice(), labels) {
            ([], _) => ".".to_owned(),
            ([app], true) => label(graph, *app).unwrap_or_else(|| "1".to_owned()),
            (apps, _) => apps.len().to_string(),
        };
        rows.push(std::iter::once(name).chain(line.iter().map(cell)).collect());
    }
    let hidden = lines.len().saturating_sub(SHOWN);
    let packed: u64 = steps.iter().map(|step| u64::from(step.rows)).sum();
    let widest = steps.iter().map(|step| step.rows).max().unwrap_or(0);
    let padded = u64::from(widest) * steps.len() as u64;
    let saved = if padded == 0 { 0.0 } else { 100.0 - packed as f64 * 100.0 / padded as f64 };
    let sizes: Vec<String> = steps.iter().take(COLUMNS).map(|step| step.rows.to_string()).collect();
    let etc = if more > 0 { " .." } else { "" };
    let mut text = format!(
        "{}   {} of {}   batch sizes {}{etc}\npadded would be {} cells, packed {} (-{saved:.0} %)\n\n{}",
        kinds.names()[chosen],
        plural(steps.len() as u64, "step"),
        plural(lines.len() as u64, "instance"),
        sizes.join(" "),
        count(padded),
        count(packed),
        table(&rows, &[0]),
    );
    if hidden > 0 {
        text += &format!(".. {hidden} more instances\n");
    }
    text += "\nlongest first; outputs come back in your order\n";
    Ok(text)
}

/// The kind that is asked for, or the one with the most steps; the first of equals.
fn choose(plan: &Plan, kinds: &Kinds, asked: Option<&str>) -> Result<usize, Failure> {
    let names = kinds.names();
    let bare = |name: &str| name.trim_start_matches('@').to_owned();
    if let Some(asked) = asked {
        let found = names.iter().position(|name| bare(name) == bare(asked));
        return found.ok_or_else(|| {
            Failure::usage(format!("the plan has no kernel {asked:?}"))
                .help(format!("it has {}", names.join(", ")))
        });
    }
    let computes = |&kind: &usize| !kinds.kernel(plan, kind).source;
    let steps = |kind: usize| (kinds.steps(plan, kind).count(), std::cmp::Reverse(kind));
    (0..names.len())
        .filter(computes)
        .max_by_key(|&kind| steps(kind))
        .ok_or_else(|| Failure::usage("the plan computes nothing: it has no steps to show"))
}

/// The number of the instance of each application; none for common ones.
fn instances(graph: &GraphData) -> Vec<Option<usize>> {
    let mut instances = vec![None; graph.arena.len()];
    for (instance, range) in graph.numbered_stretches() {
        instances[range].fill(instance.map(|(number, _)| number));
    }
    instances
}

/// The word that is bound where the application, or one that it reads, takes an index.
fn label(graph: &GraphData, app: AppId) -> Option<String> {
    let bound = |app: AppId| {
        let slots = graph.arena.operands(app).iter().filter_map(|operand| match operand.kind() {
            Some(OperandKind::Index(slot)) => Some(slot),
            _ => None,
        });
        slots.filter_map(|slot| graph.bindings.words.get(slot as usize)).next()
    };
    let own = bound(app);
    let read = || {
        let values = graph.arena.operands(app).iter().filter_map(|operand| operand.as_value());
        // What the same cell made is the state before, not this lane's own input.
        let sig = graph.arena.app(app).sig;
        let mut producers =
            values.map(|value| graph.arena.producer(value)).filter(|&made| graph.arena.app(made).sig != sig);
        producers.find_map(bound)
    };
    own.or_else(read).map(|word| format!("#{word}"))
}

#[cfg(test)]
mod tests {
    use super::super::spell;
    use super::*;
    use autobatch_ir::graph::Graph;
    use autobatch_ir::module::ModuleBuilder;

    #[test]
    fn applications_before_the_first_instance_belong_to_none() {
        let g = Graph::new(&ModuleBuilder::new("m").build().expect("empty"));
        let x = g.zeros(2);
        g.instance(5);
        g.output("y", x.tanh());
        let graph = g.finish().expect("sound");
        assert_eq!(instances(&graph), [None, Some(0)]);
        assert_eq!(spell::instance(&graph, AppId::new(1)), "instance 0 (key 5)");
    }
}
