//! A training step in separate phases: forward, backward, update, as programs written for DyNet or PyTorch call them.

use super::{Trainer, frozen};
use crate::emit::check_own;
use crate::error::Result;
use crate::mirror::Trained;
use crate::row::{Row, RowBuf};
use crate::session::{Growing, SuspendedGrowth};
use crate::train::error::TrainError;
use crate::train::update::Updater;
use autobatch_ir::id::{ParamId, ValueId};
use autobatch_ir::module::ParamDecl;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, OutputKey};
use autobatch_ir::types::{DType, Type};
use autobatch_ir::{Graph, States, Value};
use autobatch_nn::optim::Optimizer;
use autobatch_planner::{Gradients, Request};
use std::fmt;
use std::sync::Arc;

/// An optimiser with its states that a trainer does not use now; see [`Trainer::exchange`].
pub struct SetAside {
    updater: Updater,
    states: States,
    frozen: Vec<bool>,
}

impl fmt::Debug for SetAside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetAside").field("optimizer", self.updater.optimizer()).finish_non_exhaustive()
    }
}

impl Trainer {
    /// Continues an incremental execution, see [`Session::resume`](crate::Session::resume), with the noise of
    /// [`backward`](Self::backward): dropout draws the same masks in both. Each graph has its own noise.
    #[track_caller]
    pub fn resume<'s, 'g>(&'s mut self, graph: &'g Graph, suspended: SuspendedGrowth) -> Growing<'s, 'g> {
        let noise = self.noise_of(graph);
        self.session.accumulate_gradients(self.pending.is_some());
        self.session.resume_with(graph, noise, suspended)
    }

