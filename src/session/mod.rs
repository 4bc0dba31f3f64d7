//! [`Session`]: plans and executes recorded graphs with fixed weights. Dropout is the identity; a
//! [`Trainer`](crate::Trainer) is a session that changes its weights.

mod gradients;
mod growing;
mod parts;
mod paused;
mod planning;
mod prefetch;
mod run;
mod state;
mod tasks;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::executor::AnyExecutor;
use crate::mirror::Mirror;
use crate::row::RowBuf;
use crate::train::explained;
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Limits, Plan, Verified};
use autobatch_ir::{Graph, Module, ParamId, Value, ValueId, Weights};
use autobatch_planner::passes::Selection;
use autobatch_planner::schedule::{Policy, Schedule};
use autobatch_planner::{CacheStats, Planner, Request, RowOrder};
use autobatch_runtime_cpu::{Inputs, Interrupt, resolve_threads};
pub use gradients::{Gradients, ParamGradient};
pub use growing::{Growing, SuspendedGrowth};
pub(crate) use parts::{Together, in_parts};
pub use paused::Paused;
pub(crate) use planning::Planning;
pub(crate) use prefetch::{Prefetch, Prepared};
pub use run::Run;
use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How a session plans and executes.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// The device that executes the plans.
    pub device: Device,
    /// The policy that chooses batches. `None` is the policy that `AUTOBATCH_POLICY` names, or `auto` if the
    /// variable is absent or empty. The variable never replaces a policy that is given here.
    pub policy: Option<Policy>,
    /// The order of the rows.
    pub rows: RowOrder,
    /// The passes that rewrite a graph before planning. With `None` the graph decides, see
    /// [`Selection::of_graph`], and plans with gradients use the graph unchanged. A model written op by op
    /// trains faster with `outline`, which may change the last bits of gradients.
    pub passes: Option<Selection>,
    /// The number of threads that execute. 0 means one per core; more than
    /// [`MAX_THREADS`](crate::runtime_cpu::MAX_THREADS) is an error. Threads share a wave (independent steps)
    /// only from [`shared_work`](Self::shared_work) on. A small model is therefore as fast on one thread.
    pub threads: usize,
    /// The floating-point operations of a wave from which threads share it. `None` means 3 million, about
    /// 30 µs of one core: sharing less work costs more than it saves on most machines. No bit depends on it.
    pub shared_work: Option<usize>,
    /// The seed of the noise of training, such as dropout.
    pub seed: u64,
    /// The number of plans that the session caches, by the structure of their graphs.
    pub cached_plans: usize,
    /// The limits on what the execution of a plan may take: memory with its parameters and temporaries, and work. A graph
    /// that needs more is an error that says how much, and nothing is allocated for it. By default there are no limits.
    ///
    /// ```
    /// use autobatch::prelude::*;
    /// use std::sync::Arc;
    ///
    /// let module = ModuleBuilder::new("sums").build().expect("an empty module");
    /// let weights = Arc::new(Weights::init(&module, 0));
    /// let options = SessionOptions { limits: Limits::of_memory(100), ..SessionOptions::default() };
    /// let mut session = Session::with_options(&module, weights, options).expect("weights fit");
    /// let graph = session.graph();
    /// let x = graph.input(&[1.0; 64]);
    /// let error = session.value(x + x).expect_err("64 floats are 256 bytes").to_string();
    /// assert!(error.contains("the memory limit is 100; plan a smaller minibatch"), "{error}");
    /// ```
    pub limits: Limits,
    /// Stops a run on the CPU early, with [`RunError::Stopped`](crate::runtime_cpu::RunError::Stopped): after a time limit, at a key,
    /// or for a client that no longer waits. The session works on afterwards, and a stopped training step changes nothing.
    ///
    /// ```
    /// use autobatch::prelude::*;
    /// use autobatch::runtime_cpu::Interrupt;
    /// use std::sync::Arc;
    /// use std::time::{Duration, Instant};
    ///
    /// let module = ModuleBuilder::new("sums").build().expect("an empty module");
    /// let end = Instant::now() + Duration::from_secs(60);
    /// let interrupt = Some(Interrupt::new(move || Instant::now() >= end));
    /// let options = SessionOptions { interrupt, ..SessionOptions::default() };
    /// let session = Session::with_options(&module, Arc::new(Weights::init(&module, 0)), options);
    /// # session.expect("weights fit");
    /// ```
    pub interrupt: Option<Interrupt>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            device: Device::Cpu,
            policy: None,
            rows: RowOrder::default(),
            passes: None,
            threads: 0,
            shared_work: None,
            seed: 0,
            cached_plans: 64,
            limits: Limits::NONE,
            interrupt: None,
        }
    }
}

