//! The CPU player trains: gradients of random graphs are those of the reference, whatever the
//! policy, the instruction set and the number of threads.
//!
//! Gradients of values have the bits of the reference, but for the sign of a zero. Gradients of parameters are sums in another order: within a
//! bound of the reference in `f32`, equal for every thread count and instruction set.

use autobatch_ir::Weights;
use autobatch_ir::graph::{GraphData, OutputKind};
use autobatch_ir::id::{ParamId, ValueId};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, Plan, Verified};
use autobatch_ir::reference;
use autobatch_ir::types::DType;
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Gradients, Planner, Request, RowOrder};
use autobatch_runtime_cpu::kernels::Isa;
use autobatch_runtime_cpu::{Bound, Player};
use autobatch_tests::random::{Options, Profile, check};
use std::cell::RefCell;

const POLICIES: [&str; 4] = ["none", "depth", "agenda", "auto"];
const SEED: u64 = 7;
const STEP: u64 = 3;

fn is_float(graph: &GraphData, value: ValueId) -> bool {
    let ty = graph.type_of(value);
    ty.dtype == DType::F32 && !ty.is_list
}

fn losses(graph: &GraphData) -> Vec<(ValueId, f32)> {
    let losses = graph.outputs.iter().filter(|output| output.kind == OutputKind::Loss);
    losses.enumerate().map(|(number, output)| (output.value, [1.0, 0.5, -2.0][number % 3])).collect()
}

/// Equal, zeros of both signs being one, NaN being NaN.
fn same(a: f32, b: f32) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}

/// What a graph's gradients must be.
struct Expected {
    single: reference::Gradients<f32>,
    double: reference::Gradients<f64>,
}

fn expected(graph: &GraphData, weights: &Weights, losses: &[(ValueId, f32)]) -> Result<Expected, String> {
    let mode = reference::Mode::Train { seed: SEED, step: STEP };
    let said = |error: reference::RunError| error.to_string();
    let run = reference::forward::<f32>(graph, weights, mode).map_err(said)?;
    let single = reference::reverse(graph, weights, &run, losses).map_err(said)?;
    let run = reference::forward::<f64>(graph, weights, mode).map_err(said)?;
    let double = reference::reverse(graph, weights, &run, losses).map_err(said)?;
    Ok(Expected { single, double })
}

fn values_agree(
    player: &Player,
    plan: &Plan,
    graph: &GraphData,
    values: &[ValueId],
    expected: &Expected,
) -> Result<(), String> {
    let first = plan.outputs.len() - values.len();
    for (number, &value) in values.iter().enumerate() {
        let found = player.output(plan, first + number);
        let zeros = vec![0.0; found.len()];
        let wanted = expected.single.value(value).unwrap_or(&zeros);
        if !found.iter().zip(wanted).all(|(&a, &b)| same(a, b)) {
            let app = graph.arena.producer(value);
            let callee = graph.module.callee_name(graph.signature(app).callee);
            return Err(format!(
                "gradient of {value} of {callee} is {found:?}, the reference says {wanted:?}"
            ));
        }
    }
    Ok(())
}

/// All gradients of parameters, end to end.
fn parameter_gradients(player: &Player, plan: &Plan, graph: &GraphData) -> Vec<Vec<f32>> {
    let of = |number: usize| plan.gradient_of(ParamId::new(number)).and_then(|store| player.gradient(store));
    (0..graph.module.params.len()).map(|number| of(number).expect("all are wanted").to_vec()).collect()
}

/// Within a share of the largest element of the parameter's gradient; the error of single precision
/// on the way there, as the reference has it, is added.
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
            if !same(found, single) && (f64::from(found) - f64::from(single)).abs() > bound {
                return Err(format!("@{name}: found {found}, the reference says {single}, bound {bound:e}"));
            }
            let rounding = (f64::from(single) - double).abs();
            if !found.is_nan() && (f64::from(found) - double).abs() > bound + rounding {
                return Err(format!("@{name}: found {found}, in double precision it is {double}"));
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
    let policy: Policy = policy.parse().expect("a policy");
    let mut planner = Planner::new(policy.load().expect("no file"));
    let request =
        Request { wanted: &[], mode: Mode::Train, training: true, rows, gradients: Some(gradients) };
    let plan = planner.plan(graph, &request).map_err(|error| error.to_string())?;
    plan.verify().map_err(|errors| errors.to_string())
}

fn bound(graph: &GraphData) -> Bound<'_> {
    let noise = Noise::On { seed: SEED, step: STEP };
    Bound { words: &graph.bindings.words, floats: &graph.bindings.floats, noise }
}

fn agrees(graph: &GraphData, players: &mut [Player]) -> Result<(), String> {
    let losses = losses(graph);
    if losses.is_empty() {
        return Ok(());
    }
    let weights = Weights::init(&graph.module, 11);
    let expected = expected(graph, &weights, &losses)?;
    let all = (0..graph.arena.values()).map(ValueId::new);
    let values: Vec<ValueId> = all.filter(|&value| is_float(graph, value)).collect();
    for policy in POLICIES {
        for rows in [RowOrder::Batch, RowOrder::Propagated] {
            let gradients = Gradients { losses: &losses, params: None, values: &values };
            let plan =
                plan_of(graph, policy, rows, gradients).map_err(|error| format!("{policy}: {error}"))?;
            let mut first: Option<Vec<Vec<f32>>> = None;
            for player in &mut *players {
                player.play(&plan, &weights, bound(graph)).map_err(|error| error.to_string())?;
                let blame = |error| format!("{policy} {rows:?} {player:?}: {error}");
                values_agree(player, &plan, graph, &values, &expected).map_err(blame)?;
                let found = parameter_gradients(player, &plan, graph);
                parameters_agree(&found, graph, &expected).map_err(blame)?;
                let bits =
                    |all: &[Vec<f32>]| -> Vec<u32> { all.iter().flatten().map(|x| x.to_bits()).collect() };
                match &first {
                    Some(first) if bits(first) != bits(&found) => {
                        return Err(blame("another player has other bits".to_owned()));
                    }
                    Some(_) => {}
                    None => first = Some(found),
                }
            }
        }
    }
    Ok(())
}

fn sweep(property: &str, profile: Profile) {
    let mut players: Vec<Player> = vec![Player::with_isa(Isa::Scalar, 1), Player::with_isa(Isa::best(), 1)];
    players.push(Player::with_isa(Isa::best(), 2));
    let players = RefCell::new(players);
    check(property, Options::new(profile).differentiable(), 10, |graph| {
        agrees(graph, &mut players.borrow_mut())
    });
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
