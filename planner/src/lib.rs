//! Compiles a recorded graph into a short plan of large kernels.
//!
//! ```text
//! GraphData ─▶ rewrite ─▶ GraphData ─▶ cluster ▸ schedule ▸ storage ▸ order ▸ lower ─▶ Plan
//!                                                           compile ──────────┘
//! ```
//! Each arrow is a file whose head says what it needs and ensures. Planning is pure and
//! deterministic: equal graphs give equal plans, byte by byte, and it does not fail on a verified
//! graph except where the model asked for something that does not hold.

mod cache;
mod classes;
mod cluster;
mod compile;
mod content;
mod differentiate;
mod error;
mod grow;
mod heap;
mod jobs;
mod known_kernels;
mod layout;
mod lower;
mod order;
pub mod passes;
mod price;
mod rewrite;
mod room;
pub mod schedule;
pub mod stages;
mod storage;
mod update;

pub use cache::{CacheStats, PlanCache, PolicyId};
pub use compile::CompileOptions;
pub use differentiate::Gradients;
pub use error::PlanError;
pub use grow::{Delta, Grown};
pub use jobs::Jobs;
pub use order::RowOrder;
pub use passes::{Optimized, Selection};
pub use price::{ClassWork, Work};
pub use schedule::{Class, ClassCost, ClassCosts, CostError, CostTable, Price};
pub use update::update_plan;

use autobatch_ir::graph::{Callee, GraphData, Op, Signature};
use autobatch_ir::hash::BuildMix;
use autobatch_ir::id::{NodeId, SigId, TypeId, ValueId};
use autobatch_ir::plan::{Kernel, Mode, Plan};
use autobatch_ir::types::Type;
use cluster::Clusters;
use compile::Tables;
use differentiate::{Derivative, Reverse, Wanted};
use grow::Placed;
use lower::{Draft, Lowering};
use order::Order;
use schedule::{Auto, Schedule, Scratch, StopReason, path_sum_total};
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

/// Plans graphs. Keeps its working memory and the kernels it compiled.
///
/// The second plan of a size allocates nothing but its output: the blocks of memory that the returned [`Plan`] owns, each
/// of its lists and names one, of the size that it has. That holds for every policy of [`schedule`], for graphs of every kind and
/// with the reverse of [`Request::gradients`], but not for what is made for keeps or for a while and asked for: kernels of
/// signatures that were not met before, and passes before planning. A plan that is not needed any more may
/// lend its memory to the next one: [`recycle`](Self::recycle).
pub struct Planner {
    policy: Box<dyn Schedule + Send + Sync>,
    policy_id: PolicyId,
    scratch: Scratch,
    clusters: Clusters,
    storage: Storage,
    order: Order,
    kernels: Known<Arc<Kernel>>,
    /// The kernel of each signature of the graph that is planned, as far as it was asked for.
    kernel_of_sig: Vec<Option<Arc<Kernel>>>,
    prices: Vec<Price>,
    names: Vec<u64>,
    why: StopReason,
    /// The values that a plan makes for somebody: outputs, what was asked for, losses.
    wanted: Vec<ValueId>,
    /// Per value whether it was promised to be shared.
    shared: Vec<bool>,
    draft: Draft,
    reverse: Reverse,
    derivatives: Known<Option<Arc<Derivative>>>,
}

/// What was compiled, by a hash of what it depends on.
type Known<T> = HashMap<u64, Vec<Compiled<T>>, BuildMix>;

/// Something compiled and what it depends on, all types resolved and compared in full, but for the
/// bodies of cells: passes make modules that come and go, so a cell is known by its content.
struct Compiled<T> {
    /// The identity of the content, of 128 bits like that of a graph's structure.
    content: u128,
    callee: Callee,
    /// Those of operands, parameters and results.
    types: [Vec<Type>; 3],
    training: bool,
    /// What gets gradients, if it is a derivative.
    wanted: Option<Wanted>,
    made: T,
}

