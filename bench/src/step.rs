//! One step of a model, with the times of its parts.

use crate::error::BenchError;
use crate::machine::Machine;
use crate::report::{KernelShare, PlanFacts};
use crate::{Mode, Options, chunks};
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::{self, Limits, Plan, UpdatePlan, Verified};
use autobatch_ir::{Graph, GraphData, States, Value, Weights};
use autobatch_models::catalogue::OpenModel;
use autobatch_nn::optim::{Adagrad, Adam, Optimize as _, Optimizer};
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Gradients, PlanCache, Planner, Request, Selection, update_plan};
use autobatch_runtime_cpu::Executor;
use std::ops::{AddAssign, Range};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The parts of a step that are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Emit,
    Plan,
    Verify,
    /// The whole execution; the phases below are parts of it.
    Execute,
    /// The update by the optimizer.
    Update,
    Read,
    /// On the CPU: looking up programs and packing weights, then the two directions and the reductions.
    Pack,
    Forward,
    Reverse,
    Reductions,
    /// On a GPU: the host's part, then waiting for the device.
    Compile,
    Upload,
    Encode,
    Wait,
}

impl Phase {
    /// The parts that make up a step.
    pub(crate) const STEP: [Self; 6] =
        [Self::Emit, Self::Plan, Self::Verify, Self::Execute, Self::Update, Self::Read];
    const COUNT: usize = Self::Wait as usize + 1;
}

/// The times of the parts of a step.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured([Duration; Phase::COUNT]);

impl Measured {
    pub(crate) fn of(&self, phase: Phase) -> Duration {
        self.0[phase as usize]
    }

    pub(crate) fn add(&mut self, phase: Phase, time: Duration) {
        self.0[phase as usize] += time;
    }

    pub(crate) fn total(&self) -> Duration {
        Phase::STEP.into_iter().map(|phase| self.of(phase)).sum()
    }

    pub(crate) fn divided(self, by: u32) -> Self {
        Self(self.0.map(|time| time / by))
    }

    /// Runs a part of a step and adds its time.
    fn timed<T>(&mut self, phase: Phase, run: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = run();
        self.add(phase, start.elapsed());
        result
    }
}

impl AddAssign for Measured {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }
}

/// An optimizer with its update plan and states.
struct Training {
    optimizer: Optimizer,
    plan: Verified<UpdatePlan>,
    states: States,
}

impl Training {
    /// Trains all parameters of a module: with Adagrad for model `c`, as the compared systems do, and
    /// with Adam otherwise. Without `sparse_rows`, every row of a table is updated.
    fn new(opened: &OpenModel, weights: &Weights, sparse_rows: bool) -> Result<Self, BenchError> {
        let optimizer: Optimizer = match opened.entry.letter {
            Some("c") => Adagrad::new(0.02).into(),
            _ => Adam::new(1e-3).into(),
        };
        let optimizer = if sparse_rows { optimizer.sparse_rows() } else { optimizer };
        let recipe = optimizer.recipe(&opened.module, &optimizer.all(&opened.module))?;
        let plan = update_plan(&opened.module, &recipe)?.verify()?;
        let states = recipe.states(weights, &opened.module)?;
        Ok(Self { optimizer, plan, states })
    }
}

/// Plans made in advance, one per graph of the step.
pub(crate) type Prepared = Vec<Verified<Plan>>;

/// Emits, plans and executes the instances of an opened model with one policy. Each runner has its own memory
/// and weights.
pub(crate) struct Runner<'p> {
    opened: &'p OpenModel,
    training: Option<Training>,
    graph: Graph,
    weights: Weights,
    planner: Planner,
    /// The plans of [`repeated_step`](Self::repeated_step).
    cache: PlanCache,
    machine: Machine,
    phases: bool,
    wanted: Vec<ValueId>,
    /// The wanted values as losses, with their weights.
    losses: Vec<(ValueId, f32)>,
    outputs: Vec<f32>,
}

impl<'p> Runner<'p> {
    pub(crate) fn new(opened: &'p OpenModel, policy: &Policy, options: &Options) -> Result<Self, BenchError> {
        let limits = Limits { memory: options.memory_limit, work: None };
        let mut machine = Machine::new(&options.device, options.threads, limits)?;
        if let Some(executor) = machine.cpu() {
            executor.set_counting(options.phases);
        }
        let weights = Weights::init(&opened.module, 0);
        let training = match options.mode {
            Mode::Infer => None,
            Mode::Train => Some(Training::new(opened, &weights, options.sparse_rows)?),
        };
        Ok(Self {
            opened,
            training,
            graph: Graph::new(&opened.module),
            weights,
            planner: Planner::new(policy.load()?),
            cache: PlanCache::new(chunks(opened).count()),
            machine,
            phases: options.phases,
            wanted: Vec::new(),
            losses: Vec::new(),
            outputs: Vec::new(),
        })
    }

