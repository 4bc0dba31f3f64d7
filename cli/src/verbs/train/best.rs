//! The parameters of the best epoch, with which the test part is evaluated.

use super::curve::Curve;
use super::{Run, measure_on_ranks};
use crate::args::TrainArgs;
use crate::failure::Failure;
use crate::measure::Measured;
use autobatch::prelude::*;
use autobatch::train::{read_notes, read_weights};
use autobatch_models::lessons::{CorpusPart, Lesson};
use autobatch_models::parser::greedy;
use std::path::Path;
use std::sync::Arc;

/// The parameters of the best epoch so far.
#[derive(Default)]
pub(super) struct Best {
    epoch: Option<u64>,
    weights: Option<Arc<Weights>>,
}

impl Best {
    /// Reads the parameters of the best epoch before a resumption, if its checkpoint exists.
    pub(super) fn before_resumption(
        args: &TrainArgs,
        lesson: &Lesson,
        curve: &Curve,
        patience: &Patience,
        at: Progress,
    ) -> Self {
        let (Some(resume), Some((number, _))) = (&args.resume, patience.best()) else {
            return Self::default();
        };
        let epoch = number as u64 + 1;
        let is_best = |path: &String| {
            let notes = read_notes(path).unwrap_or_default();
            Curve::from_notes(&notes).epochs.last() == curve.epoch(epoch)
        };
        // Within an epoch, the parameters of the checkpoint are newer than those of its last complete epoch.
        let own = (at.batches == 0).then(|| resume.clone());
        let candidates = std::iter::once(best_path(resume)).chain(own);
        let path = candidates.filter(|path| Path::new(path).exists()).find(is_best);
        let weights = path.and_then(|path| read_weights(path, &lesson.module).ok());
        Self { epoch: weights.is_some().then_some(epoch), weights: weights.map(Arc::new) }
    }

    /// Keeps the parameters of the epoch that just ended.
    pub(super) fn keep(&mut self, epoch: u64, trainer: &Trainer) {
        *self = Self { epoch: Some(epoch), weights: Some(Arc::clone(trainer.weights())) };
    }
}

/// The result on the test part.
pub(super) struct Tested {
    /// The epoch of the parameters; `None` stands for the last parameters of the run.
    pub(super) epoch: Option<u64>,
    pub(super) instances: usize,
    pub(super) measured: Measured,
    /// The share of words with the correct head, if the run decodes.
    pub(super) heads: Option<f64>,
}

impl Run<'_> {
    /// Evaluates the test part with the parameters of the best epoch, or with the last ones if those are unknown.
    pub(super) fn test(&mut self) -> Result<Tested, Failure> {
        let Best { epoch, weights } = std::mem::take(&mut self.best);
        if let Some(weights) = weights {
            self.trainer.set_weights(weights)?;
        }
        let test = self.lesson.part(CorpusPart::Test);
        let instances = test.len();
        let measured = measure_on_ranks(&mut self.trainer, self.lesson, test, self.batch)?;
        let heads = match self.lesson.parsing.as_ref().filter(|_| self.args.decode) {
            Some(parsing) => Some(greedy::measure(self.trainer.session(), parsing)?.unlabelled()),
            None => None,
        };
        Ok(Tested { epoch, instances, measured, heads })
    }
}

/// `names.best.safetensors` for `names.safetensors`.
pub(super) fn best_path(path: &str) -> String {
    let extension =
        Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or("safetensors");
    Path::new(path).with_extension(format!("best.{extension}")).to_string_lossy().into_owned()
}
