//! Random graphs through every pass: the result follows the rules of graphs, is proved, and has the same bits.

use crate::agrees;
use crate::inline::inline;
use autobatch_ir::graph::OutputKind;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::Mode;
use autobatch_ir::{GraphData, ParamId};
use autobatch_oracle::check::{self as proof, Wanted};
use autobatch_oracle::equivalent::{Unproved, equivalent, prove};
use autobatch_oracle::reference;
use autobatch_oracle::reference::Datum;
use autobatch_planner::passes::{PASSES, Verify, all, optimize};
use autobatch_planner::{Planner, Request, Selection};
use autobatch_testing::random::{Options, Profile, check};
use autobatch_testing::trials::asked_seed;
use autobatch_testing::written::{self, Numbers};
use std::cell::Cell;

/// Every third readable value. Passes must keep these and may remove the others.
fn wanted(graph: &GraphData) -> Vec<ValueId> {
    let values = (0..graph.arena.values()).step_by(3).map(ValueId::new);
    values.filter(|&value| !graph.type_of(value).is_list).collect()
}

/// Runs passes, proves and evaluates. Returns whether the graph changed.
fn rewritten(graph: &GraphData, mode: Mode, selection: &Selection) -> Result<bool, String> {
    let wanted = wanted(graph);
    let optimized =
        optimize(graph, &wanted, mode, selection, &mut all).map_err(|failure| failure.to_string())?;
    if let Some(lost) = wanted.iter().find(|&&value| optimized.renaming.get(value).is_none()) {
        return Err(format!("the requested value {lost} lost its name"));
    }
    agrees(graph, &optimized.graph, &optimized.renaming)?;
    Ok(optimized.log.iter().any(|line| !line.ends_with("nothing to do")))
}

fn selections() -> Vec<Selection> {
    let mut selections: Vec<Selection> =
        PASSES.iter().map(|pass| Selection::none().with(pass.name, true).expect("a pass")).collect();
    selections.iter_mut().for_each(|selection| selection.eager = true);
    let everything =
        Selection::of_mode(Mode::Infer).with("dead", true).and_then(|all| all.with("hoist", true));
    let mut everything = everything.expect("passes");
    everything.across_instances = true;
    selections.push(everything);
    selections.iter_mut().for_each(|selection| selection.verify = Verify::Prove(prove));
    selections
}

/// The selections that must change some graph: all but those of one of these passes.
fn all_but(idle: &[&str]) -> Vec<usize> {
    let busy = |number: &usize| PASSES.get(*number).is_none_or(|pass| !idle.contains(&pass.name));
    (0..=PASSES.len()).filter(busy).collect()
}

/// The number of graphs that each selection changed.
fn sweep(options: Options, count: u64, form: impl Fn(&GraphData) -> GraphData) -> Vec<u32> {
    let changed: Vec<Cell<u32>> = selections().iter().map(|_| Cell::new(0)).collect();
    check("passes keep every bit", options, count, |graph| by_all(&form(graph), &changed));
    changed.iter().map(Cell::get).collect()
}

/// Runs every selection in both modes and counts the changed graphs of each.
fn by_all(graph: &GraphData, changed: &[Cell<u32>]) -> Result<(), String> {
    for (selection, changed) in selections().iter().zip(changed) {
        for mode in [Mode::Infer, Mode::Train] {
            let did = rewritten(graph, mode, selection).map_err(|error| format!("{selection:?}: {error}"))?;
            changed.set(changed.get() + u32::from(did));
        }
    }
    Ok(())
}

#[test]
fn written_graphs_keep_their_bits() {
    let changed: Vec<Cell<u32>> = selections().iter().map(|_| Cell::new(0)).collect();
    for numbers in [Numbers::Tame, Numbers::Wild] {
        written::check("passes keep every bit", numbers, 40, |graph| by_all(graph, &changed));
    }
    let changed: Vec<u32> = changed.iter().map(Cell::get).collect();
    // These graphs repeat no runs of ops and have no recurrences.
    all_did_something(&changed, &all_but(&["outline", "hoist"]));
}

/// Requires that each of these selections changed a graph, unless the test runs a single seed.
#[track_caller]
fn all_did_something(changed: &[u32], busy: &[usize]) {
    let alone = asked_seed().is_some();
    let idle = busy.iter().any(|&number| changed[number] == 0);
    assert!(alone || !idle, "selections {busy:?} must change some graph: {changed:?}");
}

#[test]
fn random_graphs_keep_their_bits() {
    // Recurrences are rare among random calls.
    let busy = all_but(&["hoist"]);
    all_did_something(&sweep(Options::new(Profile::Medium), 40, GraphData::clone), &busy);
    all_did_something(&sweep(Options::new(Profile::Medium).wild(), 20, GraphData::clone), &busy);
    sweep(Options::new(Profile::Blocks), 20, GraphData::clone);
}

#[test]
fn random_graphs_of_ops_keep_their_bits() {
    for profile in [Profile::Trees, Profile::Chains, Profile::Lattices] {
        let changed = sweep(Options::new(profile), 15, |graph| inline(graph).0);
        // Few constants remain to fold, and no cells remain to split.
        all_did_something(&changed, &all_but(&["fold", "hoist"]));
    }
}

