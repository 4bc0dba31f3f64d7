//! The pipeline: from a graph to its plan, one typed stage after the other.
//!
//! ```text
//! graph ─▶ Clusters ─▶ Kernels ─▶ Batches ─▶ Storage ─▶ Rows ─▶ Plan ─▶ Plan with its reverse
//! ```
//! A stage reads the context, its scratch memory and the products of earlier stages, and makes a product. For a graph
//! that grows, storage also reads the earlier plan, and lowering extends it. No stage changes the product of another
//! one, except that `differentiate` appends to the plan. [`STAGES`](crate::stages::STAGES) lists the stages in this
//! order. At the end, the memory of every product except the plan returns to its stage, so a later plan of similar size
//! allocates only the plan.

use crate::PlanError;
use crate::cluster::{self, cluster};
use crate::differentiate::{self, add_reverse};
use crate::grow::ExistingRows;
use crate::kernels::{self, compile_kernels};
use crate::lower::{self, Places, lower};
use crate::order::{self, StoredBatches, order_rows};
use crate::request::Request;
use crate::schedule::{self, Schedule, schedule_jobs};
use crate::shared::{self, check_shared};
use crate::stages::{Product, Reverse};
use crate::storage::{self, assign_storage};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::{Mode, Plan};

/// The inputs of all stages.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) graph: &'a GraphData,
    pub(crate) request: &'a Request<'a>,
    pub(crate) policy: &'a dyn Schedule,
    /// The expected number of executions of the plan.
    pub(crate) executions: f64,
    /// The values that can be read after the run: outputs, wanted values, losses, and values whose gradients are
    /// outputs.
    pub(crate) roots: &'a [ValueId],
    /// The rows of the values that a growing plan already computes. Empty for other plans.
    pub(crate) existing: &'a ExistingRows,
}

impl Context<'_> {
    /// Whether the plan grows with its graph.
    pub(crate) fn is_growing(&self) -> bool {
        self.request.mode == Mode::Grow
    }
}

/// The scratch memory of all stages.
#[derive(Default)]
pub(crate) struct Memory {
    cluster: cluster::Memory,
    kernels: kernels::Memory,
    pub(crate) schedule: schedule::Memory,
    storage: storage::Memory,
    order: order::Memory,
    shared: shared::Memory,
    pub(crate) lower: lower::Memory,
    reverse: differentiate::Memory,
}

/// Plans a graph. Calls `watch` with each product, in the order of the stages.
pub(crate) fn plan(
    context: &Context<'_>,
    memory: &mut Memory,
    earlier: Option<&mut Plan>,
    watch: &mut dyn FnMut(Product<'_>),
) -> Result<Plan, PlanError> {
    let clusters = cluster(context, &mut memory.cluster);
    watch(Product::Clusters(&clusters));
    let kernels = compile_kernels(context, &mut memory.kernels, &clusters);
    watch(Product::Kernels(&kernels));
    let batches = schedule_jobs(context, &mut memory.schedule, &clusters, &kernels.costs)?;
    watch(Product::Batches(&batches));
    let storage = assign_storage(context, &mut memory.storage, &clusters, earlier.as_deref());
    watch(Product::Storage(&storage));
    let stored = StoredBatches { clusters: &clusters, batches: &batches, storage: &storage };
    let rows = order_rows(context, &mut memory.order, stored)?;
    // This is not a stage: it only checks the promise of `.shared()`.
    check_shared(context, &mut memory.shared, &rows)?;
    watch(Product::Rows(&rows));
    let (continues, earlier) = (earlier.is_some(), earlier.map(std::mem::take));
    let places = Places { context, storage: &storage, rows: &rows };
    let bound = batches.bound.expect("the schedule stage computes a bound");
    let plan = lower(&places, &mut memory.lower, &kernels, bound, earlier);
    watch(Product::Plan(&plan));
    let plan = add_reverse(context, &mut memory.reverse, &clusters, &places, plan)?;
    watch(Product::Reverse(Reverse(&plan)));
    memory.cluster.spare = clusters;
    memory.kernels.recycle(kernels);
    memory.schedule.recycle(batches);
    memory.storage.spare = storage;
    memory.order.spare = rows;
    // A plan that extends an earlier one keeps the spare capacity of its lists, because it will grow again.
    Ok(if continues { plan } else { memory.lower.buffers.settle(plan) })
}
