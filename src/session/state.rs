//! The parameters and the optimiser's states, on the host or on a device.

use super::Session;
use crate::error::{Error, Result};
use crate::mirror::Trained;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ParamId;
use autobatch_ir::module::ParamDecl;
use autobatch_ir::plan::{UpdatePlan, Verified};
use autobatch_ir::{Module, Weights};
use autobatch_runtime_cpu::{GradientSource, ORDINARY_SQUARES};
use std::sync::Arc;

/// Gradients that were read from a device.
#[derive(Default)]
struct ReadGradients(Vec<(ParamId, Vec<f32>)>);

impl GradientSource for ReadGradients {
    fn gradient(&self, param: ParamId) -> Option<&[f32]> {
        self.0.iter().find(|known| known.0 == param).map(|(_, gradient)| &gradient[..])
    }

    fn sparse_rows(&self, _: ParamId) -> Option<&[u32]> {
        None
    }
}

impl Session {
    /// Returns the values of the parameters. After updates on a GPU, the first call reads them back. If that
    /// fails, it returns the values that the session continues from, and the next call reports the error.
    #[must_use]
    pub fn weights(&self) -> &Arc<Weights> {
        &self.trained().unwrap_or(self.mirror.host_copy()).weights
    }

    /// Reads the current parameters and optimiser states.
    pub(crate) fn trained(&self) -> Result<&Trained> {
        self.mirror.newest(|newest| self.executor.read(newest))
    }

    /// Returns the host's copy, from which training continues after a device loss.
    pub(crate) fn host_copy(&self) -> &Trained {
        self.mirror.host_copy()
    }

    /// Counts the updates.
    pub(crate) fn updates(&self) -> u64 {
        self.mirror.updates()
    }

    /// Replaces parameters and states, on the host and on the device.
    pub(crate) fn replace(&mut self, trained: Trained) {
        self.mirror.replace(trained);
    }

    /// Executes an update plan. Returns whether the state before the update can be restored.
    pub(crate) fn update(&mut self, plan: &Verified<UpdatePlan>, floats: &[f32]) -> Result<bool> {
        let settled = self.mirror.settle();
        let updated = self.executor.update(plan, self.mirror.changing(), floats);
        if self.handle_device_loss(updated)? {
            self.mirror.mark_stale();
        }
        Ok(settled)
    }

    /// The norm of the gradients of some parameters, each with the width of its rows, or the first parameter whose gradient
    /// is not finite. `gradients` replace those of the last execution. The update plan `squares` sums their squares on a
    /// GPU, where gradients stay as long as the sum is an ordinary number.
    pub(crate) fn gradient_norm(
        &mut self,
        gradients: Option<&dyn GradientSource>,
        params: impl Iterator<Item = (ParamId, usize)> + Clone,
        squares: Option<&Verified<UpdatePlan>>,
    ) -> Result<std::result::Result<f64, ParamId>> {
        let Some(squares) = squares.filter(|_| gradients.is_none() && self.executor.is_elsewhere()) else {
            return Ok(self.executor.gradient_norm(gradients, params));
        };
        let scalars = self.executor.device_scalars(squares, self.mirror.changing());
        let scalars = self.handle_device_loss(scalars)?.unwrap_or_default();
        if let [sum] = scalars[..]
            && ORDINARY_SQUARES.contains(&f64::from(sum))
        {
            return Ok(Ok(f64::from(sum).sqrt()));
        }
        let mut read = ReadGradients::default();
        if let Some(plan) = self.last.clone() {
            for (param, _) in params.clone() {
                let gradient = self.executor.gradient(&plan, param);
                read.0.push((param, self.handle_device_loss(gradient)?.unwrap_or_default()));
            }
        }
        Ok(self.executor.gradient_norm(Some(&read), params))
    }

    /// Executes an update plan on the host with given gradients. Without a plan it only counts the update.
    pub(crate) fn update_with(
        &mut self,
        plan: Option<&Verified<UpdatePlan>>,
        gradients: &(dyn GradientSource + Sync),
        floats: &[f32],
    ) -> Result<()> {
        let trained = self.mirror.changing();
        match plan {
            Some(plan) => self.executor.update_with(plan, gradients, trained, floats),
            None => {
                trained.states.set_updates(trained.states.updates() + 1);
                Ok(())
            }
        }
    }

