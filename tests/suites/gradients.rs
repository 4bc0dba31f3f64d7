//! The CPU executor trains: it computes the reference gradients of random graphs under every policy,
//! instruction set and number of threads.
//!
//! All gradients have the bits of the reference, except for the sign of a zero. Gradients of parameters are also near those
//! in double precision.

mod pauses;
mod shard_sums;

use autobatch_ir::Weights;
use autobatch_ir::graph::{Graph, GraphData, OperandKind};
use autobatch_ir::id::{NodeId, ParamId, ValueId};
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, Plan, Verified};
use autobatch_ir::types::{INDEX, f32};
use autobatch_oracle::check::{Wanted, check_losses};
use autobatch_oracle::reference;
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Gradients, Planner, Request, RowOrder};
use autobatch_runtime_cpu::kernels::Isa;
use autobatch_runtime_cpu::{Executor, Inputs, RunError};
use autobatch_testing::cases::{FEW_POLICIES, is_float, losses, same_number};
use autobatch_testing::op_table::{self, Differentiate, Evaluate, Kind};
use autobatch_testing::random::{Options, Profile, check};
use autobatch_testing::written::{self, Numbers};
use autobatch_tests::agreement::{inputs_of, noise, weights};
use std::cell::RefCell;

/// The expected gradients of a graph.
struct Expected {
    single: reference::Gradients<f32>,
    double: reference::Gradients<f64>,
}

fn expected(graph: &GraphData, weights: &Weights, losses: &[(ValueId, f32)]) -> Result<Expected, String> {
    let noise = noise(true);
    let said = |error: reference::RunError| error.to_string();
    let run = reference::forward::<f32>(graph, weights, noise).map_err(said)?;
    let single = reference::reverse(graph, weights, &run, losses).map_err(said)?;
    let run = reference::forward::<f64>(graph, weights, noise).map_err(said)?;
    let double = reference::reverse(graph, weights, &run, losses).map_err(said)?;
    Ok(Expected { single, double })
}

fn values_agree(
    executor: &Executor,
    plan: &Plan,
    graph: &GraphData,
    values: &[ValueId],
    expected: &Expected,
) -> Result<(), String> {
    let first = plan.outputs.len() - values.len();
    for (number, &value) in values.iter().enumerate() {
        let found = executor.output(plan, first + number);
        let zeros = vec![0.0; found.len()];
        let wanted = expected.single.value(value).unwrap_or(&zeros);
        if !found.iter().zip(wanted).all(|(&a, &b)| same_number(a, b)) {
            let node = graph.arena.producer(value);
            let callee = graph.module.callee_name(graph.signature(node).callee);
            return Err(format!(
                "gradient of {value} of {callee} is {found:?}, the reference has {wanted:?}"
            ));
        }
    }
    Ok(())
}

/// Whether gradients have the same bits, except those of NaN.
fn same_bits(one: &[Vec<f32>], other: &[Vec<f32>]) -> bool {
    let bit = |x: &f32| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() };
    let bits = |all: &[Vec<f32>]| -> Vec<u32> { all.iter().flatten().map(bit).collect() };
    bits(one) == bits(other)
}

/// The gradients of a plan whose steps are executed first. The gradient of each parameter is completed and read after those of
/// the parameters behind it.
fn completed_one_by_one(
    executor: &mut Executor,
    plan: &Verified<Plan>,
    graph: &GraphData,
    weights: &Weights,
) -> Result<Vec<Vec<f32>>, RunError> {
    let inputs = inputs_of(graph, true);
    executor.execute_steps(plan, weights, inputs)?;
    let mut gradients = Vec::new();
    for param in (0..graph.module.params.len()).rev().map(ParamId::new) {
        executor.complete(plan, weights, inputs.words, Some(&[param]))?;
        gradients.push(executor.gradient_of(param).unwrap_or_default().to_vec());
    }
    gradients.reverse();
    Ok(gradients)
}

/// Returns the gradients of all parameters.
fn parameter_gradients(executor: &Executor, plan: &Plan, graph: &GraphData) -> Vec<Vec<f32>> {
    let of =
        |number: usize| plan.gradient_of(ParamId::new(number)).and_then(|store| executor.gradient(store));
    (0..graph.module.params.len())
        .map(|number| of(number).expect("all gradients are requested").to_vec())
        .collect()
}

