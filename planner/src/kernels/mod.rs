//! Kernels of signatures, and what a step of each costs.
//!
//! *Needs* the clusters of a graph. *Ensures* a kernel for every signature that takes a step, and, if the policy has a cost table,
//! the cost of each type of jobs. [`compile`] makes kernels, [`fuse`] joins their elementwise stages, [`content`] identifies them
//! across graphs, [`cache`] stores them and [`cost`] counts their work. *Cost.* One cache lookup for each signature; the cache
//! compiles a kernel once.

mod cache;
pub(crate) mod compile;
pub(crate) mod content;
pub(crate) mod cost;
pub(crate) mod fuse;

pub(crate) use cache::KernelCache;
pub use compile::CompileOptions;
pub(crate) use compile::Tables;
pub use cost::{ClassWork, Work};

use crate::cluster::Clusters;
use crate::pipeline::Context;
use crate::schedule::StepCost;
use autobatch_ir::id::SigId;
use autobatch_ir::plan::Kernel;
use std::sync::Arc;

/// The kernels of a graph's signatures.
#[derive(Debug, Default)]
pub(crate) struct Kernels {
    /// Per signature its kernel, if nodes of it take a step.
    pub(crate) of_sig: Vec<Option<Arc<Kernel>>>,
    /// The cost of each type of jobs; empty if the policy has no cost table.
    pub(crate) costs: Vec<StepCost>,
}

/// Scratch memory of [`compile_kernels`], with the kernels compiled so far.
#[derive(Default)]
pub(crate) struct Memory {
    cache: KernelCache<Arc<Kernel>>,
    spare: Kernels,
}

impl Memory {
    /// Takes back the memory of kernels.
    pub(crate) fn recycle(&mut self, mut kernels: Kernels) {
        kernels.of_sig.clear();
        self.spare = kernels;
    }
}

/// Finds or compiles the kernels of all jobs and sources, and computes the costs that the policy asks for.
pub(crate) fn compile_kernels(context: &Context<'_>, memory: &mut Memory, clusters: &Clusters) -> Kernels {
    let Context { graph, request, policy, .. } = *context;
    let (tables, options) = (Tables::of(graph), CompileOptions { training: request.training });
    let mut kernels = std::mem::take(&mut memory.spare);
    kernels.of_sig.resize(graph.sigs.items().len(), None);
    for &sig in &clusters.signatures {
        let compile = || compile::compile(tables, sig, options);
        kernels.of_sig[sig.index()].get_or_insert_with(|| memory.cache.kernel(tables, sig, options, compile));
    }
    let mut costs = std::mem::take(&mut kernels.costs);
    costs.clear();
    if let Some(table) = policy.costs() {
        let kernel = |sig: &SigId| kernels.of_sig[sig.index()].as_deref().expect("a job has a kernel");
        costs.extend(clusters.types.iter().map(|sig| Work::of(kernel(sig)).cost(table)));
    }
    kernels.costs = costs;
    kernels
}
