//! Compiles a recorded graph into a short plan of large kernels.
//!
//! ```text
//! GraphData ─▶ cluster ▸ schedule ▸ storage ▸ order ▸ lower ─▶ Plan
//!                                    compile ──────────┘
//! ```
//! Each arrow is a file whose head says what it needs and ensures. Planning is pure and
//! deterministic: equal graphs give equal plans, byte by byte, and it does not fail on a verified
//! graph except where the model asked for something that does not hold.

mod cache;
mod cluster;
mod compile;
mod heap;
pub mod layout;
mod lower;
mod order;
pub mod schedule;
mod storage;

pub use cache::{CacheStats, PlanCache};
pub use compile::CompileOptions;
pub use order::RowOrder;

use autobatch_ir::graph::{Callee, GraphData, ParamArg, Signature};
use autobatch_ir::hash::{BuildMix, hash_of};
use autobatch_ir::id::{AppId, SigId, TypeId, ValueId};
use autobatch_ir::plan::{Kernel, Mode, Plan};
use autobatch_ir::types::Type;
use cluster::Clusters;
use compile::Tables;
use lower::Lowering;
use order::Order;
use schedule::{Policy, Schedule, Scratch, path_sum_bound};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use storage::Storage;

/// What a plan is wanted for.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Values to read after the run, besides the graph's own outputs.
    pub wanted: &'a [ValueId],
    /// What the plan promises.
    pub mode: Mode,
    /// Whether dropout draws noise.
    pub training: bool,
    /// How rows are ordered.
    pub rows: RowOrder,
}

impl Default for Request<'_> {
    fn default() -> Self {
        Self { wanted: &[], mode: Mode::Infer, training: false, rows: RowOrder::default() }
    }
}

/// Why a graph has no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// Nothing is wanted: the graph has no outputs and the request names no values.
    NothingWanted,
    /// A wanted value is a list, which has no storage.
    WantedList(ValueId),
    /// The graph holds more rows than a plan can number.
    TooLarge,
    /// A value that was promised to be shared is not taken by all rows of a batch that takes it.
    NotShared {
        /// The value that `.shared()` was asked for.
        value: ValueId,
        /// What another row of the batch takes in its place, if it takes a value.
        other: Option<ValueId>,
        /// What the batch applies.
        callee: String,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingWanted => {
                f.write_str("nothing is wanted: name an output with g.output(name, value)")
            }
            Self::WantedList(value) => write!(f, "{value} is a list; ask for its elements or a fold of it"),
            Self::TooLarge => {
                f.write_str("the graph holds more than 2^32 rows; plan fewer instances at once")
            }
            Self::NotShared { value, other, callee } => {
                write!(f, "{value} was promised to be shared, but a batch of {callee} takes ")?;
                match other {
                    Some(other) => write!(f, "{other} as well")?,
                    None => f.write_str("a bound number as well")?,
                }
                f.write_str("; drop .shared(), or keep the others apart with .alone()")
            }
        }
    }
}

impl std::error::Error for PlanError {}

/// Plans graphs. Keeps its working memory and the kernels it compiled, so the second plan of a size
/// allocates little but its output.
pub struct Planner {
    policy: Box<dyn Schedule + Send + Sync>,
    scratch: Scratch,
    clusters: Clusters,
    storage: Storage,
    order: Order,
    kernels: HashMap<u64, Vec<Compiled>, BuildMix>,
}

/// A compiled kernel and what it depends on, all types resolved and compared in full.
struct Compiled {
    /// The module's identity, which no later module has.
    module: u64,
    callee: Callee,
    params: Box<[ParamArg]>,
    /// Those of operands, parameters and results.
    types: [Vec<Type>; 3],
    training: bool,
    kernel: Arc<Kernel>,
}

impl Compiled {
    fn is_of(&self, graph: &GraphData, signature: &Signature, training: bool) -> bool {
        let Signature { callee, operands, params, param_types, results } = signature;
        let same =
            |ids: &[TypeId], types: &[Type]| ids.iter().map(|&id| graph.ty(id)).eq(types.iter().copied());
        let [own_operands, own_param_types, own_results] = &self.types;
        self.module == graph.module.identity()
            && self.training == training
            && self.callee == *callee
            && self.params == *params
            && same(operands, own_operands)
            && same(param_types, own_param_types)
            && same(results, own_results)
    }
}

impl fmt::Debug for Planner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Planner").field("policy", &self.policy.name()).finish_non_exhaustive()
    }
}

impl Default for Planner {
    fn default() -> Self {
        Self::new(Policy::default().load().expect("the default policy reads no file"))
    }
}

