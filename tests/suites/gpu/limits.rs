//! Devices with low limits: memory split into many bindings, steps split by lanes, plans that do not fit.

use crate::batches::{bits, cells};
use crate::common::{exact, executor, inferring, inputs_of, training};
use crate::lab::Lab;
use autobatch_ir::graph::{Graph, GraphData};
use autobatch_ir::id::ValueId;
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_ir::plan::StoreId;
use autobatch_ir::{ParamId, Weights};
use autobatch_nn::optim::{Adam, Momentum, Optimize, Optimizer, Sgd};
use autobatch_planner::update_plan;
use autobatch_runtime_wgpu::compile::{Target, compile};
use autobatch_runtime_wgpu::{Budget, GpuError, Options, Trained};
use autobatch_testing::trials::is_long;

fn with(budget: Budget) -> Options {
    Options { budget, ..Options::default() }
}

#[test]
fn many_bindings_give_the_bits_of_one() {
    let Some(mut roomy) = executor(Options::default()) else { return };
    let (graph, values) = cells(60, 40);
    let expected = bits(&mut roomy, &graph, &values);
    let Some(mut narrow) = executor(with(Budget { binding: Some(16 << 10), ..Budget::default() })) else {
        return;
    };
    assert_eq!(bits(&mut narrow, &graph, &values), expected);
}

#[test]
fn split_steps_give_the_bits_of_whole_steps() {
    let Some(mut roomy) = executor(Options::default()) else { return };
    let (graph, values) = cells(33, 20);
    let expected = bits(&mut roomy, &graph, &values);
    let whole = roomy.counters().dispatches;
    let Some(mut narrow) = executor(with(Budget { scratch: Some(4 << 10), ..Budget::default() })) else {
        return;
    };
    assert_eq!(bits(&mut narrow, &graph, &values), expected);
    assert!(narrow.counters().dispatches > whole, "steps were split");
}

fn refusal(budget: Budget) -> Option<GpuError> {
    let mut executor = executor(with(budget))?;
    let (graph, values) = cells(60, 40);
    let weights = Weights::init(&graph.module, 3);
    let plan = inferring(&graph, &values);
    let error = executor.execute(&plan, &weights, inputs_of(&graph, false)).expect_err("does not fit");
    // The executor still works.
    let (graph, values) = cells(1, 4);
    assert_eq!(bits(&mut executor, &graph, &values)[0].len(), 4);
    Some(error)
}

#[test]
fn a_plan_larger_than_the_device_is_rejected_with_a_remedy() {
    let Some(error) = refusal(Budget { binding: Some(16 << 10), bindings: Some(4), ..Budget::default() })
    else {
        return;
    };
    assert!(matches!(error, GpuError::TooLarge { limit: 49_152, .. }), "{error:?}");
    assert!(error.to_string().contains("plan fewer instances at once"), "{error}");
}

#[test]
fn exceeding_the_memory_budget_is_an_error_with_a_remedy() {
    let Some(error) = refusal(Budget { memory: Some(40 << 10), ..Budget::default() }) else { return };
    assert!(matches!(error, GpuError::Memory { .. }), "{error:?}");
    assert!(error.to_string().contains("close other programs"), "{error}");
}

#[test]
fn rows_of_one_plan_are_freed_for_the_parameters_of_another() {
    let Some(mut roomy) = executor(Options::default()) else { return };
    let made = [cells(400, 20), cells(1, 200)];
    let bytes = |(graph, wanted): &(GraphData, Vec<ValueId>)| {
        let layout = compile(&inferring(graph, wanted), Target::MINIMUM).expect("fits").layout;
        (layout.total() + layout.params()) * 4
    };
    // Each plan fits alone.
    let memory = made.iter().map(bytes).max();
    let Some(mut narrow) = executor(with(Budget { memory, ..Budget::default() })) else { return };
    for (graph, values) in made.iter().chain(&made) {
        assert_eq!(bits(&mut narrow, graph, values), bits(&mut roomy, graph, values));
    }
}

