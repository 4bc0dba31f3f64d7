//! The optimiser with its update plan, which is made once. The session keeps the optimiser's states.

use crate::error::Result;
use crate::session::Session;
use crate::train::error::TrainError;
use crate::train::trainer::Owned;
use autobatch_distributed::{Group, GroupError};
use autobatch_ir::id::ParamId;
use autobatch_ir::module::ParamKind;
use autobatch_ir::plan::{StoreId, StoreKind, Update, UpdatePlan, Verified};
use autobatch_ir::{Module, States, Weights};
use autobatch_nn::optim::{Optimize, Optimizer, Schedule};
use autobatch_planner::update_plan;
use autobatch_runtime_cpu::GradientSource;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// An optimiser with its plan.
pub(crate) struct Updater {
    optimizer: Optimizer,
    /// `None` if this rank updates no parameter.
    plan: Option<Verified<UpdatePlan>>,
    /// Parameters that the last update left alone, and the plan of the others, if there are any.
    partial: (Vec<ParamId>, Option<Verified<UpdatePlan>>),
    /// The plan that sums the squares of all gradients on a device, once one was needed.
    squares: Option<Verified<UpdatePlan>>,
    trained: Vec<ParamId>,
    /// The division of the trained parameters among ranks.
    owned: Option<Owned>,
    /// The names of the states of all ranks.
    state_names: Vec<String>,
}

impl Updater {
    /// Prepares the optimiser for these parameters, and returns its initial states. If the parameters are divided, the
    /// plan updates those of this rank, and the states are theirs.
    #[track_caller]
    pub(crate) fn new(
        optimizer: Optimizer,
        module: &Module,
        trained: &[ParamId],
        owned: Option<Owned>,
        weights: &Weights,
    ) -> Result<(Self, States)> {
        let recipe = optimizer.recipe(module, trained)?;
        let plan = update_plan(module, &recipe)?;
        let is_state = |kind: StoreKind| matches!(kind, StoreKind::State(_));
        let states = plan.stores.iter().filter(|store| is_state(store.kind));
        let state_names = states.map(|store| store.name.clone()).collect();
        let (plan, states) = match &owned {
            None => (Some(plan.verify()?), recipe.states(weights, module)?),
            Some(owned) if owned.own().is_empty() => (None, States::default()),
            Some(owned) => {
                let recipe = optimizer.recipe(module, owned.own())?;
                let own = with_all_gradients(update_plan(module, &recipe)?, &plan);
                (Some(own.verify()?), recipe.states(weights, module)?)
            }
        };
        let (partial, trained) = ((Vec::new(), None), trained.to_vec());
        Ok((Self { optimizer, plan, partial, squares: None, trained, owned, state_names }, states))
    }

    /// Updates the session's weights with the gradients of the last execution, except for unused parameters. Returns
    /// whether the previous state can be restored.
    pub(crate) fn update(&mut self, session: &mut Session, unused: &[ParamId]) -> Result<bool> {
        let floats = self.floats(session)?;
        match self.plan_without(unused)? {
            Some(plan) => session.update(plan, &floats),
            None => Ok(true),
        }
    }

    /// The plan that leaves unused parameters with their states alone.
    fn plan_without(&mut self, unused: &[ParamId]) -> Result<Option<&Verified<UpdatePlan>>> {
        let Some(plan) = self.plan.as_ref().filter(|_| !unused.is_empty()) else {
            return Ok(self.plan.as_ref());
        };
        if self.partial.0 != unused {
            let mut partial = UpdatePlan::clone(plan);
            let is_unused = |store: &StoreId| match partial.stores[store.index()].kind {
                StoreKind::Param(_) => unused.iter().any(|param| param.index() == store.index()),
                StoreKind::State(of) | StoreKind::Grad(of) => {
                    unused.iter().any(|param| param.index() == of.index())
                }
            };
            let keeps: Vec<bool> =
                partial.updates.iter().map(|update| !update.targets().iter().any(is_unused)).collect();
            let mut keep = keeps.into_iter();
            partial.updates.retain(|_| keep.next().unwrap_or(true));
            let has_targets = partial.updates.iter().any(|update| !update.targets().is_empty());
            let partial = has_targets.then(|| partial.verify()).transpose()?;
            self.partial = (unused.to_vec(), partial);
        }
        Ok(self.partial.1.as_ref())
    }

    /// Updates the session's weights with given gradients.
    pub(crate) fn update_with(
        &mut self,
        session: &mut Session,
        gradients: &(dyn GradientSource + Sync),
        unused: &[ParamId],
    ) -> Result<()> {
        let floats = self.floats(session)?;
        session.update_with(self.plan_without(unused)?, gradients, &floats)
    }

    /// The norm of the gradients of all trained parameters, or the first parameter with a gradient that is not finite.
    /// `gradients` replace those of the last execution.
    pub(crate) fn gradient_norm(
        &mut self,
        session: &mut Session,
        gradients: Option<&dyn GradientSource>,
    ) -> Result<std::result::Result<f64, ParamId>> {
        let module = Arc::clone(session.module());
        let width = |&param: &ParamId| (param, module.params[param.index()].ty.shape.width());
        if self.squares.is_none() && session.executor().is_elsewhere() {
            self.squares = self.plan.as_deref().map(sum_of_squares).transpose()?;
        }
        session.gradient_norm(gradients, self.trained.iter().map(width), self.squares.as_ref())
    }