impl<T> Compiled<T> {
    fn new(
        graph: &GraphData,
        sig: SigId,
        content: u128,
        training: bool,
        wanted: Option<&Wanted>,
        made: T,
    ) -> Self {
        let signature = graph.sigs.get(sig);
        let types = [&signature.operands, &signature.param_types, &signature.results]
            .map(|ids| ids.iter().map(|&id| graph.ty(id)).collect());
        Self { content, callee: signature.callee, types, training, wanted: wanted.cloned(), made }
    }

    fn is_of(
        &self,
        graph: &GraphData,
        signature: &Signature,
        content: u128,
        training: bool,
        wanted: Option<&Wanted>,
    ) -> bool {
        // Parameters come through ports, whichever they are.
        let Signature { callee, operands, params: _, param_types, results } = signature;
        let same =
            |ids: &[TypeId], types: &[Type]| ids.iter().map(|&id| graph.ty(id)).eq(types.iter().copied());
        let [own_operands, own_param_types, own_results] = &self.types;
        let same_callee = match (self.callee, *callee) {
            (Callee::Op(own), Callee::Op(op)) => own == op,
            (Callee::Cell(_), Callee::Cell(_)) => true,
            _ => false,
        };
        self.content == content
            && self.training == training
            && same_callee
            && self.wanted.as_ref() == wanted
            && same(operands, own_operands)
            && same(param_types, own_param_types)
            && same(results, own_results)
    }
}

/// A plan with the graph that it is a plan of.
#[derive(Clone, Debug)]
pub struct Planned<'g> {
    /// The plan, which speaks of [`Optimized::graph`]: its lanes are nodes of that graph, and
    /// a wanted value has the name that it has there. Outputs stand in the order of the request.
    pub plan: Plan,
    /// The graph after passes, and what became of each value.
    pub optimized: Optimized<'g>,
}

impl fmt::Debug for Planner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Planner").field("policy", &self.policy.name()).finish_non_exhaustive()
    }
}

impl Default for Planner {
    fn default() -> Self {
        Self::new(Box::new(Auto::default()))
    }
}

impl Planner {
    /// A planner with a policy of its own.
    #[must_use]
    pub fn new(policy: Box<dyn Schedule + Send + Sync>) -> Self {
        Self {
            policy_id: PolicyId::of(&*policy),
            policy,
            scratch: Scratch::default(),
            clusters: Clusters::default(),
            storage: Storage::default(),
            order: Order::default(),
            kernels: HashMap::default(),
            kernel_of_sig: Vec::new(),
            prices: Vec::new(),
            names: Vec::new(),
            why: StopReason::Rule,
            wanted: Vec::new(),
            shared: Vec::new(),
            draft: Draft::default(),
            reverse: Reverse::default(),
            derivatives: HashMap::default(),
        }
    }

    /// The policy with its options.
    #[must_use]
    pub fn policy(&self) -> PolicyId {
        self.policy_id
    }

    /// Why the policy stopped searching when it planned last.
    #[must_use]
    pub fn why(&self) -> &StopReason {
        &self.why
    }

    /// Takes a plan that nobody needs any more: lists of the next one that are as long, or at most an eighth shorter, are written
    /// into its memory. Of large plans this saves the system from taking pages back and handing them out again.
    pub fn recycle(&mut self, plan: Plan) {
        self.draft.recycle(plan);
    }

    /// The plan of a verified graph as it stands.
    ///
    /// # Errors
    /// If nothing is wanted, or what is wanted cannot be.
    pub fn plan(&mut self, graph: &GraphData, request: &Request<'_>) -> Result<Plan, PlanError> {
        self.plan_after(graph, request, (None, &mut Placed::default()))
    }

