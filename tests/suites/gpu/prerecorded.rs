//! Commands that are recorded before their run: those of an executed plan, and those of an announced one.

use crate::batches::{bits, cells};
use crate::common::{exact, executor, inferring, inputs_of, training, weights};
use crate::lab::Lab;
use crate::models::graph;
use autobatch_ir::graph::{Graph, GraphData};
use autobatch_ir::module::ModuleBuilder;
use autobatch_ir::plan::{Plan, StoreId, Verified};
use autobatch_ir::{ParamId, Weights};
use autobatch_models::catalogue::ENTRIES;
use autobatch_nn::optim::{Adam, Optimize};
use autobatch_runtime_wgpu::{Budget, Executor, GpuError, Inputs, Next, Options, Trained};
use std::sync::Arc;
use std::task::Poll;

#[test]
fn prerecorded_commands_read_the_current_inputs() {
    let Some(mut executed) = executor(Options::default()) else { return };
    let (graph, losses) = graph(&ENTRIES[0]);
    let (plan, mut weights) = (training(&graph, &losses), weights(&graph));
    let (between, values) = cells(3, 8);
    let made = |executor: &mut Executor, weights: &Weights, inputs: Inputs<'_>| -> (Vec<u32>, Vec<_>) {
        executor.execute(&plan, weights, inputs).expect("executes");
        let losses = executor.output(0).iter().map(|x| x.to_bits()).collect();
        let stores = 0..plan.stores.len() as u32;
        (losses, stores.map(|at| executor.gradient(StoreId(at)).expect("reads")).collect())
    };
    let mut floats = graph.bindings.floats.clone();
    for turn in 0..9 {
        floats.iter_mut().for_each(|x| *x *= 1.25);
        if turn == 6 {
            weights.get_mut(ParamId::new(0)).iter_mut().for_each(|x| *x *= 0.5);
        }
        let inputs = Inputs { floats: &floats, ..inputs_of(&graph, true) };
        let mut alone = Executor::new(Options::default()).expect("opens");
        assert_eq!(made(&mut executed, &weights, inputs), made(&mut alone, &weights, inputs), "{turn}");
        if turn == 3 {
            bits(&mut executed, &between, &values);
        }
    }
}

/// A graph of this many cells, its plan, and the bits of a separate executor.
fn made(instances: u32) -> (GraphData, Arc<Verified<Plan>>, Vec<u32>) {
    let (graph, values) = cells(instances, 8);
    let plan = Arc::new(inferring(&graph, &values));
    let mut alone = Executor::new(Options::default()).expect("opens");
    let found = executed(&mut alone, &graph, &plan, || Poll::Ready(None));
    (graph, plan, found)
}

fn executed(
    executor: &mut Executor,
    graph: &GraphData,
    plan: &Verified<Plan>,
    next: impl FnMut() -> Next,
) -> Vec<u32> {
    let weights = Weights::init(&graph.module, 3);
    executor.execute_and_prepare(plan, &weights, inputs_of(graph, false), next).expect("executes");
    (0..plan.outputs.len()).flat_map(|at| executor.output(at)).map(|x| x.to_bits()).collect()
}

#[test]
fn an_announced_plan_is_loaded_before_its_run() {
    let Some(mut executor) = executor(Options::default()) else { return };
    let all = [made(40), made(3), made(17)];
    // The first plan has the most rows, so the others fit.
    for (turn, announced) in [(0, 1), (1, 2), (2, 2), (2, 0), (0, 2), (1, 0), (0, 0)] {
        let (graph, plan, expected) = &all[turn];
        let next = || Poll::Ready(Some(Arc::clone(&all[announced].1)));
        assert_eq!(&executed(&mut executor, graph, plan, next), expected, "{turn}, {announced}");
    }
    executor.close();
    let mut next = Some(&all[1].1);
    executed(&mut executor, &all[0].0, &all[0].1, || Poll::Ready(next.take().cloned()));
    let (graph, plan, expected) = &all[1];
    assert_eq!(&executed(&mut executor, graph, plan, || Poll::Ready(None)), expected);
    let counters = executor.counters();
    let inputs = (u64::from(plan.words) + u64::from(plan.floats)) * 4;
    assert!(
        counters.uploaded < inputs + 4 * plan.tables.len() as u64 + 1024,
        "tables were there: {counters:?}"
    );
    assert_eq!(counters.pipelines, 0);
}

