//! The end of a step: whether its gradients may change the parameters, and the update.

use super::Trainer;
use crate::error::Result;
use crate::train::error::TrainError;
use crate::train::report::Step;
use autobatch_runtime_cpu::GradientSource;
use std::time::Instant;

/// The verdict on the gradients of a step.
pub(super) struct Verdict {
    /// Their norm, if they are finite and on the host.
    pub(super) norm: Option<f64>,
    /// Whether the step changes nothing.
    pub(super) skip: bool,
}

impl Trainer {
    /// Skips minibatches whose losses or gradients have a NaN or an infinity, instead of returning an error. A skipped
    /// step leaves parameters and optimiser states unchanged and says so in [`Step::skipped`]; the next step draws new
    /// noise. [`skipped`](Self::skipped) counts these steps: a few are normal where losses overflow now and then, and
    /// many mean that training has diverged. On a GPU only the losses decide, because gradients stay on the device.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut m = ModuleBuilder::new("m");
    /// let w = m.param("w", [2], Init::ZEROS);
    /// let mut trainer = Trainer::new(m.build()?, Sgd::new(0.1))?.skip_non_finite(true);
    /// // The slope of a root at zero is infinite.
    /// let step = trainer.step_with(|g| (g.param(w) * 0.0).sqrt().sum())?;
    /// assert!(step.skipped && trainer.skipped() == 1);
    /// assert_eq!(trainer.weights().by_name("w"), Ok(&[0.0; 2][..]));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn skip_non_finite(mut self, skip: bool) -> Self {
        self.skips_non_finite = skip;
        self
    }

    /// Counts the steps of this trainer that were skipped; see [`skip_non_finite`](Self::skip_non_finite).
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Updates the parameters with the gradients of the last execution.
    pub(super) fn finish(&mut self, step: Result<Step>) -> Result<Step> {
        let mut step = self.handle_device_loss(step)?;
        let updating = Instant::now();
        step.loss = step.weighted_loss();
        let may_update = self.may_update(None, 1.0, &step.losses)?;
        (step.gradient_norm, step.skipped) = (may_update.norm, may_update.skip);
        if !step.skipped {
            let updated = self.updater.update(&mut self.session);
            if self.handle_device_loss(updated)? {
                self.mirrored = self.progress;
            }
        }
        self.steps += 1;
        if self.mirror_every > 0 && self.steps.is_multiple_of(self.mirror_every) {
            // The next step reports an error of this read, and goes back.
            let _ = self.session.trained();
        }
        step.update = updating.elapsed();
        Ok(step)
    }

    /// Decides whether gradients, multiplied by `scale`, may change the parameters. `None` are the gradients of the last
    /// execution.
    pub(super) fn may_update(
        &mut self,
        gradients: Option<&dyn GradientSource>,
        scale: f64,
        losses: &[f32],
    ) -> Result<Verdict> {
        let norm = self.updater.gradient_norm(&mut self.session, gradients);
        let finite = losses.iter().all(|loss| loss.is_finite());
        match norm {
            Some(Err(param)) if !self.skips_non_finite => {
                let param = self.module().params[param.index()].name.clone();
                Err(TrainError::Gradient { step: self.steps, param }.into())
            }
            None | Some(Ok(_)) if finite => {
                let norm = norm.and_then(std::result::Result::ok).map(|norm| norm * scale.abs());
                Ok(Verdict { norm, skip: false })
            }
            _ => {
                self.skipped += 1;
                Ok(Verdict { norm: None, skip: true })
            }
        }
    }
}
