//! [`Session`]: plans what was emitted and executes it. Evaluation only: dropout is the identity.

mod growing;
mod meanwhile;
mod parts;
mod planning;
mod state;
mod tasks;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::executor::AnyExecutor;
use crate::mirror::Mirror;
use crate::row::{Row, RowBuf};
use crate::train::explained;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{OutputKey, Plan, Verified};
use autobatch_ir::{Graph, Module, Value, ValueKey, Weights};
use autobatch_planner::passes::Selection;
use autobatch_planner::schedule::{Policy, Schedule};
use autobatch_planner::{CacheStats, Planner, Request, RowOrder};
use autobatch_runtime_cpu::{Bound, threads_meant};
pub use growing::Growing;
pub(crate) use meanwhile::{Meanwhile, Prepared};
pub(crate) use parts::{Together, in_parts};
pub(crate) use planning::Planning;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::ops::Index;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How a session plans and executes.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Where plans are executed.
    pub device: Device,
    /// How batches are chosen. `AUTOBATCH_POLICY` overrides the default, unless it is empty.
    pub policy: Policy,
    /// How rows are ordered.
    pub rows: RowOrder,
    /// Which passes rewrite a graph before it is planned. `None` leaves it to the graph, see
    /// [`Selection::of_graph`]; plans with gradients are then made of the graph as it stands. A model that
    /// is written op by op trains faster with `outline`, which may change the last bits of gradients.
    pub passes: Option<Selection>,
    /// How many threads execute; 0 means one a core, more than [`MOST_THREADS`](crate::runtime_cpu::MOST_THREADS) are refused.
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
    /// With how many digits a GPU with matrix units multiplies the numbers of products, where nothing is learned and a cell
    /// goes on with their sums.
    /// `AUTOBATCH_TERMS` overrides the default, which is all of them.
    #[cfg(feature = "gpu")]
    pub terms: autobatch_runtime_wgpu::Terms,
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
            #[cfg(feature = "gpu")]
            terms: autobatch_runtime_wgpu::Terms::default(),
        }
    }
}

/// Plans graphs over one module and executes them.
pub struct Session {
    module: Arc<Module>,
    mirror: Mirror,
    /// Updates that were lost with a device and not told of yet.
    fallen: u64,
    planning: Planning,
    executor: AnyExecutor,
    /// How many threads execute and emit.
    threads: usize,
    last: Option<Arc<Verified<Plan>>>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("module", &self.module.name)
            .field("executor", &self.executor)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// A session with freshly drawn weights (seed 0) and default options.
    ///
    /// # Errors
    /// If the environment names an unknown policy or an instruction set that is not available, or there is
    /// no such device.
    pub fn new(module: impl Borrow<Arc<Module>>, device: Device) -> Result<Self> {
        let weights = Arc::new(Weights::try_init(module.borrow(), 0)?);
        Self::with_options(module, weights, SessionOptions { device, ..SessionOptions::default() })
    }

    /// A session with given weights and options.
    ///
    /// # Errors
    /// As [`new`](Self::new), or if the weights are another module's.
    pub fn with_options(
        module: impl Borrow<Arc<Module>>,
        weights: Arc<Weights>,
        options: SessionOptions,
    ) -> Result<Self> {
        let module = module.borrow();
        state::check_weights(module, &weights)?;
        let threads = threads_meant(options.threads);
        let executor = AnyExecutor::new(&options)?;
        let policy = if options.policy == Policy::default() { planning::policy()? } else { options.policy };
        Ok(Self {
            module: Arc::clone(module),
            mirror: Mirror::new(weights),
            fallen: 0,
            planning: Planning::new(
                Planner::new(policy.load()?),
                options.rows,
                options.passes,
                options.cached_plans,
            ),
            executor,
            threads,
            last: None,
        })
    }

    /// Chooses batches by a policy of the caller's from now on (`examples/my_policy.rs`); its orders are checked.
    #[must_use]
    pub fn with_schedule(mut self, policy: Box<dyn Schedule + Send + Sync>) -> Self {
        self.planning.follow(policy);
        self
    }

    /// An empty graph over the session's module. It is owned: emitting does not borrow the session.
    #[must_use]
    pub fn graph(&self) -> Graph {
        Graph::new(&self.module)
    }

    /// Whether the gradients of the next run are added to those of the last.
    pub(crate) fn accumulate_gradients(&mut self, keep: bool) {
        self.executor.set_accumulate_gradients(keep);
    }

    /// The plan that was executed last.
    #[must_use]
    pub fn last_plan(&self) -> Option<&Verified<Plan>> {
        self.last.as_deref()
    }

    /// How often plans were found in the cache.
    #[must_use]
    pub fn cache_stats(&self) -> CacheStats {
        self.planning.cache_stats()
    }

