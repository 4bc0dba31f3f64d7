//! The watch reports the node that makes NaN or an infinity. Counters and traces describe the executed steps.

use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Plan, Verified};
use autobatch_ir::{Cell, Graph, Init, Module, ModuleBuilder, Weights, f32};
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Planner, Request};
use autobatch_runtime_cpu::{Executor, Inputs, RunError};
use std::sync::Arc;

/// `root = log(x)`, `twice = x + x`, `layer = x . w`.
struct Model {
    root: Cell<1, 1>,
    twice: Cell<1, 1>,
    layer: Cell<1, 1>,
}

fn model() -> (Arc<Module>, Model) {
    let mut m = ModuleBuilder::new("observed");
    let w = m.param("w", [3, 5], Init::Glorot(1.0));
    let root = m.cell("root", [f32([3])], |_, [x]| [x.log()]);
    let twice = m.cell("twice", [f32([3])], |_, [x]| [x + x]);
    let layer = m.cell("layer", [f32([3])], |g, [x]| [g.affine([x], w, None)]);
    (m.build().expect("the model is well typed"), Model { root, twice, layer })
}

/// Plans `layer(twice(root(x)))` for each input.
fn plan(
    policy: &str,
    model: &Model,
    module: &Arc<Module>,
    inputs: &[[f32; 3]],
) -> (Verified<Plan>, Vec<f32>) {
    let graph = Graph::new(module);
    let mut values = Vec::new();
    for (key, input) in inputs.iter().enumerate() {
        graph.instance(key as u64);
        let [log] = graph.call(model.root, graph.input(input));
        let [twice] = graph.call(model.twice, log);
        let [layer] = graph.call(model.layer, twice);
        values.extend(layer.id());
    }
    let data = graph.data();
    let policy: Policy = policy.parse().expect("a policy");
    let mut planner = Planner::new(policy.load().expect("no file"));
    let plan = planner.plan(&data, &Request { wanted: &values, ..Request::default() }).expect("a plan");
    (plan.verify().expect("planners make verifiable plans"), data.bindings.floats.clone())
}

fn execute(
    executor: &mut Executor,
    plan: &Verified<Plan>,
    module: &Module,
    floats: &[f32],
) -> Result<(), RunError> {
    executor.execute(plan, &Weights::init(module, 1), Inputs { words: &[], floats, noise: Noise::Off })
}

#[test]
fn the_watch_names_the_node_that_makes_an_infinity_from_finite_operands() {
    let (module, model) = model();
    let inputs = [[1.0, 2.0, 3.0], [1.0, 0.0, 2.0], [4.0, 1.0, 1.0]];
    for policy in ["none", "auto"] {
        let (plan, floats) = plan(policy, &model, &module, &inputs);
        let mut executor = Executor::new(1).expect("an instruction set");
        execute(&mut executor, &plan, &module, &floats).expect("the watch is off");
        executor.set_watch(true);
        let error =
            execute(&mut executor, &plan, &module, &floats).expect_err("the logarithm of 0 is infinite");
        let message = error.to_string();
        let RunError::NotFinite { step, kernel, lane, node, element, .. } = error else {
            panic!("{policy}: {message}");
        };
        assert_eq!(node, plan.lanes(&plan.steps[step]).get(lane).copied(), "{policy}: {message}");
        assert!(node.is_some() && kernel.contains("root"), "{policy}: {message}");
        assert_eq!(element, 1, "{policy}: {message}");
        assert!(message.contains("root") && message.contains("finite"), "{message}");
        assert_eq!(lane, usize::from(policy == "auto"), "{policy}: {message}");
    }
}

#[test]
fn the_watch_accepts_finite_numbers_and_bound_infinities() {
    let (module, model) = model();
    let mut executor = Executor::new(1).expect("an instruction set");
    executor.set_watch(true);
    for inputs in [[[1.0, 2.0, 3.0]; 2], [[1.0, f32::INFINITY, 3.0]; 2], [[f32::NAN, 1.0, 3.0]; 2]] {
        let (plan, floats) = plan("auto", &model, &module, &inputs);
        execute(&mut executor, &plan, &module, &floats).expect("no step makes an infinity");
    }
}

