//! Plans that pause: the forward waves, the caller's turn, the waves of the reverse.
//!
//! The rows stay in the arena, which other plans and updates overwrite. So the device keeps one pause at a time.

use super::Executor;
use super::run::{PlanPart, Request};
use crate::error::GpuError;
use autobatch_ir::plan::{Inputs, Plan, Stores, Verified};
use std::task::Poll;

impl Executor {
    /// Executes the waves of a plan before its pause. The floats are those of the graph. Afterwards
    /// [`output`](Self::output) reads the outputs that are no gradients.
    ///
    /// # Errors
    /// As [`execute`](Self::execute), and if the plan does not pause.
    pub fn start(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        inputs: Inputs<'_>,
    ) -> Result<(), GpuError> {
        if plan.pause.is_none() {
            return Err(GpuError::NoPause);
        }
        inputs.check_before_pause(plan, stores)?;
        let (accumulate, uploaded) = (false, [0; 2]);
        let request = Request { plan, stores, inputs, accumulate, uploaded, part: PlanPart::BeforePause };
        self.execute_request(request, |executor, request| {
            executor.run_exact(request, &mut || Poll::Ready(None))
        })?;
        self.paused = Some(plan.identity());
        Ok(())
    }

    /// Executes the waves of a plan behind its pause, then the reductions. The floats are those of the graph, then the
    /// gradients that arrive, in the order of the pause. Words, noise and stores must be those of [`start`](Self::start).
    ///
    /// # Errors
    /// As [`execute`](Self::execute), and if the plan was not the last one that this executor executed or updated from.
    pub fn proceed(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        inputs: Inputs<'_>,
    ) -> Result<(), GpuError> {
        if self.paused != Some(plan.identity()) {
            return Err(GpuError::NoPause);
        }
        inputs.check(plan, stores)?;
        let uploaded = [plan.words, plan.floats].map(u64::from);
        let request = Request {
            plan,
            stores,
            inputs,
            accumulate: self.accumulate,
            uploaded,
            part: PlanPart::AfterPause,
        };
        self.execute_request(request, |executor, request| {
            executor.run_exact(request, &mut || Poll::Ready(None))
        })
    }
}
