//! The optimiser with its update plan, which is made once. The session keeps the optimiser's states.

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
    /// Prepares the optimiser for these parameters, and returns its initial states.
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

    /// Updates the session's weights with the gradients of the last execution. Returns whether the previous
    /// state can be restored.
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

    /// Replaces the schedule. The plan does not depend on it.
    pub(crate) fn set_schedule(&mut self, schedule: Schedule) {
        self.optimizer = self.optimizer.clone().schedule(schedule);
    }

    /// Returns the parameters that the optimiser updates.
    pub(crate) fn trained(&self) -> &[ParamId] {
        &self.trained
    }

    /// Returns the name that checkpoints store. It holds no learning rate, which may change between runs.
    pub(crate) fn name(&self) -> &'static str {
        self.optimizer.rule().name()
    }
}