#[test]
fn alternating_plans_use_prerecorded_commands_from_the_third_run_on() {
    let Some(mut executor) = executor(Options::default()) else { return };
    let all = [made(40), made(3), made(17)];
    for turn in 0..12 {
        let (graph, plan, expected) = &all[turn % 3];
        assert_eq!(&executed(&mut executor, graph, plan, || Poll::Ready(None)), expected, "{turn}");
        assert_eq!(executor.counters().was_prerecorded, turn >= 6, "{turn}");
    }
    // When memory grows, recorded commands name buffers that no longer exist.
    let (graph, plan, expected) = made(4000);
    assert_eq!(executed(&mut executor, &graph, &plan, || Poll::Ready(None)), expected);
    for (turn, was_prerecorded) in [(0, false), (1, false), (0, true), (1, true)] {
        let (graph, plan, expected) = &all[turn];
        assert_eq!(&executed(&mut executor, graph, plan, || Poll::Ready(None)), expected);
        assert_eq!(executor.counters().was_prerecorded, was_prerecorded);
    }
}

#[test]
fn repeated_training_uses_prerecorded_commands_and_keeps_its_bits() {
    let Some(mut kept) = executor(exact()) else { return };
    let mut anew = Executor::new(exact()).expect("opens");
    let mut labs = [Lab::new(Adam::new(0.01)), Lab::new(Adam::new(0.01))];
    let (graph, plan) = labs[0].graph(&[1, 2, 3, 2, 899]);
    for step in 0..5 {
        // A plan that is verified again has another identity.
        let new = plan.clone().into_inner().verify().expect("verifies");
        for (executor, lab, plan) in [(&mut kept, 0, &plan), (&mut anew, 1, &new)] {
            let (update, floats) = (labs[lab].plan().clone(), labs[lab].floats());
            let Lab { weights, states, .. } = &mut labs[lab];
            executor.execute(plan, weights, inputs_of(&graph, false)).expect("executes");
            executor.update(&update, &mut Trained { weights, states }, &floats).expect("updates");
        }
        assert_eq!(kept.counters().was_prerecorded, step >= 2, "{step}");
        assert!(!anew.counters().was_prerecorded, "{step}");
        assert_eq!(labs[0].table(&kept), labs[1].table(&anew), "{step}");
    }
}

#[test]
fn the_next_plan_is_polled_until_the_device_is_done() {
    let Some(mut executor) = executor(Options::default()) else { return };
    let all = [made(40), made(3)];
    for late in [1, 3, u32::MAX] {
        let mut asked = 0;
        let next = || {
            asked += 1;
            match asked > late {
                true => Poll::Ready(Some(Arc::clone(&all[1].1))),
                false => Poll::Pending,
            }
        };
        assert_eq!(executed(&mut executor, &all[0].0, &all[0].1, next), all[0].2);
        assert!(asked > 0);
        assert_eq!(executed(&mut executor, &all[1].0, &all[1].1, || Poll::Ready(None)), all[1].2);
    }
}

#[test]
fn the_run_of_an_announced_plan_reports_its_errors() {
    let options =
        Options { budget: Budget { memory: Some(300 << 10), ..Budget::default() }, ..Options::default() };
    let Some(mut executor) = executor(options) else { return };
    let (small, large) = (made(3), made(4000));
    for _ in 0..2 {
        let next = || Poll::Ready(Some(Arc::clone(&large.1)));
        assert_eq!(executed(&mut executor, &small.0, &small.1, next), small.2);
        let weights = Weights::init(&large.0.module, 3);
        let error =
            executor.execute(&large.1, &weights, inputs_of(&large.0, false)).expect_err("does not fit");
        assert!(matches!(error, GpuError::Memory { .. }), "{error:?}");
    }
}

