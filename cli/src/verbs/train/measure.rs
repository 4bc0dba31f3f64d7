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

/// Measures instances, so many a graph.
pub(super) fn measure(
    trainer: &mut Trainer,
    lesson: &Lesson,
    instances: &[usize],
    together: usize,
) -> autobatch::Result<Measured> {
    let mut measured = Measured::default();
    for chunk in instances.chunks(together.max(64)) {
        let session = trainer.session();
        let graph = session.graph();
        let (mut outputs, mut ends, mut losses) = (Vec::new(), Vec::new(), Vec::new());
        for &instance in chunk {
            graph.instance(instance as u64);
            lesson.workload.emit(&graph, instance, &mut outputs);
            ends.push(outputs.len());
            losses.push(lesson.workload.loss(&graph, instance));
        }
        let run = session.run(&graph, outputs.iter().chain(&losses))?;
        let mut start = 0;
        for ((&instance, &end), &loss) in chunk.iter().zip(&ends).zip(&losses) {
            let rows: Vec<&Row> = outputs[start..end].iter().map(|&value| &run[value]).collect();
            lesson.workload.score(instance, &rows, &mut measured.scores);
            measured.loss += f64::from(run[loss][0]);
            start = end;
        }
    }
    measured.loss /= instances.len().max(1) as f64;
    Ok(measured)
}
