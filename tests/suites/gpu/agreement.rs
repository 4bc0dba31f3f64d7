//! Values agree with the reference interpreter.

use crate::common::{Within, exact, executor};
use autobatch_ir::Weights;
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::{Mode, Plan, Verified};
use autobatch_planner::RowOrder;
use autobatch_runtime_wgpu::{Executor, Inputs};
use autobatch_testing::random::{Options, Profile, check};
use autobatch_tests::agreement::{Execute, Nearness, Setting, values_agree};
use std::cell::RefCell;

/// With exact arithmetic everything but sine, cosine and powers has the bits of the reference, except for double
/// rounding. Networks amplify such differences.
pub(crate) const EXACT: Within = Within { row: 2e-5, least: f32::MIN_POSITIVE };

/// Two settings that differ in everything: a plan takes long on a software device.
const SETTINGS: [Setting<'static>; 2] = [
    Setting { policy: "auto", mode: Mode::Infer, rows: RowOrder::Propagated },
    Setting { policy: "depth", mode: Mode::Train, rows: RowOrder::Batch },
];

struct OnGpu<'a>(&'a mut Executor);

impl Execute for OnGpu<'_> {
    fn name(&self) -> String {
        "gpu".to_owned()
    }

    /// A step takes at most one dispatch more than its kernel has stages, and one for each stage that reads indices, which copies
    /// them for the host.
    fn execute(
        &mut self,
        plan: &Verified<Plan>,
        weights: &Weights,
        inputs: Inputs<'_>,
    ) -> Result<(), String> {
        self.0.execute(plan, weights, inputs).map_err(|error| error.to_string())?;
        let counts = &self.0.counters().of_steps;
        for (number, (step, &dispatches)) in plan.steps.iter().zip(counts).enumerate() {
            let kernel = plan.kernel(step);
            let reads_index = kernel.stages.iter().filter(|stage| kernel.index_limit(stage).is_some());
            let most = (kernel.stages.len() + reads_index.count()) as u32 + 1;
            if dispatches > most {
                return Err(format!("step f{number} is {dispatches} dispatches, expected {most} at most"));
            }
        }
        Ok(())
    }

    fn output(&self, _: &Plan, number: usize) -> &[f32] {
        self.0.output(number)
    }
}

pub(crate) fn agrees(
    graph: &GraphData,
    training: bool,
    executor: &mut Executor,
    within: Within,
) -> Result<(), String> {
    let settings = SETTINGS.into_iter();
    values_agree(&mut [&mut OnGpu(executor)], graph, training, settings, Nearness::Within(within))
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
