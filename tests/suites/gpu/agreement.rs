//! Values agree with the reference interpreter.

use crate::common::{SEED, STEP, Within, bound, exact, executor, largest, weights};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::Mode;
use autobatch_ir::types::DType;
use autobatch_oracle::reference;
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Planner, Request, RowOrder};
use autobatch_runtime_wgpu::Executor;
use autobatch_testing::random::{Options, Profile, check};
use std::cell::RefCell;

/// With exact arithmetic everything but sine, cosine and powers has the bits of the reference, except for double
/// rounding. Networks amplify such differences.
pub(crate) const EXACT: Within = Within { row: 2e-5, least: f32::MIN_POSITIVE };

fn readable(graph: &GraphData) -> Vec<ValueId> {
    (0..graph.arena.values()).map(ValueId::new).filter(|&value| !graph.type_of(value).is_list).collect()
}

/// The largest number that a value is computed from. Rounding errors of terms remain when the terms cancel.
fn terms(graph: &GraphData, run: &reference::Run<f32>, value: ValueId) -> f32 {
    let operands = graph.arena.operands(graph.arena.producer(value)).iter();
    let read = operands.filter_map(|operand| operand.as_value()).map(|operand| {
        let is_list = graph.type_of(operand).is_list;
        if is_list { terms(graph, run, operand) } else { run.floats(operand).map_or(0.0, largest) }
    });
    read.fold(0.0, f32::max)
}

pub(crate) fn agrees(
    graph: &GraphData,
    training: bool,
    executor: &mut Executor,
    within: Within,
) -> Result<(), String> {
    let weights = weights(graph);
    let wanted = readable(graph);
    if wanted.is_empty() {
        return Ok(());
    }
    let mode = match training {
        true => reference::Noise::On { seed: SEED, step: STEP },
        false => reference::Noise::Off,
    };
    let run = reference::forward::<f32>(graph, &weights, mode).map_err(|error| error.to_string())?;
    for (policy, mode, rows) in
        [("auto", Mode::Infer, RowOrder::Propagated), ("depth", Mode::Train, RowOrder::Batch)]
    {
        let policy: Policy = policy.parse().expect("a policy");
        let mut planner = Planner::new(policy.load().expect("no file"));
        let request = Request { wanted: &wanted, mode, training, rows, ..Request::default() };
        let plan = planner.plan(graph, &request).map_err(|error| error.to_string())?;
        let plan = plan.verify().map_err(|errors| errors.to_string())?;
        executor.execute(&plan, &weights, bound(graph, training)).map_err(|error| error.to_string())?;
        let counters = executor.counters();
        for (number, (step, &dispatches)) in plan.steps.iter().zip(&counters.of_steps).enumerate() {
            let most = plan.kernel(step).stages.len() as u32 + 1;
            if dispatches > most {
                return Err(format!("step f{number} is {dispatches} dispatches, expected {most} at most"));
            }
        }
        let first = plan.outputs.len() - wanted.len();
        for (number, &value) in wanted.iter().enumerate() {
            let found = executor.output(first + number);
            let same = match graph.type_of(value).dtype {
                DType::F32 => {
                    let least = within.least.max(within.row * terms(graph, &run, value));
                    Within { least, ..within }.holds(found, run.floats(value).ok_or("no such value")?)
                }
                _ => {
                    let words: Vec<u32> = found.iter().map(|x| x.to_bits()).collect();
                    run.words(value) == Some(&words)
                }
            };
            if !same {
                let node = graph.arena.producer(value);
                let callee = graph.module.callee_name(graph.signature(node).callee);
                return Err(format!(
                    "{mode:?}: {value} of {callee} is {found:?}, the reference says {:?} {:?}",
                    run.floats(value),
                    run.words(value)
                ));
            }
        }
    }
    Ok(())
}

fn sweep(property: &str, options: Options, training: bool) {
    let Some(executor) = executor(exact()) else { return };
    let executor = RefCell::new(executor);
    check(property, options, 14, |graph| agrees(graph, training, &mut executor.borrow_mut(), EXACT));
}

#[test]
fn small_graphs_agree_with_the_reference() {
    sweep("small graphs agree on the gpu", Options::new(Profile::Small), false);
}

#[test]
fn medium_graphs_agree_with_the_reference() {
    sweep("medium graphs agree on the gpu", Options::new(Profile::Medium), false);
}

#[test]
fn medium_graphs_agree_with_noise() {
    sweep("medium graphs agree on the gpu in training", Options::new(Profile::Medium), true);
}

#[test]
fn trees_agree_with_the_reference() {
    sweep("trees agree on the gpu", Options::new(Profile::Trees), false);
}

#[test]
fn chains_agree_with_the_reference() {
    sweep("chains agree on the gpu", Options::new(Profile::Chains), false);
}

#[test]
fn blocks_agree_with_the_reference() {
    sweep("blocks agree on the gpu", Options::new(Profile::Blocks), false);
}

#[test]
fn lattices_agree_with_the_reference() {
    sweep("lattices agree on the gpu", Options::new(Profile::Lattices), false);
}
