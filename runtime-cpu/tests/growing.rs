//! Growing plans: executing only the new steps matches executing the whole plan bit for bit.

mod common;

use autobatch_ir::graph::{Graph, GraphData, Value};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Limits, Plan, Verified};
use autobatch_ir::{ValueId, Weights};
use autobatch_planner::{Grown, Planner, Request};
use autobatch_runtime_cpu::kernels::Isa;
use autobatch_runtime_cpu::{Executor, Inputs, RunError};
use autobatch_testing::growing::{H, Known, model};
use common::{Random, bits, cases};

fn outputs(executor: &Executor, plan: &Plan) -> Vec<Vec<u32>> {
    (0..plan.outputs.len()).map(|number| bits(executor.output(plan, number))).collect()
}

fn inputs(graph: &GraphData) -> Inputs<'_> {
    Inputs { words: &graph.bindings.words, floats: &graph.bindings.floats, noise: Noise::Off }
}

fn verified(grown: &Grown) -> Verified<Plan> {
    grown.plan().clone().verify().expect("the planner makes sound plans")
}

#[test]
fn resuming_a_grown_plan_matches_executing_all_of_it() {
    let (module, model) = model();
    let weights = Weights::init(&module, 3);
    let mut random = Random::seeded();
    let mut resumed = 0;
    let cases = cases(40);
    for case in 0..cases {
        let isas = Isa::available();
        let isa = isas[case % isas.len()];
        let mut shared = Executor::with_isa(isa, 2);
        shared.set_shared_work(1);
        let mut resuming = [Executor::with_isa(isa, 1), shared];
        let g = Graph::new(&module);
        let mut known = Known::from(vec![g.zeros([H])]);
        let mut planner = Planner::default();
        let mut grown: Option<Grown> = None;
        for round in 0..1 + random.below(6) {
            (0..1 + random.below(12))
                .for_each(|_| model.act(&g, &mut known, &mut |limit| random.below(limit)));
            let values: Vec<ValueId> =
                (0..1 + random.below(3)).filter_map(|_| known[random.below(known.len())].id()).collect();
            let (graph, request) = (g.data(), Request { wanted: &values, ..Request::default() });
            match &mut grown {
                None => grown = Some(planner.begin(&graph, &request).expect("values are values")),
                Some(grown) => drop(planner.grow(&graph, &request, grown).expect("values are values")),
            }
            let plan = verified(grown.as_ref().expect("there is a plan"));
            let mut whole = Executor::with_isa(isa, 1);
            whole.execute(&plan, &weights, inputs(&graph)).expect("sound");
            for executor in &mut resuming {
                if round == 0 {
                    executor.execute(&plan, &weights, inputs(&graph)).expect("sound");
                } else {
                    executor.resume(&plan, &weights, inputs(&graph)).expect("the plan grew");
                    resumed += 1;
                }
                let what = format!("seed {} case {case} round {round}", random.seed);
                assert_eq!(outputs(executor, &plan), outputs(&whole, &plan), "{what}");
            }
        }
    }
    assert!(resumed > if cfg!(miri) { 0 } else { cases * 3 / 2 }, "only {resumed} resumed runs");
}

#[test]
fn only_new_steps_are_executed() {
    let (module, model) = model();
    let mut weights = Weights::init(&module, 3);
    let g = Graph::new(&module);
    let x = model.words.lookup(&g, 4);
    let values: Vec<ValueId> = x.id().into_iter().collect();
    let mut planner = Planner::default();
    let mut executor = Executor::with_isa(Isa::best(), 1);
    let mut grown = planner
        .begin(&g.data(), &Request { wanted: &values, ..Request::default() })
        .expect("a value is values");
    executor.execute(&verified(&grown), &weights, inputs(&g.data())).expect("sound");
    let before = outputs(&executor, grown.plan());
    // The first step does not run again, so it does not read the new weights.
    weights.get_mut(module.param("words").expect("a table").id().expect("of the module")).fill(0.0);
    let y = x.relu() - x.relu();
    let values: Vec<ValueId> = [x, y].iter().filter_map(|value| value.id()).collect();
    planner
        .grow(&g.data(), &Request { wanted: &values, ..Request::default() }, &mut grown)
        .expect("values are values");
    executor.resume(&verified(&grown), &weights, inputs(&g.data())).expect("the plan grew");
    assert_eq!(outputs(&executor, grown.plan())[0], before[0]);
}

