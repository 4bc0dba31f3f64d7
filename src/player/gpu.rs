//! A GPU plays, and what updates need of it comes back to the processor.

use crate::error::Result;
use crate::train::TrainError;
use autobatch_ir::Weights;
use autobatch_ir::id::ParamId;
use autobatch_ir::plan::{Plan, StoreId, StoreKind, Update, Verified};
use autobatch_runtime_cpu::{Bound, GradientSource, RunError};
use autobatch_runtime_wgpu::{Kept, Options, Player, Selector};
use std::fmt;

/// A player on a GPU, with the gradients of the last play.
pub(super) struct GpuPlayer {
    player: Player,
    memory_limit: Option<u64>,
    gradients: HostGradients,
    keep: bool,
}

impl fmt::Debug for GpuPlayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.player.fmt(f)
    }
}

/// Gradients by the number of their parameter; none where the plan makes none.
#[derive(Default)]
pub(super) struct HostGradients(Vec<Option<Vec<f32>>>);

impl GradientSource for HostGradients {
    fn gradient(&self, param: ParamId) -> Option<&[f32]> {
        self.0.get(param.index())?.as_deref()
    }

    /// All rows count as touched: [`check_update`] refuses what would ask.
    fn touched(&self, _: ParamId) -> Option<&[u32]> {
        None
    }
}

impl GpuPlayer {
    pub(super) fn new(selector: &Selector, memory_limit: Option<u64>) -> Result<Self> {
        let pipelines = Kept::from_env();
        let options = Options { selector: selector.clone(), pipelines, ..Options::default() };
        let player = Player::new(options)?;
        Ok(Self { player, memory_limit, gradients: HostGradients::default(), keep: false })
    }

    pub(super) fn play(&mut self, plan: &Verified<Plan>, weights: &Weights, bound: Bound<'_>) -> Result<()> {
        let needs = plan.slab_bytes();
        if let Some(limit) = self.memory_limit.filter(|&limit| needs > limit) {
            return Err(RunError::Limit { needs, limit }.into());
        }
        let Bound { words, floats, noise } = bound;
        self.player.play(plan, weights, autobatch_runtime_wgpu::Bound { words, floats, noise })?;
        self.read_gradients(plan)
    }

    pub(super) fn output(&self, number: usize) -> &[f32] {
        self.player.output(number)
    }

    pub(super) fn set_keep_gradients(&mut self, keep: bool) {
        self.keep = keep;
    }

    pub(super) fn gradients(&self) -> &HostGradients {
        &self.gradients
    }

    /// Fetches the gradients that a plan made, or adds them to those of the play before.
    fn read_gradients(&mut self, plan: &Plan) -> Result<()> {
        let Self { player, gradients: HostGradients(gradients), keep, .. } = self;
        for (number, store) in plan.stores.iter().enumerate() {
            let StoreKind::Grad(param) = store.kind else { continue };
            let Some(made) = player.gradient(StoreId(number as u32))? else { continue };
            if gradients.len() <= param.index() {
                gradients.resize(param.index() + 1, None);
            }
            match &mut gradients[param.index()] {
                Some(sum) if *keep && sum.len() == made.len() => {
                    sum.iter_mut().zip(&made).for_each(|(sum, made)| *sum += made);
                }
                place => *place = Some(made),
            }
        }
        Ok(())
    }
}

/// Refuses an update of touched rows: which rows a minibatch touched stays on the device.
pub(super) fn check_update(plan: &Plan) -> Result<()> {
    let touched = |update: &Update| matches!(update, Update::Apply { touched: true, .. });
    if plan.updates.iter().any(touched) {
        return Err(TrainError::TouchedRows.into());
    }
    Ok(())
}
