//! One device per thread, and the tolerances of comparisons.

use autobatch_ir::Weights;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, Plan, Verified};
use autobatch_planner::{Gradients, Planner, Request};
use autobatch_runtime_wgpu::{Arithmetic, Executor, GpuError, Inputs, Options};

/// The seed and the step of noise.
pub(crate) const SEED: u64 = 7;
/// See [`SEED`].
pub(crate) const STEP: u64 = 3;

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

pub(crate) fn exact() -> Options {
    Options { arithmetic: Arithmetic::Exact, ..Options::default() }
}

pub(crate) fn bound(graph: &GraphData, training: bool) -> Inputs<'_> {
    let noise = if training { Noise::On { seed: SEED, step: STEP } } else { Noise::Off };
    Inputs { words: &graph.bindings.words, floats: &graph.bindings.floats, noise }
}

pub(crate) fn weights(graph: &GraphData) -> Weights {
    Weights::init(&graph.module, 11)
}

/// The tolerance of a comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Within {
    /// Relative to the largest element of the row.
    pub(crate) row: f32,
    /// The minimum.
    pub(crate) least: f32,
}

impl Within {
    pub(crate) fn holds(self, found: &[f32], expected: &[f32]) -> bool {
        let bound = (self.row * largest(expected)).max(self.least);
        found.len() == expected.len()
            && found.iter().zip(expected).all(|(&a, &b)| {
                a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) || (a - b).abs() <= bound
            })
    }
}

/// The largest finite magnitude.
pub(crate) fn largest(row: &[f32]) -> f32 {
    row.iter().filter(|x| x.is_finite()).fold(0f32, |most, x| most.max(x.abs()))
}

/// The plan that computes values and the graph's own outputs.
pub(crate) fn inferring(graph: &GraphData, wanted: &[ValueId]) -> Verified<Plan> {
    let request = Request { wanted, ..Request::default() };
    Planner::default().plan(graph, &request).expect("plans").verify().expect("verifies")
}

/// The plan that computes losses and the gradients of all parameters.
pub(crate) fn training(graph: &GraphData, losses: &[(ValueId, f32)]) -> Verified<Plan> {
    let wanted: Vec<ValueId> = losses.iter().map(|loss| loss.0).collect();
    let gradients = Gradients { losses, params: None, values: &[] };
    let request = Request {
        wanted: &wanted,
        mode: Mode::Train,
        training: true,
        gradients: Some(gradients),
        ..Request::default()
    };
    Planner::default().plan(graph, &request).expect("plans").verify().expect("verifies")
}