    /// The concatenated outputs of the last step; in training, the losses.
    pub(crate) fn outputs(&self) -> &[f32] {
        &self.outputs
    }

    /// In training, the weights and the states of the optimizer.
    pub(crate) fn trained(&self) -> impl Iterator<Item = &[f32]> {
        self.training.iter().flat_map(|training| {
            let weights = self.weights.iter().map(|param| param.values());
            weights.chain(training.states.iter().map(|state| state.values()))
        })
    }

    /// The instruction set, or the GPU.
    pub(crate) fn device(&self) -> String {
        self.machine.description()
    }

    /// Emits, plans, verifies, executes and reads.
    pub(crate) fn full_step(&mut self) -> Result<Measured, BenchError> {
        let mut spent = Measured::default();
        self.outputs.clear();
        for instances in chunks(self.opened) {
            self.complete(instances, &mut spent)?;
        }
        Ok(spent)
    }

    /// Emits, plans, verifies, executes and reads the first graph.
    pub(crate) fn first_step(&mut self) -> Result<Measured, BenchError> {
        let mut spent = Measured::default();
        self.outputs.clear();
        let first = chunks(self.opened).next().ok_or(BenchError::NoInstances)?;
        self.complete(first, &mut spent)?;
        Ok(spent)
    }

    fn complete(&mut self, instances: Range<usize>, spent: &mut Measured) -> Result<(), BenchError> {
        spent.timed(Phase::Emit, || self.emit(instances))?;
        let plan = spent.timed(Phase::Plan, || self.plan())?;
        let plan = spent.timed(Phase::Verify, || plan.verify())?;
        self.execute(&plan, spent)
    }

    /// Emits, executes plans made in advance, and reads.
    pub(crate) fn prepared_step(&mut self, plans: &Prepared) -> Result<Measured, BenchError> {
        let mut spent = Measured::default();
        self.outputs.clear();
        for (instances, plan) in chunks(self.opened).zip(plans) {
            spent.timed(Phase::Emit, || self.emit(instances))?;
            self.execute(plan, &mut spent)?;
        }
        Ok(spent)
    }

    /// Emits, executes plans of the cache, and reads: a step of a session that meets the same structures again.
    pub(crate) fn repeated_step(&mut self) -> Result<Measured, BenchError> {
        let mut spent = Measured::default();
        self.outputs.clear();
        for instances in chunks(self.opened) {
            spent.timed(Phase::Emit, || self.emit(instances))?;
            let plan = spent.timed(Phase::Plan, || self.cached_plan())?;
            self.execute(&plan, &mut spent)?;
        }
        Ok(spent)
    }

    /// Looks every plan up so often that the cache has made it again with a longer search. Sums up the figures of the plans.
    pub(crate) fn settle(&mut self) -> Result<PlanFacts, BenchError> {
        let mut facts = PlanFacts::default();
        for instances in chunks(self.opened) {
            self.emit(instances)?;
            for _ in 1..SETTLED {
                self.cached_plan()?;
            }
            facts.add(&*self.cached_plan()?, self.graph.data().arena.len());
        }
        Ok(facts)
    }

    /// Plans all graphs.
    pub(crate) fn prepare(&mut self) -> Result<Prepared, BenchError> {
        chunks(self.opened).map(|instances| self.planned(instances).map(|(plan, _)| plan)).collect()
    }

    /// Plans all graphs and sums up the figures of the plans.
    pub(crate) fn facts(&mut self) -> Result<PlanFacts, BenchError> {
        let mut facts = PlanFacts::default();
        for instances in chunks(self.opened) {
            let (plan, nodes) = self.planned(instances)?;
            facts.add(&plan, nodes);
        }
        Ok(facts)
    }

    /// Emits and plans the first graph, and leaves it emitted.
    pub(crate) fn first_plan(&mut self) -> Result<Verified<Plan>, BenchError> {
        let first = chunks(self.opened).next().ok_or(BenchError::NoInstances)?;
        self.planned(first).map(|(plan, _)| plan)
    }

    /// Executes the plan of the last emitted graph and returns the time.
    pub(crate) fn execute_again(&mut self, plan: &Verified<Plan>) -> Result<Duration, BenchError> {
        let mut spent = Measured::default();
        self.outputs.clear();
        self.execute(plan, &mut spent)?;
        Ok(spent.of(Phase::Execute))
    }