/// Checks that gradients equal those of the reference, and are near those in double precision: within a share of the largest
/// element of the parameter's gradient and the single-precision error of the reference.
fn parameters_agree(found: &[Vec<f32>], graph: &GraphData, expected: &Expected) -> Result<(), String> {
    for (number, found) in found.iter().enumerate() {
        let param = ParamId::new(number);
        let zeros = (vec![0.0f32; found.len()], vec![0.0f64; found.len()]);
        let single = expected.single.param(param).unwrap_or(&zeros.0);
        let double = expected.double.param(param).unwrap_or(&zeros.1);
        let largest = single.iter().fold(0f64, |most, x| most.max(f64::from(x.abs())));
        for ((&found, &single), &double) in found.iter().zip(single).zip(double) {
            let bound = 64.0 * f64::from(f32::EPSILON) * largest;
            let name = &graph.module.params[number].name;
            if !same_number(found, single) {
                return Err(format!("@{name}: found {found}, the reference has {single}"));
            }
            let rounding = (f64::from(single) - double).abs();
            if !found.is_nan() && (f64::from(found) - double).abs() > bound + rounding {
                return Err(format!("@{name}: found {found}, in double precision {double}"));
            }
        }
    }
    Ok(())
}

fn plan_of(
    graph: &GraphData,
    policy: &str,
    rows: RowOrder,
    gradients: Gradients<'_>,
) -> Result<Verified<Plan>, String> {
    sharded_plan_of(graph, policy, rows, gradients, &[])
}

fn sharded_plan_of(
    graph: &GraphData,
    policy: &str,
    rows: RowOrder,
    gradients: Gradients<'_>,
    shards: &[NodeId],
) -> Result<Verified<Plan>, String> {
    let policy: Policy = policy.parse().expect("a policy");
    let mut planner = Planner::new(policy.load().expect("no file"));
    let request = Request {
        wanted: &[],
        mode: Mode::Train,
        training: true,
        rows,
        gradients: Some(gradients),
        arriving: &[],
        shards,
    };
    let plan = planner.plan(graph, &request).map_err(|error| error.to_string())?;
    plan.verify().map_err(|errors| errors.to_string())
}

/// The plans that the proof must accept.
#[derive(Clone, Copy, PartialEq)]
enum Proofs {
    All,
    /// The plans whose derivatives are finite on some lane of the proof. A root of a parameter, or a norm of single
    /// elements without eps, may be finite on none; such plans are only compared with the reference.
    WhereFinite,
}

fn agrees(graph: &GraphData, executors: &mut [Executor]) -> Result<(), String> {
    agrees_and(graph, executors, Proofs::All)
}

fn agrees_and(graph: &GraphData, executors: &mut [Executor], proofs: Proofs) -> Result<(), String> {
    let losses = losses(graph);
    if losses.is_empty() {
        return Ok(());
    }
    let weights = weights(graph);
    let expected = expected(graph, &weights, &losses)?;
    let all = (0..graph.arena.values()).map(ValueId::new);
    let values: Vec<ValueId> = all.filter(|&value| is_float(graph, value)).collect();
    for policy in FEW_POLICIES {
        for rows in [RowOrder::Batch, RowOrder::Propagated] {
            let gradients = Gradients { losses: &losses, params: None, values: &values };
            let plan =
                plan_of(graph, policy, rows, gradients).map_err(|error| format!("{policy}: {error}"))?;
            let unproved = |report: String| {
                let tolerated =
                    proofs == Proofs::WhereFinite && report.contains("is no gradient of the signature");
                if tolerated { Ok(()) } else { Err(format!("{policy} {rows:?}: {report}")) }
            };
            match check_losses(&plan, graph, Wanted { values: &[], training: true }, &losses) {
                Ok(proof) if proof.values != values || proof.params.len() != graph.module.params.len() => {
                    return Err(format!("{policy} {rows:?}: the proof covers other gradients: {proof}"));
                }
                Ok(_) => {}
                Err(report) => unproved(report.to_string())?,
            }
            let mut first: Option<Vec<Vec<f32>>> = None;
            for executor in &mut *executors {
                executor
                    .execute(&plan, &weights, inputs_of(graph, true))
                    .map_err(|error| error.to_string())?;
                let blame = |error| format!("{policy} {rows:?} {executor:?}: {error}");
                values_agree(executor, &plan, graph, &values, &expected).map_err(blame)?;
                let found = parameter_gradients(executor, &plan, graph);
                parameters_agree(&found, graph, &expected).map_err(blame)?;
                if first.as_ref().is_some_and(|first| !same_bits(first, &found)) {
                    return Err(blame("two executors give different bits".to_owned()));
                }
                let completed = completed_one_by_one(executor, &plan, graph, &weights);
                if !same_bits(&completed.map_err(|error| error.to_string())?, &found) {
                    return Err(format!("{policy} {rows:?}: gradients completed one by one differ"));
                }
                first.get_or_insert(found);
            }
            let case = pauses::Case {
                graph,
                weights: &weights,
                inputs: inputs_of(graph, true),
                policy,
                rows,
                losses: &losses,
                values: &values,
                plan: &plan,
            };
            case.agrees(executors).map_err(|error| format!("{policy} {rows:?}: {error}"))?;
        }
    }
    Ok(())
}