/// The bits of the gradients of all losses by every parameter.
fn gradients(graph: &GraphData) -> Result<Vec<Option<Vec<u32>>>, String> {
    let weights = autobatch_ir::Weights::init(&graph.module, 5);
    let noise = reference::Noise::On { seed: 3, step: 9 };
    let run = reference::forward::<f32>(graph, &weights, noise).map_err(|error| error.to_string())?;
    let losses = graph.outputs.iter().filter(|output| output.kind == OutputKind::Loss);
    let losses: Vec<(ValueId, f32)> = losses.map(|output| (output.value, 1.0)).collect();
    let found = reference::reverse(graph, &weights, &run, &losses).map_err(|error| error.to_string())?;
    let bits = |id: usize| Some(found.param(ParamId::new(id))?.iter().map(|x| x.to_bits()).collect());
    Ok((0..graph.module.params.len()).map(bits).collect())
}

#[test]
fn training_passes_keep_the_bits_of_gradients() {
    let mut eager = Selection::none().with("hoist", true).expect("a pass");
    eager.eager = true;
    let selections = [Selection::of_mode(Mode::Train), eager];
    let changed = [Cell::new(0u32), Cell::new(0u32)];
    for profile in [Profile::Medium, Profile::Trees, Profile::Chains, Profile::Lattices, Profile::Blocks] {
        for options in [Options::new(profile).differentiable(), Options::new(profile).with_losses()] {
            check("gradients keep their bits", options, 20, |graph| {
                for graph in [graph, &inline(graph).0] {
                    for (selection, changed) in selections.iter().zip(&changed) {
                        let optimized = optimize(graph, &[], Mode::Train, selection, &mut all);
                        let optimized = optimized.map_err(|failure| failure.to_string())?;
                        changed.set(changed.get() + u32::from(!optimized.renaming.is_identity()));
                        let equal = gradients(graph)? == gradients(&optimized.graph)?;
                        equal
                            .then_some(())
                            .ok_or_else(|| format!("other gradients after {:?}", optimized.log))?;
                    }
                }
                Ok(())
            });
        }
    }
    all_did_something(&changed.map(Cell::into_inner), &[0, 1]);
}

#[test]
fn cells_are_equal_to_their_bodies() {
    for profile in Profile::ALL {
        check("inlining keeps every bit", Options::new(profile), 15, |graph| {
            let (plain, renaming) = inline(graph);
            plain.verify().map_err(|errors| errors.to_string())?;
            agrees(graph, &plain, &renaming)
        });
    }
}

#[test]
fn plans_of_rewritten_graphs_are_proved_against_them() {
    for profile in Profile::ALL {
        check("plans compute the rewritten graph", Options::new(profile), 10, |graph| {
            let graph = inline(graph).0;
            let wanted = wanted(&graph);
            if wanted.is_empty() {
                return Ok(());
            }
            let request = Request { wanted: &wanted, ..Request::default() };
            for eager in [false, true] {
                let mut selection = Selection::of_mode(Mode::Infer);
                selection.eager = eager;
                let planned = Planner::default()
                    .optimize_and_plan(&graph, &request, &selection)
                    .map_err(|error| error.to_string())?;
                let plan = planned.plan.verify().map_err(|errors| errors.to_string())?;
                let name = |&value: &ValueId| planned.optimized.renaming.get(value);
                let values: Vec<ValueId> = wanted.iter().filter_map(name).collect();
                proof::check(&plan, &planned.optimized.graph, Wanted { values: &values, training: false })
                    .map_err(|report| report.to_string())?;
            }
            Ok(())
        });
    }
}

#[test]
fn different_values_are_not_proved_equal() {
    let refused = Cell::new(0u32);
    check("proofs distinguish values", Options::new(Profile::Medium), 20, |graph| {
        let weights = autobatch_ir::Weights::init(&graph.module, 5);
        let noise = reference::Noise::Off;
        let run = reference::forward::<f32>(graph, &weights, noise);
        let run = run.map_err(|error| error.to_string())?;
        // The proof does not distinguish checked and unchecked indices.
        let content = |value| match run.value(value) {
            Some(Datum::Words(words)) => format!("{:?}", words),
            other => format!("{other:?}"),
        };
        for value in (1..graph.arena.values()).map(ValueId::new) {
            let other = ValueId::new(value.index() - 1);
            if graph.type_of(value) != graph.type_of(other) || graph.type_of(value).is_list {
                continue;
            }
            match equivalent(graph, graph, &[(value, other)]) {
                Ok(_) if content(value) != content(other) => {
                    return Err(format!("{value} and {other} are proved equal but differ"));
                }
                Err(Unproved::Different(_)) => refused.set(refused.get() + 1),
                Ok(_) => {}
                Err(other) => return Err(other.to_string()),
            }
        }
        Ok(())
    });
    assert!(refused.get() > 0 || asked_seed().is_some());
}
