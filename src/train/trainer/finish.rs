//! The end of a step: whether its gradients may change the parameters, and the update.

use super::Trainer;
use crate::error::Result;
use crate::train::error::TrainError;
use crate::train::report::Step;
use autobatch_ir::id::ParamId;
use autobatch_runtime_cpu::GradientSource;
use std::time::Instant;

/// The verdict on the gradients of a step.
pub(super) struct Verdict {
    /// Their norm, if they are finite.
    pub(super) norm: Option<f64>,
    /// Whether the step changes nothing.
    pub(super) skip: bool,
}

impl Trainer {
    /// Skips minibatches whose losses or gradients have a NaN or an infinity, instead of returning an error. A skipped
    /// step leaves parameters and optimiser states unchanged and says so in [`Step::skipped`]; the next step draws new
    /// noise. [`skipped`](Self::skipped) counts these steps: a few are normal where losses overflow now and then, and
    /// many mean that training has diverged.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut m = ModuleBuilder::new("m");
    /// let w = m.param("w", [2], Init::ZEROS);
    /// let mut trainer = Trainer::new(m.build()?, Sgd::new(0.1))?.skip_non_finite(true);
    /// // The slope of a root at zero is infinite.
    /// let step = trainer.step([()], |g, ()| (g.param(w) * 0.0).sqrt().sum())?;
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
        let may_update = self.may_update(None, &step.losses)?;
        (step.gradient_norm, step.skipped) = (may_update.norm, may_update.skip);
        if !step.skipped {
            let unused = self.unused(&step.used);
            let updated = self.updater.update(&mut self.session, &unused);
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

    /// Sets whether a step also updates trained parameters that its losses do not depend on. By default it leaves them
    /// with their optimiser states alone, as PyTorch does with parameters that have no gradient: an expert that no item
    /// of a minibatch chose neither moves by the momentum of earlier steps nor decays. With `true` such a parameter has the
    /// gradient zero, as in DyNet. Bias corrections count all updates in both cases.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut m = ModuleBuilder::new("m");
    /// let experts = [m.param("a", [], Init::Constant(1.0)), m.param("b", [], Init::Constant(1.0))];
    /// let mut trainer = Trainer::new(m.build()?, Adam::new(0.1))?;
    /// for chosen in [1, 0, 0] {
    ///     trainer.step([2.0], |g, x: f32| g.param(experts[chosen]) * x)?;
    /// }
    /// assert!((trainer.weights().by_name("b").expect("declared")[0] - 0.9).abs() < 1e-6, "one step, and no momentum");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn update_unused(mut self, update: bool) -> Self {
        self.updates_unused = update;
        self
    }

    /// The trained parameters that a step leaves alone.
    pub(super) fn unused(&self, used: &[ParamId]) -> Vec<ParamId> {
        if self.updates_unused {
            return Vec::new();
        }
        let trained = self.updater.trained().iter().copied();
        trained.filter(|param| used.binary_search(param).is_err()).collect()
    }

    /// Decides whether gradients may change the parameters. `None` are the gradients of the last execution.
    pub(super) fn may_update(
        &mut self,
        gradients: Option<&dyn GradientSource>,
        losses: &[f32],
    ) -> Result<Verdict> {
        let norm = self.updater.gradient_norm(&mut self.session, gradients);
        let finite = losses.iter().all(|loss| loss.is_finite());
        match self.handle_device_loss(norm)? {
            Err(param) if !self.skips_non_finite => {
                let param = self.module().params[param.index()].name.clone();
                Err(TrainError::Gradient { step: self.steps, param }.into())
            }
            Ok(norm) if finite => Ok(Verdict { norm: Some(norm), skip: false }),
            Ok(_) | Err(_) => {
                self.skipped += 1;
                Ok(Verdict { norm: None, skip: true })
            }
        }
    }
}
