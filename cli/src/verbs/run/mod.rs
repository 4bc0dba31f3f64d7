//! `run`: runs a model of the catalogue batched and unbatched, on the CPU or on a GPU.
//!
//! The unbatched variant executes the same kernels with the same packed weights, one node at a time
//! (policy `none`). It is warmed up and its plan is made in advance, outside the measured time. The
//! variants alternate, so that other load on the machine affects both, and the report shows medians.
//! Results are compared bit by bit.

mod report;
mod training;

use crate::args::{ModeArg, RunArgs};
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::files::write_file;
use crate::picture;
use crate::planning;
use autobatch::ir::graph::GraphData;
use autobatch::ir::id::ValueId;
use autobatch::ir::plan::{Limits, Plan, Verified};
use autobatch::prelude::*;
use autobatch::runtime_cpu::resolve_threads;
use autobatch_bench::Machine;
use autobatch_inspector::steps::computing;
use autobatch_models::catalogue::{self, OpenModel};
use autobatch_oracle::check::{Wanted, check as prove};
use autobatch_planner::{Planner, Request};
use report::{Files, Medians, RunResult, Split};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Runs a model, compares both variants and writes graph, plan and picture.
pub fn run(args: &RunArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    console.ignore_closed_pipe();
    if args.mode == ModeArg::Train {
        return training::run(args, console);
    }
    let opened = open(args, args.batch)?;
    // An unwritable folder is reported before the measurements.
    if let Some(folder) = &args.output {
        std::fs::create_dir_all(folder).map_err(|error| Failure::output(folder, &error))?;
    }
    let mut runner = Runner::new(args, &opened)?;
    let batched = runner.step(None)?;
    let single_plan = runner.planned(&mut Planner::new(planning::policy(&Policy::None)?))?;
    let unbatched = runner.step(Some(&single_plan))?;
    let same = batched.outputs.iter().map(|x| x.to_bits()).eq(unbatched.outputs.iter().map(|x| x.to_bits()));
    let plan = runner.plan.take().ok_or_else(|| Failure::input("the planner made no plan"))?;
    let times = times(args, &mut runner, &single_plan)?;
    let error = match runner.executor.is_cpu() {
        true => None,
        false => Some(runner.error_against_cpu(&batched.outputs)?),
    };
    let named = runner.named()?;
    let named_plan = runner.problem_plan(&named)?;
    let proof = prove(&named_plan, &named, Wanted { values: &[], training: false });
    let proof = proof.map(|_| ()).map_err(|disagreements| disagreements.to_string());
    let numbers = batched.outputs.len() as u64;
    let files = write_files(args, &opened, &mut runner, &named)?;
    let result = RunResult {
        opened: &opened,
        runner: &runner,
        plan: &plan,
        times,
        same,
        numbers,
        error,
        proof,
        files,
    };
    match args.json {
        true => writeln!(console, "{:#}", result.json(args, console))?,
        false => result.print(args, console)?,
    }
    Ok(if same && result.proof.is_ok() { Answer::Yes } else { Answer::No })
}

/// Opens the model with a number of generated instances.
fn open(args: &RunArgs, count: Option<usize>) -> Result<OpenModel, Failure> {
    let options = catalogue::Options {
        corpus: args.model.data.as_ref().map(Into::into),
        instances: args.peer_data.as_ref().map(Into::into),
        seed: args.model.seed,
        count,
        batch: args.batch,
        hidden: args.model.hidden,
        embedding: args.model.embedding,
        same: None,
    };
    let opened = catalogue::open(&args.model.name, &options)?;
    if opened.workload.instances() == 0 {
        return Err(Failure::input("the data has no instances"));
    }
    Ok(opened)
}

/// No further measurement begins after this time. A model of many words takes a minute for one unbatched step.
const PATIENCE: Duration = Duration::from_secs(20);

/// Measures both variants alternately.
fn times(args: &RunArgs, runner: &mut Runner<'_>, single: &Verified<Plan>) -> Result<Medians, Failure> {
    let (mut batched, mut unbatched) = (Vec::new(), Vec::new());
    let (start, mut bar) = (Instant::now(), Bar::new("run", args.rounds as usize));
    for round in 1..=args.rounds {
        if round > 1 && start.elapsed() > PATIENCE {
            break;
        }
        batched.push(runner.step(None)?.times);
        unbatched.push(runner.step(Some(single))?.times);
        bar.advance(&format!("round {round}"));
    }
    Ok(Medians { unbatched: Split::of(&unbatched), batched: Split::of(&batched) })
}

/// Writes the graph, the plan and the picture, if the options name a folder.
fn write_files(
    args: &RunArgs,
    opened: &OpenModel,
    runner: &mut Runner<'_>,
    graph: &GraphData,
) -> Result<Option<Files>, Failure> {
    let Some(folder) = &args.output else { return Ok(None) };
    let plan = runner.problem_plan(graph)?;
    let file = |extension: &str| -> String {
        Path::new(folder).join(format!("{}.{extension}", opened.entry.name)).display().to_string()
    };
    let [graph_path, plan_path, picture_path] = ["abg", "plan", "svg"].map(file);
    write_file(&graph_path, &graph.to_bytes())?;
    write_file(&plan_path, plan.to_text().as_bytes())?;
    let picture = picture::graph(graph, &plan, &args.model.policy().to_string());
    write_file(&picture_path, picture.as_bytes())?;
    let example = separated(&plan, graph);
    Ok(Some(Files { graph: graph_path, plan: plan_path, picture: picture_path, example }))
}