    /// The executor of a measurement that only the CPU makes.
    pub(crate) fn executor(&mut self) -> &mut Executor {
        self.machine.cpu().expect("the arguments were checked to name the cpu")
    }

    fn planned(&mut self, instances: Range<usize>) -> Result<(Verified<Plan>, usize), BenchError> {
        self.emit(instances)?;
        let plan = self.plan()?.verify()?;
        Ok((plan, self.graph.data().arena.len()))
    }

    fn emit(&mut self, instances: Range<usize>) -> Result<(), BenchError> {
        self.graph.clear();
        let graph = &self.graph;
        let mut outputs: Vec<Value<'_>> = Vec::with_capacity(self.wanted.len());
        // The loss is the mean over instances.
        let share = 1.0 / instances.len() as f32;
        for instance in instances {
            graph.instance(instance as u64);
            match self.training {
                None => self.opened.workload.emit(graph, instance, &mut outputs),
                Some(_) => outputs.push(self.opened.workload.loss(graph, instance)),
            }
        }
        graph.check()?;
        self.wanted.clear();
        self.wanted.extend(outputs.iter().filter_map(|output| output.id()));
        self.losses.clear();
        self.losses.extend(self.wanted.iter().map(|&value| (value, share)));
        Ok(())
    }

    fn plan(&mut self) -> Result<Plan, BenchError> {
        let data = self.graph.data();
        let request = request(&self.wanted, &self.losses, self.training.is_some());
        plan_of(&mut self.planner, &data, &request, passes(&data, &request).as_ref())
    }

    fn cached_plan(&mut self) -> Result<Arc<Verified<Plan>>, BenchError> {
        let data = self.graph.data();
        let request = request(&self.wanted, &self.losses, self.training.is_some());
        let (passes, planner) = (passes(&data, &request), &mut self.planner);
        self.cache.get_or_plan(&data, &request, planner.policy(), passes.as_ref(), |executions| {
            planner.expect_executions(executions);
            let plan = plan_of(planner, &data, &request, passes.as_ref());
            planner.expect_executions(1);
            Ok(plan?.verify()?)
        })
    }

    fn execute(&mut self, plan: &Verified<Plan>, spent: &mut Measured) -> Result<(), BenchError> {
        let data = self.graph.data();
        spent.timed(Phase::Execute, || self.machine.execute(plan, &self.weights, &data))?;
        if self.phases {
            self.machine.add_phases(plan, spent);
        }
        if let Some(Training { optimizer, plan, states }) = &mut self.training {
            let (machine, weights) = (&mut self.machine, &mut self.weights);
            spent.timed(Phase::Update, || {
                machine.update(plan, weights, states, &optimizer.floats(states.updates() + 1, 1.0))
            })?;
        }
        let (machine, outputs) = (&self.machine, &mut self.outputs);
        spent.timed(Phase::Read, || {
            (0..plan.outputs.len())
                .for_each(|number| outputs.extend_from_slice(machine.output(plan, number)));
        });
        Ok(())
    }

    /// The kernels of the first graph, slowest first, each with its minimum time over some executions.
    pub(crate) fn kernels(&mut self, executions: usize) -> Result<Vec<KernelShare>, BenchError> {
        let plan = self.first_plan()?;
        let mut kernels = Vec::new();
        for _ in 0..executions {
            self.outputs.clear();
            self.execute(&plan, &mut Measured::default())?;
            let found = self.machine.kernels(&plan, &self.weights, &self.graph.data())?;
            kernels = KernelShare::least(&kernels, found);
        }
        Ok(kernels)
    }
}

/// The number of lookups of a plan before a repeated step is measured. Later lookups search longer only if that could pay.
const SETTLED: usize = 256;

fn request<'r>(wanted: &'r [ValueId], losses: &'r [(ValueId, f32)], trains: bool) -> Request<'r> {
    match trains {
        false => Request { wanted, ..Request::default() },
        true => Request {
            wanted,
            mode: plan::Mode::Train,
            training: true,
            gradients: Some(Gradients { losses, params: None, values: &[] }),
            ..Request::default()
        },
    }
}

/// The passes that sessions run before they plan; none for training.
fn passes(data: &GraphData, request: &Request<'_>) -> Option<Selection> {
    request.gradients.is_none().then(|| Selection::of_graph(data, request.mode))
}

fn plan_of(
    planner: &mut Planner,
    data: &GraphData,
    request: &Request<'_>,
    passes: Option<&Selection>,
) -> Result<Plan, BenchError> {
    match passes {
        Some(passes) => Ok(planner.optimize_and_plan(data, request, passes)?.plan),
        None => Ok(planner.plan(data, request)?),
    }
}
