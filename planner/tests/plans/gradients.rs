//! Gradients of plans, by the naive executor, agree with the reference evaluator.
//!
//! Gradients agree bit for bit, except for the sign of zeros: the reference leaves out missing contributions, and a kernel adds them
//! as 0.

use crate::agreement::planner;
use crate::graphs::{MODELS, Random};
use autobatch_ir::Weights;
use autobatch_ir::graph::Graph;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ParamId, ValueId};
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::verify::Rule;
use autobatch_ir::plan::{
    Address, Mode, Place, Plan, ReductionPart, ReductionSum, Reg, RegKind, StepOperand, Verified,
};
use autobatch_ir::types::{f32, list};
use autobatch_oracle::check::{Wanted, check_losses};
use autobatch_oracle::naive::{Executed, execute};
use autobatch_oracle::reference;
use autobatch_planner::{Gradients, PlanError, Planner, Request, RowOrder};
use autobatch_testing::cases::{is_float, losses, same_number};
use std::sync::Arc;

struct Case<'a> {
    graph: &'a GraphData,
    weights: Weights,
    training: bool,
    shards: &'a [NodeId],
}

impl Case<'_> {
    fn noise(&self) -> Noise {
        if self.training { Noise::On { seed: 5, step: 2 } } else { Noise::Off }
    }

    fn plan(&self, policy: &str, rows: RowOrder, gradients: Gradients<'_>) -> Result<Verified<Plan>, String> {
        let gradients = Some(gradients);
        let request = Request {
            mode: Mode::Train,
            training: self.training,
            rows,
            gradients,
            wanted: &[],
            arriving: &[],
            shards: self.shards,
        };
        let plan = planner(policy).plan(self.graph, &request).map_err(|error| error.to_string())?;
        plan.verify().map_err(|errors| errors.to_string())
    }

    fn execute(&self, plan: &Verified<Plan>) -> Executed {
        let stores: Vec<Vec<f32>> = self.weights.iter().map(|param| param.values().to_vec()).collect();
        let bound = &self.graph.bindings;
        execute(plan, &stores, &bound.words, &bound.floats, self.noise()).expect("indices are in range")
    }

    fn reference(&self, losses: &[(ValueId, f32)]) -> reference::Gradients<f32> {
        let run = reference::forward::<f32>(self.graph, &self.weights, self.noise()).expect("valid");
        let evaluation = reference::Evaluation::new(self.graph, &self.weights, self.noise()).expect("valid");
        evaluation.reverse_in_shards(&run, losses, self.shards).expect("valid")
    }

    /// Requires that the proof accepts the plan and finds the requested gradients.
    fn is_proven(
        &self,
        plan: &Verified<Plan>,
        losses: &[(ValueId, f32)],
        values: &[ValueId],
    ) -> Result<(), String> {
        let wanted = Wanted { values: &[], training: self.training };
        let proof = check_losses(plan, self.graph, wanted, losses).map_err(|error| error.to_string())?;
        let params = (0..self.graph.module.params.len()).map(ParamId::new);
        if proof.losses != losses || proof.values != values {
            return Err(format!("asked for {losses:?} and {values:?}, proven is {proof:?}"));
        }
        if !params.eq(proof.params.iter().copied()) {
            return Err(format!("all parameters have gradients, proven is {proof:?}"));
        }
        Ok(())
    }

    /// Compares all gradients of one plan.
    fn agrees(&self, policy: &str, rows: RowOrder) -> Result<(), String> {
        let losses = losses(self.graph);
        let values: Vec<ValueId> = (0..self.graph.arena.values())
            .map(ValueId::new)
            .filter(|&value| is_float(self.graph, value))
            .collect();
        let plan = self.plan(policy, rows, Gradients { losses: &losses, params: None, values: &values })?;
        self.is_proven(&plan, &losses, &values)?;
        let (run, expected) = (self.execute(&plan), self.reference(&losses));
        let first = plan.outputs.len() - values.len();
        for (number, &value) in values.iter().enumerate() {
            let words = run.output(first + number).expect("an output");
            let found: Vec<f32> = words.iter().map(|&word| f32::from_bits(word)).collect();
            let zeros = vec![0.0; found.len()];
            let expected = expected.value(value).unwrap_or(&zeros);
            if !found.iter().zip(expected).all(|(&a, &b)| same_number(a, b)) {
                let callee = self
                    .graph
                    .module
                    .callee_name(self.graph.signature(self.graph.arena.producer(value)).callee);
                return Err(format!("gradient of {value} of {callee} is {found:?}, expected {expected:?}"));
            }
        }
        for number in 0..self.graph.module.params.len() {
            let param = ParamId::new(number);
            let found = run.gradient(plan.gradient_of(param).expect("wanted")).expect("made");
            let zeros = vec![0.0; found.len()];
            let expected = expected.param(param).unwrap_or(&zeros);
            if !found.iter().zip(expected).all(|(&a, &b)| same_number(a, b)) {
                let name = &self.graph.module.params[number].name;
                return Err(format!("@{name}: {found:?}, expected {expected:?}"));
            }
        }
        Ok(())
    }
}