/// Two values of one kernel that different steps compute, as an example for `explain --why`.
fn separated(plan: &Plan, graph: &GraphData) -> Option<[ValueId; 2]> {
    let first = |step: &autobatch::ir::plan::Step| {
        plan.lanes(step).first().map(|&node| ValueId::new(graph.arena.results(node).start))
    };
    let steps: Vec<_> = computing(plan).map(|(_, step)| step).collect();
    let later = |number: usize| steps[number + 1..].iter().find(|step| step.kernel == steps[number].kernel);
    let number = (0..steps.len()).find(|&number| later(number).is_some())?;
    Some([first(steps[number])?, first(later(number)?)?])
}

/// The outputs of a step and its times.
struct StepResult {
    outputs: Vec<f32>,
    times: Split,
}

/// Emits, plans and executes all instances of a model.
struct Runner<'p> {
    opened: &'p OpenModel,
    graph: Graph,
    weights: Weights,
    planner: Planner,
    executor: Machine,
    /// The device in words.
    device: String,
    instances: usize,
    /// The latest plan of `planner`.
    plan: Option<Verified<Plan>>,
}

impl<'p> Runner<'p> {
    fn new(args: &RunArgs, opened: &'p OpenModel) -> Result<Self, Failure> {
        let mut executor = Machine::new(&args.model.device, args.threads, Limits::NONE)?;
        let device = match executor.cpu() {
            Some(cpu) => {
                let [own, all] = [args.threads, 0].map(resolve_threads);
                format!("CPU  {}  {own} of {all} threads", cpu.isa())
            }
            None => executor.description(),
        };
        Ok(Self {
            opened,
            graph: Graph::new(&opened.module),
            weights: Weights::init(&opened.module, args.model.seed),
            planner: Planner::new(planning::policy(&args.model.policy())?),
            executor,
            device,
            instances: opened.workload.instances().min(opened.batch),
            plan: None,
        })
    }

    fn emit(&mut self) -> Result<Vec<ValueId>, Failure> {
        self.graph.clear();
        let mut outputs = Vec::new();
        for instance in 0..self.instances {
            self.graph.instance(instance as u64);
            self.opened.workload.emit(&self.graph, instance, &mut outputs);
        }
        self.graph.check().map_err(autobatch::Error::from)?;
        Ok(outputs.iter().filter_map(|output| output.id()).collect())
    }

    /// Emits the graph and plans it with another planner.
    fn planned(&mut self, planner: &mut Planner) -> Result<Verified<Plan>, Failure> {
        let wanted = self.emit()?;
        make_plan(planner, &self.graph.data(), &wanted)
    }

    /// Emits, plans unless a plan is given, executes and reads the outputs.
    fn step(&mut self, plan: Option<&Verified<Plan>>) -> Result<StepResult, Failure> {
        let start = Instant::now();
        let wanted = self.emit()?;
        let emitted = Instant::now();
        let data = self.graph.data();
        let new_plan = match plan {
            Some(_) => None,
            None => Some(make_plan(&mut self.planner, &data, &wanted)?),
        };
        let planned = Instant::now();
        let plan = plan.or(new_plan.as_ref()).ok_or_else(|| Failure::input("the planner made no plan"))?;
        self.executor.execute(plan, &self.weights, &data)?;
        let outputs = self.executor.outputs(plan);
        let times = Split { emit: emitted - start, plan: planned - emitted, execute: planned.elapsed() };
        drop(data);
        self.plan = new_plan.or(self.plan.take());
        Ok(StepResult { outputs, times })
    }

    /// The maximum error of outputs against those of the CPU, relative to the largest.
    fn error_against_cpu(&mut self, found: &[f32]) -> Result<f32, Failure> {
        let wanted = self.emit()?;
        let data = self.graph.data();
        let plan = make_plan(&mut self.planner, &data, &wanted)?;
        let mut cpu = Machine::new(&Device::Cpu, 0, Limits::NONE)?;
        cpu.execute(&plan, &self.weights, &data)?;
        let expected = cpu.outputs(&plan);
        let largest = expected.iter().fold(f32::MIN_POSITIVE, |most, x| most.max(x.abs()));
        let errors = found.iter().zip(&expected).map(|(a, b)| (a - b).abs() / largest);
        Ok(errors.fold(0.0, |most, error| if error.is_nan() { f32::INFINITY } else { most.max(error) }))
    }

    /// The graph, with a name for every output.
    fn named(&self) -> Result<GraphData, Failure> {
        let graph = Graph::new(&self.opened.module);
        for instance in 0..self.instances {
            let mut outputs = Vec::new();
            graph.instance(instance as u64);
            self.opened.workload.emit(&graph, instance, &mut outputs);
            for (number, &output) in outputs.iter().enumerate() {
                graph.output(&format!("{instance}.{number}"), output);
            }
        }
        Ok(graph.finish().map_err(autobatch::Error::from)?)
    }

    /// Plans a graph with named outputs.
    fn problem_plan(&mut self, graph: &GraphData) -> Result<Verified<Plan>, Failure> {
        make_plan(&mut self.planner, graph, &[])
    }
}

fn make_plan(
    planner: &mut Planner,
    graph: &GraphData,
    wanted: &[ValueId],
) -> Result<Verified<Plan>, Failure> {
    let request = Request { wanted, ..Request::default() };
    let plan = planner.plan(graph, &request).map_err(autobatch::Error::from)?;
    Ok(plan.verify().map_err(autobatch::Error::from)?)
}
