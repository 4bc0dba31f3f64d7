//! The optimiser at work: its update plan, made once. The states it keeps are the session's.

use crate::error::Result;
use crate::session::Session;
use crate::train::error::TrainError;
use autobatch_ir::id::ParamId;
use autobatch_ir::plan::{UpdatePlan, Verified};
use autobatch_ir::{Module, States, Weights};
use autobatch_nn::optim::{Optimize, Optimizer, Schedule};
use autobatch_planner::update_plan;

/// An optimiser with its plan.
pub(crate) struct Updater {
    optimizer: Optimizer,
    plan: Verified<UpdatePlan>,
    trained: Vec<ParamId>,
}

impl Updater {
    /// The optimiser before its first update of these parameters, and what it keeps then.
    #[track_caller]
    pub(crate) fn new(
        optimizer: Optimizer,
        module: &Module,
        trained: &[ParamId],
        weights: &Weights,
    ) -> Result<(Self, States)> {
        let recipe = optimizer.recipe(module, trained)?;
        let plan = update_plan(module, &recipe)?.verify()?;
        let states = recipe.states(weights, module)?;
        Ok((Self { optimizer, plan, trained: trained.to_vec() }, states))
    }

    /// Updates the session's weights along the gradients that were executed last; says whether the state
    /// before it is one that can be gone back to.
    pub(crate) fn update(&self, session: &mut Session) -> Result<bool> {
        let number = session.updates() + 1;
        let floats = self.optimizer.floats(number, 1.0);
        if floats.iter().any(|float| !float.is_finite()) {
            let learning_rate = self.optimizer.learning_rate(number);
            return Err(TrainError::Numbers { update: number - 1, learning_rate }.into());
        }
        session.update(&self.plan, &floats)
    }

    pub(crate) fn optimizer(&self) -> &Optimizer {
        &self.optimizer
    }

    /// Follows another schedule; the plan does not depend on it.
    pub(crate) fn set_schedule(&mut self, schedule: Schedule) {
        self.optimizer = self.optimizer.clone().schedule(schedule);
    }

    /// The parameters that are updated.
    pub(crate) fn trained(&self) -> &[ParamId] {
        &self.trained
    }

    /// What checkpoints know the optimiser by: a learning rate may change from run to run.
    pub(crate) fn name(&self) -> &'static str {
        self.optimizer.rule().name()
    }
}