fn executors() -> RefCell<Vec<Executor>> {
    let mut two = Executor::with_isa(Isa::best(), 2);
    // Both threads execute every wave, however small.
    two.set_shared_work(1);
    RefCell::new(vec![Executor::with_isa(Isa::Scalar, 1), Executor::with_isa(Isa::best(), 1), two])
}

/// Checks smooth graphs, then graphs with kinks, with choices, or with ops that have no gradient.
fn sweep(property: &str, profile: Profile) {
    let executors = executors();
    for options in [Options::new(profile).differentiable(), Options::new(profile).with_losses()] {
        check(property, options, 10, |graph| agrees(graph, &mut executors.borrow_mut()));
    }
}

#[test]
fn written_graphs_have_the_gradients_of_the_reference() {
    let executors = executors();
    for numbers in [Numbers::Tame, Numbers::Wild] {
        written::check("gradients of written graphs", numbers, 60, |graph| {
            agrees_and(graph, &mut executors.borrow_mut(), Proofs::WhereFinite)
        });
    }
}

#[test]
fn small_graphs_have_the_gradients_of_the_reference() {
    sweep("gradients of small graphs", Profile::Small);
}

#[test]
fn medium_graphs_have_the_gradients_of_the_reference() {
    sweep("gradients of medium graphs", Profile::Medium);
}

#[test]
fn trees_have_the_gradients_of_the_reference() {
    sweep("gradients of trees", Profile::Trees);
}

#[test]
fn chains_have_the_gradients_of_the_reference() {
    sweep("gradients of chains", Profile::Chains);
}

#[test]
fn lattices_have_the_gradients_of_the_reference() {
    sweep("gradients of lattices", Profile::Lattices);
}

#[test]
fn blocks_have_the_gradients_of_the_reference() {
    sweep("gradients of blocks", Profile::Blocks);
}

/// Executes graphs and their reverse with the CPU executor, in single precision.
struct OnCpu;

impl OnCpu {
    fn weights(graph: &GraphData, params: &[Vec<f64>]) -> Weights {
        let mut weights = Weights::init(&graph.module, 0);
        for (number, values) in params.iter().enumerate() {
            let values: Vec<f32> = values.iter().map(|&x| x as f32).collect();
            weights.get_mut(ParamId::new(number)).copy_from_slice(&values);
        }
        weights
    }
}

/// Computes forward values and gradients in double precision with the reference. The test measures the executor
/// against them.
impl Evaluate for OnCpu {
    fn run(&self, graph: &GraphData, params: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let weights = Self::weights(graph, params);
        let mut evaluation =
            reference::Evaluation::<f64>::new(graph, &weights, reference::Noise::Off).expect("sound");
        for (number, values) in params.iter().enumerate() {
            evaluation.param_mut(ParamId::new(number)).copy_from_slice(values);
        }
        let run = evaluation.forward().expect("sound");
        let outputs = graph
            .outputs
            .iter()
            .map(|output| run.floats(output.value).map_or_else(Vec::new, <[f64]>::to_vec));
        outputs.collect()
    }
}

impl Differentiate for OnCpu {
    fn gradients(&self, graph: &GraphData, params: &[Vec<f64>]) -> op_table::Gradients {
        let all = (0..graph.arena.values()).map(ValueId::new);
        let mut numbers: Vec<(u32, ValueId)> = Vec::new();
        for value in all.filter(|&value| is_float(graph, value)) {
            let node = graph.arena.producer(value);
            if let [operand] = graph.arena.operands(node)
                && let Some(OperandKind::Data(slot)) = operand.kind()
            {
                numbers.push((slot, value));
            }
        }
        let values: Vec<ValueId> = numbers.iter().map(|number| number.1).collect();
        let losses: Vec<(ValueId, f32)> = losses(graph).into_iter().map(|(value, _)| (value, 1.0)).collect();
        let gradients = Gradients { losses: &losses, params: None, values: &values };
        let request = Request { mode: Mode::Train, gradients: Some(gradients), ..Request::default() };
        let plan = Planner::default()
            .plan(graph, &request)
            .expect("every op has a derivative rule")
            .verify()
            .expect("sound");
        let mut executor = Executor::with_isa(Isa::best(), 1);
        let noise = Noise::Off;
        let inputs = Inputs { words: &graph.bindings.words, floats: &graph.bindings.floats, noise };
        executor.execute(&plan, &Self::weights(graph, params), inputs).expect("indices are in range");
        let mut floats = vec![0.0; graph.bindings.floats.len()];
        let first = plan.outputs.len() - numbers.len();
        for (number, (slot, _)) in numbers.iter().enumerate() {
            for (place, &x) in executor.output(&plan, first + number).iter().enumerate() {
                floats[*slot as usize + place] = f64::from(x);
            }
        }
        let params = parameter_gradients(&executor, &plan, graph);
        let wide = |gradient: &Vec<f32>| gradient.iter().map(|&x| f64::from(x)).collect();
        op_table::Gradients { params: params.iter().map(wide).collect(), floats }
    }
}

