//! One device per thread, plans, and the tolerances of comparisons.

use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::{Mode, Plan, Verified};
use autobatch_planner::{Gradients, Planner, Request};
use autobatch_runtime_wgpu::{Arithmetic, Executor, GpuError, Options};
pub(crate) use autobatch_tests::agreement::{Within, inputs_of, largest, noise, weights};

/// An executor, or `None` if there is no adapter and none is required.
pub(crate) fn executor(options: Options) -> Option<Executor> {
    match Executor::new(options) {
        Ok(executor) => Some(executor),
        Err(error @ GpuError::NoAdapter { .. }) => {
            let required = std::env::var_os("AUTOBATCH_REQUIRE_GPU").is_some_and(|value| value == "1");
            assert!(!required, "AUTOBATCH_REQUIRE_GPU is 1: {error}");
            skipped(&error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[expect(clippy::print_stderr, reason = "a test that was skipped says so")]
pub(crate) fn skipped(why: &str) {
    eprintln!("SKIPPED, nothing was tested on a GPU: {why}");
}

/// Whether the device is SwiftShader, whose compiler takes gigabytes for modules with many branches.
pub(crate) fn is_swift_shader(executor: &Executor) -> bool {
    executor.gpu().is_some_and(|gpu| gpu.facts().name.contains("SwiftShader"))
}

pub(crate) fn exact() -> Options {
    Options { arithmetic: Arithmetic::Exact, ..Options::default() }
}

/// The plan that computes values and the graph's own outputs.
pub(crate) fn inferring(graph: &GraphData, wanted: &[ValueId]) -> Verified<Plan> {
    let request = Request { wanted, ..Request::default() };
    Planner::default().plan(graph, &request).expect("plans").verify().expect("verifies")
}

/// The plan that computes losses and the gradients of all parameters.
pub(crate) fn training(graph: &GraphData, losses: &[(ValueId, f32)]) -> Verified<Plan> {
    let wanted: Vec<ValueId> = losses.iter().map(|loss| loss.0).collect();
    training_with(graph, &wanted, losses)
}

/// The plan that computes values and the gradients of all parameters.
pub(crate) fn training_with(
    graph: &GraphData,
    wanted: &[ValueId],
    losses: &[(ValueId, f32)],
) -> Verified<Plan> {
    let gradients = Gradients { losses, params: None, values: &[] };
    let request = Request {
        wanted,
        mode: Mode::Train,
        training: true,
        gradients: Some(gradients),
        ..Request::default()
    };
    Planner::default().plan(graph, &request).expect("plans").verify().expect("verifies")
}