    /// The plan of a graph of which a part is planned already: that plan, longer.
    fn plan_after(
        &mut self,
        graph: &GraphData,
        request: &Request<'_>,
        (earlier, placed): (Option<&mut Plan>, &mut Placed),
    ) -> Result<Plan, PlanError> {
        wanted_outputs(graph, request, &mut self.wanted)?;
        let wanted = &mut self.wanted;
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
        let is_constant = |value: &ValueId| {
            let producer = graph.arena.node(graph.arena.producer(*value));
            matches!(graph.sigs.get(producer.sig).callee, Callee::Op(Op::Fill { .. }))
        };
        let split = !request.gradients.as_ref().is_some_and(|gradients| {
            let losses = gradients.losses.iter().map(|loss| &loss.0);
            losses.chain(gradients.values).any(is_constant)
        });
        let growing = request.mode == Mode::Grow;
        self.clusters.fill(graph, wanted, &mut self.storage, split && !growing, placed);
        let clusters = &self.clusters;
        let (kernels, of_sig) = (&mut self.kernels, &mut self.kernel_of_sig);
        of_sig.clear();
        of_sig.resize(graph.sigs.items().len(), None);
        let mut kernel_of = |sig: SigId| {
            let known = &mut of_sig[sig.index()];
            Arc::clone(known.get_or_insert_with(|| kernel(kernels, graph, sig, request.training)))
        };
        self.prices.clear();
        if let Some(table) = self.policy.costs() {
            let price = |&sig: &SigId| Work::of(&kernel_of(sig)).price(table);
            self.prices.extend(clusters.types().iter().map(price));
        }
        self.names.clear();
        if self.policy.wants_names() {
            clusters.names(graph, &mut self.names);
        }
        let problem = clusters.problem().with_prices(&self.prices).with_names(&self.names);
        let batches = self.policy.schedule(&problem, &mut self.scratch);
        if self.policy.needs_check() {
            let policy = || self.policy.name().to_owned();
            schedule::check(&problem, &batches)
                .map_err(|error| PlanError::Schedule { policy: policy(), error })?;
        }
        let bound = batches.bound.unwrap_or_else(|| path_sum_total(&problem, &mut self.scratch));
        self.why.clone_from(&batches.why);
        if growing {
            let known =
                earlier.as_deref().map_or((&[][..], &[][..]), |plan| (&plan.slabs[..], &plan.fields[..]));
            self.storage.finish_by_type(graph, clusters, known);
        } else {
            self.storage.finish(graph, clusters);
        }
        let layout = (request.rows, request.mode);
        self.order
            .fill(graph, clusters, &self.storage, &batches, (wanted, placed), layout)
            .map_err(|_| PlanError::TooLarge)?;
        self.scratch.recycle(batches);
        promises(graph, &self.order, &mut self.shared)?;
        let (storage, order) = (&self.storage, &self.order);
        let steps = earlier.as_deref().map_or(0, |plan| plan.steps.len());
        let lowering = Lowering { graph, storage, order, mode: request.mode, bound, asked: request.wanted };
        let (known, reverse) = (&mut self.derivatives, &mut self.reverse);
        let plan = lowering.plan(&mut self.draft, (earlier, placed), kernel_of, |plan, place| {
            let Some(gradients) = &request.gradients else { return Ok(()) };
            reverse.add(plan, (graph, clusters), gradients, place, |sig, wanted| {
                derivative(known, graph, sig, request.training, wanted)
            })
        })?;
        if growing {
            grow::note(&plan, graph, steps, placed);
        }
        Ok(plan)
    }

    /// The plan of a verified graph after these passes; after none where gradients of values are wanted.
    ///
    /// The plan is checked in two steps: it computes what the optimised graph says, and
    /// a [`Prover`](passes::Prover) proves that this is what the given graph says.
    ///
    /// # Errors
    /// If nothing is wanted, or what is wanted cannot be; or if a pass broke the graph.
    pub fn optimize_and_plan<'g>(
        &mut self,
        graph: &'g GraphData,
        request: &Request<'_>,
        selection: &Selection,
    ) -> Result<Planned<'g>, PlanError> {
        wanted_outputs(graph, request, &mut self.wanted)?;
        let (losses, values) =
            request.gradients.map_or((&[][..], &[][..]), |asked| (asked.losses, asked.values));
        let mut kept = request.wanted.to_vec();
        kept.extend(losses.iter().map(|loss| loss.0));
        if let Some(&missing) = kept.iter().find(|value| value.index() >= graph.arena.values()) {
            return Err(PlanError::NoFloat(missing));
        }
        // Inside a cell, what uses a value would add nothing to its gradient outside.
        let selection = if values.is_empty() { selection } else { &Selection::none() };
        let optimized = passes::optimize(graph, &kept, request.mode, selection, &mut passes::all)
            .map_err(PlanError::Pass)?;
        let renamed = |value: ValueId| optimized.renaming.get(value).expect("passes keep what is wanted");
        let wanted: Vec<ValueId> = request.wanted.iter().map(|&value| renamed(value)).collect();
        let losses: Vec<_> = losses.iter().map(|&(value, factor)| (renamed(value), factor)).collect();
        let gradients = request.gradients.map(|asked| Gradients { losses: &losses, ..asked });
        let plan = self.plan(&optimized.graph, &Request { wanted: &wanted, gradients, ..*request })?;
        Ok(Planned { plan, optimized })
    }
}

