//! Growing plans: a GPU executes the new steps over existing rows, with the bits of a whole run.

use crate::common::{executor, inferring, inputs_of};
use autobatch_ir::graph::{Graph, GraphData, Value};
use autobatch_ir::module::{Cell, Init, Module, ModuleBuilder, Table};
use autobatch_ir::plan::{BindError, Examined, Plan, Verified};
use autobatch_ir::types::{INDEX, f32};
use autobatch_ir::{ParamId, ValueId, Weights};
use autobatch_planner::{Grown, Planner, Request};
use autobatch_runtime_wgpu::compile::compile;
use autobatch_runtime_wgpu::{Budget, Executor, GpuError, Inputs, Options};
use autobatch_testing::growing;
use autobatch_testing::random::Rng;
use autobatch_testing::trials::trials;
use std::sync::Arc;

/// A plan and the planner that extends it.
#[derive(Default)]
struct Chain {
    planner: Planner,
    examined: Examined,
    grown: Option<(Grown, Verified<Plan>)>,
}

impl Chain {
    /// The plan extended by what these values need.
    fn grow(&mut self, graph: &GraphData, wanted: &[ValueId]) -> Verified<Plan> {
        let request = Request { wanted, ..Request::default() };
        let (grown, plan) = match self.grown.take() {
            None => {
                let grown = self.planner.begin(graph, &request).expect("plans");
                let plan = grown.plan().clone().verify_to_grow(&mut self.examined).expect("sound");
                (grown, plan)
            }
            Some((mut grown, plan)) => {
                self.planner.grow(graph, &request, &mut grown).expect("plans");
                let plan = plan.grow(grown.plan(), &mut self.examined).expect("sound");
                (grown, plan)
            }
        };
        self.grown = Some((grown, plan.clone()));
        plan
    }
}

fn outputs(executor: &Executor, plan: &Plan) -> Vec<Vec<u32>> {
    (0..plan.outputs.len()).map(|at| executor.output(at).iter().map(|x| x.to_bits()).collect()).collect()
}

/// The outputs of a whole run of the plan.
fn whole(
    executor: &mut Executor,
    plan: &Verified<Plan>,
    weights: &Weights,
    graph: &GraphData,
) -> Vec<Vec<u32>> {
    executor.execute(plan, weights, inputs_of(graph, true)).expect("executes");
    outputs(executor, plan)
}

/// A recurrent model with lookups and a parameter that its kernel reads whole.
struct Words {
    words: Table,
    cell: Cell<2, 1>,
    width: usize,
}

fn words(width: usize) -> (Arc<Module>, Words) {
    let mut m = ModuleBuilder::new("words");
    let words = m.table("words", [20, width], Init::Uniform(0.5));
    let w = m.param("w", [2 * width, width], Init::Glorot(1.0));
    let scale = m.param("scale", [width], Init::Uniform(1.0));
    let cell = m.cell("cell", [INDEX, f32([width])], |g, [word, h]| {
        let h = g.affine([words.row(word), h], w, None).tanh();
        [h.dropout(0.2) * g.param(scale)]
    });
    (m.build().expect("sound"), Words { words, cell, width })
}

impl Words {
    /// The state after this many more words.
    fn go_on<'g>(&self, g: &'g Graph, mut h: Value<'g>, more: u32) -> Value<'g> {
        for number in 0..more {
            [h] = g.call(self.cell, (number * 7 % 20, h));
        }
        h
    }
}

#[test]
fn resuming_a_random_plan_has_the_bits_of_a_whole_run() {
    let Some(mut kept) = executor(Options::default()) else { return };
    let mut bound_at_offsets = executor(Options { immediates: false, ..Options::default() }).expect("opens");
    let mut anew = executor(Options::default()).expect("opens");
    let (module, model) = growing::model();
    let weights = Weights::init(&module, 3);
    let mut resumed = 0;
    for seed in 0..trials(12, 200) {
        let mut rng = Rng::new(seed);
        let mut below = |limit: usize| rng.below(limit as u32) as usize;
        let g = Graph::new(&module);
        let mut known = growing::Known::from(vec![g.zeros([growing::H])]);
        let mut chain = Chain::default();
        for round in 0..2 + below(7) {
            (0..1 + below(12)).for_each(|_| model.act(&g, &mut known, &mut below));
            let wanted: Vec<ValueId> =
                (0..1 + below(3)).filter_map(|_| known[below(known.len())].id()).collect();
            let graph = g.data();
            let plan = chain.grow(&graph, &wanted);
            let expected = whole(&mut anew, &plan, &weights, &graph);
            for executor in [&mut kept, &mut bound_at_offsets] {
                executor.resume(&plan, &weights, inputs_of(&graph, true)).expect("executes");
                assert_eq!(outputs(executor, &plan), expected, "seed {seed}, round {round}");
            }
            resumed += u32::from(kept.counters().dispatches < anew.counters().dispatches);
        }
    }
    assert!(resumed > 10, "{resumed} runs were resumed");
}