#[test]
fn the_gradients_of_every_op_match_finite_differences() {
    let failures: Vec<String> =
        Kind::ALL.iter().filter_map(|&kind| op_table::check_gradients(kind, &OnCpu, 2e-3).err()).collect();
    assert!(failures.is_empty(), "{} entries fail:\n{}", failures.len(), failures.join("\n"));
}

/// A graph with a product and a table, large enough that threads share their sums.
fn wide(shift: u32) -> GraphData {
    let mut m = ModuleBuilder::new("wide");
    let w = m.param("w", [96, 160], Init::Glorot(1.0));
    let b = m.param("b", 160, Init::ZEROS);
    let t = m.table("t", [50, 320], Init::Uniform(1.0));
    let cell = m.cell("cell", [f32(96)], |g, [x]| [g.affine([x], w, Some(b)).tanh()]);
    let look = m.cell("look", [INDEX], |_, [index]| [t.row(index).tanh()]);
    let g = Graph::new(&m.build().expect("sound"));
    for key in 0..400u32 {
        g.instance(u64::from(key));
        let x: Vec<f32> = (0..96).map(|i| ((key * 97 + i) as f32 * 0.37).sin()).collect();
        let [y] = g.call(cell, g.input(&x));
        let [z] = g.call(look, key % 20 + shift);
        g.loss(&format!("loss{key}"), y.sum() + z.sum());
    }
    g.finish().expect("sound")
}

#[test]
fn gradients_on_several_threads_have_the_bits_of_one_thread() {
    let graph = wide(0);
    let weights = Weights::init(&graph.module, 5);
    let losses = losses(&graph);
    let gradients = Gradients { losses: &losses, params: None, values: &[] };
    let plan = plan_of(&graph, "auto", RowOrder::Propagated, gradients).expect("differentiable");
    let mut all: Vec<Vec<Vec<f32>>> = Vec::new();
    for threads in [1, 2, 3] {
        let mut executor = Executor::with_isa(Isa::best(), threads);
        for _ in 0..2 {
            executor.execute(&plan, &weights, inputs_of(&graph, true)).expect("sound");
            all.push(parameter_gradients(&executor, &plan, &graph));
        }
    }
    assert!(all[0].iter().all(|gradient| gradient.iter().any(|x| *x != 0.0)));
    assert!(all.iter().all(|found| *found == all[0]), "threads and runs give equal bits");
    parameters_agree(&all[0], &graph, &expected(&graph, &weights, &losses).expect("sound")).expect("right");
}

#[test]
fn gradients_of_a_table_do_not_keep_rows_of_the_previous_run() {
    let mut used = Executor::with_isa(Isa::best(), 1);
    for shift in [0, 30, 15, 0] {
        let graph = wide(shift);
        let weights = Weights::init(&graph.module, 5);
        let losses = losses(&graph);
        let gradients = Gradients { losses: &losses, params: None, values: &[] };
        let plan = plan_of(&graph, "auto", RowOrder::Propagated, gradients).expect("differentiable");
        let found = [&mut used, &mut Executor::with_isa(Isa::best(), 1)].map(|executor| {
            executor.execute(&plan, &weights, inputs_of(&graph, true)).expect("sound");
            let table = graph.module.param("t").expect("a table").id().expect("of the module");
            let sparse: Vec<u32> = executor.sparse_rows(table).expect("listed").to_vec();
            assert_eq!(sparse, (shift..shift + 20).collect::<Vec<u32>>());
            parameter_gradients(executor, &plan, &graph)
        });
        assert_eq!(found[0], found[1], "rows from {shift} on");
    }
}
