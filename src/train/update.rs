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

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    /// Trains a recurrence with one bias, or with two added ones, and returns the trained biases and the weight.
    fn trained(optimizer: Optimizer, biases: &[&str]) -> Result<[Vec<f32>; 2]> {
        let mut m = ModuleBuilder::new("m");
        let w = m.param("w", [5, 3], Init::Glorot(1.0));
        let b: Vec<Param> = biases.iter().map(|name| m.param(name, [3], Init::Constant(0.25))).collect();
        let cell = m.cell("step", [f32([2]), f32([3])], |g, [x, h]| {
            let others = b[1..].iter().fold(g.affine([x, h], w, Some(b[0])), |sum, &b| sum + g.param(b));
            [others.tanh()]
        });
        let mut trainer = Trainer::new(m.build()?, optimizer)?;
        if let [only] = biases {
            let mut weights = Weights::clone(trainer.weights());
            weights.set_by_name(only, &[0.5; 3])?;
            trainer.set_weights(std::sync::Arc::new(weights))?;
        }
        for _ in 0..6 {
            trainer.step([0.5, -1.0, 2.0], |g, x| {
                let start = g.zeros([3]);
                let h = (0..4).fold(start, |h, time| {
                    let [h] = g.call(cell, [g.input(&[x, time as f32]), h]);
                    h
                });
                h.cross_entropy(1)
            })?;
        }
        let named = |name: &str| trainer.weights().by_name(name).map(<[f32]>::to_vec);
        let mut sum = vec![0.0; 3];
        for bias in biases {
            sum.iter_mut().zip(named(bias)?).for_each(|(sum, x)| *sum += x);
        }
        Ok([sum, named("w")?])
    }

    #[test]
    fn a_joint_bias_with_twice_the_rate_trains_like_two_biases() -> Result<()> {
        let optimizers: [fn() -> Optimizer; 3] =
            [|| Sgd::new(0.1).into(), || Momentum::new(0.1, 0.9).into(), || Adam::new(0.01).into()];
        for optimizer in optimizers {
            let two = trained(optimizer(), &["b_ih", "b_hh"])?;
            let one = trained(optimizer().rate(2.0, |param| param.name == "b"), &["b"])?;
            let slow = trained(optimizer(), &["b"])?;
            let distance = |a: &[Vec<f32>; 2], b: &[Vec<f32>; 2]| {
                let pairs = a.iter().flatten().zip(b.iter().flatten());
                pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
            };
            assert!(distance(&one, &two) < 1e-5, "{one:?} {two:?}");
            assert!(distance(&slow, &two) > 1e-3, "one bias at the plain rate trains differently");
        }
        Ok(())
    }
}
