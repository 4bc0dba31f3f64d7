//! The pipeline: from a graph to its plan, one typed stage after the other.
//!
//! ```text
//! graph ─▶ Clusters ─▶ Kernels ─▶ Batches ─▶ Storage ─▶ Rows ─▶ Plan ─▶ Plan with its reverse
//! ```
//! A stage reads the context and the products of earlier stages, and writes its product over that of the last graph. It
//! has scratch memory besides. No stage changes the product of another one, except that `differentiate` appends to the
//! plan. So a later plan of similar size allocates nothing.

use crate::cluster::{self, Clusters, cluster};
use crate::context::Context;
use crate::differentiate::{self, Reverse, add_reverse};
use crate::error::PlanError;
use crate::kernels::{self, Kernels, compile_kernels};
use crate::lower::{self, Places, lower};
use crate::order::{self, Rows, StoredBatches, order_rows};
use crate::schedule::{self, Batches, schedule_jobs};
use crate::stage::{Chain, Products, Stage, Watch};
use crate::storage::{self, Storage, assign_storage};
use autobatch_ir::plan::Plan;

/// The products of all stages except the plan, and their scratch memory.
#[derive(Default)]
pub(crate) struct Memory {
    clusters: Clusters,
    kernels: Kernels,
    pub(crate) batches: Batches,
    storage: Storage,
    rows: Rows,
    scratch: Scratch,
}

#[derive(Default)]
struct Scratch {
    cluster: cluster::Memory,
    kernels: kernels::Memory,
    schedule: schedule::Memory,
    storage: storage::Memory,
    order: order::Memory,
    lower: lower::Memory,
    reverse: differentiate::Memory,
}

/// Plans a graph. The plan is empty, or a growing one that gets further steps. It stays as it was if a stage before
/// lowering fails.
pub(crate) fn write(
    context: &Context<'_>,
    memory: &mut Memory,
    plan: &mut Plan,
    watch: Watch<'_>,
) -> Result<(), PlanError> {
    let Memory { clusters, kernels, batches, storage, rows, scratch } = memory;
    let chain = Chain::new(context.graph, watch);
    cluster(context, &mut scratch.cluster, clusters);
    let chain = chain.then(clusters);
    compile_kernels(context, &mut scratch.kernels, clusters, kernels);
    let chain = chain.then(kernels);
    schedule_jobs(context, &mut scratch.schedule, clusters, &kernels.costs, batches)?;
    let chain = chain.then(batches);
    assign_storage(context, &mut scratch.storage, clusters, plan, storage);
    let chain = chain.then(storage);
    order_rows(context, &mut scratch.order, StoredBatches { clusters, batches, storage }, rows)?;
    let chain = chain.then(rows);
    let places = Places { context, storage, rows };
    let bound = batches.bound.expect("the schedule stage computes a bound");
    lower(&places, &mut scratch.lower, kernels, bound, plan);
    let chain = chain.then(plan);
    add_reverse(&places, &mut scratch.reverse, clusters, plan)?;
    let _: Chain<'_, Last<'_>> = chain.then(&Reverse(plan));
    Ok(())
}

/// The product of the last stage.
type Last<'a> = Reverse<'a>;

/// Every stage, in the order in which the pipeline runs them.
#[must_use]
pub fn stages() -> Vec<Stage> {
    Last::stages()
}
