//! One step, and how long its parts take.

use crate::Options;
use crate::chunks;
use crate::error::BenchError;
use crate::report::PlanFacts;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Plan, Verified};
use autobatch_ir::{Graph, Value, Weights};
use autobatch_models::catalogue::Problem;
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Planner, Request};
use autobatch_runtime_cpu::{Bound, Player};
use std::ops::{AddAssign, Range};
use std::time::{Duration, Instant};

/// How long the parts of a step took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) emit: Duration,
    pub(crate) plan: Duration,
    pub(crate) verify: Duration,
    pub(crate) play: Duration,
    pub(crate) read: Duration,
}

impl Measured {
    pub(crate) fn total(&self) -> Duration {
        self.emit + self.plan + self.verify + self.play + self.read
    }

    pub(crate) fn divided(self, by: u32) -> Self {
        let Self { emit, plan, verify, play, read } = self;
        Self { emit: emit / by, plan: plan / by, verify: verify / by, play: play / by, read: read / by }
    }
}

impl AddAssign for Measured {
    fn add_assign(&mut self, other: Self) {
        self.emit += other.emit;
        self.plan += other.plan;
        self.verify += other.verify;
        self.play += other.play;
        self.read += other.read;
    }
}

/// Plans made beforehand, one a graph of the step.
pub(crate) type Prepared = Vec<Verified<Plan>>;

/// Emits, plans and plays the instances of a problem under one policy, with memory and weights of
/// its own.
pub(crate) struct Runner<'p> {
    problem: &'p Problem,
    graph: Graph,
    weights: Weights,
    planner: Planner,
    player: Player,
    wanted: Vec<ValueId>,
    outputs: Vec<f32>,
}

/// Runs a part of a step and adds how long it took.
fn timed<T>(spent: &mut Duration, part: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = part();
    *spent += start.elapsed();
    result
}

impl<'p> Runner<'p> {
    pub(crate) fn new(problem: &'p Problem, policy: &Policy, options: &Options) -> Result<Self, BenchError> {
        let threads = match options.threads {
            0 => std::thread::available_parallelism().map_or(1, |cores| cores.get()),
            threads => threads,
        };
        let mut player = Player::new(threads)?;
        player.set_memory_limit(options.memory_limit);
        Ok(Self {
            problem,
            graph: Graph::new(&problem.module),
            weights: Weights::init(&problem.module, 0),
            planner: Planner::new(policy.load()?),
            player,
            wanted: Vec::new(),
            outputs: Vec::new(),
        })
    }

    /// What the last step gave, all instances' outputs one after another.
    pub(crate) fn outputs(&self) -> &[f32] {
        &self.outputs
    }

    pub(crate) fn isa(&self) -> String {
        self.player.isa().to_string()
    }

    /// Emits, plans, verifies, plays and reads.
    pub(crate) fn fresh_step(&mut self) -> Result<Measured, BenchError> {
        let mut spent = Measured::default();
        self.outputs.clear();
        for instances in chunks(self.problem) {
            timed(&mut spent.emit, || self.emit(instances))?;
            let plan = {
                let data = self.graph.data();
                let request = Request { wanted: &self.wanted, ..Request::default() };
                timed(&mut spent.plan, || self.planner.plan(&data, &request))?
            };
            let plan = timed(&mut spent.verify, || plan.verify())?;
            self.play(&plan, &mut spent)?;
        }
        Ok(spent)
    }

    /// Emits, plays plans made before, and reads.
    pub(crate) fn known_step(&mut self, plans: &Prepared) -> Result<Measured, BenchError> {
        let mut spent = Measured::default();
        self.outputs.clear();
        for (instances, plan) in chunks(self.problem).zip(plans) {
            timed(&mut spent.emit, || self.emit(instances))?;
            self.play(plan, &mut spent)?;
        }
        Ok(spent)
    }

    /// The plans of all graphs.
    pub(crate) fn prepare(&mut self) -> Result<Prepared, BenchError> {
        chunks(self.problem).map(|instances| self.planned(instances).map(|(plan, _)| plan)).collect()
    }

    /// What plans of all graphs look like, summed up.
    pub(crate) fn facts(&mut self) -> Result<PlanFacts, BenchError> {
        let mut facts = PlanFacts::default();
        for instances in chunks(self.problem) {
            let (plan, applications) = self.planned(instances)?;
            facts.add(&plan, applications);
        }
        Ok(facts)
    }

    /// Emits and plans the first graph, which stays.
    pub(crate) fn first_plan(&mut self) -> Result<Verified<Plan>, BenchError> {
        let first = chunks(self.problem).next().ok_or(BenchError::NoInstances)?;
        self.planned(first).map(|(plan, _)| plan)
    }

    /// Plays the plan of the graph that was emitted last, and says how long that took.
    pub(crate) fn replay(&mut self, plan: &Verified<Plan>) -> Result<Duration, BenchError> {
        let mut spent = Measured::default();
        self.outputs.clear();
        self.play(plan, &mut spent)?;
        Ok(spent.play)
    }

    /// Who plays.
    pub(crate) fn player(&mut self) -> &mut Player {
        &mut self.player
    }

    fn planned(&mut self, instances: Range<usize>) -> Result<(Verified<Plan>, usize), BenchError> {
        self.emit(instances)?;
        let data = self.graph.data();
        let request = Request { wanted: &self.wanted, ..Request::default() };
        let plan = self.planner.plan(&data, &request)?.verify()?;
        Ok((plan, data.arena.len()))
    }

    fn emit(&mut self, instances: Range<usize>) -> Result<(), BenchError> {
        self.graph.clear();
        let graph = &self.graph;
        let mut outputs: Vec<Value<'_>> = Vec::with_capacity(self.wanted.len());
        for instance in instances {
            graph.instance(instance as u64);
            self.problem.workload.emit(graph, instance, &mut outputs);
        }
        graph.check()?;
        self.wanted.clear();
        self.wanted.extend(outputs.iter().filter_map(|output| output.id()));
        Ok(())
    }

    fn play(&mut self, plan: &Verified<Plan>, spent: &mut Measured) -> Result<(), BenchError> {
        let data = self.graph.data();
        let bound = bound(&data);
        timed(&mut spent.play, || self.player.play(plan, &self.weights, bound))?;
        let (player, outputs) = (&self.player, &mut self.outputs);
        timed(&mut spent.read, || {
            (0..plan.outputs.len()).for_each(|number| outputs.extend_from_slice(player.output(plan, number)));
        });
        Ok(())
    }
}

fn bound(data: &GraphData) -> Bound<'_> {
    Bound { words: &data.bindings.words, floats: &data.bindings.floats, noise: Noise::Off }
}
