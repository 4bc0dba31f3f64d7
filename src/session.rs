//! [`Session`]: plans what was emitted and plays it. Evaluation only: dropout is the identity.

use crate::device::Device;
use crate::dump::Dump;
use crate::error::{Error, Result};
use autobatch_ir::graph::{Callee, GraphData};
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Plan, Verified};
use autobatch_ir::{Graph, Module, Value, ValueKey, Weights};
use autobatch_planner::passes::Selection;
use autobatch_planner::schedule::Policy;
use autobatch_planner::{CacheStats, PlanCache, Planner, Request, RowOrder};
use autobatch_runtime_cpu::{Bound, Player};
use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::ops::{Deref, Index};
use std::sync::Arc;

/// How a session plans and plays.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Where plans are played.
    pub device: Device,
    /// How batches are chosen. `AUTOBATCH_POLICY` overrides the default.
    pub policy: Policy,
    /// How rows are ordered.
    pub rows: RowOrder,
    /// Which passes rewrite a graph before it is planned. `None` leaves it to the graph: one that is
    /// made of ops mostly gets all of inference, one that is made of cells has little to gain.
    pub passes: Option<Selection>,
    /// How many threads play; 0 means one a core.
    pub threads: usize,
    /// How many plans are kept for graphs of the same structure.
    pub cached_plans: usize,
    /// How many bytes the rows of a plan may take; a graph that needs more is an error that says so.
    /// `None` is as many as can be had.
    ///
    /// ```
    /// use autobatch::prelude::*;
    /// use std::sync::Arc;
    ///
    /// let module = ModuleBuilder::new("sums").build().expect("an empty module");
    /// let weights = Arc::new(Weights::init(&module, 0));
    /// let options = SessionOptions { memory_limit: Some(100), ..SessionOptions::default() };
    /// let mut session = Session::with_options(&module, weights, options).expect("weights fit");
    /// let graph = session.graph();
    /// let x = graph.input(&[1.0; 64]);
    /// let error = session.value(x + x).expect_err("64 floats are 256 bytes").to_string();
    /// assert!(error.contains("the memory limit is 100; plan a smaller minibatch"), "{error}");
    /// ```
    pub memory_limit: Option<u64>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            device: Device::Cpu,
            policy: Policy::default(),
            rows: RowOrder::default(),
            passes: None,
            threads: 0,
            cached_plans: 64,
            memory_limit: None,
        }
    }
}

/// Plans graphs over one module and plays them.
pub struct Session {
    module: Arc<Module>,
    weights: Arc<Weights>,
    planner: Planner,
    rows: RowOrder,
    passes: Option<Selection>,
    cache: PlanCache,
    player: Player,
    dump: Dump,
    last: Option<Arc<Verified<Plan>>>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("module", &self.module.name)
            .field("player", &self.player)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// A session with freshly drawn weights (seed 0) and default options.
    ///
    /// # Errors
    /// If the environment names an unknown policy or an instruction set that is not available.
    pub fn new(module: &Arc<Module>, device: Device) -> Result<Self> {
        let weights = Arc::new(Weights::init(module, 0));
        Self::with_options(module, weights, SessionOptions { device, ..SessionOptions::default() })
    }

    /// A session with given weights and options.
    ///
    /// # Errors
    /// As [`new`](Self::new), or if the weights are another module's.
    pub fn with_options(
        module: &Arc<Module>,
        weights: Arc<Weights>,
        options: SessionOptions,
    ) -> Result<Self> {
        let fits = weights.len() == module.params.len()
            && weights
                .iter()
                .zip(&module.params)
                .all(|(held, decl)| held.name() == decl.name && held.ty() == decl.ty);
        if !fits {
            return Err(Error::OtherModule);
        }
        let policy = match std::env::var("AUTOBATCH_POLICY") {
            Ok(word) if options.policy == Policy::default() => word.parse()?,
            _ => options.policy,
        };
        let threads = match options.threads {
            0 => std::thread::available_parallelism().map_or(1, |cores| cores.get()),
            threads => threads,
        };
        let mut player = Player::new(threads)?;
        player.set_memory_limit(options.memory_limit);
        Ok(Self {
            module: Arc::clone(module),
            weights,
            planner: Planner::new(policy.load()?),
            rows: options.rows,
            passes: options.passes,
            cache: PlanCache::new(options.cached_plans),
            player,
            dump: Dump::from_environment(),
            last: None,
        })
    }

