//! What a step and an evaluation say of themselves.

use std::fmt;
use std::time::Duration;

/// A step that was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The step's number, from 0.
    pub number: u64,
    /// The mean loss of the items.
    pub loss: f32,
    /// The loss of each item, in their order.
    pub losses: Vec<f32>,
    /// The values of named outputs, in the order in which they were asked for.
    pub outputs: Vec<(String, Vec<f32>)>,
    /// The batches of the plan, the reverse not counted.
    pub batches: u32,
    /// The fewest batches that any plan of the graph has.
    pub bound: u32,
    /// How long emitting took.
    pub emit: Duration,
    /// How long planning and verifying took.
    pub plan: Duration,
    /// How long executing forward and backward took.
    pub execute: Duration,
    /// How long updating the parameters took.
    pub update: Duration,
}

impl Step {
    /// Takes in the next part of the same minibatch.
    pub(crate) fn add(&mut self, part: Self) {
        let Self { number: _, loss: _, losses, outputs, batches, bound, emit, plan, execute, update } = part;
        self.losses.extend(losses);
        self.outputs.extend(outputs);
        (self.batches, self.bound) = (self.batches + batches, self.bound + bound);
        self.emit += emit;
        self.plan += plan;
        self.execute += execute;
        self.update += update;
    }

    /// How many items the minibatch had.
    #[must_use]
    pub fn instances(&self) -> usize {
        self.losses.len()
    }

    /// How long the step took.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.emit + self.plan + self.execute + self.update
    }

    /// Items a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.instances() as f64 / self.total().as_secs_f64().max(1e-9)
    }

    /// The value of a named output.
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
            "step {}  loss {:.4}  {:.0}/s  {} batches (bound {})  emit {:.1} plan {:.1} execute {:.1} update {:.1} ms",
            self.number,
            self.loss,
            self.rate(),
            self.batches,
            self.bound,
            ms(self.emit),
            ms(self.plan),
            ms(self.execute),
            ms(self.update),
        )
    }
}

/// Numbers that a metric gave, one an item.
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

    /// How many items were measured.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The sum of all numbers.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// Their mean; 0 if there were no items.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }
}