    /// Executes a graph forward and in reverse, and adds the gradients of a scalar to the ones waiting for
    /// [`update`](Self::update). Returns the scalar, followed by the gradients of the requested values. A value
    /// that the scalar does not depend on has no gradient.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut m = ModuleBuilder::new("m");
    /// let w = m.param("w", [2], Init::Constant(3.0));
    /// let mut trainer = Trainer::new(m.build()?, Sgd::new(0.5))?;
    /// let g = trainer.session().graph();
    /// let loss = g.input(&[1.0, -2.0]).dot(g.param(w));
    /// assert_eq!(trainer.backward(&g, loss, &[])?.0, -3.0);
    /// trainer.backward(&g, loss, &[])?;
    /// assert_eq!(trainer.gradient("w")?, [2.0, -4.0], "the sum of two gradients");
    /// trainer.update()?;
    /// assert_eq!(trainer.weights().by_name("w"), Ok(&[2.0, 5.0][..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Session::run`](crate::Session::run); also if the loss is not a scalar.
    #[track_caller]
    pub fn backward<'g>(
        &mut self,
        graph: &'g Graph,
        loss: Value<'g>,
        values: &[Value<'g>],
    ) -> Result<(f32, Vec<Option<RowBuf>>)> {
        self.check_whole("backward")?;
        graph.check()?;
        std::iter::once(&loss).chain(values).try_for_each(|&value| check_own(graph, value))?;
        let noise = self.noise_of(graph);
        let data = graph.data();
        self.session.check_module(&data)?;
        let ids =
            |values: &[Value<'g>]| values.iter().filter_map(|value| value.id()).collect::<Vec<ValueId>>();
        let (wanted, values) = (ids(&[loss]), ids(values));
        if let Some(&id) = wanted.iter().find(|&&id| data.type_of(id) != Type::scalar(DType::F32)) {
            return Err(TrainError::NoScalar { item: None, found: data.type_of(id) }.into());
        }
        let losses: Vec<_> = wanted.iter().map(|&id| (id, 1.0)).collect();
        let planning = self.session.planning();
        let request = Request {
            wanted: &wanted,
            mode: Mode::Train,
            training: true,
            rows: planning.rows(),
            gradients: Some(Gradients { losses: &losses, params: None, values: &values }),
            arriving: &[],
            shards: &[],
        };
        let plan = planning.plan(&data, &request)?;
        self.session.accumulate_gradients(self.pending.is_some());
        let executed = self
            .session
            .execute(&plan, &data, noise)
            .map_err(|error| self.session.explained(&data, &plan, &wanted, error));
        self.session.accumulate_gradients(false);
        self.handle_device_loss(executed)?;
        if self.pending.replace(Arc::clone(&plan)).is_none() {
            self.pending_used.clear();
        }
        self.pending_used.extend(plan.reached());
        self.pending_used.sort_unstable();
        self.pending_used.dedup();
        let read = |key: OutputKey| {
            let number = plan.outputs.iter().position(|output| output.key == key)?;
            Some(Row::new(self.session.executor().output(&plan, number)).to_buf())
        };
        let loss = read(OutputKey::Value(wanted[0])).map_or(f32::NAN, |row| row[0]);
        Ok((loss, values.into_iter().map(|id| read(OutputKey::Gradient(id))).collect()))
    }

    /// Updates the parameters with the waiting gradients, which then wait no more. Without gradients it does nothing.
    ///
    /// # Errors
    /// A learning rate that is not finite; a gradient that is not finite, unless the trainer
    /// [skips](Self::skip_non_finite) it. The parameters are unchanged then.
    pub fn update(&mut self) -> Result<()> {
        if self.pending.take().is_none() {
            return Ok(());
        }
        if !self.may_update(None, &[])?.skip {
            let used = std::mem::take(&mut self.pending_used);
            let unused = self.unused(&used);
            let updated = self.updater.update(&mut self.session, &unused);
            self.handle_device_loss(updated)?;
        }
        self.steps += 1;
        Ok(())
    }

    /// Discards the waiting gradients.
    pub fn discard_gradients(&mut self) {
        self.pending = None;
    }

    /// Returns whether gradients wait for [`update`](Self::update).
    #[must_use]
    pub fn has_gradients(&self) -> bool {
        self.pending.is_some()
    }

    /// Returns the waiting gradient of a parameter; zeros if none waits.
    ///
    /// # Errors
    /// The module has no parameter with this name.
    pub fn gradient(&mut self, name: &str) -> Result<Vec<f32>> {
        let id: ParamId = self.weights().id(name)?;
        let zeros = vec![0.0; self.module().params[id.index()].ty.shape.elements()];
        let Some(plan) = self.pending.clone() else { return Ok(zeros) };
        Ok(self.session.gradient_of(&plan, id)?.unwrap_or(zeros))
    }

    /// Creates an optimiser for the chosen parameters, with fresh states, for [`exchange`](Self::exchange).
    ///
    /// # Errors
    /// The optimiser has invalid hyperparameters, or no parameter is chosen.
    #[track_caller]
    pub fn set_aside(
        &mut self,
        optimizer: impl Into<Optimizer>,
        chosen: impl Fn(&ParamDecl) -> bool,
    ) -> Result<SetAside> {
        let module = Arc::clone(self.module());
        let frozen: Vec<bool> = module.params.iter().map(|param| !chosen(param)).collect();
        let trained = frozen::trained(&frozen);
        if trained.is_empty() {
            return Err(TrainError::NothingToTrain { frozen: frozen.len() }.into());
        }
        let (updater, states) = Updater::new(optimizer.into(), &module, &trained, None, self.weights())?;
        Ok(SetAside { updater, states, frozen })
    }

    /// Exchanges the optimiser with its states for another one, so that several optimisers can update one module.
    ///
    /// # Errors
    /// A device cannot be read any more.
    pub fn exchange(&mut self, other: &mut SetAside) -> Result<()> {
        self.check_whole("exchange")?;
        let Trained { weights, states } = self.session.trained()?.clone();
        let own = std::mem::replace(&mut other.states, states);
        std::mem::swap(&mut self.updater, &mut other.updater);
        std::mem::swap(&mut self.frozen, &mut other.frozen);
        self.session.replace(Trained { weights, states: own });
        Ok(())
    }

    /// The noise of one graph.
    fn noise_of(&self, graph: &Graph) -> Noise {
        Noise::On { seed: self.seed, step: u64::from(graph.number()) }
    }
}