#[test]
fn a_resumed_run_costs_only_its_new_steps() {
    let Some(mut kept) = executor(Options::default()) else { return };
    let mut anew = executor(Options::default()).expect("opens");
    let (module, model) = words(6);
    let weights = Weights::init(&module, 3);
    let g = Graph::new(&module);
    let (mut h, mut chain) = (g.zeros([model.width]), Chain::default());
    let (rounds, mut from_the_beginning, mut all) = (100, 0, 0);
    for round in 0..rounds {
        h = model.go_on(&g, h, 1);
        let graph = g.data();
        let plan = chain.grow(&graph, &[h.id().expect("sound")]);
        kept.resume(&plan, &weights, inputs_of(&graph, true)).expect("executes");
        let counters = kept.counters();
        all += counters.dispatches;
        if counters.dispatches as usize > 6 {
            from_the_beginning += 1;
        } else if round > 0 {
            assert!(counters.uploaded < 1_000, "round {round}: {counters:?}");
            assert_eq!((counters.parameters, counters.submissions), (0, 1), "round {round}");
        }
        if round % 9 == 0 || round + 1 == rounds {
            assert_eq!(outputs(&kept, &plan), whole(&mut anew, &plan, &weights, &graph), "round {round}");
        }
    }
    // Reservations double whenever they are used up.
    assert!((1..=7).contains(&from_the_beginning), "{from_the_beginning} whole runs");
    assert!(all < 8 * rounds, "{all} dispatches");
}

/// The bindings that an earlier plan of a growing graph reads.
fn bound_for<'a>(plan: &Plan, graph: &'a GraphData) -> Inputs<'a> {
    let all = inputs_of(graph, true);
    Inputs { words: &all.words[..plan.words as usize], floats: &all.floats[..plan.floats as usize], ..all }
}

#[test]
fn other_runs_in_between_cause_a_whole_run() {
    let Some(mut kept) = executor(Options::default()) else { return };
    let mut anew = executor(Options::default()).expect("opens");
    let (module, model) = words(6);
    let mut weights = Weights::init(&module, 3);
    let g = Graph::new(&module);
    let (mut h, mut chain) = (g.zeros([model.width]), Chain::default());
    let mut plans = Vec::new();
    for round in 0..14 {
        h = model.go_on(&g, h, 2);
        let graph = g.data();
        let plan = chain.grow(&graph, &[h.id().expect("sound")]);
        match round % 7 {
            // Another plan whose rows use the same memory. The next plan did not grow from it.
            2 => kept.execute(&plans[0], &weights, bound_for(&plans[0], &graph)).expect("executes"),
            // A plan that was executed before, and from which this one did not grow.
            3 => kept.resume(&plans[1], &weights, bound_for(&plans[1], &graph)).expect("executes"),
            // Changed parameters, one of which is read whole. New steps use the new values.
            4 => {
                for param in [1, 2].map(ParamId::new) {
                    weights.get_mut(param).iter_mut().for_each(|x| *x *= 0.5);
                }
                kept.execute(&plan, &weights, inputs_of(&graph, true)).expect("executes");
            }
            5 => {
                kept.gpu().expect("open").destroy();
                let error = kept.resume(&plan, &weights, inputs_of(&graph, true)).expect_err("it is gone");
                assert!(matches!(error, GpuError::Lost { .. }), "{error:?}");
            }
            6 => kept.close(),
            _ => {}
        }
        kept.resume(&plan, &weights, inputs_of(&graph, true)).expect("executes");
        assert_eq!(outputs(&kept, &plan), whole(&mut anew, &plan, &weights, &graph), "round {round}");
        plans.push(plan);
    }
}

