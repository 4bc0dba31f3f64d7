//! Gradients between runs: the last run left some in the arena, and later runs add to saved ones.

use super::super::memory::Memory;
use super::super::split_array::SplitArray;
use crate::compile::{ArenaRange, BufferLayout, SparseTable, sparse_tables};
use crate::device::Gpu;
use crate::error::GpuError;
use autobatch_ir::ParamId;
use autobatch_ir::plan::{Plan, StoreId, StoreKind};
use std::collections::HashMap;

/// The gradients that a run left in the arena.
pub(super) struct ArenaGradients {
    /// Parameters, the stores of their gradients, and the number of elements.
    stores: Vec<(ParamId, StoreId, u64)>,
    /// The range of each parameter's gradient.
    by_param: HashMap<u32, ArenaRange>,
    /// The range of all gradients.
    pub(super) region: ArenaRange,
    pub(super) sparse_tables: Vec<SparseTable>,
    /// The tables of the plan, in which operands of lookups may name rows.
    pub(super) tables: wgpu::Buffer,
    /// True if they include gradients of earlier runs.
    pub(super) accumulated: bool,
    /// True if their sparse rows are listed.
    pub(super) listed: bool,
}

impl ArenaGradients {
    pub(super) fn of(plan: &Plan, layout: &BufferLayout, tables: &wgpu::Buffer, accumulated: bool) -> Self {
        let mut stores = Vec::new();
        let mut by_param = HashMap::new();
        for (param, store) in gradient_stores(plan) {
            if let Some(range) = layout.gradient(store) {
                stores.push((param, store, range.1));
                // A parameter has one gradient; of several, the first counts.
                by_param.entry(param.index() as u32).or_insert(range);
            }
        }
        Self {
            stores,
            by_param,
            region: layout.gradients(),
            sparse_tables: sparse_tables(plan, layout),
            tables: tables.clone(),
            accumulated,
            listed: false,
        }
    }

    /// The range of a parameter's gradient.
    pub(super) fn gradient(&self, param: StoreId) -> Option<ArenaRange> {
        self.by_param.get(&param.0).copied()
    }

    /// Returns whether a plan makes gradients of the same parameters in the same sizes; another module may have equal
    /// numbers.
    pub(super) fn are_those_of(&self, plan: &Plan) -> bool {
        let elements = |store: StoreId| plan.stores[store.index()].ty.shape.elements() as u64;
        let others = gradient_stores(plan).map(|(param, store)| (param, store, elements(store)));
        self.stores.iter().copied().eq(others)
    }

    /// Gradients of the first words of an arena, for tests of sparse rows.
    #[cfg(test)]
    pub(super) fn of_tests(sparse_tables: Vec<SparseTable>, tables: wgpu::Buffer, accumulated: bool) -> Self {
        let (stores, by_param) = (Vec::new(), HashMap::new());
        Self { stores, by_param, region: (0, 0), sparse_tables, tables, accumulated, listed: false }
    }
}

fn gradient_stores(plan: &Plan) -> impl Iterator<Item = (ParamId, StoreId)> + '_ {
    plan.stores.iter().enumerate().filter_map(|(number, store)| match store.kind {
        StoreKind::Grad(of) => Some((ParamId::new(of.index()), StoreId(number as u32))),
        StoreKind::Param(_) | StoreKind::State(_) => None,
    })
}

/// A copy of gradients outside the arena, while another run uses it.
#[derive(Default)]
pub(super) struct SavedGradients {
    array: SplitArray,
}

impl SavedGradients {
    /// Copies gradients out of the arena.
    pub(super) fn save(
        &mut self,
        gpu: &Gpu,
        memory: &Memory,
        gradients: &ArenaGradients,
        encoder: &mut wgpu::CommandEncoder,
    ) -> Result<(), GpuError> {
        let (at, words) = gradients.region;
        self.array.fit(gpu, "accumulated gradients", words, memory.arena.size)?;
        memory.arena.copy(encoder, at, &self.array, 0, words);
        Ok(())
    }

    /// Copies them into the arena, to where the next run accumulates.
    pub(super) fn restore(&self, memory: &Memory, layout: &BufferLayout, encoder: &mut wgpu::CommandEncoder) {
        let (at, words) = layout.gradients();
        self.array.copy(encoder, 0, &memory.arena, at, words);
    }
}