/// Divides the nodes of a graph. The first shard may be empty.
fn shards(graph: &GraphData, further: usize) -> Vec<NodeId> {
    let nodes = graph.arena.len();
    let mut firsts: Vec<NodeId> = (0..further).map(|number| NodeId::new(nodes * number / further)).collect();
    firsts.dedup();
    firsts
}

#[test]
fn gradients_of_every_model_match_the_reference() {
    let mut failures = Vec::new();
    for (name, model) in MODELS {
        for round in 0..3 {
            let graph = model(&mut Random(round));
            for training in [false, true] {
                let weights = Weights::init(&graph.module, 3);
                // Without shards at first, then with up to five of them.
                let shards = shards(&graph, 3 * round as usize + usize::from(training));
                let case = Case { graph: &graph, weights, training, shards: &shards };
                for (policy, rows) in [
                    ("none", RowOrder::Batch),
                    ("auto", RowOrder::Propagated),
                    ("agenda", RowOrder::Propagated),
                ] {
                    if let Err(error) = case.agrees(policy, rows) {
                        failures.push(format!("{name} seed {round} {policy} {training}: {error}"));
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}

fn model(name: &str) -> GraphData {
    let (_, model) = MODELS.iter().find(|(known, _)| *known == name).expect("a model");
    model(&mut Random(4))
}

fn trained(graph: &GraphData) -> Verified<Plan> {
    let case = Case { graph, weights: Weights::init(&graph.module, 3), training: true, shards: &[] };
    let losses = losses(graph);
    let gradients = Gradients { losses: &losses, params: None, values: &[] };
    case.plan("auto", RowOrder::Propagated, gradients).expect("differentiable")
}

#[test]
fn plans_with_gradients_survive_text_and_bytes() {
    for (name, model) in MODELS {
        let plan = trained(&model(&mut Random(2)));
        assert!(!plan.reductions.is_empty() || *name == "elementwise", "{name} has no reductions");
        let back = Plan::from_text(plan.to_text())
            .unwrap_or_else(|error| panic!("{name}: {error}\n{}", plan.to_text()));
        assert!(back == *plan, "{name} as text:\n{}", plan.to_text());
        let back = Plan::from_bytes(&plan.to_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(back == plan, "{name} as bytes");
    }
}

#[test]
fn frozen_parameters_have_no_gradient_and_do_not_change_others() {
    let graph = model("tree_lstm");
    let losses = losses(&graph);
    let case = Case { graph: &graph, weights: Weights::init(&graph.module, 3), training: true, shards: &[] };
    let all = trained(&graph);
    let everything = case.execute(&all);
    let kept = graph.module.param("w").expect("a weight").id().expect("of the module");
    let gradients = Gradients { losses: &losses, params: Some(&[kept]), values: &[] };
    let one = case.plan("auto", RowOrder::Propagated, gradients).expect("differentiable");
    let run = case.execute(&one);
    for number in 0..graph.module.params.len() {
        let param = ParamId::new(number);
        assert_eq!(one.gradient_of(param).is_some(), param == kept, "@{}", graph.module.params[number].name);
    }
    let bits = |x: Option<&[f32]>| x.expect("a gradient").iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let of = |plan: &Plan| plan.gradient_of(kept).expect("wanted");
    assert_eq!(bits(run.gradient(of(&one))), bits(everything.gradient(of(&all))));
    assert!(one.steps.len() < all.steps.len(), "leaves need no reverse if tables are frozen");
}

#[test]
fn impossible_gradients_are_rejected() {
    let graph = model("tree_lstm");
    let losses = losses(&graph);
    let plan = |mode, losses: &[(ValueId, f32)], params: Option<&[ParamId]>| {
        let gradients = Some(Gradients { losses, params, values: &[] });
        Planner::default().plan(&graph, &Request { mode, gradients, ..Request::default() }).map(|_| ())
    };
    assert_eq!(plan(Mode::Infer, &losses, None), Err(PlanError::NotTraining(Mode::Infer)));
    let missing = ValueId::new(graph.arena.values());
    assert_eq!(plan(Mode::Train, &[(missing, 1.0)], None), Err(PlanError::NoFloat(missing)));
    let missing = ParamId::new(99);
    assert_eq!(plan(Mode::Train, &losses, Some(&[missing])), Err(PlanError::NoParam(missing)));
    assert_eq!(plan(Mode::Train, &losses, None), Ok(()));
}

/// Requires that the gradients of these values are proved and match the reference.
fn gradients_agree(graph: &GraphData, losses: &[(ValueId, f32)], values: &[ValueId]) {
    let case = Case { graph, weights: Weights::init(&graph.module, 3), training: false, shards: &[] };
    let plan = case.plan("auto", RowOrder::Propagated, Gradients { losses, params: None, values });
    let plan = plan.unwrap_or_else(|error| panic!("{error}"));
    check_losses(&plan, graph, Wanted { values: &[], training: false }, losses).expect("a correct plan");
    let (run, expected) = (case.execute(&plan), case.reference(losses));
    for (number, &value) in values.iter().enumerate() {
        let words = run.output(plan.outputs.len() - values.len() + number).expect("an output");
        let found: Vec<f32> = words.iter().map(|&word| f32::from_bits(word)).collect();
        let zeros = vec![0.0; found.len()];
        assert_eq!(found, expected.value(value).unwrap_or(&zeros), "{value}");
    }
}

#[test]
fn losses_without_computed_operands_have_gradients() {
    let g = Graph::new(&ModuleBuilder::new("inputs").build().expect("valid"));
    let [x, aside] = [g.input(&[0.5, 0.25]), g.input(&[1.0, 2.0])];
    let y = x.tanh();
    g.output("y", y);
    let [x, aside, y] = [x, aside, y].map(|value| value.id().expect("a value of the graph"));
    let graph = g.finish().expect("valid");
    // One reverse has seeds and sums of inputs, the other has not even seeds.
    gradients_agree(&graph, &[(x, 0.5)], &[x, aside]);
    gradients_agree(&graph, &[(y, 0.5)], &[aside]);
    gradients_agree(&graph, &[(y, 0.5), (x, 2.0)], &[aside, x, y]);
}

#[test]
fn a_batch_of_empty_lists_has_a_reverse_with_any_first_field() {
    let mut m = ModuleBuilder::new("empty");
    let w = m.param("w", [1, 1], Init::Glorot(1.0));
    let g = Graph::new(&m.build().expect("valid"));
    let first = g.index(3);
    g.output("first", first);
    let query = g.input(&[0.5]).affine(w, None);
    let none = g.empty_list(f32(1));
    let nothing = g.attend(query, none, none, 1.0).alone();
    let keys = g.list([query, query.tanh()]);
    g.loss("nothing", nothing.sum());
    g.loss("something", g.attend(query, keys, keys, 1.0).sum());
    let query = query.id().expect("a value of the graph");
    let graph = g.finish().expect("valid");
    gradients_agree(&graph, &losses(&graph), &[query]);
}

#[test]
fn a_fold_of_a_list_from_outside_with_one_from_inside_is_rejected_by_name_and_site() {
    let mut m = ModuleBuilder::new("mixed");
    let w = m.param("w", [2, 2], Init::Glorot(1.0));
    let cell = m.cell("cell", [f32(2), list(f32(2))], |g, [x, values]| {
        let score = g.affine([x], w, None);
        [g.weighted_sum(g.list([score, score]), values)]
    });
    let g = Graph::new(&m.build().expect("valid"));
    g.instance(0);
    let x = g.input(&[0.5, 0.25]);
    let [y] = g.call(cell, (x, g.list([x, x])));
    g.loss("loss", y.sum());
    let graph = g.finish().expect("valid");
    let gradients = Some(Gradients { losses: &losses(&graph), params: None, values: &[] });
    let request = Request { mode: Mode::Train, gradients, ..Request::default() };
    let refused = Planner::default().plan(&graph, &request).expect_err("no rule");
    assert!(refused.to_string().contains("pass all its lists through ports"), "{refused}");
    let PlanError::NotDifferentiable { op, site } = refused else { panic!("{refused}") };
    assert_eq!(op, "wsum");
    assert!(site.contains("gradients.rs"), "{site}");
}

/// The rules that a changed plan breaks.
fn broken(name: &str, breaks: impl Fn(&mut Plan)) -> Vec<Rule> {
    let mut plan = trained(&model(name)).into_inner();
    breaks(&mut plan);
    let errors = plan.verify().expect_err("the plan is broken");
    errors.findings().iter().map(|finding| finding.rule).collect()
}

#[test]
fn reductions_outside_their_store_are_rejected() {
    let outside = |plan: &mut Plan| {
        let sum = plan.reductions.iter_mut().find_map(|sum| match &mut sum.sum {
            ReductionSum::Wgrad { row, .. } => Some(row),
            _ => None,
        });
        *sum.expect("a product") += 1000;
    };
    assert_eq!(broken("tree_lstm", outside), [Rule::Reductions]);
    assert_eq!(broken("tree_lstm", |plan| plan.reductions[0].store.0 = 0), [Rule::Reductions]);
    assert_eq!(broken("tree_lstm", |plan| plan.reductions[0].store.0 = 999), [Rule::Reductions]);
    assert!(broken("tree_lstm", |plan| plan.reductions[0].parts[0].each = 2).contains(&Rule::Reductions));
    assert_eq!(broken("tree_lstm", |plan| plan.reductions[0].parts[0].lanes = 0), [Rule::Reductions]);
}

#[test]
fn reductions_of_unwritten_rows_are_rejected() {
    let beyond = |plan: &mut Plan| plan.reductions[0].parts[0].lanes += 1_000_000;
    assert_eq!(broken("tree_lstm", beyond), [Rule::ReductionRows]);
}

#[test]
fn reductions_of_too_many_lanes_are_rejected() {
    let endless = |plan: &mut Plan| {
        let sum = plan.reductions.iter_mut().find(|sum| sum.sum == ReductionSum::Colsum).expect("a bias");
        let part = &mut sum.parts[0];
        let start = part.dy.address.of_lane(&plan.tables, 0).expect("a row");
        (part.dy.address, part.lanes) = (Address::Steps { start, stride: 0 }, u32::MAX);
    };
    assert_eq!(broken("tree_lstm", endless), [Rule::Reductions]);
}

#[test]
fn edges_with_two_results_are_rejected() {
    let twice = |plan: &mut Plan| {
        let is_edges = |reg: &Reg| reg.kind == RegKind::Edges;
        let kernel = plan.kernels.iter_mut().find(|kernel| kernel.regs.iter().any(is_edges));
        let kernel = Arc::make_mut(kernel.expect("attention has edges"));
        let edges = kernel.results.iter().copied().find(|view| is_edges(&kernel.regs[view.reg.index()]));
        kernel.results.extend(edges);
    };
    assert_eq!(broken("attention", twice), [Rule::Edges, Rule::Roles]);
}

#[test]
fn edges_without_the_offsets_of_their_list_are_rejected() {
    let shifted = |plan: &mut Plan| {
        let place = plan.places.iter().find_map(|place| match *place {
            Place::Edges { offsets, .. } => Some(offsets as usize),
            _ => None,
        });
        let at = place.expect("attention has edges") + 1;
        plan.tables[at] += 1;
    };
    assert!(broken("attention", shifted).contains(&Rule::Edges));
}

#[test]
fn steps_do_not_read_gradients() {
    let reads = |plan: &mut Plan| {
        let gradient = plan.given_stores() as u32;
        plan.store_args[0].0 = gradient;
    };
    assert!(broken("tree_lstm", reads).contains(&Rule::StoreTypes));
}

/// The rows of all lanes of an operand, last first.
fn reversed(plan: &mut Plan, operand: StepOperand, lanes: u32) -> StepOperand {
    let of_lanes: Vec<u32> = (0..lanes).rev().collect();
    StepOperand { address: operand.address.of_lanes(&mut plan.tables, &plan.groups, &of_lanes), ..operand }
}

#[test]
fn sums_in_another_order_or_shard_are_rejected() {
    let mut rejected = [0; 3];
    for (name, model) in MODELS {
        let graph = model(&mut Random(4));
        let (losses, shards) = (losses(&graph), shards(&graph, 2));
        let weights = Weights::init(&graph.module, 3);
        let case = Case { graph: &graph, weights, training: true, shards: &shards };
        let gradients = Gradients { losses: &losses, params: None, values: &[] };
        let plan = case.plan("depth", RowOrder::Batch, gradients).expect("differentiable");
        if plan.reductions.is_empty() {
            continue;
        }
        case.is_proven(&plan, &losses, &[]).expect("a correct plan");
        let mut reject = |kind: usize, expected: &str, change: &dyn Fn(&mut Plan)| {
            let mut wrong = (*plan).clone();
            change(&mut wrong);
            let wrong = wrong.verify().unwrap_or_else(|errors| panic!("{name}: {errors}"));
            let error = case.is_proven(&wrong, &losses, &[]).expect_err("the bits differ");
            assert!(error.contains(expected), "{name}: {error}");
            rejected[kind] += 1;
        };
        for (number, sum) in plan.reductions.iter().enumerate() {
            for (place, part) in sum.parts.iter().enumerate() {
                if part.lanes > 1 {
                    reject(0, "belongs", &|plan| {
                        let ReductionPart { lanes, x, dy, .. } = plan.reductions[number].parts[place];
                        let x = x.map(|x| reversed(plan, x, lanes));
                        let dy = reversed(plan, dy, lanes);
                        let part = &mut plan.reductions[number].parts[place];
                        (part.x, part.dy) = (x, dy);
                    });
                }
                if part.cuts[1] > 0 {
                    reject(1, "another shard", &|plan| {
                        plan.reductions[number].parts[place].cuts = vec![0, part.cuts[1] - 1];
                    });
                }
            }
            if sum.parts.len() > 1 {
                reject(2, "belongs earlier in the sum", &|plan| plan.reductions[number].parts.swap(0, 1));
            }
        }
    }
    assert!(rejected.iter().all(|&count| count > 3), "{rejected:?}");
}
