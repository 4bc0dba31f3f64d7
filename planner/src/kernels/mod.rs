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
mod of_signatures;

pub(crate) use cache::KernelCache;
pub use compile::CompileOptions;
pub(crate) use compile::Tables;
pub use cost::{ClassWork, Work};
pub(crate) use of_signatures::Kernels;

use crate::cluster::Clusters;
use crate::context::Context;
use autobatch_ir::id::SigId;
use autobatch_ir::plan::Kernel;
use std::convert::Infallible;
use std::sync::Arc;

/// Scratch memory of [`compile_kernels`]: the kernels compiled so far.
#[derive(Default)]
pub(crate) struct Memory {
    cache: KernelCache<(), Arc<Kernel>>,
}

/// Finds or compiles the kernels of all jobs and sources, and computes the costs that the policy asks for.
pub(crate) fn compile_kernels(
    context: &Context<'_>,
    memory: &mut Memory,
    clusters: &Clusters,
    kernels: &mut Kernels,
) {
    let Context { graph, request, policy, .. } = *context;
    let (tables, options) = (Tables::of(graph), CompileOptions { training: request.training });
    let Kernels { of_sig, costs } = kernels;
    of_sig.clear();
    of_sig.resize(graph.sigs.items().len(), None);
    for &sig in &clusters.signatures {
        let compile = || Ok::<_, Infallible>(Arc::new(compile::compile(tables, sig, options)));
        let Ok(kernel) = memory.cache.get_or_make(tables, sig, options, &(), compile);
        of_sig[sig.index()] = Some(kernel);
    }
    costs.clear();
    if let Some(table) = policy.costs() {
        let kernel = |sig: &SigId| of_sig[sig.index()].as_deref().expect("a job has a kernel");
        costs.extend(clusters.types.iter().map(|sig| Work::of(kernel(sig)).cost(table)));
    }
}
