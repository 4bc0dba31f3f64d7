//! One check of every executor: a plan computes the values of the reference interpreter, whatever the policy, the mode and
//! the order of rows.

use autobatch_ir::Weights;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::numeric::same_bits;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Inputs, Mode, Plan, Verified};
use autobatch_ir::types::DType;
use autobatch_oracle::reference;
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Planner, Request, RowOrder};

/// The noise of a pass: on in training.
#[must_use]
pub fn noise(training: bool) -> Noise {
    if training { Noise::On { seed: 7, step: 3 } } else { Noise::Off }
}

/// The bindings of a graph, and the noise of a pass.
#[must_use]
pub fn inputs_of(graph: &GraphData, training: bool) -> Inputs<'_> {
    Inputs { words: &graph.bindings.words, floats: &graph.bindings.floats, noise: noise(training) }
}

/// The weights of a graph's module.
#[must_use]
pub fn weights(graph: &GraphData) -> Weights {
    Weights::init(&graph.module, 11)
}

/// A runtime.
pub trait Execute {
    /// The name in messages.
    fn name(&self) -> String;

    /// Executes a plan.
    ///
    /// # Errors
    /// The message of the runtime, or a promise about the execution that it broke.
    fn execute(&mut self, plan: &Verified<Plan>, weights: &Weights, inputs: Inputs<'_>)
    -> Result<(), String>;

    /// An output of the last plan. The elements of other types are the floats with their bits.
    fn output(&self, plan: &Plan, number: usize) -> &[f32];
}

/// How a graph is planned.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The name of the policy.
    pub policy: &'a str,
    /// The use of the plan.
    pub mode: Mode,
    /// The order of rows.
    pub rows: RowOrder,
}

/// How near floats must be to those of the reference. Other types have its bits.
#[derive(Clone, Copy, Debug)]
pub enum Nearness {
    /// The same bits; all NaNs are equal.
    Bits,
    /// Within a tolerance. Rounding errors of terms remain when the terms cancel, so the largest number that a value is
    /// computed from counts as well.
    Within(Within),
}

/// The tolerance of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Within {
    /// Relative to the largest element of the row.
    pub row: f32,
    /// The minimum.
    pub least: f32,
}

impl Within {
    /// Whether each element is near the expected one, equal in bits, or NaN as that one is.
    #[must_use]
    pub fn holds(self, found: &[f32], expected: &[f32]) -> bool {
        let bound = (self.row * largest(expected)).max(self.least);
        found.len() == expected.len()
            && found.iter().zip(expected).all(|(&a, &b)| {
                a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) || (a - b).abs() <= bound
            })
    }
}

/// The largest finite magnitude.
#[must_use]
pub fn largest(row: &[f32]) -> f32 {
    row.iter().filter(|x| x.is_finite()).fold(0f32, |most, x| most.max(x.abs()))
}

/// Plans a graph in each setting, executes each plan on each executor, and compares all values that are no lists.
///
/// # Errors
/// The setting, the executor and the first value that differs.
pub fn values_agree(
    executors: &mut [&mut dyn Execute],
    graph: &GraphData,
    training: bool,
    settings: impl Iterator<Item = Setting<'static>>,
    nearness: Nearness,
) -> Result<(), String> {
    let values = (0..graph.arena.values()).map(ValueId::new);
    let wanted: Vec<ValueId> = values.filter(|&value| !graph.type_of(value).is_list).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let (weights, inputs) = (weights(graph), inputs_of(graph, training));
    let run = reference::forward::<f32>(graph, &weights, inputs.noise).map_err(|error| error.to_string())?;
    let expected = Expected { graph, run: &run, nearness };
    for setting in settings {
        let Setting { policy, mode, rows } = setting;
        let policy: Policy = policy.parse().expect("a policy");
        let mut planner = Planner::new(policy.load().expect("no file"));
        let request = Request { wanted: &wanted, mode, training, rows, ..Request::default() };
        let plan = planner.plan(graph, &request).map_err(|error| error.to_string())?;
        let plan = plan.verify().map_err(|errors| format!("{setting:?}: {errors}"))?;
        let first = plan.outputs.len() - wanted.len();
        for executor in &mut *executors {
            let blame = |error: String| format!("{setting:?}: {error}");
            executor.execute(&plan, &weights, inputs).map_err(blame)?;
            for (number, &value) in (first..).zip(&wanted) {
                let found = executor.output(&plan, number);
                expected
                    .compare(value, found)
                    .map_err(|error| blame(format!("{}: {error}", executor.name())))?;
            }
        }
    }
    Ok(())
}

/// The values of the reference.
struct Expected<'a> {
    graph: &'a GraphData,
    run: &'a reference::Run<f32>,
    nearness: Nearness,
}

impl Expected<'_> {
    fn compare(&self, value: ValueId, found: &[f32]) -> Result<(), String> {
        let (floats, words) = (self.run.floats(value), self.run.words(value));
        let same = match (self.graph.type_of(value).dtype, floats, words) {
            (DType::F32, Some(floats), _) => self.is_near(value, found, floats),
            (_, _, Some(words)) => found.iter().map(|x| x.to_bits()).eq(words.iter().copied()),
            _ => false,
        };
        if same {
            return Ok(());
        }
        let node = self.graph.arena.producer(value);
        let callee = self.graph.module.callee_name(self.graph.signature(node).callee);
        let reference = floats.map_or_else(|| format!("{words:?}"), |floats| format!("{floats:?}"));
        Err(format!("{value} of {callee} is {found:?}, the reference has {reference}"))
    }

    fn is_near(&self, value: ValueId, found: &[f32], floats: &[f32]) -> bool {
        match self.nearness {
            Nearness::Bits => {
                found.len() == floats.len() && found.iter().zip(floats).all(|(&a, &b)| same_bits(a, b))
            }
            Nearness::Within(within) => {
                let least = within.least.max(within.row * self.terms(value));
                Within { least, ..within }.holds(found, floats)
            }
        }
    }

    /// The largest number that a value is computed from.
    fn terms(&self, value: ValueId) -> f32 {
        let operands = self.graph.arena.operands(self.graph.arena.producer(value)).iter();
        let read = operands.filter_map(|operand| operand.as_value()).map(|operand| {
            let is_list = self.graph.type_of(operand).is_list;
            if is_list { self.terms(operand) } else { self.run.floats(operand).map_or(0.0, largest) }
        });
        read.fold(0.0, f32::max)
    }
}