    /// The bound floats of the next update.
    fn floats(&self, session: &Session) -> Result<Vec<f32>> {
        let number = session.updates() + 1;
        let floats = self.optimizer.floats(number, 1.0);
        if floats.iter().any(|float| !float.is_finite()) {
            let learning_rate = self.optimizer.learning_rate(number);
            return Err(TrainError::Numbers { update: number - 1, learning_rate }.into());
        }
        Ok(floats)
    }

    /// Exchanges what each rank updated with these gradients: of a table with sparse rows those rows, of other parameters all
    /// elements, and of unused ones none.
    pub(crate) fn exchange(
        &self,
        session: &mut Session,
        group: &mut dyn Group,
        gradients: &dyn GradientSource,
        unused: &[ParamId],
    ) -> Result<()> {
        let Some(owned) = &self.owned else { return Ok(()) };
        let module = Arc::clone(session.module());
        let changed = |param: ParamId| -> Vec<Range<usize>> {
            let decl = &module.params[param.index()];
            let is_sparse = self.optimizer.has_sparse_rows() && decl.kind == ParamKind::Table;
            match gradients.sparse_rows(param).filter(|_| is_sparse) {
                _ if unused.contains(&param) => Vec::new(),
                Some(rows) => {
                    let width = decl.ty.shape.width();
                    rows.iter().map(|&row| row as usize * width..(row as usize + 1) * width).collect()
                }
                None => std::iter::once(0..decl.ty.shape.elements()).collect(),
            }
        };
        let weights = &session.host_copy().weights;
        let mut own: Vec<f32> = Vec::new();
        for &param in owned.own() {
            changed(param).into_iter().for_each(|range| own.extend_from_slice(&weights.get(param)[range]));
        }
        let all = group.all_gather(bytemuck::cast_slice(&own))?;
        let weights = session.weights_mut();
        for (rank, (params, bytes)) in owned.params.iter().zip(&all).enumerate() {
            if rank == owned.rank {
                continue;
            }
            let floats: Vec<f32> = bytemuck::pod_collect_to_vec(bytes);
            let mut rest = &floats[..];
            for &param in params {
                let ranges = changed(param);
                if ranges.is_empty() {
                    continue;
                }
                let mut values = weights.get_mut(param);
                for range in ranges {
                    let new = rest.split_off(..range.len()).ok_or(GroupError::Malformed { rank })?;
                    values[range].copy_from_slice(new);
                }
            }
            if !rest.is_empty() {
                return Err(GroupError::Malformed { rank }.into());
            }
        }
        Ok(())
    }

    /// Collects the states of all ranks on rank 0. The other ranks get their own.
    pub(crate) fn gather<'a>(
        &self,
        group: &mut dyn Group,
        module: &Module,
        weights: &Weights,
        states: &'a States,
    ) -> Result<Cow<'a, States>> {
        let Some(owned) = &self.owned else { return Ok(Cow::Borrowed(states)) };
        let own: Vec<f32> = states.iter().flat_map(|state| state.values()).copied().collect();
        let all = group.gather(0, bytemuck::cast_slice(&own))?;
        if owned.rank > 0 {
            return Ok(Cow::Borrowed(states));
        }
        let mut whole = self.optimizer.recipe(module, &self.trained)?.states(weights, module)?;
        for (rank, (params, bytes)) in owned.params.iter().zip(&all).enumerate() {
            let floats: Vec<f32> = bytemuck::pod_collect_to_vec(bytes);
            let mut rest = &floats[..];
            for state in whole.as_mut_slice().iter_mut().filter(|state| params.contains(&state.param())) {
                let values = rest.split_off(..state.values().len()).ok_or(GroupError::Malformed { rank })?;
                state.values_mut().copy_from_slice(values);
            }
        }
        whole.set_updates(states.updates());
        Ok(Cow::Owned(whole))
    }

    /// Returns whether some rank has a state with this name.
    pub(crate) fn has_state(&self, name: &str) -> bool {
        self.state_names.iter().any(|known| known == name)
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

/// The plan that sums the squares of all gradients of an update plan. It has the same stores, so a device keeps the states.
fn sum_of_squares(plan: &UpdatePlan) -> Result<Verified<UpdatePlan>> {
    let gradients =
        (0..).map(StoreId).zip(&plan.stores).filter(|(_, store)| matches!(store.kind, StoreKind::Grad(_)));
    let updates = vec![Update::Sumsq { stores: gradients.map(|(id, _)| id).collect() }];
    Ok(UpdatePlan { floats: 0, kernels: Vec::new(), updates, ..plan.clone() }.verify()?)
}

/// Lets the norm of an update plan of some parameters cover the gradients of all parameters, which another plan lists.
fn with_all_gradients(mut own: UpdatePlan, whole: &UpdatePlan) -> UpdatePlan {
    let mut gradients = Vec::new();
    for store in whole.stores.iter().filter(|store| matches!(store.kind, StoreKind::Grad(_))) {
        let known = own.stores.iter().position(|known| known.kind == store.kind);
        gradients.push(StoreId(known.unwrap_or(own.stores.len()) as u32));
        if known.is_none() {
            own.stores.push(store.clone());
        }
    }
    for update in &mut own.updates {
        if let Update::Sumsq { stores } = update {
            stores.clone_from(&gradients);
        }
    }
    own
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