#[test]
fn a_table_larger_than_one_binding_is_looked_up() {
    // Long runs use the table of the benchmarks, 150 MB, with the limits of the device itself.
    let (rows, width, budget) = match is_long() {
        true => (18_280u32, 2048, Budget::default()),
        false => (500, 40, Budget { binding: Some(32 << 10), ..Budget::default() }),
    };
    let Some(mut executor) = executor(with(budget)) else { return };
    let mut m = ModuleBuilder::new("tables");
    let table = m.table("embed", [rows as usize, width], Init::Uniform(1.0));
    let g = Graph::new(&m.build().expect("sound"));
    let mut wanted = Vec::new();
    for row in [0, rows / 2, rows - 1] {
        g.instance(u64::from(row));
        wanted.extend(table.lookup(&g, row).id());
    }
    let graph = g.finish().expect("sound");
    let weights = Weights::init(&graph.module, 1);
    let plan = inferring(&graph, &wanted);
    executor.execute(&plan, &weights, inputs_of(&graph, false)).expect("executes");
    let values = weights.by_name("embed").expect("there");
    for (number, row) in [0, rows / 2, rows - 1].into_iter().enumerate() {
        let expected = &values[row as usize * width..][..width];
        assert_eq!(executor.output(plan.outputs.len() - 3 + number), expected, "row {row}");
    }
}

#[test]
fn a_dispatch_of_many_groups_uses_two_dimensions() {
    let Some(mut executor) = executor(Options::default()) else { return };
    // 67,188 groups of 64 threads.
    let width = 4_300_000u32;
    let g = Graph::new(&ModuleBuilder::new("wide").build().expect("sound"));
    g.instance(0);
    let ones = g.zeros([width as usize]) + 1.0;
    let wanted = [ones.id().expect("sound")];
    let graph = g.finish().expect("sound");
    let weights = Weights::init(&graph.module, 1);
    let plan = inferring(&graph, &wanted);
    let compiled = compile(&plan, executor.target().expect("open")).expect("fits");
    let most = compiled.dispatches.iter().map(|dispatch| dispatch.groups).max().expect("some");
    assert!(most[0] == 65_535 && most[1] > 1, "{most:?}");
    executor.execute(&plan, &weights, inputs_of(&graph, false)).expect("executes");
    let found = executor.output(plan.outputs.len() - 1);
    assert!(found.len() == width as usize && found.iter().all(|&x| x == 1.0));
}

/// Updates a table: as a whole array and by sparse rows, with optimiser states.
#[test]
fn a_table_larger_than_one_binding_is_trained() {
    let long = std::env::var_os("AUTOBATCH_TEST").is_some_and(|word| word == "long");
    // Long runs use 585,000 groups and arrays of 150 MB, others 70,000 groups.
    let (rows, width, budget) = match long {
        true => (18_280u32, 2048, Budget::default()),
        false => (70_000, 64, Budget { binding: Some(8 << 20), ..Budget::default() }),
    };
    for optimizer in [Sgd::new(0.5).into(), Momentum::new(0.5, 0.9).sparse_rows()] {
        let Some(mut executor) = executor(with(budget)) else { return };
        let mut m = ModuleBuilder::new("tables");
        let table = m.table("embed", [rows as usize, width], Init::Uniform(1.0));
        let module = m.build().expect("sound");
        let g = Graph::new(&module);
        let looked = [0, rows / 2, rows - 1];
        let mut losses = Vec::new();
        for row in looked {
            g.instance(u64::from(row));
            losses.extend(table.lookup(&g, row).sum().id().map(|id| (id, 1.0)));
        }
        let graph = g.finish().expect("sound");
        let plan = training(&graph, &losses);
        let recipe = Optimizer::recipe(&optimizer, &module, &[ParamId::new(0)]).expect("well typed");
        let update = update_plan(&module, &recipe).expect("an update").verify().expect("verifies");
        let mut weights = Weights::init(&module, 1);
        let before = weights.get(ParamId::new(0)).to_vec();
        let mut states = recipe.states(&weights, &module).expect("there is memory");
        executor.execute(&plan, &weights, inputs_of(&graph, false)).expect("executes");
        let mut trained = Trained { weights: &mut weights, states: &mut states };
        executor.update(&update, &mut trained, &optimizer.floats(1, 1.0)).expect("updates");
        let after = executor.updated(StoreId(0)).expect("reads").swap_remove(0).1;
        for (row, (old, new)) in before.chunks(width).zip(after.chunks(width)).enumerate() {
            // The gradient of a sum is 1.
            let step = if looked.contains(&(row as u32)) { 0.5 } else { 0.0 };
            assert!(old.iter().zip(new).all(|(old, new)| *new == old - step), "row {row}");
        }
    }
}