impl Planner {
    /// A planner with a policy of its own.
    #[must_use]
    pub fn new(policy: Box<dyn Schedule + Send + Sync>) -> Self {
        Self {
            policy,
            scratch: Scratch::default(),
            clusters: Clusters::default(),
            storage: Storage::default(),
            order: Order::default(),
            kernels: HashMap::default(),
        }
    }

    /// The name of the policy.
    #[must_use]
    pub fn policy(&self) -> &str {
        self.policy.name()
    }

    /// The plan of a verified graph.
    ///
    /// # Errors
    /// If nothing is wanted, or what is wanted cannot be.
    pub fn plan(&mut self, graph: &GraphData, request: &Request<'_>) -> Result<Plan, PlanError> {
        let outputs = wanted_outputs(graph, request)?;
        let wanted: Vec<ValueId> = outputs.iter().map(|output| output.1).collect();
        self.clusters.fill(graph, &wanted, &mut self.storage);
        let clusters = &self.clusters;
        let problem = clusters.problem();
        let batches = self.policy.schedule(&problem, &mut self.scratch);
        let bound = batches.bound.unwrap_or_else(|| path_sum_bound(&problem, &mut self.scratch).total);
        self.storage.finish(graph, clusters);
        let layout = (request.rows, request.mode);
        self.order
            .fill(graph, clusters, &self.storage, &batches, &wanted, layout)
            .map_err(|_| PlanError::TooLarge)?;
        promises(graph, &self.order)?;
        let lowering =
            Lowering { graph, storage: &self.storage, order: &self.order, mode: request.mode, bound };
        let kernels = &mut self.kernels;
        Ok(lowering.plan(outputs, |sig| kernel(kernels, graph, sig, request.training)))
    }
}

/// The kernel of a signature, compiled now or before.
fn kernel(
    kernels: &mut HashMap<u64, Vec<Compiled>, BuildMix>,
    graph: &GraphData,
    sig: SigId,
    training: bool,
) -> Arc<Kernel> {
    let signature = graph.sigs.get(sig);
    let known = kernels.entry(hash_of(&(graph.sigs.hash(sig), training))).or_default();
    if let Some(compiled) = known.iter().find(|compiled| compiled.is_of(graph, signature, training)) {
        return Arc::clone(&compiled.kernel);
    }
    let tables = Tables { module: &graph.module, types: &graph.types, sigs: &graph.sigs };
    let kernel = Arc::new(compile::compile(tables, sig, CompileOptions { training }));
    let types = [&signature.operands, &signature.param_types, &signature.results]
        .map(|ids| ids.iter().map(|&id| graph.ty(id)).collect());
    known.push(Compiled {
        module: graph.module.identity(),
        callee: signature.callee,
        params: signature.params.clone(),
        types,
        training,
        kernel: Arc::clone(&kernel),
    });
    kernel
}

/// Whether every value that was promised to be shared is taken by all rows of the batches that take it.
fn promises(graph: &GraphData, order: &Order) -> Result<(), PlanError> {
    if graph.shared.is_empty() {
        return Ok(());
    }
    let mut shared = vec![false; graph.arena.values()];
    graph.shared.iter().for_each(|value| shared[value.index()] = true);
    for batch in &order.batches {
        let lanes = order.apps(batch);
        for place in 0..graph.sigs.get(batch.sig).operands.len() {
            let taken = |app: AppId| graph.arena.operands(app)[place].as_value();
            let mut promised = lanes.iter().filter_map(|&app| taken(app));
            let Some(value) = promised.find(|value| shared[value.index()]) else { continue };
            if let Some(&app) = lanes.iter().find(|&&app| taken(app) != Some(value)) {
                let callee = graph.module.callee_name(graph.sigs.get(batch.sig).callee);
                return Err(PlanError::NotShared { value, other: taken(app), callee });
            }
        }
    }
    Ok(())
}

fn wanted_outputs(graph: &GraphData, request: &Request<'_>) -> Result<Vec<(String, ValueId)>, PlanError> {
    let named = graph.outputs.iter().map(|output| (output.name.clone(), output.value));
    let asked = request.wanted.iter().map(|&value| (value.to_string(), value));
    let outputs: Vec<(String, ValueId)> = named.chain(asked).collect();
    if outputs.is_empty() {
        return Err(PlanError::NothingWanted);
    }
    match outputs.iter().find(|output| graph.type_of(output.1).is_list) {
        Some(list) => Err(PlanError::WantedList(list.1)),
        None => Ok(outputs),
    }
}