    /// As [`update_with`](Self::update_with), of other weights than the session's.
    pub(crate) fn update_others(
        &mut self,
        weights: &mut Arc<Weights>,
        plan: Option<&Verified<UpdatePlan>>,
        gradients: &(dyn GradientSource + Sync),
        floats: &[f32],
    ) -> Result<()> {
        std::mem::swap(&mut self.mirror.changing().weights, weights);
        let updated = self.update_with(plan, gradients, floats);
        std::mem::swap(&mut self.mirror.changing().weights, weights);
        updated
    }

    /// The sum of the squares of the gradients of some parameters on the host, with the bits of an update plan.
    pub(crate) fn sum_of_squares(&mut self, gradients: &dyn GradientSource, params: &[ParamId]) -> f32 {
        self.executor.sum_of_squares(gradients, params)
    }

    /// Returns the parameters on the host, to replace values.
    pub(crate) fn weights_mut(&mut self) -> &mut Weights {
        Arc::make_mut(&mut self.mirror.changing().weights)
    }

    /// Passes a result on. If it reports a device loss that destroyed updates, goes back to the host's copy.
    pub(super) fn handle_device_loss<T>(&mut self, result: Result<T>) -> Result<T> {
        if result.is_err() && self.executor.is_lost() {
            self.lost_updates += self.mirror.fall_back();
        }
        result
    }

    /// Counts the updates that device losses destroyed since [`take_lost_updates`](Self::take_lost_updates).
    pub(crate) fn lost_updates(&self) -> u64 {
        self.lost_updates
    }

    /// Returns [`lost_updates`](Self::lost_updates) and resets it.
    pub(crate) fn take_lost_updates(&mut self) -> u64 {
        std::mem::take(&mut self.lost_updates)
    }

    /// Reads back what a device holds, before it changes or closes.
    pub(super) fn settle(&mut self) -> Result<()> {
        let read = self.trained().map(|_| ());
        self.mirror.settle();
        self.handle_device_loss(read)
    }

    /// Takes over the values of some parameters, given by name, where their bits differ from the session's. Nothing is copied
    /// or packed again for values that did not change, so a program that owns the parameters may call this before every
    /// run.
    ///
    /// # Errors
    /// The module has no such parameter, or the number of values differs.
    pub fn follow_weights<'a>(
        &mut self,
        values: impl IntoIterator<Item = (&'a str, &'a [f32])>,
    ) -> Result<()> {
        self.settle()?;
        let weights = Arc::make_mut(&mut self.mirror.changing().weights);
        for (name, values) in values {
            let id = weights.id(name)?;
            weights.follow(id, values)?;
        }
        Ok(())
    }

    /// Replaces the values of the parameters. Executors do not pack unchanged weights again.
    ///
    /// # Errors
    /// The weights belong to another module.
    pub fn set_weights(&mut self, weights: Arc<Weights>) -> Result<()> {
        check_weights(&self.module, &weights)?;
        self.settle()?;
        self.mirror.changing().weights = weights;
        Ok(())
    }
}

impl Session {
    /// Refuses a graph whose module has other parameters than the session's module.
    pub(crate) fn check_module(&self, graph: &GraphData) -> Result<()> {
        let of_graph = &graph.module;
        if Arc::ptr_eq(of_graph, &self.module) {
            return Ok(());
        }
        let named = |decl: Option<&ParamDecl>| match decl {
            Some(decl) => format!("@{}: {}", decl.name, decl.ty),
            None => "none more".to_owned(),
        };
        let most = of_graph.params.len().max(self.module.params.len());
        let pairs = (0..most).map(|number| [of_graph, &self.module].map(|module| module.params.get(number)));
        let told = |decl: Option<&ParamDecl>| decl.map(|decl| (decl.name.clone(), decl.ty, decl.kind));
        match pairs.into_iter().find(|[one, other]| told(*one) != told(*other)) {
            None => Ok(()),
            Some(differs) => Err(Error::OtherModuleGraph {
                graph: of_graph.name.clone(),
                session: self.module.name.clone(),
                differs: differs.map(named),
            }),
        }
    }
}

/// Refuses weights of another module.
pub(super) fn check_weights(module: &Module, weights: &Weights) -> Result<()> {
    let declared = module.params.iter().map(|decl| (&*decl.name, decl.ty));
    let held = weights.iter().map(|held| (held.name(), held.ty()));
    if declared.eq(held) { Ok(()) } else { Err(Error::OtherModule) }
}