#[test]
fn new_steps_use_the_current_parameters() {
    let Some(mut kept) = executor(Options::default()) else { return };
    let mut anew = executor(Options::default()).expect("opens");
    let (module, model) = words(6);
    let mut weights = Weights::init(&module, 3);
    let g = Graph::new(&module);
    let (mut h, mut chain) = (model.go_on(&g, g.zeros([model.width]), 2), Chain::default());
    let (mut before, mut resumed): (Option<Vec<f32>>, u32) = (None, 0);
    for round in 0..7 {
        let graph = g.data();
        let plan = chain.grow(&graph, &[h.id().expect("sound")]);
        kept.resume(&plan, &weights, inputs_of(&graph, false)).expect("executes");
        if let Some(before) = before {
            // The last step alone, on the row as it was.
            let alone = Graph::new(&module);
            alone.instance(0);
            let last = model.go_on(&alone, alone.input(&before), 1).id().expect("sound");
            let alone = alone.finish().expect("sound");
            let step = inferring(&alone, &[last]);
            anew.execute(&step, &weights, inputs_of(&alone, false)).expect("executes");
            if kept.counters().dispatches < 6 {
                assert_eq!(kept.output(0), anew.output(0), "round {round}");
                resumed += 1;
            }
        }
        before = Some(kept.output(0).to_vec());
        drop(graph);
        for param in [round % 3, 2].map(ParamId::new) {
            weights.get_mut(param).iter_mut().for_each(|x| *x *= 0.75);
        }
        h = model.go_on(&g, h, 1);
    }
    assert!(resumed > 3, "{resumed} of 6 were resumed");
}

#[test]
fn an_index_out_of_range_in_a_resumed_run_is_reported_and_the_next_run_is_correct() {
    let Some(mut kept) = executor(Options::default()) else { return };
    let mut anew = executor(Options::default()).expect("opens");
    let (module, model) = words(6);
    let weights = Weights::init(&module, 3);
    let g = Graph::new(&module);
    // The rows that hold the indices are older than the lookups.
    let late = [4, 5, 6, 7].map(|index| g.index(index));
    let (mut h, mut chain) = (model.go_on(&g, g.zeros([model.width]), 3), Chain::default());
    for (round, late) in late.into_iter().enumerate() {
        let wanted = [h.id().expect("sound"), late.id().expect("sound")];
        let graph = g.data();
        let plan = chain.grow(&graph, &wanted);
        if round == 1 {
            // Indices are checked before a resumed run, then with the whole plan.
            for wrong in [20, 21] {
                let mut words = graph.bindings.words.clone();
                words[0] = wrong;
                let mut numbers = inputs_of(&graph, true);
                numbers.words = &words;
                let error = kept.resume(&plan, &weights, numbers).expect_err("there are 20 words");
                let GpuError::Input(BindError::Index { word: named, found, limit, .. }) = error else {
                    panic!("{error:?}")
                };
                assert_eq!((named, found, limit), (0, wrong, 20));
            }
        }
        kept.resume(&plan, &weights, inputs_of(&graph, true)).expect("executes");
        assert_eq!(outputs(&kept, &plan), whole(&mut anew, &plan, &weights, &graph), "round {round}");
        drop(graph);
        let looked = model.words.row(late);
        h = model.go_on(&g, h + looked, 1);
    }
}

#[test]
fn a_device_without_memory_for_reservations_executes_whole_plans() {
    let (module, model) = words(6);
    let weights = Weights::init(&module, 3);
    let Some(mut anew) = executor(Options::default()) else { return };
    let g = Graph::new(&module);
    let (mut h, mut chain) = (g.zeros([model.width]), Chain::default());
    for round in 0..3 {
        h = model.go_on(&g, h, 300);
        let graph = g.data();
        let plan = chain.grow(&graph, &[h.id().expect("sound")]);
        let expected = whole(&mut anew, &plan, &weights, &graph);
        let layout = compile(&plan, anew.target().expect("open")).expect("fits").layout;
        // As much as it needs alone, without a reservation.
        let budget = Budget { memory: Some((layout.total() + layout.params()) * 4), ..Budget::default() };
        let mut small = executor(Options { budget, ..Options::default() }).expect("opens");
        for _ in 0..2 {
            small.resume(&plan, &weights, inputs_of(&graph, true)).expect("executes without a reservation");
            assert_eq!(outputs(&small, &plan), expected, "round {round}");
        }
    }
}
