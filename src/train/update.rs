//! The optimiser at work: its update plan, made once, and the states it keeps.

use crate::error::Result;
use crate::session::Session;
use crate::train::checkpoint::CheckpointError;
use autobatch_ir::id::ParamId;
use autobatch_ir::plan::{Plan, Verified};
use autobatch_ir::{Module, States, Weights};
use autobatch_nn::optim::Optimizer;
use autobatch_planner::update_plan;

/// An optimiser with its plan and states.
pub(crate) struct Updater {
    optimizer: Optimizer,
    plan: Verified<Plan>,
    states: States,
    trained: Vec<ParamId>,
}

impl Updater {
    /// The optimiser before its first update of these parameters.
    pub(crate) fn new(
        optimizer: Optimizer,
        module: &Module,
        trained: &[ParamId],
        weights: &Weights,
    ) -> Result<Self> {
        let recipe = optimizer.recipe(module, trained)?;
        let plan = update_plan(module, &recipe)?.verify()?;
        let states = recipe.states(weights, module)?;
        Ok(Self { optimizer, plan, states, trained: trained.to_vec() })
    }

    /// Updates the session's weights along the gradients that were played last.
    pub(crate) fn update(&mut self, session: &mut Session) -> Result<()> {
        let floats = self.optimizer.floats(self.states.updates() + 1, 1.0);
        let (player, weights) = session.updating();
        player.update(&self.plan, weights, &mut self.states, &floats)
    }

    pub(crate) fn optimizer(&self) -> &Optimizer {
        &self.optimizer
    }

    /// The parameters that are updated.
    pub(crate) fn trained(&self) -> &[ParamId] {
        &self.trained
    }

    /// What checkpoints know the optimiser by: a learning rate may change from run to run.
    pub(crate) fn name(&self) -> &'static str {
        self.optimizer.rule().name()
    }

    pub(crate) fn states(&self) -> &States {
        &self.states
    }

    /// Puts stored states in place of these; all are given, and fit.
    pub(crate) fn restore(
        &mut self,
        stored: &[(String, Vec<f32>)],
        updates: u64,
    ) -> std::result::Result<(), CheckpointError> {
        let mut states = self.states.clone();
        for (name, values) in stored {
            states.set(name, values).map_err(CheckpointError::damaged)?;
        }
        states.set_updates(updates);
        self.states = states;
        Ok(())
    }
}
