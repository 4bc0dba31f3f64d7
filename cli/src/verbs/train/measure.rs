//! Evaluation of a model on held-out instances.

use autobatch::prelude::*;
use autobatch_models::lessons::Lesson;
use autobatch_models::scores::Scores;

/// The result of an evaluation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Measured {
    /// The mean loss.
    pub(super) loss: f64,
    /// The scores of the model.
    pub(super) scores: Scores,
}

impl Measured {
    /// The number that selects the best checkpoint; larger is better.
    pub(super) fn main(&self) -> f64 {
        self.scores.main().map_or(-self.loss, |(_, number)| number)
    }

    pub(super) fn text(&self) -> String {
        let mut parts = vec![format!("held-out loss {:.4}", self.loss)];
        parts.extend(self.scores.numbers().iter().map(|(name, number)| match *name {
            "pearson" | "squared error" => format!("{name} {number:.4}"),
            _ => format!("{name} {:.2} %", 100.0 * number),
        }));
        parts.join("  ")
    }
}

/// Evaluates instances, `batch` or at least 64 of them per graph.
pub(super) fn measure(
    trainer: &mut Trainer,
    lesson: &Lesson,
    instances: &[usize],
    batch: usize,
) -> autobatch::Result<Measured> {
    let mut measured = Measured::default();
    let workload = &lesson.workload;
    trainer.session().run_in_parts(
        instances.iter().copied(),
        batch.max(64),
        |g, instance, values| {
            workload.emit(g, instance, values);
            values.push(workload.loss(g, instance));
        },
        |instance, rows| {
            let (loss, rows) = rows.split_last().expect("every instance has a loss");
            workload.score(instance, rows, &mut measured.scores);
            measured.loss += f64::from(loss[0]);
        },
    )?;
    measured.loss /= instances.len().max(1) as f64;
    Ok(measured)
}
