//! Dispatches that are limited in time, and the memory of plans that grow.

use crate::batches::{bits, cells};
use crate::common::{executor, inputs_of, skipped, training, weights};
use autobatch_ir::Graph;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::StoreId;
use autobatch_models::catalogue::{Options as Sizes, open};
use autobatch_runtime_wgpu::compile::{Target, compile};
use autobatch_runtime_wgpu::{Budget, Executor, Options};
use std::time::Duration;

/// A small minibatch of a model with its losses.
fn minibatch(model: &str) -> (GraphData, Vec<(ValueId, f32)>) {
    let sizes = Sizes { count: Some(6), batch: Some(6), hidden: Some(16), seed: 1, ..Sizes::default() };
    let problem = open(model, &sizes).expect("the model");
    let g = Graph::new(&problem.module);
    let mut losses = Vec::new();
    for instance in 0..6 {
        g.instance(instance as u64);
        losses.extend(problem.workload.loss(&g, instance).id().map(|id| (id, 0.25)));
    }
    (g.finish().expect("records"), losses)
}

/// The bits of all outputs and gradients of a minibatch, and the number of dispatches.
fn trained(
    executor: &mut Executor,
    (graph, losses): &(GraphData, Vec<(ValueId, f32)>),
) -> (Vec<Vec<u32>>, u32) {
    let (plan, weights) = (training(graph, losses), weights(graph));
    executor.execute(&plan, &weights, inputs_of(graph, false)).expect("executes");
    let words = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
    let mut found: Vec<Vec<u32>> = (0..losses.len()).map(|number| words(executor.output(number))).collect();
    for store in (0..plan.stores.len() as u32).map(StoreId) {
        found.extend(executor.gradient(store).expect("reads").map(|values| words(&values)));
    }
    (found, executor.counters().dispatches)
}

#[test]
fn steps_and_reductions_divided_by_time_give_the_same_bits() {
    let Some(mut whole) = executor(Options::default()) else { return };
    let dispatch_time = Some(Duration::from_micros(2));
    let options = Options { budget: Budget { dispatch_time, ..Budget::default() }, ..Options::default() };
    let mut divided = Executor::new(options).expect("opens");
    for model in ["treelstm", "transformer", "lattice", "similarity"] {
        let minibatch = minibatch(model);
        let ((expected, few), (found, many)) =
            (trained(&mut whole, &minibatch), trained(&mut divided, &minibatch));
        assert!(many > few + 4, "{model}: {few} dispatches, {many} if they are divided");
        assert_eq!(found, expected, "{model}");
    }
}

#[test]
fn no_dispatch_of_a_large_plan_takes_longer_than_its_limit() {
    let (graph, losses) = minibatch("treelstm");
    let plan = training(&graph, &losses);
    let dispatches = |limit| {
        let target = Target { dispatch_time: Duration::from_micros(limit), ..Target::MINIMUM };
        compile(&plan, target).expect("fits").dispatches
    };
    let whole = dispatches(1_000_000);
    let divided = dispatches(3);
    let longest = |dispatches: &[autobatch_runtime_wgpu::compile::Dispatch]| {
        let small = autobatch_runtime_wgpu::predict::Card::SMALL;
        dispatches.iter().map(|dispatch| small.roof(&dispatch.cost)).max().expect("there are dispatches")
    };
    assert!(longest(&whole) > Duration::from_micros(6), "{:?}", longest(&whole));
    assert!(longest(&divided) <= Duration::from_micros(3), "{:?}", longest(&divided));
    let work = |dispatches: &[autobatch_runtime_wgpu::compile::Dispatch]| -> u64 {
        dispatches.iter().map(|dispatch| dispatch.cost.work).sum()
    };
    let (all, parts) = (work(&whole), work(&divided));
    assert!(parts.abs_diff(all) * 100 < all, "the parts have the work of the whole: {parts} of {all}");
}

#[test]
fn plans_that_grow_free_the_memory_of_earlier_ones() {
    let Some(mut executor) = executor(Options::default()) else { return };
    let allocated = |executor: &Executor| executor.gpu().and_then(autobatch_runtime_wgpu::Gpu::allocated);
    let Some(empty) = allocated(&executor) else {
        return skipped("the interface of the device does not count its memory");
    };
    let run = |executor: &mut Executor, instances| {
        let (graph, values) = cells(instances, 64);
        bits(executor, &graph, &values);
        allocated(executor).expect("it counts") - empty
    };
    // Each of twelve plans needs a larger arena than the one before, and all of them stay loaded.
    let all = (1..=12).map(|number| run(&mut executor, 400 * number)).max().expect("they were executed");
    executor.close();
    let mut other = Executor::new(Options::default()).expect("opens");
    let one = run(&mut other, 400 * 12);
    // The tables of the plans stay, and for a moment their staging buffers.
    assert!(all < 2 * one, "{all} bytes for all plans, {one} bytes for the last one alone");
}
