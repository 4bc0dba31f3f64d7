//! Plans of every policy, row order and mode verify, are proved, and have the bits of the reference evaluator.

use crate::graphs::{MODELS, Random, weights};
use autobatch_ir::graph::GraphData;
use autobatch_ir::numeric::same_bits;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, Plan, Verified};
use autobatch_ir::{Graph, INDEX, Init, ModuleBuilder, Value, ValueId, f32};
use autobatch_oracle::check::{Wanted, check};
use autobatch_oracle::naive::{Executed, execute};
use autobatch_oracle::reference;
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Planner, Request, RowOrder};
use autobatch_testing::cases::POLICIES;
use autobatch_testing::trials::trials;

pub(crate) fn planner(policy: &str) -> Planner {
    Planner::new(policy.parse::<Policy>().expect("a policy").load().expect("needs no file"))
}

fn rounds() -> usize {
    trials(6, 200)
}

pub(crate) fn verified(plan: Plan, what: &str) -> Verified<Plan> {
    plan.verify().unwrap_or_else(|errors| panic!("{what}: {errors}"))
}

pub(crate) fn proved(plan: &Verified<Plan>, graph: &GraphData, training: bool, what: &str) {
    let wanted = Wanted { values: &[], training };
    check(plan, graph, wanted).unwrap_or_else(|report| panic!("{what}: {report}"));
}

pub(crate) fn executed(plan: &Verified<Plan>, graph: &GraphData, noise: Noise) -> Executed {
    let bound = &graph.bindings;
    let weights = weights(graph);
    let stores: Vec<&[f32]> = weights.iter().map(|param| param.values()).collect();
    let mut floats = bound.floats.clone();
    // The gradients that arrive at a pause.
    let arriving = (plan.all_floats() as usize).saturating_sub(floats.len());
    floats.extend([1.0, -0.5, 0.75].iter().cycle().take(arriving));
    execute(plan, &stores, &bound.words, &floats, noise).expect("indices are in range")
}

/// The words of every output, by the reference evaluator.
fn expected(graph: &GraphData, noise: Noise) -> Vec<Vec<u32>> {
    let run = reference::forward::<f32>(graph, &weights(graph), noise).expect("indices are in range");
    let words = |value: ValueId| match run.floats(value) {
        Some(floats) => floats.iter().map(|x| x.to_bits()).collect(),
        None => run.words(value).expect("an output is not a list").to_vec(),
    };
    graph.outputs.iter().map(|output| words(output.value)).collect()
}

pub(crate) fn same_words(a: &[u32], b: &[u32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| same_bits(f32::from_bits(a), f32::from_bits(b)))
}

/// Plans a graph in both row orders and both modes, proves each plan, and compares its outputs with `expected`.
fn check_orders_and_modes(
    planner: &mut Planner,
    graph: &GraphData,
    training: bool,
    noise: Noise,
    expected: &[Vec<u32>],
    what: &str,
) {
    for (rows, mode) in [
        (RowOrder::Batch, Mode::Infer),
        (RowOrder::Batch, Mode::Train),
        (RowOrder::Propagated, Mode::Infer),
        (RowOrder::Propagated, Mode::Train),
    ] {
        let what = format!("{what} {rows:?} {mode:?} {training}");
        let request = Request { mode, training, rows, ..Request::default() };
        let plan = planner.plan(graph, &request).expect("the graph has outputs");
        let plan = verified(plan, &what);
        proved(&plan, graph, training, &what);
        let run = executed(&plan, graph, noise);
        for (output, a) in expected.iter().enumerate() {
            let b = run.output(output);
            assert!(same_words(a, b.expect("an output")), "{what}: output {output} differs: {a:?} {b:?}");
        }
    }
}

#[test]
fn all_policies_orders_and_modes_give_the_bits_of_the_reference() {
    for (name, model) in MODELS {
        for round in 0..rounds() {
            let graph = model(&mut Random(round as u64));
            for (training, noise) in [(false, Noise::Off), (true, Noise::On { seed: 5, step: 2 })] {
                let expected = expected(&graph, noise);
                for policy in POLICIES {
                    let what = format!("{name} seed {round} {policy}");
                    check_orders_and_modes(&mut planner(policy), &graph, training, noise, &expected, &what);
                }
            }
        }
    }
}

/// The planner collects operands in chunks of the graph. Here operands cross chunks, near and far. There are few batches, because many
/// batches make chunks larger.
#[test]
fn large_graphs_are_proved() {
    const LEVELS: usize = 9;
    let mut m = ModuleBuilder::new("large");
    let table = m.table("table", [7, 2], Init::Uniform(0.5));
    let look = m.cell("look", [INDEX], |_, [word]| [table.row(word)]);
    let node = m.cell("node", [f32([2]); 2], |_, [a, b]| [(a + b).tanh(), a * b]);
    let module = m.build().expect("the model is well typed");
    let (g, mut random) = (Graph::new(&module), Random(11));
    let mut values: Vec<Value<'_>> = Vec::new();
    let mut levels: Vec<Vec<Value<'_>>> = vec![Vec::new(); LEVELS];
    for number in 0..40_000 {
        let level = if number < 40 { 0 } else { random.below(LEVELS) };
        let lower: Vec<usize> = (0..level).filter(|&lower| !levels[lower].is_empty()).collect();
        let mut earlier = || {
            let from = &levels[lower[random.below(lower.len())]];
            let back = if random.below(3) == 0 { from.len() } else { from.len().min(40) };
            from[from.len() - 1 - random.below(back)]
        };
        let made = match number % 4 {
            _ if lower.is_empty() => g.call(look, number % 7)[0],
            0 => g.call(look, earlier().argmax())[0],
            1 => g.list((0..1 + level).map(|_| earlier()).collect::<Vec<_>>()).sum(),
            _ => g.call(node, [earlier(), earlier()])[usize::from(number % 4 == 2)],
        };
        levels[if lower.is_empty() { 0 } else { level }].push(made);
        values.push(made);
    }
    for (number, value) in values.iter().rev().step_by(3).enumerate() {
        g.output(&format!("value {number}"), *value);
    }
    let graph = g.finish().expect("the model is well typed");
    let expected = expected(&graph, Noise::Off);
    for (policy, rows) in [("depth", RowOrder::Batch), ("auto", RowOrder::Propagated)] {
        let plan = planner(policy).plan(&graph, &Request { rows, ..Request::default() });
        let plan = verified(plan.expect("the graph has outputs"), policy);
        assert!(plan.lanes.len() > 20_000, "{} lanes", plan.lanes.len());
        assert!(plan.steps.len() < 100, "{} steps", plan.steps.len());
        proved(&plan, &graph, false, policy);
        let run = executed(&plan, &graph, Noise::Off);
        for (output, a) in expected.iter().enumerate() {
            assert!(
                same_words(a, run.output(output).expect("an output")),
                "{policy}: output {output} differs"
            );
        }
    }
}
