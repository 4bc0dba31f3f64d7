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
mod differentiate;
pub mod layout;
mod lower;
mod order;
pub mod schedule;
mod storage;

pub use cache::{CacheStats, PlanCache};
pub use compile::CompileOptions;
pub use differentiate::Gradients;
pub use order::RowOrder;

use autobatch_ir::graph::{Callee, GraphData, ParamArg, Signature};
use autobatch_ir::hash::{BuildMix, hash_of};
use autobatch_ir::id::{AppId, ParamId, SigId, TypeId, ValueId};
use autobatch_ir::plan::{Kernel, Mode, Plan};
use autobatch_ir::types::Type;
use cluster::Clusters;
use compile::Tables;
use differentiate::{Derivative, Wanted};
use lower::Lowering;
use order::Order;
use schedule::{Policy, Problem, Schedule, Scratch, path_sum_bound};
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
    /// The gradients that the plan makes, if it is a [`Mode::Train`] plan.
    pub gradients: Option<Gradients<'a>>,
}

impl Default for Request<'_> {
    fn default() -> Self {
        Self { wanted: &[], mode: Mode::Infer, training: false, rows: RowOrder::default(), gradients: None }
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
    /// Gradients are asked of a plan that does not keep its rows.
    NotTraining(Mode),
    /// A loss, or a value whose gradient is wanted, is no float value of the graph.
    NoFloat(ValueId),
    /// The gradient of a parameter is wanted that the module does not have.
    NoParam(ParamId),
    /// An op on the way from a loss has no derivative rule in plans.
    NotDifferentiable {
        /// The op.
        op: &'static str,
        /// Where the model applied it, or the cell that does.
        site: String,
    },
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
            Self::NotTraining(mode) => {
                write!(f, "gradients need a plan of mode train, found {mode:?}; ask for Mode::Train")
            }
            Self::NoFloat(value) => {
                write!(f, "{value} is no float value of the graph; losses and values with gradients are")
            }
            Self::NoParam(param) => write!(f, "the module has no parameter {param}"),
            Self::NotDifferentiable { op, site } => write!(
                f,
                "{op} at {site} has no derivative in plans; keep it off the way from the losses, or put stop_gradient after it"
            ),
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
    kernels: Known<Arc<Kernel>>,
    derivatives: Known<Option<Arc<Derivative>>>,
}

/// What was compiled, by a hash of what it depends on.
type Known<T> = HashMap<u64, Vec<Compiled<T>>, BuildMix>;

/// Something compiled and what it depends on, all types resolved and compared in full.
struct Compiled<T> {
    /// The module's identity, which no later module has.
    module: u64,
    callee: Callee,
    params: Box<[ParamArg]>,
    /// Those of operands, parameters and results.
    types: [Vec<Type>; 3],
    training: bool,
    /// What gets gradients, if it is a derivative.
    wanted: Option<Wanted>,
    made: T,
}

impl<T> Compiled<T> {
    fn new(graph: &GraphData, sig: SigId, training: bool, wanted: Option<&Wanted>, made: T) -> Self {
        let signature = graph.sigs.get(sig);
        let types = [&signature.operands, &signature.param_types, &signature.results]
            .map(|ids| ids.iter().map(|&id| graph.ty(id)).collect());
        Self {
            module: graph.module.identity(),
            callee: signature.callee,
            params: signature.params.clone(),
            types,
            training,
            wanted: wanted.cloned(),
            made,
        }
    }

