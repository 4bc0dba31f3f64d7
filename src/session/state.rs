//! Parameters and the optimiser's states, wherever they are.

use super::Session;
use crate::error::{Error, Result};
use crate::mirror::Trained;
use autobatch_ir::graph::GraphData;
use autobatch_ir::module::ParamDecl;
use autobatch_ir::plan::{UpdatePlan, Verified};
use autobatch_ir::{Module, Weights};
use std::sync::Arc;

impl Session {
    /// The parameters' values. Those that a GPU updated are read back, once for each update; if that
    /// fails, these are the ones that the session goes on from, and the next call says why.
    #[must_use]
    pub fn weights(&self) -> &Arc<Weights> {
        &self.trained().unwrap_or(self.mirror.here()).weights
    }

    /// Parameters and the optimiser's states as they are now.
    pub(crate) fn trained(&self) -> Result<&Trained> {
        self.mirror.newest(|newest| self.executor.read(newest))
    }

    /// What training goes on from if a device is lost.
    pub(crate) fn here(&self) -> &Trained {
        self.mirror.here()
    }

    /// How many updates were made.
    pub(crate) fn updates(&self) -> u64 {
        self.mirror.updates()
    }

    /// Takes parameters and states, whatever a device holds.
    pub(crate) fn replace(&mut self, trained: Trained) {
        self.mirror.replace(trained);
    }

    /// Executes an update plan; says whether the state before it is one that can be gone back to.
    pub(crate) fn update(&mut self, plan: &Verified<UpdatePlan>, floats: &[f32]) -> Result<bool> {
        let settled = self.mirror.settle();
        let updated = self.executor.update(plan, self.mirror.changing(), floats);
        if self.noticed(updated)? {
            self.mirror.falls_behind();
        }
        Ok(settled)
    }

    /// Passes a result on; if the device went away with updates, goes back to what is here.
    pub(super) fn noticed<T>(&mut self, result: Result<T>) -> Result<T> {
        if result.is_err() && self.executor.is_lost() {
            self.fallen += self.mirror.fall_back();
        }
        result
    }

    /// How many updates were lost with a device, since it was taken last.
    pub(crate) fn fallen(&self) -> u64 {
        self.fallen
    }

    /// See [`fallen`](Self::fallen).
    pub(crate) fn take_fallen(&mut self) -> u64 {
        std::mem::take(&mut self.fallen)
    }

    /// Reads what a device holds, so that it can be changed or left.
    pub(super) fn settle(&mut self) -> Result<()> {
        let read = self.trained().map(|_| ());
        self.mirror.settle();
        self.noticed(read)
    }

    /// Exchanges the parameters' values; weights that did not change are not packed again.
    ///
    /// # Errors
    /// If they are another module's.
    pub fn set_weights(&mut self, weights: Arc<Weights>) -> Result<()> {
        check_weights(&self.module, &weights)?;
        self.settle()?;
        self.mirror.changing().weights = weights;
        Ok(())
    }
}

impl Session {
    /// Refuses a graph whose module has other parameters than the session's.
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

/// Refuses the weights of another module.
pub(super) fn check_weights(module: &Module, weights: &Weights) -> Result<()> {
    let declared = module.params.iter().map(|decl| (&*decl.name, decl.ty));
    let held = weights.iter().map(|held| (held.name(), held.ty()));
    if declared.eq(held) { Ok(()) } else { Err(Error::OtherModule) }
}