#[test]
fn training_has_the_same_bits_with_announced_plans() {
    let Some(mut told) = executor(exact()) else { return };
    let mut untold = Executor::new(exact()).expect("opens");
    // The last plan equals the first, as from a cache. One needs more memory than there is.
    let minibatches: [&[u32]; 6] =
        [&[1, 2, 3, 2, 899], &[0, 64, 2], &[5], &[7; 300], &[3, 3], &[1, 2, 3, 2, 899]];
    let mut labs = [Lab::new(Adam::new(0.01).sparse_rows()), Lab::new(Adam::new(0.01).sparse_rows())];
    let plans = minibatches.map(|words| labs[0].graph(words)).map(|(graph, plan)| (graph, Arc::new(plan)));
    let order = [0, 1, 2, 3, 4, 4, 0];
    for (at, &number) in order.iter().enumerate() {
        let (graph, plan) = &plans[number];
        for (executor, lab, is_told) in [(&mut told, 0, true), (&mut untold, 1, false)] {
            let (update, floats) = (labs[lab].plan().clone(), labs[lab].floats());
            let Lab { weights, states, .. } = &mut labs[lab];
            let follows = order.get(at + 1).filter(|_| is_told).map(|&next| Arc::clone(&plans[next].1));
            let next = || Poll::Ready(follows.clone());
            executor.execute_and_prepare(plan, weights, inputs_of(graph, false), next).expect("executes");
            let mut trained = Trained { weights, states };
            executor.update(&update, &mut trained, &floats).expect("updates");
        }
        let tables = [labs[0].table(&told), labs[1].table(&untold)];
        assert_eq!(tables[0], tables[1], "minibatch {number}");
    }
    // Accumulated gradients start with saved ones, so prerecorded commands are not used.
    for (executor, lab, is_told) in [(&mut told, 0, true), (&mut untold, 1, false)] {
        for (at, keep) in [(1, false), (2, true), (4, true)] {
            executor.set_accumulate_gradients(keep);
            let (graph, plan) = &plans[at];
            let next = || Poll::Ready(is_told.then(|| Arc::clone(&plans[at.max(2)].1)));
            executor
                .execute_and_prepare(plan, &labs[lab].weights, inputs_of(graph, false), next)
                .expect("executes");
        }
    }
    let (_, plan) = &plans[4];
    for param in 0..labs[0].weights.len() {
        let store = plan.gradient_of(ParamId::new(param)).expect("it is trained");
        assert_eq!(told.gradient(store), untold.gradient(store), "{param}");
    }
}

#[test]
fn a_plan_without_steps_can_be_executed_and_announced() {
    let Some(mut executor) = executor(Options::default()) else { return };
    let graph = Graph::new(&ModuleBuilder::new("nothing").build().expect("sound")).finish().expect("sound");
    let text = r#"
        autobatch plan 5 module "nothing" structure 0x00000000000000000000000000000001 mode infer
        bind words 0 floats 0
        certificate batches 0 bound 0 | rows copied 0 gathered 0 direct 0 | slabs 0 bytes
    "#;
    let nothing = Arc::new(Plan::from_text(text).expect("parses").verify().expect("verifies"));
    let cells = made(3);
    for _ in 0..2 {
        let next = || Poll::Ready(Some(Arc::clone(&cells.1)));
        assert!(executed(&mut executor, &graph, &nothing, next).is_empty());
        let next = || Poll::Ready(Some(Arc::clone(&nothing)));
        assert_eq!(executed(&mut executor, &cells.0, &cells.1, next), cells.2);
    }
}

#[test]
fn both_plans_execute_again_after_a_loss_during_an_announcement() {
    let Some(mut executor) = executor(Options::default()) else { return };
    let all = [made(40), made(3)];
    for announced in [0, 1] {
        let gpu = executor.gpu().expect("open").clone();
        let next = || {
            gpu.destroy();
            Poll::Ready(Some(Arc::clone(&all[announced].1)))
        };
        let (graph, plan, expected) = &all[0];
        let weights = Weights::init(&graph.module, 3);
        let error = executor.execute_and_prepare(plan, &weights, inputs_of(graph, false), next);
        assert!(matches!(error, Err(GpuError::Lost { .. })), "{error:?}");
        assert!(executor.gpu().is_none());
        assert_eq!(&executed(&mut executor, graph, plan, || Poll::Ready(None)), expected);
        assert_eq!(executed(&mut executor, &all[1].0, &all[1].1, || Poll::Ready(None)), all[1].2);
    }
}
