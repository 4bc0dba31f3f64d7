//! The optimiser with its update plan, which is made once. The session keeps the optimiser's states.

use crate::error::Result;
use crate::session::Session;
use crate::train::error::TrainError;
use crate::train::part::{Owned, Part};
use autobatch_distributed::{Group, GroupError};
use autobatch_ir::id::ParamId;
use autobatch_ir::module::ParamKind;
use autobatch_ir::plan::{StoreId, StoreKind, Update, UpdatePlan, Verified};
use autobatch_ir::recipe::AVERAGE;
use autobatch_ir::{Module, States, Weights};
use autobatch_nn::optim::{Optimize, Optimizer, Schedule};
use autobatch_planner::update_plan;
use autobatch_runtime_cpu::GradientSource;
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
    /// The elements that this rank updates, if the states are divided among ranks.
    part: Option<Part>,
    /// The states of all ranks, in the order of their names.
    states: Vec<StateName>,
}

/// The name of a state, and its parameter.
pub(crate) struct StateName {
    pub(crate) name: String,
    pub(crate) param: ParamId,
    /// Whether it is a moving average of the parameter.
    pub(crate) is_average: bool,
}

impl Updater {
    /// Prepares the optimiser for these parameters, and returns its initial states. If their elements are divided, the plan
    /// updates those of this rank, and the states are theirs.
    #[track_caller]
    pub(crate) fn new(
        optimizer: Optimizer,
        module: &Module,
        trained: &[ParamId],
        owned: Option<Owned>,
        weights: &Weights,
    ) -> Result<(Self, States)> {
        let recipe = optimizer.recipe(module, trained)?;
        let stores = recipe.stores(module);
        let names = stores.iter().filter(|store| matches!(store.kind, StoreKind::State(_)));
        let named = names.zip(recipe.all_states(module)).map(|(store, (of, state))| StateName {
            name: store.name.clone(),
            param: of.param,
            is_average: state.role == AVERAGE,
        });
        let mut states: Vec<StateName> = named.collect();
        states.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let (plan, part, first) = match owned {
            None => {
                let plan = update_plan(module, &recipe)?.verify()?;
                (Some(plan), None, recipe.states(weights, module)?)
            }
            Some(owned) => {
                let (mut part, own) = Part::new(owned, module, weights);
                let (plan, first) = match part.recipe(&recipe) {
                    None => (None, States::default()),
                    Some(recipe) => {
                        let mut plan = update_plan(&own, &recipe)?;
                        part.bind_norm(&mut plan);
                        (Some(plan.verify()?), recipe.states(&part.weights, &own)?)
                    }
                };
                (plan, Some(part), first)
            }
        };
        let (partial, trained) = ((Vec::new(), None), trained.to_vec());
        Ok((Self { optimizer, plan, partial, squares: None, trained, part, states }, first))
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

    /// Updates the session's weights with given gradients. If states are divided, updates the elements of this rank, which
    /// [`exchange`](Self::exchange) writes into the weights.
    pub(crate) fn update_with(
        &mut self,
        session: &mut Session,
        gradients: &(dyn GradientSource + Sync),
        unused: &[ParamId],
    ) -> Result<()> {
        let mut floats = self.floats(session)?;
        let Some(mut part) = self.part.take() else {
            return session.update_with(self.plan_without(unused)?, gradients, &floats);
        };
        if part.takes_norm {
            floats.push(session.sum_of_squares(gradients, &self.trained));
        }
        part.follow(&session.host_copy().weights);
        let own = part.owned.gradients(gradients);
        let updated = self
            .plan_without(unused)
            .and_then(|plan| session.update_others(&mut part.weights, plan, &own, &floats));
        self.part = Some(part);
        updated
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

    /// Writes what each rank updated with these gradients into the weights of all ranks: of a table with sparse rows those rows, of
    /// other parameters all elements, and of unused ones none.
    pub(crate) fn exchange(
        &mut self,
        session: &mut Session,
        group: &mut dyn Group,
        gradients: &dyn GradientSource,
        unused: &[ParamId],
    ) -> Result<()> {
        let Some(part) = &mut self.part else { return Ok(()) };
        let module = Arc::clone(session.module());
        let has_sparse_rows = self.optimizer.has_sparse_rows();
        // The elements of a parameter that were changed among those of a rank.
        let changed = |param: ParamId, own: &Range<usize>| -> Vec<Range<usize>> {
            let decl = &module.params[param.index()];
            let is_sparse = has_sparse_rows && decl.kind == ParamKind::Table;
            match gradients.sparse_rows(param).filter(|_| is_sparse) {
                _ if unused.contains(&param) || own.is_empty() => Vec::new(),
                Some(rows) => {
                    let width = decl.ty.shape.width();
                    let rows = rows.iter().map(|&row| row as usize * width..(row as usize + 1) * width);
                    rows.filter(|row| own.contains(&row.start)).collect()
                }
                None => vec![own.clone()],
            }
        };
        // All ranks know what every rank sends, so they agree on the number of messages.
        let messages_of = |ranges: &Vec<Range<usize>>| {
            let of = |&param: &ParamId| {
                changed(param, &ranges[param.index()]).into_iter().map(move |range| (param, range))
            };
            messages(self.trained.iter().flat_map(of))
        };
        let all: Vec<Vec<Message>> = part.owned.ranges.iter().map(messages_of).collect();
        let (own, weights) = (&all[part.owned.rank], session.weights_mut());
        let mut sent: Vec<f32> = Vec::new();
        for number in 0..all.iter().map(Vec::len).max().unwrap_or(0) {
            sent.clear();
            for (param, range) in own.get(number).into_iter().flatten() {
                let first = part.owned.own(*param).start;
                sent.extend_from_slice(&part.weights.get(*param)[range.start - first..range.end - first]);
            }
            let received = group.all_gather(bytemuck::cast_slice(&sent))?;
            for (rank, (messages, bytes)) in all.iter().zip(&received).enumerate() {
                let mut rest = &bytes[..];
                for (param, range) in messages.get(number).into_iter().flatten() {
                    let new = rest.split_off(..range.len() * size_of::<f32>());
                    let new = new.ok_or(GroupError::Malformed { rank })?;
                    let mut values = weights.get_mut(*param);
                    for (value, bytes) in values[range.clone()].iter_mut().zip(new.as_chunks().0) {
                        *value = f32::from_ne_bytes(*bytes);
                    }
                }
                if !rest.is_empty() {
                    return Err(GroupError::Malformed { rank }.into());
                }
            }
        }
        part.is_followed_by(weights);
        Ok(())
    }

    /// The states whose elements are divided among ranks, in the order of their names; none if they are not divided.
    pub(crate) fn divided_states(&self) -> &[StateName] {
        if self.part.is_some() { &self.states } else { &[] }
    }

    /// Collects a divided state on the rank `root`, or on all ranks for `None`. The others get no values.
    pub(crate) fn gather(
        &self,
        group: &mut dyn Group,
        state: &StateName,
        own: &States,
        root: Option<usize>,
    ) -> Result<Vec<f32>> {
        let Some(part) = &self.part else { return Ok(Vec::new()) };
        let own = own.get(&state.name).map_or(&[][..], |own| own.values());
        let counts = part.owned.ranges.iter().map(|ranges| ranges[state.param.index()].len());
        let is_here = root.is_none_or(|root| root == part.owned.rank);
        let mut whole = Vec::with_capacity(if is_here { counts.clone().sum() } else { 0 });
        // The parts of all ranks follow each other.
        for (rank, count) in counts.enumerate() {
            let mut left = if rank == part.owned.rank { own } else { &[] };
            for start in (0..count).step_by(MESSAGE) {
                let sent = left.split_off(..left.len().min(MESSAGE)).unwrap_or_default();
                let sent = bytemuck::cast_slice(sent);
                let received = match root {
                    Some(root) => group.gather(root, sent)?,
                    None => group.all_gather(sent)?,
                };
                if !is_here {
                    continue;
                }
                let bytes = received.get(rank).map_or(&[][..], |bytes| &bytes[..]);
                if bytes.len() != MESSAGE.min(count - start) * size_of::<f32>() {
                    return Err(GroupError::Malformed { rank }.into());
                }
                whole.extend(bytes.as_chunks().0.iter().map(|bytes| f32::from_ne_bytes(*bytes)));
            }
        }
        Ok(whole)
    }

    /// The elements of a parameter whose states this rank keeps; all of them if states are not divided.
    pub(crate) fn own_elements(&self, param: ParamId, all: usize) -> Range<usize> {
        self.part.as_ref().map_or(0..all, |part| part.owned.own(param))
    }

    /// Returns whether some rank has a state with this name.
    pub(crate) fn has_state(&self, name: &str) -> bool {
        self.states.iter().any(|known| known.name == name)
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

/// The elements of one message: ranges of parameters.
type Message = Vec<(ParamId, Range<usize>)>;

/// The most elements of a message, so that messages take little memory.
const MESSAGE: usize = 1 << 20;

/// Cuts ranges into messages.
fn messages(ranges: impl Iterator<Item = (ParamId, Range<usize>)>) -> Vec<Message> {
    let (mut all, mut space) = (Vec::new(), 0);
    for (param, mut range) in ranges {
        while !range.is_empty() {
            if space == 0 {
                all.push(Message::new());
                space = MESSAGE;
            }
            let end = range.end.min(range.start + space);
            space -= end - range.start;
            if let Some(last) = all.last_mut() {
                last.push((param, range.start..end));
            }
            range.start = end;
        }
    }
    all
}

/// The plan that sums the squares of all gradients of an update plan. It has the same stores, so a device keeps the states.
fn sum_of_squares(plan: &UpdatePlan) -> Result<Verified<UpdatePlan>> {
    let gradients =
        (0..).map(StoreId).zip(&plan.stores).filter(|(_, store)| matches!(store.kind, StoreKind::Grad(_)));
    let updates = vec![Update::Sumsq { stores: gradients.map(|(id, _)| id).collect() }];
    Ok(UpdatePlan { floats: 0, kernels: Vec::new(), updates, ..plan.clone() }.verify()?)
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn messages_hold_all_elements_in_order_and_no_more_than_fit() {
        let ranges = [(0, 3..MESSAGE + 5), (2, 0..0), (3, 7..9), (4, 0..2 * MESSAGE)];
        let ranges = ranges.map(|(number, range)| (ParamId::new(number), range));
        let cut = messages(ranges.iter().cloned());
        let sizes = cut.iter().map(|message| message.iter().map(|(_, range)| range.len()).sum::<usize>());
        assert_eq!(sizes.collect::<Vec<_>>(), [MESSAGE, MESSAGE, MESSAGE, 4]);
        let elements = |(param, range): (ParamId, Range<usize>)| range.map(move |at| (param, at));
        assert!(cut.into_iter().flatten().flat_map(elements).eq(ranges.into_iter().flat_map(elements)));
        assert!(messages(std::iter::empty()).is_empty());
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