/// The kernel of a signature, compiled now or before.
fn kernel(known: &mut Known<Arc<Kernel>>, graph: &GraphData, sig: SigId, training: bool) -> Arc<Kernel> {
    let signature = graph.sigs.get(sig);
    let tables = Tables { module: &graph.module, types: &graph.types, sigs: &graph.sigs };
    let content = content::of_kernel(tables, sig);
    let known = known.entry(content as u64).or_default();
    let is_it = |compiled: &&Compiled<_>| compiled.is_of(graph, signature, content, training, None);
    if let Some(compiled) = known.iter().find(is_it) {
        return Arc::clone(&compiled.made);
    }
    let kernel = Arc::new(compile::compile(tables, sig, CompileOptions { training }));
    known.push(Compiled::new(graph, sig, content, training, None, Arc::clone(&kernel)));
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
    let tables = Tables { module: &graph.module, types: &graph.types, sigs: &graph.sigs };
    let content = content::of_kernel(tables, sig);
    let known = known.entry(content as u64).or_default();
    let of_this = |compiled: &&Compiled<_>| compiled.is_of(graph, signature, content, training, Some(wanted));
    if let Some(compiled) = known.iter().find(of_this) {
        return Ok(compiled.made.clone());
    }
    let made = differentiate::derive(tables, sig, CompileOptions { training }, wanted)?.map(Arc::new);
    known.push(Compiled::new(graph, sig, content, training, Some(wanted), made.clone()));
    Ok(made)
}

/// Whether every value that was promised to be shared is taken by all rows of the batches that take it; `shared` is working
/// memory.
fn promises(graph: &GraphData, order: &Order, shared: &mut Vec<bool>) -> Result<(), PlanError> {
    if graph.shared.is_empty() {
        return Ok(());
    }
    shared.clear();
    shared.resize(graph.arena.values(), false);
    graph.shared.iter().for_each(|value| shared[value.index()] = true);
    for batch in &order.batches {
        let lanes = order.nodes(batch);
        for place in 0..graph.sigs.get(batch.sig).operands.len() {
            let taken = |node: NodeId| graph.arena.operands(node)[place].as_value();
            let mut promised = lanes.iter().filter_map(|&node| taken(node));
            let Some(value) = promised.find(|value| shared[value.index()]) else { continue };
            if let Some(&node) = lanes.iter().find(|&&node| taken(node) != Some(value)) {
                let callee = graph.module.callee_name(graph.sigs.get(batch.sig).callee);
                return Err(PlanError::NotShared { value, other: taken(node), callee });
            }
        }
    }
    Ok(())
}

/// Fills `wanted` with the values of the graph's outputs and those that are asked for besides.
fn wanted_outputs(
    graph: &GraphData,
    request: &Request<'_>,
    wanted: &mut Vec<ValueId>,
) -> Result<(), PlanError> {
    wanted.clear();
    wanted.extend(graph.outputs.iter().map(|output| output.value));
    wanted.extend_from_slice(request.wanted);
    if wanted.is_empty() && request.gradients.is_none() {
        return Err(PlanError::NothingWanted);
    }
    if let Some(&missing) = wanted.iter().find(|value| value.index() >= graph.arena.values()) {
        return Err(PlanError::NoValue(missing));
    }
    match wanted.iter().find(|&&value| graph.type_of(value).is_list) {
        Some(&list) => Err(PlanError::WantedList(list)),
        None => Ok(()),
    }
}