    /// An empty graph over the session's module. It is owned: emitting does not borrow the session.
    #[must_use]
    pub fn graph(&self) -> Graph {
        Graph::new(&self.module)
    }

    /// The parameters' values.
    #[must_use]
    pub fn weights(&self) -> &Arc<Weights> {
        &self.weights
    }

    /// Exchanges the parameters' values; weights that did not change are not packed again.
    pub fn set_weights(&mut self, weights: Arc<Weights>) {
        self.weights = weights;
    }

    /// The plan that was played last.
    #[must_use]
    pub fn last_plan(&self) -> Option<&Verified<Plan>> {
        self.last.as_deref()
    }

    /// How often plans were found in the cache.
    #[must_use]
    pub fn cache_stats(&self) -> CacheStats {
        self.cache.stats()
    }

    /// Plans and plays what the values need, and gives access to them. The result borrows the
    /// session's memory: nothing is copied, and the next run must wait until it is gone.
    ///
    /// # Errors
    /// The first fault of emitting, or why the graph cannot be planned or played.
    #[track_caller]
    pub fn run<'s, 'g>(
        &'s mut self,
        graph: &'g Graph,
        values: impl IntoIterator<Item = impl Borrow<Value<'g>>>,
    ) -> Result<Run<'s>> {
        graph.check()?;
        let mut wanted = Vec::new();
        for value in values {
            let value = value.borrow();
            if !std::ptr::eq(value.graph(), graph) {
                return Err(Error::OtherGraph);
            }
            wanted.extend(value.id());
        }
        let data = graph.data();
        let plan = self.plan(&data, &wanted)?;
        let bound = Bound { words: &data.bindings.words, floats: &data.bindings.floats, noise: Noise::Off };
        self.player.play(&plan, &*self.weights, bound)?;
        let first = plan.outputs.len() - wanted.len();
        let rows = wanted.iter().enumerate().map(|(number, &value)| (value, first + number)).collect();
        self.last = Some(Arc::clone(&plan));
        Ok(Run { player: &self.player, plan, graph: graph.number(), rows })
    }

    fn plan(&mut self, graph: &GraphData, wanted: &[ValueId]) -> Result<Arc<Verified<Plan>>> {
        let request = Request { wanted, rows: self.rows, ..Request::default() };
        let (planner, dump, passes) = (&mut self.planner, &mut self.dump, &self.passes);
        let policy = planner.policy().to_owned();
        self.cache.get_or_plan(graph, &request, &policy, || {
            dump.graph(graph)?;
            let plan = match passes {
                Some(selection) => planner.optimize_and_plan(graph, &request, selection)?.plan,
                None if is_made_of_ops(graph) => {
                    planner.optimize_and_plan(graph, &request, &Selection::of_mode(request.mode))?.plan
                }
                None => planner.plan(graph, &request)?,
            };
            Ok(plan.verify()?)
        })
    }

    /// The elements of one value.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn value(&mut self, value: Value<'_>) -> Result<Vec<f32>> {
        let run = self.run(value.graph(), [value])?;
        Ok(run[value].to_vec())
    }

    /// Emits one value per item, plays them together, and returns them in the items' order.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn predict<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        emit: impl for<'g> Fn(&'g Graph, T) -> Value<'g>,
    ) -> Result<Vec<Vec<f32>>> {
        let graph = self.graph();
        let values: Vec<Value<'_>> = items
            .into_iter()
            .enumerate()
            .map(|(key, item)| {
                graph.instance(key as u64);
                emit(&graph, item)
            })
            .collect();
        if values.is_empty() {
            return Ok(Vec::new());
        }
        let run = self.run(&graph, &values)?;
        Ok(values.iter().map(|&value| run[value].to_vec()).collect())
    }
}

