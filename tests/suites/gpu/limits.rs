//! Devices with little room: memory cut into many bindings, steps played in pieces, plans that do not fit.

use crate::batches::{bits, cells};
use crate::common::{bound, player};
use autobatch_ir::Weights;
use autobatch_ir::graph::Graph;
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_planner::{Planner, Request};
use autobatch_runtime_wgpu::{Budget, GpuError, Options};
use autobatch_tests::trials::is_long;

fn with(budget: Budget) -> Options {
    Options { budget, ..Options::default() }
}

#[test]
fn memory_in_many_bindings_gives_the_bits_of_memory_in_one() {
    let Some(mut roomy) = player(Options::default()) else { return };
    let (graph, values) = cells(60, 40);
    let expected = bits(&mut roomy, &graph, &values);
    let Some(mut narrow) = player(with(Budget { binding: Some(16 << 10), ..Budget::default() })) else {
        return;
    };
    assert_eq!(bits(&mut narrow, &graph, &values), expected);
}

#[test]
fn steps_in_pieces_give_the_bits_of_whole_steps() {
    let Some(mut roomy) = player(Options::default()) else { return };
    let (graph, values) = cells(33, 20);
    let expected = bits(&mut roomy, &graph, &values);
    let whole = roomy.counters().dispatches;
    let Some(mut narrow) = player(with(Budget { scratch: Some(4 << 10), ..Budget::default() })) else {
        return;
    };
    assert_eq!(bits(&mut narrow, &graph, &values), expected);
    assert!(narrow.counters().dispatches > whole, "steps were cut");
}

fn refusal(budget: Budget) -> Option<GpuError> {
    let mut player = player(with(budget))?;
    let (graph, values) = cells(60, 40);
    let weights = Weights::init(&graph.module, 3);
    let request = Request { wanted: &values, ..Request::default() };
    let plan = Planner::default().plan(&graph, &request).expect("plans").verify().expect("verifies");
    let error = player.play(&plan, &weights, bound(&graph, false)).expect_err("does not fit");
    // The player is as good as before.
    let (graph, values) = cells(1, 4);
    assert_eq!(bits(&mut player, &graph, &values)[0].len(), 4);
    Some(error)
}

#[test]
fn a_plan_larger_than_the_device_is_an_error_that_says_what_to_do() {
    let Some(error) = refusal(Budget { binding: Some(16 << 10), bindings: Some(4), ..Budget::default() })
    else {
        return;
    };
    assert!(matches!(error, GpuError::TooLarge { limit: 49_152, .. }), "{error:?}");
    assert!(error.to_string().contains("plan fewer instances at once"), "{error}");
}

#[test]
fn memory_that_cannot_be_had_is_an_error_that_says_what_to_do() {
    let Some(error) = refusal(Budget { memory: Some(40 << 10), ..Budget::default() }) else { return };
    assert!(matches!(error, GpuError::Memory { .. }), "{error:?}");
    assert!(error.to_string().contains("close other programs"), "{error}");
}

#[test]
fn a_table_larger_than_one_binding_is_looked_up() {
    // In long runs the table of the benchmarks, 150 MB, on the limits of the device itself.
    let (rows, width, budget) = match is_long() {
        true => (18_280u32, 2048, Budget::default()),
        false => (500, 40, Budget { binding: Some(32 << 10), ..Budget::default() }),
    };
    let Some(mut player) = player(with(budget)) else { return };
    let mut m = ModuleBuilder::new("tables");
    let table = m.table("embed", [rows as usize, width], Init::Uniform(1.0));
    let g = Graph::new(&m.build().expect("sound"));
    let mut wanted = Vec::new();
    for row in [0, rows / 2, rows - 1] {
        g.instance(u64::from(row));
        wanted.extend(table.look(&g, row).id());
    }
    let graph = g.finish().expect("sound");
    let weights = Weights::init(&graph.module, 1);
    let request = Request { wanted: &wanted, ..Request::default() };
    let plan = Planner::default().plan(&graph, &request).expect("plans").verify().expect("verifies");
    player.play(&plan, &weights, bound(&graph, false)).expect("plays");
    let values = weights.by_name("embed").expect("there");
    for (number, row) in [0, rows / 2, rows - 1].into_iter().enumerate() {
        let expected = &values[row as usize * width..][..width];
        assert_eq!(player.output(plan.outputs.len() - 3 + number), expected, "row {row}");
    }
}

#[test]
fn an_adapter_that_is_not_there_is_an_error_that_names_those_that_are() {
    if player(Options::default()).is_none() {
        return;
    }
    let options = Options { selector: "gpu:no such adapter".parse().expect("a name"), ..Options::default() };
    let error = autobatch_runtime_wgpu::Player::new(options).expect_err("there is none");
    assert!(error.to_string().contains("no adapter fits `gpu:no such adapter`: found "), "{error}");
}