/// Plans graphs over one module and executes them.
///
/// # Files of a session
/// With `AUTOBATCH_DUMP=dir`, the sessions of a process write their first 16 plans into the folder `dir`, and
/// with `AUTOBATCH_DUMP=dir:100` their first 100. Plans from the cache are not written again. All files of a
/// plan share a number and one of the words `infer`, `train` and `grow` (a graph that tasks extend):
///
/// | file | content |
/// |---|---|
/// | `0003-train.abg` | the graph of the plan, whose outputs are the requested values and the losses |
/// | `0003-train.abp` | the plan |
/// | `0003-infer.emitted.abg` | the graph as the model emitted it, if passes rewrote it |
///
/// `autobatch check 0003-train.abg 0003-train.abp` proves the plan, and
/// `autobatch explain 0003-train.abp` describes it.
pub struct Session {
    module: Arc<Module>,
    mirror: Mirror,
    /// The number of updates that a device loss destroyed and no call has reported yet.
    lost_updates: u64,
    planning: Planning,
    executor: AnyExecutor,
    /// The number of threads that emit and execute.
    threads: usize,
    /// The plan whose rows the executor holds.
    last: Option<Arc<Verified<Plan>>>,
    /// The number of executions that have begun. It tells whether the rows of an earlier one are still there.
    executions: u64,
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
    /// Creates a session with freshly drawn weights (seed 0) and default options.
    ///
    /// # Errors
    /// The environment names an unknown policy, an instruction set that this machine lacks or a number of
    /// dumped plans that is no number, or the device does not exist.
    pub fn new(module: impl Borrow<Arc<Module>>, device: Device) -> Result<Self> {
        let weights = Arc::new(Weights::try_init(module.borrow(), 0)?);
        Self::with_options(module, weights, SessionOptions { device, ..SessionOptions::default() })
    }

    /// Creates a session with the given weights and options.
    ///
    /// # Errors
    /// As [`new`](Self::new); also if the weights belong to another module.
    pub fn with_options(
        module: impl Borrow<Arc<Module>>,
        weights: Arc<Weights>,
        options: SessionOptions,
    ) -> Result<Self> {
        let module = module.borrow();
        state::check_weights(module, &weights)?;
        let threads = resolve_threads(options.threads);
        let executor = AnyExecutor::new(&options)?;
        let policy = options.policy.map_or_else(planning::policy, Ok)?;
        Ok(Self {
            module: Arc::clone(module),
            mirror: Mirror::new(weights),
            lost_updates: 0,
            planning: Planning::new(
                Planner::new(policy.load()?),
                options.rows,
                options.passes,
                options.cached_plans,
            )?,
            executor,
            threads,
            last: None,
            executions: 0,
        })
    }

    /// Uses the caller's own policy from now on (`examples/my_policy.rs`). The session checks its schedules.
    #[must_use]
    pub fn with_schedule(mut self, policy: Box<dyn Schedule + Send + Sync>) -> Self {
        self.planning.set_policy(policy);
        self
    }

    /// Returns an empty graph over the session's module. The caller owns it: emitting does not borrow the session.
    #[must_use]
    pub fn graph(&self) -> Graph {
        Graph::new(&self.module)
    }

    /// Sets whether the next run adds its gradients to those of the last run.
    pub(crate) fn accumulate_gradients(&mut self, keep: bool) {
        self.executor.set_accumulate_gradients(keep);
    }

    /// Returns the plan of the last run.
    #[must_use]
    pub fn last_plan(&self) -> Option<&Verified<Plan>> {
        self.last.as_deref()
    }

    /// Returns how often the plan cache had the plan of a graph, and how often it had to make one.
    #[must_use]
    pub fn cache_stats(&self) -> CacheStats {
        self.planning.cache_stats()
    }