#[test]
fn counters_contain_every_step_of_the_last_run_and_its_flops() {
    let (module, model) = model();
    let (plan, floats) = plan("auto", &model, &module, &[[1.0, 2.0, 3.0]; 4]);
    let mut executor = Executor::new(1).expect("an instruction set");
    execute(&mut executor, &plan, &module, &floats).expect("bindings fit");
    assert_eq!(executor.counters(), None);
    executor.set_counting(true);
    for _ in 0..2 {
        execute(&mut executor, &plan, &module, &floats).expect("bindings fit");
    }
    let counters = executor.counters().expect("the run is counted");
    let steps: Vec<u32> = counters.steps.iter().map(|count| count.step).collect();
    assert_eq!(steps, (0..plan.steps.len() as u32).collect::<Vec<_>>());
    assert!(counters.steps.is_sorted_by_key(|count| (count.wave, count.start)));
    let flops: u64 = counters.steps.iter().map(|count| count.flops).sum();
    // 4 logarithms and 4 sums of 3 elements, 4 products of 3 by 3 x 5. Source steps may count copies.
    let products = 4 * 2 * 3 * 5;
    assert!((products + 24..products + 64).contains(&flops), "{flops}");
    let sums = counters.by_kernel(&plan);
    assert_eq!(sums.iter().map(|sum| sum.steps).sum::<u64>(), steps.len() as u64);
    assert_eq!(sums.iter().map(|sum| sum.flops).sum::<u64>(), flops);
    assert!(sums.iter().all(|sum| sum.bytes > 0 && sum.rows > 0));
}

#[test]
fn a_trace_has_one_complete_event_per_step() {
    let (module, model) = model();
    let (plan, floats) = plan("none", &model, &module, &[[1.0, 2.0, 3.0]; 4]);
    let mut executor = Executor::new(1).expect("an instruction set");
    executor.set_counting(true);
    execute(&mut executor, &plan, &module, &floats).expect("bindings fit");
    let mut trace = Vec::new();
    let counters = executor.counters().expect("the run is counted");
    counters.write_trace(&plan, &mut trace).expect("writing to a vector succeeds");
    let trace: serde_json::Value = serde_json::from_slice(&trace).expect("a trace is JSON");
    let events = trace["traceEvents"].as_array().expect("a list of events");
    assert_eq!(events.len(), plan.steps.len());
    assert_eq!(counters.spans.len(), counters.steps.len());
    for (event, count) in events.iter().zip(&counters.steps) {
        assert_eq!(event["tid"], 0);
        assert_eq!(event["ph"], "X");
        assert_eq!(event["name"], plan.kernels[count.kernel.index()].name.as_str());
        assert_eq!(event["args"]["rows"], count.rows);
        assert!(event["ts"].as_f64().is_some() && event["dur"].as_f64().is_some());
    }
}

#[test]
fn a_large_wave_is_shared_by_the_threads_and_the_trace_names_them() {
    if cfg!(miri) {
        // A wave that is large enough to be shared would take Miri hours.
        return;
    }
    let mut m = ModuleBuilder::new("wide");
    let w = m.param("w", [256, 256], Init::Glorot(1.0));
    let layer = m.cell("layer", [f32([256])], |g, [x]| [g.affine([x], w, None)]);
    let module = m.build().expect("the model is well typed");
    let graph = Graph::new(&module);
    let mut values = Vec::new();
    for key in 0..200 {
        graph.instance(key);
        let [y] = graph.call(layer, graph.input(&[0.5; 256]));
        values.extend(y.id());
    }
    let data = graph.data();
    let mut planner = Planner::new(Policy::default().load().expect("no file"));
    let plan = planner.plan(&data, &Request { wanted: &values, ..Request::default() }).expect("a plan");
    let plan = plan.verify().expect("planners make verifiable plans");
    let mut executor = Executor::new(2).expect("an instruction set");
    executor.set_counting(true);
    execute(&mut executor, &plan, &module, &data.bindings.floats).expect("bindings fit");
    let counters = executor.counters().expect("the run is counted");
    assert_eq!(counters.steps.len(), plan.steps.len());
    let largest = counters.steps.iter().max_by_key(|count| count.flops).expect("there are steps");
    let spans: Vec<_> = counters.spans.iter().filter(|span| span.step == largest.step).collect();
    // The number of shares of the second thread depends on when it wakes up.
    assert!(spans.len() >= 2 && spans.iter().all(|span| span.thread < 2), "26 million operations are shared");
    let sum = spans.iter().map(|span| span.time).sum();
    assert_eq!(largest.time, sum);
    assert!((0.0..1.0).contains(&counters.idle_share(2)));
    assert!(counters.idle_share(2) >= counters.idle_share(1));
}
