//! Gradients between runs: what the last run made, and sums of several runs.

use super::super::cut::Cut;
use super::super::memory::Memory;
use crate::compile::{Layout, Touches, touches};
use crate::device::Gpu;
use crate::error::GpuError;
use autobatch_ir::ParamId;
use autobatch_ir::plan::{Plan, StoreId, StoreKind};
use std::collections::HashMap;

/// The gradients that a run left in the arena.
pub(super) struct Made {
    /// The parameters with the stores of their gradients, and where these are.
    pub(super) gradients: Vec<(ParamId, StoreId, (u64, u64))>,
    /// Where the gradient of each parameter is that has one.
    pub(super) by_param: HashMap<u32, (u64, u64)>,
    /// All of them.
    pub(super) region: (u64, u64),
    pub(super) touches: Vec<Touches>,
    /// The tables of the plan that made them, in which indices of lookups may be named.
    pub(super) tables: wgpu::Buffer,
    /// Whether they were added to those of runs before.
    pub(super) summed: bool,
    /// Whether sparse rows are listed already.
    pub(super) listed: bool,
}

impl Made {
    pub(super) fn of(plan: &Plan, layout: &Layout, tables: &wgpu::Buffer, summed: bool) -> Self {
        let mut gradients = Vec::new();
        for (param, store) in gradient_stores(plan) {
            gradients.extend(layout.gradient(store).map(|run| (param, store, run)));
        }
        let by_param = gradients.iter().rev().map(|&(param, _, run)| (param.index() as u32, run)).collect();
        let region = layout.gradients();
        let (touches, tables) = (touches(plan, layout), tables.clone());
        Self { gradients, by_param, region, touches, tables, summed, listed: false }
    }

    /// Where a parameter's gradient is.
    pub(super) fn gradient(&self, param: StoreId) -> Option<(u64, u64)> {
        self.by_param.get(&param.0).copied()
    }

    /// Whether a plan makes the gradients of the same parameters, in the same sizes: another module may number its stores
    /// alike.
    pub(super) fn is_continued_by(&self, plan: &Plan) -> bool {
        let elements = |store: StoreId| plan.stores[store.index()].ty.shape.elements() as u64;
        let own = self.gradients.iter().map(|&(param, store, (_, words))| (param, store, words));
        own.eq(gradient_stores(plan).map(|(param, store)| (param, store, elements(store))))
    }
}

fn gradient_stores(plan: &Plan) -> impl Iterator<Item = (ParamId, StoreId)> + '_ {
    plan.stores.iter().enumerate().filter_map(|(number, store)| match store.kind {
        StoreKind::Grad(of) => Some((ParamId::new(of.index()), StoreId(number as u32))),
        StoreKind::Param(_) | StoreKind::State(_) => None,
    })
}

/// A copy of gradients, while the arena is used for another run.
#[derive(Default)]
pub(super) struct Kept {
    cut: Cut,
}

impl Kept {
    /// Copies gradients out of the arena.
    pub(super) fn save(
        &mut self,
        gpu: &Gpu,
        memory: &Memory,
        made: &Made,
        encoder: &mut wgpu::CommandEncoder,
    ) -> Result<(), GpuError> {
        let (at, words) = made.region;
        self.cut.fit(gpu, "gradients that are summed up", (words, memory.arena.size))?;
        memory.arena.copy(encoder, at, (&self.cut, 0), words);
        Ok(())
    }

    /// Copies them back, to where the next run wants them.
    pub(super) fn restore(&self, memory: &Memory, layout: &Layout, encoder: &mut wgpu::CommandEncoder) {
        let (at, words) = layout.gradients();
        self.cut.copy(encoder, 0, (&memory.arena, at), words);
    }
}