    /// Plans and executes everything that the values need. The returned [`Run`] borrows the session's
    /// memory, so it copies nothing, and the next run has to wait until it is dropped.
    ///
    /// # Errors
    /// The first fault of emitting, or the reason why the graph cannot be planned or executed. An index out
    /// of range names the line of the model. A value of another graph, or a graph over a module with other
    /// parameters, is an error too.
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
        let executed = self.execute(&plan, &data, Noise::Off);
        executed.map_err(|error| self.explained(&data, &plan, &wanted, error))?;
        Ok(Run::new(&self.executor, plan, graph, &wanted))
    }

    /// Sets whether a run stops at the first NaN or infinity that a kernel computes from finite operands,
    /// forward or in reverse. The error names the kernel. The default is off: the watch reads every result
    /// once more. GPUs do not watch. [`eager`](Self::eager) finds the line of the model.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut m = ModuleBuilder::new("m");
    /// let w = m.param("w", [2], Init::ZEROS);
    /// let mut trainer = Trainer::new(m.build()?, Sgd::new(0.1))?;
    /// trainer.session().set_watch(true);
    /// // The square root of 0 is finite; its derivative is not.
    /// let error = trainer.step([()], |g, ()| g.param(w).sqrt().sum()).expect_err("the watch is on");
    /// assert!(error.to_string().contains("made NaN or an infinity of finite numbers"), "{error}");
    /// assert_eq!(trainer.weights().by_name("w").expect("the module declares w"), [0.0; 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_watch(&mut self, watch: bool) {
        self.executor.set_watch(watch);
    }

    /// Returns the number of threads that emit and execute.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Returns the planning half of the session.
    pub(crate) fn planning(&mut self) -> &mut Planning {
        &mut self.planning
    }

    /// Returns whether passes rewrite every graph, also one with gradients.
    pub(crate) fn always_rewrites(&self) -> bool {
        self.planning.always_rewrites()
    }

    /// Adds the item and the line to an error of executing a plan of this graph, where possible. `wanted` are the values
    /// of the request.
    pub(crate) fn explained(
        &self,
        graph: &GraphData,
        plan: &Plan,
        wanted: &[ValueId],
        error: Error,
    ) -> Error {
        explained(graph, || self.planning.planned_graph(graph, plan, wanted), error)
    }

    /// Executes a plan of a graph and returns the time it took.
    pub(crate) fn execute(
        &mut self,
        plan: &Arc<Verified<Plan>>,
        graph: &GraphData,
        noise: Noise,
    ) -> Result<Duration> {
        self.execute_by(AnyExecutor::execute, plan, graph, noise)
    }

    /// Executes a plan on the CPU, and leaves the sums of its gradients to [`complete`](Self::complete).
    pub(crate) fn execute_steps(
        &mut self,
        plan: &Arc<Verified<Plan>>,
        graph: &GraphData,
        noise: Noise,
    ) -> Result<Duration> {
        self.execute_by(AnyExecutor::execute_steps, plan, graph, noise)
    }

    fn execute_by(
        &mut self,
        method: fn(&mut AnyExecutor, &Verified<Plan>, &Weights, Inputs<'_>) -> Result<()>,
        plan: &Arc<Verified<Plan>>,
        graph: &GraphData,
        noise: Noise,
    ) -> Result<Duration> {
        let start = Instant::now();
        self.executions += 1;
        let weights = &self.mirror.host_copy().weights;
        let executed = method(&mut self.executor, plan, weights, inputs_of(graph, noise));
        self.handle_device_loss(executed)?;
        self.last = Some(Arc::clone(plan));
        Ok(start.elapsed())
    }

    /// Completes gradients of the plan whose steps were executed last; all that are left for `None`.
    pub(crate) fn complete(
        &mut self,
        plan: &Verified<Plan>,
        graph: &GraphData,
        params: Option<&[ParamId]>,
    ) -> Result<()> {
        let weights = &self.mirror.host_copy().weights;
        self.executor.complete(plan, weights, &graph.bindings.words, params)
    }

    /// Returns the executor, which holds the results of the last run.
    pub(crate) fn executor(&self) -> &AnyExecutor {
        &self.executor
    }

    /// Returns the GPU that executes the plans. `None` on the CPU, and between a device loss and the next run.
    #[cfg(feature = "gpu")]
    #[must_use]
    pub fn gpu(&self) -> Option<&autobatch_runtime_wgpu::Gpu> {
        self.executor.gpu()
    }

    /// Returns the module of the session's graphs.
    #[must_use]
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }

    /// Returns the module with this session's weights as its initial values. A file of it
    /// ([`Module::save`]) is all that another program needs to use the model.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut m = ModuleBuilder::new("m");
    /// # m.param("w", [2], Init::Uniform(1.0));
    /// # let session = Session::new(&m.build()?, Device::Cpu)?;
    /// let bytes = session.bundle().to_bytes();
    /// let loaded = Session::new(&Module::from_bytes(&bytes).expect("the bytes are whole"), Device::Cpu)?;
    /// assert_eq!(loaded.weights(), session.weights());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn bundle(&self) -> Arc<Module> {
        self.module.with_values(self.weights())
    }

    /// Moves the session to another device. The weights stay.
    ///
    /// # Errors
    /// The device does not exist or cannot be opened, or the previous device cannot be read any more.
    pub fn on_device(mut self, device: Device) -> Result<Self> {
        self.settle()?;
        self.executor.move_to(&device)?;
        Ok(self)
    }

    /// Computes one value and returns its elements, integers and truth values as numbers.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    #[track_caller]
    pub fn value(&mut self, value: Value<'_>) -> Result<Vec<f32>> {
        let run = self.run(value.graph(), [value])?;
        Ok(RowBuf::of(&run[value], value.ty().dtype).into_vec())
    }

    /// Emits one value per item, executes all of them together, and returns them in the order of the items.
    /// [`run_in_parts`](Self::run_in_parts) serves items that do not fit in memory together, and models
    /// with several values per item.
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
        Ok(values.iter().map(|&value| RowBuf::of(&run[value], value.ty().dtype)).collect())
    }
}

/// Returns the bindings of a graph.
fn inputs_of(graph: &GraphData, noise: Noise) -> Inputs<'_> {
    Inputs { words: &graph.bindings.words, floats: &graph.bindings.floats, noise }
}