#[test]
fn a_plan_that_does_not_fit_keeps_updated_parameters() {
    let budget = Budget { memory: Some(300 << 10), ..Budget::default() };
    let Some(mut executor) = executor(Options { budget, ..exact() }) else { return };
    let mut lab = Lab::new(Adam::new(0.01));
    lab.step(&mut executor, &[&[1, 2]]);
    let (graph, plan) = lab.graph(&(0..800).collect::<Vec<u32>>());
    let error = executor.execute(&plan, &lab.weights, inputs_of(&graph, false)).expect_err("does not fit");
    assert!(matches!(error, GpuError::Memory { .. }), "{error:?}");
    lab.step(&mut executor, &[&[3, 2]]);
    assert_eq!((executor.counters().parameters, executor.update_counters().stores), (0, 0));
    let (off, same) = lab.compare(&executor);
    assert!(off < 2e-6, "off by {off:e}, {same}");
}

#[test]
fn updated_parameters_stay_when_rows_need_their_memory() {
    let Some(mut roomy) = executor(exact()) else { return };
    // The weights of another module, with more parameters.
    let (large, values) = cells(1, 200);
    for comes_after_another in [false, true] {
        let mut lab = Lab::new(Sgd::new(0.5));
        lab.step(&mut roomy, &[&[1]]);
        let target = roomy.target().expect("open");
        let bytes_of = |count: u32| {
            let words: Vec<u32> = (0..count).map(|at| at % 900).collect();
            let (_, plan) = lab.graph(&words);
            let layout = compile(&plan, target).expect("fits").layout;
            (words, (layout.total() + layout.params()) * 4)
        };
        // The budget is exact, so the existing buffers must shrink.
        let (words, memory) = (1..)
            .map(|count| bytes_of(100 * count))
            .find(|found| found.1 > if comes_after_another { 400 << 10 } else { 200 << 10 })
            .expect("more words need more memory");
        let budget = Budget { memory: Some(memory), ..Budget::default() };
        let Some(mut narrow) = executor(Options { budget, ..exact() }) else { return };
        if comes_after_another {
            bits(&mut narrow, &large, &values);
        }
        let mut lab = Lab::new(Sgd::new(0.5));
        for minibatch in [&[1, 2][..], &words, &[3, 2], &words] {
            lab.step(&mut narrow, &[minibatch]);
        }
        let (off, same) = lab.compare(&narrow);
        assert!(off < 2e-6, "off by {off:e}, {same}, after another: {comes_after_another}");
    }
}

#[test]
fn a_device_with_too_few_bindings_executes_but_rejects_updates() {
    let Some(mut executor) = executor(with(Budget { bindings: Some(5), ..Budget::default() })) else {
        return;
    };
    let mut lab = Lab::new(Adam::new(0.01));
    let (graph, plan) = lab.graph(&[1]);
    executor.execute(&plan, &lab.weights, inputs_of(&graph, false)).expect("executes");
    let (update, floats) = (lab.plan().clone(), lab.floats());
    let mut trained = Trained { weights: &mut lab.weights, states: &mut lab.states };
    let error = executor.update(&update, &mut trained, &floats).expect_err("is refused");
    assert!(error.to_string().contains("6 storage buffers per stage, for updates (it has 5)"), "{error}");
}

#[test]
fn states_that_do_not_fit_are_an_error_with_a_remedy() {
    // Rows and parameters fit, but two more moments do not.
    let Some(mut roomy) = executor(exact()) else { return };
    let mut lab = Lab::new(Adam::new(0.01));
    lab.step(&mut roomy, &[&[1, 2]]);
    let (graph, plan) = lab.graph(&[1, 2]);
    let compiled = compile(&plan, roomy.target().expect("open")).expect("fits");
    let bytes = (compiled.layout.total() + compiled.layout.params()) * 4;
    let budget = Budget { memory: Some(bytes.next_multiple_of(128 << 10)), ..Budget::default() };
    let Some(mut narrow) = executor(Options { budget, ..exact() }) else { return };
    narrow.execute(&plan, &lab.weights, inputs_of(&graph, false)).expect("fits");
    let mut fresh = Lab::new(Adam::new(0.01).average(0.5));
    let floats = fresh.floats();
    let update = fresh.plan().clone();
    let mut trained = Trained { weights: &mut fresh.weights, states: &mut fresh.states };
    let error = narrow.update(&update, &mut trained, &floats).expect_err("does not fit");
    assert!(matches!(error, GpuError::Memory { what: "the optimiser's states", .. }), "{error:?}");
}

#[test]
fn a_missing_adapter_is_an_error_that_names_the_others() {
    if executor(Options::default()).is_none() {
        return;
    }
    let options = Options { selector: "gpu:no such adapter".parse().expect("a name"), ..Options::default() };
    let error = autobatch_runtime_wgpu::Executor::new(options).expect_err("there is none");
    assert!(error.to_string().contains("no adapter matches `gpu:no such adapter`: found "), "{error}");
}
