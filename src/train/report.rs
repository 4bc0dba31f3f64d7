//! The reports of a step and of an evaluation.

use autobatch_ir::id::ParamId;
use std::fmt;
use std::time::Duration;

/// The report of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// The number of the step, from 0.
    pub number: u64,
    /// The loss of the minibatch: the sum of `losses` divided by `weight`.
    pub loss: f32,
    /// The loss of each item, in order.
    pub losses: Vec<f32>,
    /// The sum of the weights of the items: their number, unless the [minibatch](crate::train::Minibatch) weighs them.
    pub weight: f64,
    /// The Euclidean norm of the gradients of all trained parameters together, before clipping. `None` in a skipped
    /// step.
    pub gradient_norm: Option<f64>,
    /// Whether the trainer skipped the update; see [`Trainer::skip_non_finite`](crate::Trainer::skip_non_finite).
    pub skipped: bool,
    /// The largest [signal](crate::Trainer::set_signal) of all ranks at this step.
    pub signal: u8,
    /// The parameters that the losses depend on, ascending.
    pub(crate) used: Vec<ParamId>,
    /// The values of the named outputs, in the order of the requests.
    pub outputs: Vec<(String, Vec<f32>)>,
    /// The batches of the forward part of the plans. With a group, of the plans of all ranks: their sum grows with the number
    /// of ranks.
    pub batches: u32,
    /// The lower bound on the forward batches of any plans of the same graphs.
    pub bound: u32,
    /// The time spent emitting.
    pub emit: Duration,
    /// The time spent planning and verifying.
    pub plan: Duration,
    /// The time spent executing, forward and in reverse.
    pub execute: Duration,
    /// The time spent updating the parameters.
    pub update: Duration,
    /// The time spent waiting for the other ranks of a [group](crate::Trainer::group), and exchanging reports and gradients
    /// with them.
    pub wait: Duration,
}

impl Step {
    /// Merges the next part of the same minibatch.
    pub(crate) fn add(&mut self, part: Self) {
        let Self { losses, weight, used, outputs, batches, bound, emit, plan, execute, update, wait, .. } =
            part;
        self.losses.extend(losses);
        self.weight += weight;
        self.use_params(used);
        self.outputs.extend(outputs);
        (self.batches, self.bound) = (self.batches + batches, self.bound + bound);
        self.emit += emit;
        self.plan += plan;
        self.execute += execute;
        self.update += update;
        self.wait += wait;
    }

    /// A step with the times of this one.
    pub(crate) fn times_only(&self) -> Self {
        let Self { emit, plan, execute, update, wait, .. } = *self;
        Self { emit, plan, execute, update, wait, ..Self::default() }
    }

    /// Adds parameters that the losses of another part depend on.
    pub(crate) fn use_params(&mut self, used: Vec<ParamId>) {
        if self.used != used {
            self.used.extend(used);
            self.used.sort_unstable();
            self.used.dedup();
        }
    }

    /// Returns the sum of the losses divided by the sum of the weights.
    pub(crate) fn weighted_loss(&self) -> f32 {
        (self.losses.iter().map(|&loss| f64::from(loss)).sum::<f64>() / self.weight) as f32
    }

    /// Returns the number of items of the minibatch.
    #[must_use]
    pub fn instances(&self) -> usize {
        self.losses.len()
    }

    /// Returns the times of the parts of the step, with their names. A step on one rank does not wait.
    #[must_use]
    pub fn times(&self) -> [(&'static str, Duration); 5] {
        let Self { emit, plan, execute, update, wait, .. } = *self;
        [("emit", emit), ("plan", plan), ("execute", execute), ("update", update), ("wait", wait)]
    }

    /// The times of the parts of the step as text, each as a number with the given meaning.
    pub(crate) fn times_text(&self, digits: usize, number: impl Fn(Duration) -> f64) -> String {
        let shown = self.times().into_iter().filter(|(name, time)| *name != "wait" || !time.is_zero());
        shown.map(|(name, time)| format!("{name} {:.digits$}", number(time))).collect::<Vec<_>>().join(" ")
    }

    /// Returns the duration of the step.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.times().into_iter().map(|(_, time)| time).sum()
    }

    /// Returns the number of items per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.instances() as f64 / self.total().as_secs_f64().max(1e-9)
    }

    /// Returns the value of a named output.
    #[must_use]
    pub fn output(&self, name: &str) -> Option<&[f32]> {
        self.outputs.iter().find(|(known, _)| known == name).map(|(_, values)| &**values)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        write!(
            f,
            "step {}  loss {:.4}  {:.0}/s  {} batches (bound {})  {} ms",
            self.number,
            self.loss,
            self.rate(),
            self.batches,
            self.bound,
            self.times_text(1, ms),
        )
    }
}

/// The numbers of a metric, one per item.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evaluation {
    count: usize,
    sum: f64,
}

impl Evaluation {
    pub(crate) fn add(&mut self, number: f64) {
        self.count += 1;
        self.sum += number;
    }

    /// Returns the number of items.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the sum of all numbers.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// Returns the mean; 0 without items.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }
}