    /// Plans and executes what the values need, and gives access to them. The result borrows the
    /// session's memory: nothing is copied, and the next run must wait until it is gone.
    ///
    /// # Errors
    /// The first fault of emitting, or why the graph cannot be planned or executed; of an index that is out of range, the line.
    /// A value of another graph, and a graph of a module with other parameters.
    #[track_caller]
    pub fn run<'s, 'g>(
        &'s mut self,
        graph: &'g Graph,
        values: impl IntoIterator<Item = impl Borrow<Value<'g>>>,
    ) -> Result<Run<'s>> {
        graph.check()?;
        let wanted = growing::wanted(graph, values)?;
        let data = graph.data();
        self.check_module(&data)?;
        let request = Request { wanted: &wanted, rows: self.planning.rows(), ..Request::default() };
        let plan = self.planning.plan(&data, &request)?;
        self.execute(&plan, &data, Noise::Off).map_err(|error| explained(&data, error))?;
        Ok(Run::new(&self.executor, plan, graph, &wanted))
    }

    /// Whether a run, forward or in reverse, stops at the first result that is NaN or infinite though all that it is made of
    /// is finite, with an error that names the kernel. Off at first: it costs about as much as reading all results once
    /// more. A trainer that watches also refuses steps whose loss is finite and whose gradients are not. Executes on a GPU are not
    /// watched; [`eager`](Self::eager) finds the line of the model.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut m = ModuleBuilder::new("m");
    /// let w = m.param("w", [2], Init::ZEROS);
    /// let mut trainer = Trainer::new(m.build()?, Sgd::new(0.1))?;
    /// trainer.session().set_watch(true);
    /// // The root of 0 is finite, and its slope is not.
    /// let error = trainer.step([()], |g, ()| g.param(w).sqrt().sum()).expect_err("it is watched");
    /// assert!(error.to_string().contains("made NaN or an infinity of finite numbers"), "{error}");
    /// assert_eq!(trainer.weights().by_name("w").expect("it was declared"), [0.0; 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_watch(&mut self, watch: bool) {
        self.executor.set_watch(watch);
    }

    /// How many threads execute and emit.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// What plans graphs for this session.
    pub(crate) fn planning(&mut self) -> &mut Planning {
        &mut self.planning
    }

    /// Executes a plan of a graph; gives how long it took.
    pub(crate) fn execute(
        &mut self,
        plan: &Arc<Verified<Plan>>,
        graph: &GraphData,
        noise: Noise,
    ) -> Result<Duration> {
        let start = Instant::now();
        let executed = self.executor.execute(plan, &self.mirror.here().weights, bound(graph, noise));
        self.noticed(executed)?;
        self.last = Some(Arc::clone(plan));
        Ok(start.elapsed())
    }

    /// What executes, with the results of the last run.
    pub(crate) fn executor(&self) -> &AnyExecutor {
        &self.executor
    }

    /// The GPU that plans are executed on; nothing on the CPU, and from the loss of a device to the next run.
    #[cfg(feature = "gpu")]
    #[must_use]
    pub fn gpu(&self) -> Option<&autobatch_runtime_wgpu::Gpu> {
        self.executor.gpu()
    }

    /// The module that graphs stand on.
    #[must_use]
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }

    /// The module with the weights of this session as its initial values: what
    /// [`Module::save`] then writes is all that a program needs to use the model.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut m = ModuleBuilder::new("m");
    /// # m.param("w", [2], Init::Uniform(1.0));
    /// # let session = Session::new(&m.build()?, Device::Cpu)?;
    /// let bytes = session.bundle().to_bytes();
    /// let loaded = Session::new(&Module::from_bytes(&bytes).expect("it was just written"), Device::Cpu)?;
    /// assert_eq!(loaded.weights(), session.weights());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn bundle(&self) -> Arc<Module> {
        self.module.with_values(self.weights())
    }

    /// Executes on another device from now on. Weights stay.
    ///
    /// # Errors
    /// If there is no such device, or it gives no access; or if the one before cannot be read any more.
    pub fn on(mut self, device: Device) -> Result<Self> {
        self.settle()?;
        self.executor.move_to(&device)?;
        Ok(self)
    }

    /// The elements of one value; integers and truth values as their bits, which [`Row::words`] of a [`run`](Self::run) reads.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    #[track_caller]
    pub fn value(&mut self, value: Value<'_>) -> Result<Vec<f32>> {
        let run = self.run(value.graph(), [value])?;
        Ok(run[value].to_vec())
    }

    /// Emits one value per item, executes them together, and returns them in the items' order. More items than fit in memory
    /// together, or several values of each, are for [`run_in_parts`](Self::run_in_parts).
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn predict<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        emit: impl for<'g> Fn(&'g Graph, T) -> Value<'g>,
    ) -> Result<Vec<RowBuf>> {
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
        Ok(values.iter().map(|&value| run[value].to_buf()).collect())
    }
}

/// What a graph binds.
fn bound(graph: &GraphData, noise: Noise) -> Bound<'_> {
    Bound { words: &graph.bindings.words, floats: &graph.bindings.floats, noise }
}

/// The values of a run, in the session's memory.
pub struct Run<'s> {
    executor: &'s AnyExecutor,
    plan: Arc<Verified<Plan>>,
    graph: u32,
    rows: HashMap<ValueId, usize>,
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("values", &self.rows.len()).finish_non_exhaustive()
    }
}

impl<'s> Run<'s> {
    /// The values behind the outputs of the graph, in their order.
    fn new(executor: &'s AnyExecutor, plan: Arc<Verified<Plan>>, graph: &Graph, wanted: &[ValueId]) -> Self {
        let first = plan.outputs.len() - wanted.len();
        let rows = wanted.iter().enumerate().map(|(number, &value)| (value, first + number)).collect();
        Run { executor, plan, graph: graph.number(), rows }
    }

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
        Some(Row::new(self.executor.output(&self.plan, output)))
    }

    /// The elements of a named output; `None` if the graph has none of this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Row> {
        let output = self.plan.output(&OutputKey::named(name))?;
        Some(Row::new(self.executor.output(&self.plan, output)))
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

    /// The plan that was executed.
    #[must_use]
    pub fn plan(&self) -> &Verified<Plan> {
        &self.plan
    }
}

impl Index<Value<'_>> for Run<'_> {
    type Output = Row;

    /// # Panics
    /// If the value was not asked for.
    #[track_caller]
    fn index(&self, value: Value<'_>) -> &Row {
        let graph = value.graph().number();
        match self.get(value) {
            Some(row) => row,
            None if graph != self.graph => {
                panic!("{value:?} is of graph {graph}, and graph {} was run", self.graph)
            }
            None => panic!("{value:?} is not among the values that were run; ask for it, too"),
        }
    }
}