/// Whether most applications are ops, so that outlining them into cells pays.
fn is_made_of_ops(graph: &GraphData) -> bool {
    let is_cell: Vec<bool> =
        graph.sigs.items().iter().map(|sig| matches!(sig.callee, Callee::Cell(_))).collect();
    let cells = graph.arena.apps().iter().filter(|app| is_cell[app.sig.index()]).count();
    2 * cells < graph.arena.len()
}

/// The values of a run, in the session's memory.
pub struct Run<'s> {
    player: &'s Player,
    plan: Arc<Verified<Plan>>,
    graph: u32,
    rows: HashMap<ValueId, usize>,
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("values", &self.rows.len()).finish_non_exhaustive()
    }
}

impl Run<'_> {
    /// The elements of a value; `None` if it was not asked for.
    #[track_caller]
    #[must_use]
    pub fn get(&self, value: Value<'_>) -> Option<&Row> {
        value.key().and_then(|key| self.by_key(key))
    }

    /// The elements of a value by its key.
    #[must_use]
    pub fn by_key(&self, key: ValueKey) -> Option<&Row> {
        let output = *self.rows.get(&key.id()).filter(|_| key.graph() == self.graph)?;
        Some(Row::new(self.player.output(&self.plan, output)))
    }

    /// The elements of a named output; `None` if the graph has none of this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Row> {
        let output = self.plan.outputs.iter().position(|output| output.name == name)?;
        Some(Row::new(self.player.output(&self.plan, output)))
    }

    /// Values of one shape as the rows of a matrix, with its size.
    ///
    /// # Errors
    /// If shapes differ.
    ///
    /// # Panics
    /// If a value was not asked for.
    #[track_caller]
    pub fn stack<'g>(
        &self,
        values: impl IntoIterator<Item = impl Borrow<Value<'g>>>,
    ) -> Result<(Vec<f32>, [usize; 2])> {
        let (mut matrix, mut rows, mut shape) = (Vec::new(), 0, None);
        for value in values {
            let value = *value.borrow();
            let expected = *shape.get_or_insert(value.shape());
            if value.shape() != expected {
                return Err(Error::Unequal { expected, found: value.shape() });
            }
            matrix.extend_from_slice(&self[value]);
            rows += 1;
        }
        let width = matrix.len().checked_div(rows).unwrap_or(0);
        Ok((matrix, [rows, width]))
    }

    /// The plan that was played.
    #[must_use]
    pub fn plan(&self) -> &Verified<Plan> {
        &self.plan
    }
}

impl Index<Value<'_>> for Run<'_> {
    type Output = Row;

    /// # Panics
    /// If the value was not asked for.
    fn index(&self, value: Value<'_>) -> &Row {
        self.get(value).expect("the value was not among those that were run")
    }
}

/// The elements of one value: a slice with what one does to scores.
#[derive(Debug, bytemuck::TransparentWrapper)]
#[repr(transparent)]
pub struct Row([f32]);

impl Row {
    fn new(elements: &[f32]) -> &Self {
        bytemuck::TransparentWrapper::wrap_ref(elements)
    }

    /// The index of the largest element; the first of ties.
    #[must_use]
    pub fn argmax(&self) -> usize {
        autobatch_ir::numeric::row::argmax(&self.0) as usize
    }

    /// The indices of the `k` largest elements, descending.
    #[must_use]
    pub fn top_k(&self, k: usize) -> Vec<usize> {
        let mut indices = vec![0; k.min(self.0.len())];
        autobatch_ir::numeric::row::top_k(&self.0, &mut indices);
        indices.into_iter().map(|index| index as usize).collect()
    }

    /// The elements of an integer or truth value.
    #[must_use]
    pub fn words(&self) -> Vec<u32> {
        self.0.iter().map(|x| x.to_bits()).collect()
    }
}

impl Deref for Row {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        &self.0
    }
}