    fn is_of(
        &self,
        graph: &GraphData,
        signature: &Signature,
        training: bool,
        wanted: Option<&Wanted>,
    ) -> bool {
        let Signature { callee, operands, params, param_types, results } = signature;
        let same =
            |ids: &[TypeId], types: &[Type]| ids.iter().map(|&id| graph.ty(id)).eq(types.iter().copied());
        let [own_operands, own_param_types, own_results] = &self.types;
        self.module == graph.module.identity()
            && self.training == training
            && self.wanted.as_ref() == wanted
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
            kernels: HashMap::default(),
            derivatives: HashMap::default(),
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
        let mut wanted: Vec<ValueId> = outputs.iter().map(|output| output.1).collect();
        if let Some(gradients) = &request.gradients {
            if request.mode != Mode::Train {
                return Err(PlanError::NotTraining(request.mode));
            }
            let losses = gradients.losses.iter().map(|loss| loss.0);
            let asked = losses.chain(gradients.values.iter().copied());
            wanted.extend(asked);
            if let Some(&missing) = wanted.iter().find(|value| value.index() >= graph.arena.values()) {
                return Err(PlanError::NoFloat(missing));
            }
        }
        self.clusters.fill(graph, &wanted);
        let clusters = &self.clusters;
        let problem = Problem::new(
            clusters.types.len() as u32,
            &clusters.ty,
            &clusters.alone,
            &clusters.operand_start,
            &clusters.operands,
        )
        .expect("clusters are numbered densely and in topological order");
        let batches = self.policy.schedule(&problem, &mut self.scratch);
        let bound = batches.bound.unwrap_or_else(|| path_sum_bound(&problem, &mut self.scratch).total);
        self.storage.fill(graph, clusters);
        let layout = (request.rows, request.mode);
        let order = Order::new(graph, clusters, &self.storage, &batches, &wanted, layout)
            .map_err(|_| PlanError::TooLarge)?;
        promises(graph, &order)?;
        let lowering =
            Lowering { graph, clusters, storage: &self.storage, order: &order, mode: request.mode, bound };
        let kernels = &mut self.kernels;
        let mut plan = lowering.plan(outputs, |sig| kernel(kernels, graph, sig, request.training));
        if let Some(gradients) = &request.gradients {
            let known = &mut self.derivatives;
            differentiate::differentiate(&mut plan, graph, clusters, gradients, |sig, wanted| {
                derivative(known, graph, sig, request.training, wanted)
            })?;
        }
        Ok(plan)
    }
}

/// The kernel of a signature, compiled now or before.
fn kernel(known: &mut Known<Arc<Kernel>>, graph: &GraphData, sig: SigId, training: bool) -> Arc<Kernel> {
    let signature = graph.sigs.get(sig);
    let known = known.entry(hash_of(&(graph.sigs.hash(sig), training))).or_default();
    if let Some(compiled) = known.iter().find(|compiled| compiled.is_of(graph, signature, training, None)) {
        return Arc::clone(&compiled.made);
    }
    let tables = Tables { module: &graph.module, types: &graph.types, sigs: &graph.sigs };
    let kernel = Arc::new(compile::compile(tables, sig, CompileOptions { training }));
    known.push(Compiled::new(graph, sig, training, None, Arc::clone(&kernel)));
    kernel
}

/// The derivative of a signature, made now or before.
fn derivative(
    known: &mut Known<Option<Arc<Derivative>>>,
    graph: &GraphData,
    sig: SigId,
    training: bool,
    wanted: &Wanted,
) -> Result<Option<Arc<Derivative>>, differentiate::Refused> {
    let signature = graph.sigs.get(sig);
    let known = known.entry(hash_of(&(graph.sigs.hash(sig), training, wanted))).or_default();
    let of_this = |compiled: &&Compiled<_>| compiled.is_of(graph, signature, training, Some(wanted));
    if let Some(compiled) = known.iter().find(of_this) {
        return Ok(compiled.made.clone());
    }
    let tables = Tables { module: &graph.module, types: &graph.types, sigs: &graph.sigs };
    let made = differentiate::derive(tables, sig, CompileOptions { training }, wanted)?.map(Arc::new);
    known.push(Compiled::new(graph, sig, training, Some(wanted), made.clone()));
    Ok(made)
}

/// Whether every value that was promised to be shared is taken by all rows of the batches that take it.
fn promises(graph: &GraphData, order: &Order) -> Result<(), PlanError> {
    if graph.shared.is_empty() {
        return Ok(());
    }
    let mut shared = vec![false; graph.arena.values()];
    graph.shared.iter().for_each(|value| shared[value.index()] = true);
    for batch in &order.batches {
        for place in 0..graph.sigs.get(batch.sig).operands.len() {
            let taken = |app: AppId| graph.arena.operands(app)[place].as_value();
            let mut promised = batch.lanes.iter().filter_map(|&app| taken(app));
            let Some(value) = promised.find(|value| shared[value.index()]) else { continue };
            if let Some(&app) = batch.lanes.iter().find(|&&app| taken(app) != Some(value)) {
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
    if outputs.is_empty() && request.gradients.is_none() {
        return Err(PlanError::NothingWanted);
    }
    match outputs.iter().find(|output| graph.type_of(output.1).is_list) {
        Some(list) => Err(PlanError::WantedList(list.1)),
        None => Ok(outputs),
    }
}
