//! Measuring a model on instances that it does not learn from.

use autobatch::prelude::*;
use autobatch_models::lessons::Lesson;
use autobatch_models::scores::Scores;

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Measured {
    /// The mean loss.
    pub(super) loss: f64,
    /// The model's own measures.
    pub(super) scores: Scores,
}

impl Measured {
    /// What best checkpoints go by.
    pub(super) fn main(&self) -> f64 {
        self.scores.main().map_or(-self.loss, |(_, number)| number)
    }

    pub(super) fn words(&self) -> String {
        let mut words = vec![format!("held-out loss {:.4}", self.loss)];
        words.extend(self.scores.numbers().iter().map(|(name, number)| match *name {
            "pearson" | "squared error" => format!("{name} {number:.4}"),
            _ => format!("{name} {:.2} %", 100.0 * number),
        }));
        words.join("  ")
    }
}

/// Measures instances, so many of them a graph.
pub(super) fn measure(
    trainer: &mut Trainer,
    lesson: &Lesson,
    instances: &[usize],
    together: usize,
) -> autobatch::Result<Measured> {
    let mut measured = Measured::default();
    let workload = &lesson.workload;
    trainer.session().run_in_parts(
        instances.iter().copied(),
        together.max(64),
        |g, instance, values| {
            workload.emit(g, instance, values);
            values.push(workload.loss(g, instance));
        },
        |instance, rows| {
            let (loss, rows) = rows.split_last().expect("there is a loss at least");
            workload.score(instance, rows, &mut measured.scores);
            measured.loss += f64::from(loss[0]);
        },
    )?;
    measured.loss /= instances.len().max(1) as f64;
    Ok(measured)
}