#[test]
fn a_plan_that_does_not_begin_with_the_executed_plan_is_rejected() {
    let (module, model) = model();
    let weights = Weights::init(&module, 3);
    let g = Graph::new(&module);
    let x = model.words.lookup(&g, 4);
    let y = x.tanh();
    let mut planner = Planner::default();
    let mut plan_of = |value: Value<'_>, mode| {
        let values: Vec<ValueId> = value.id().into_iter().collect();
        let request = Request { wanted: &values, mode, ..Request::default() };
        planner.plan(&g.data(), &request).expect("a value is values").verify().expect("sound")
    };
    use autobatch_ir::plan::Mode;
    let (first, other) = (plan_of(x, Mode::Grow), plan_of(y.exp(), Mode::Infer));
    let data = g.data();
    let mut executor = Executor::with_isa(Isa::best(), 1);
    let rejects = |executor: &mut Executor, plan: &Verified<Plan>| {
        let error = executor.resume(plan, &weights, inputs(&data)).expect_err("the plan is another one");
        assert!(matches!(error, RunError::NotResumable), "{error}");
        assert!(error.to_string().contains("execute all of it with execute"));
    };
    rejects(&mut executor, &first);
    executor.execute(&other, &weights, inputs(&data)).expect("sound");
    rejects(&mut executor, &first);
    executor.execute(&first, &weights, inputs(&data)).expect("sound");
    rejects(&mut executor, &other);
    executor.resume(&first, &weights, inputs(&data)).expect("nothing is new");
}

#[test]
fn a_plan_with_other_steps_over_the_same_rows_is_rejected() {
    let (module, _) = model();
    let weights = Weights::init(&module, 3);
    let g = Graph::new(&module);
    let x = g.input(&[0.5; H]);
    let (tanh, exp) = (x.tanh(), x.exp());
    let data = g.data();
    let plan_of = |value: Value<'_>| {
        let values: Vec<ValueId> = value.id().into_iter().collect();
        let request = Request { wanted: &values, ..Request::default() };
        verified(&Planner::default().begin(&data, &request).expect("a value is values"))
    };
    let mut executor = Executor::with_isa(Isa::best(), 1);
    executor.execute(&plan_of(tanh), &weights, inputs(&data)).expect("sound");
    let error = executor.resume(&plan_of(exp), &weights, inputs(&data)).expect_err("tanh was executed");
    assert!(matches!(error, RunError::NotResumable), "{error}");
    // Equal kernels from another planner are accepted.
    executor.resume(&plan_of(tanh), &weights, inputs(&data)).expect("nothing is new");
}

#[test]
fn a_growing_plan_may_use_the_whole_memory_limit() {
    let (module, _) = model();
    let weights = Weights::init(&module, 3);
    let mut executor = Executor::with_isa(Isa::best(), 1);
    let mut planner = Planner::default();
    // Rows of other widths, so that the fields of the two plans differ.
    let before = Graph::new(&module);
    let x = before.input(&[1.0; 16]);
    let values: Vec<ValueId> = [x, before.concat([x; 20])].iter().filter_map(|value| value.id()).collect();
    let request = Request { wanted: &values, ..Request::default() };
    let plan = planner.plan(&before.data(), &request).expect("values are values").verify().expect("sound");
    let limit = 4 * executor.footprint(&plan).memory();
    executor.set_limits(Limits::of_memory(limit));
    executor.execute(&plan, &weights, inputs(&before.data())).expect("it fits");
    let g = Graph::new(&module);
    let mut x = g.input(&[1.0; 16]);
    let mut grown: Option<Grown> = None;
    for round in 0.. {
        let values: Vec<ValueId> = x.id().into_iter().collect();
        let (graph, request) = (g.data(), Request { wanted: &values, ..Request::default() });
        let executed = match &mut grown {
            None => {
                let begun = grown.insert(planner.begin(&graph, &request).expect("a value is values"));
                executor.execute(&verified(begun), &weights, inputs(&graph))
            }
            Some(grown) => {
                planner.grow(&graph, &request, grown).expect("a value is values");
                executor.resume(&verified(grown), &weights, inputs(&graph))
            }
        };
        if let Err(error) = executed {
            assert!(matches!(error, RunError::Limit { .. }) && round > 10, "round {round}: {error}");
            break;
        }
        assert!(executor.slab_bytes() as u64 <= limit, "round {round}: {} of {limit}", executor.slab_bytes());
        drop(graph);
        x = x.tanh();
    }
}
