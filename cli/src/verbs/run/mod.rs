//! `run`: runs a model of the catalogue batched and unbatched, on the CPU or on a GPU.
//!
//! The unbatched variant executes the same kernels with the same packed weights, one node at a time
//! (policy `none`). It is warmed up and its plan is made in advance, outside the measured time. The
//! variants alternate, so that other load on the machine affects both, and the report shows medians.
//! Results are compared bit by bit.

mod device;

use super::plan::gap_text;
use crate::args::RunArgs;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::files::write_file;
use crate::picture;
use crate::planning;
use crate::steps::computing;
use crate::text::{byte_size, count, plural, table};
use autobatch::ir::graph::GraphData;
use autobatch::ir::id::ValueId;
use autobatch::ir::plan::{Plan, Verified};
use autobatch::prelude::*;
use autobatch_models::catalogue::{self, Problem};
use autobatch_oracle::check::{Wanted, check as prove};
use autobatch_planner::{Planner, Request};
use device::AnyExecutor;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Runs a model, compares both variants and writes graph, plan and picture.
pub fn run(args: &RunArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    console.ignore_closed_pipe();
    let options = catalogue::Options {
        data: args.data.as_ref().map(Into::into),
        seed: args.model.seed,
        count: args.batch,
        batch: args.batch,
        hidden: args.model.hidden,
        embedding: args.model.embedding,
        same: None,
    };
    let problem = catalogue::open(&args.model.name, &options)?;
    if problem.workload.instances() == 0 {
        return Err(Failure::input("the data has no instances"));
    }
    // An unwritable folder is reported before the measurements.
    std::fs::create_dir_all(&args.output).map_err(|error| Failure::output(&args.output, &error))?;
    let mut runner = Runner::new(args, &problem)?;
    let batched = runner.step(None)?;
    let single_plan = runner.planned(&mut Planner::new(planning::policy(&Policy::None)?))?;
    let unbatched = runner.step(Some(&single_plan))?;
    let same = batched.outputs.iter().map(|x| x.to_bits()).eq(unbatched.outputs.iter().map(|x| x.to_bits()));
    header(args, &problem, &runner, console)?;
    let plan = runner.plan.take().ok_or_else(|| Failure::input("the planner made no plan"))?;
    let nodes: u64 = computing(&plan).map(|(_, step)| u64::from(step.rows)).sum();
    let certificate = &plan.certificate;
    writeln!(
        console,
        "plan      {} -> {}, bound {}, {}; {} copied; {}\n",
        plural(nodes, "node"),
        plural(certificate.batches.into(), "batch"),
        certificate.bound,
        gap_text(&plan),
        plural(certificate.copied, "row"),
        byte_size(certificate.slab_bytes),
    )?;
    times(args, &mut runner, &single_plan, console)?;
    let numbers = count(batched.outputs.len() as u64);
    let verdict = if same { "yes" } else { "NO" };
    writeln!(console, "same bits         {verdict}, {numbers} numbers compared bit by bit")?;
    if !runner.executor.is_cpu() {
        let error = runner.error_against_cpu(&batched.outputs)?;
        writeln!(console, "against the cpu   maximum error {error:.1e} of the largest number")?;
    }
    let named = runner.named()?;
    let proven = proof(&named, &runner.problem_plan(&named)?, console)?;
    write_files(args, &problem, &mut runner, &named, console)?;
    Ok(if same && proven { Answer::Yes } else { Answer::No })
}

fn header(
    args: &RunArgs,
    problem: &Problem,
    runner: &Runner<'_>,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let entry = problem.entry;
    let parameters: usize = runner.weights.iter().map(|param| param.values().len()).sum();
    let hidden = args.model.hidden.unwrap_or(entry.hidden);
    let instances = runner.instances;
    let source = match &args.data {
        Some(path) => path.clone(),
        None => format!("generated (--data FILE reads a file), seed {}", args.model.seed),
    };
    writeln!(
        console,
        "{}  {}, width {hidden}, {} parameters; {} {}, {source}",
        entry.alias,
        entry.about,
        count(parameters as u64),
        count(instances as u64),
        entry.unit,
    )?;
    writeln!(console, "device    {}    (autobatch devices)", runner.executor.description())?;
    Ok(())
}

/// Measures both variants alternately and prints the medians.
fn times(
    args: &RunArgs,
    runner: &mut Runner<'_>,
    single: &Verified<Plan>,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let (mut batched, mut unbatched) = (Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        batched.push(runner.step(None)?.times);
        unbatched.push(runner.step(Some(single))?.times);
    }
    let mut rows = vec![["", "unbatched", "batched", ""].map(str::to_owned).to_vec()];
    for (part, name) in ["emit", "plan", "execute"].iter().enumerate() {
        let of = |times: &Times| times[part];
        let single = if *name == "plan" { "-".to_owned() } else { console.time(median(&unbatched, of)) };
        rows.push(vec![(*name).to_owned(), single, console.time(median(&batched, of)), String::new()]);
    }
    let total = |times: &Times| times.iter().sum();
    let (unbatched, batched) = (median(&unbatched, total), median(&batched, total));
    let gain = match console.millis(batched) {
        Some(_) => {
            let faster = unbatched.as_secs_f64() / batched.as_secs_f64().max(1e-9);
            let rate = runner.instances as f64 / batched.as_secs_f64().max(1e-9);
            format!("{faster:.1} x faster   {} {}/s", count(rate as u64), runner.problem.entry.unit)
        }
        None => ".. x faster".to_owned(),
    };
    rows.push(vec!["total".to_owned(), console.time(unbatched), console.time(batched), gain]);
    console.write_all(table(&rows, &[0, 3]).as_bytes())?;
    Ok(())
}

fn median(rounds: &[Times], part: impl Fn(&Times) -> Duration) -> Duration {
    let mut all: Vec<Duration> = rounds.iter().map(part).collect();
    all.sort_unstable();
    all[all.len() / 2]
}

/// Proves that the plan computes the graph and reports the result.
fn proof(graph: &GraphData, plan: &Verified<Plan>, console: &mut Console<'_>) -> Result<bool, Failure> {
    let proof = prove(plan, graph, Wanted { values: &[], training: false });
    let nodes: u64 = computing(plan).map(|(_, step)| u64::from(step.rows)).sum();
    let reads = plan.certificate.direct + plan.certificate.gathered;
    match &proof {
        Ok(_) => writeln!(
            console,
            "check             proven: {}, {}",
            plural(nodes, "node"),
            plural(reads, "operand read")
        )?,
        Err(disagreements) => writeln!(console, "check             not proven: {disagreements}")?,
    }
    Ok(proof.is_ok())
}

fn write_files(
    args: &RunArgs,
    problem: &Problem,
    runner: &mut Runner<'_>,
    graph: &GraphData,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let folder = Path::new(&args.output);
    let plan = runner.problem_plan(graph)?;
    let alias = problem.entry.alias;
    let file = |extension: &str| -> PathBuf { folder.join(format!("{alias}.{extension}")) };
    let write = |extension: &str, bytes: &[u8]| write_file(&file(extension).display().to_string(), bytes);
    write("abg", &graph.to_bytes())?;
    write("plan", plan.to_text().as_bytes())?;
    write("svg", picture::graph(graph, &plan, &args.model.policy().to_string()).as_bytes())?;
    writeln!(
        console,
        "wrote             {}  .abg  .svg  (the SVG shows the batches)",
        file("plan").display()
    )?;
    let why = separated(&plan, graph).map_or_else(String::new, |[a, b]| format!(" --why {a} {b}"));
    writeln!(
        console,
        "try               autobatch explain {}{why}     autobatch train {alias}",
        file("plan").display()
    )?;
    Ok(())
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

/// The times of emitting, planning and executing.
type Times = [Duration; 3];

/// The outputs of a step and its times.
struct StepResult {
    outputs: Vec<f32>,
    times: Times,
}

/// Emits, plans and executes all instances of a model.
struct Runner<'p> {
    problem: &'p Problem,
    graph: Graph,
    weights: Weights,
    planner: Planner,
    executor: AnyExecutor,
    instances: usize,
    /// The latest plan of `planner`.
    plan: Option<Verified<Plan>>,
}

impl<'p> Runner<'p> {
    fn new(args: &RunArgs, problem: &'p Problem) -> Result<Self, Failure> {
        Ok(Self {
            problem,
            graph: Graph::new(&problem.module),
            weights: Weights::init(&problem.module, args.model.seed),
            planner: Planner::new(planning::policy(&args.model.policy())?),
            executor: AnyExecutor::new(&args.model.device, args.threads)?,
            instances: problem.workload.instances().min(problem.batch),
            plan: None,
        })
    }

    fn emit(&mut self) -> Result<Vec<ValueId>, Failure> {
        self.graph.clear();
        let mut outputs = Vec::new();
        for instance in 0..self.instances {
            self.graph.instance(instance as u64);
            self.problem.workload.emit(&self.graph, instance, &mut outputs);
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
        let outputs = self.executor.execute(plan, &self.weights, &data)?;
        let times = [emitted - start, planned - emitted, planned.elapsed()];
        drop(data);
        self.plan = new_plan.or(self.plan.take());
        Ok(StepResult { outputs, times })
    }

    /// The maximum error of outputs against those of the CPU, relative to the largest.
    fn error_against_cpu(&mut self, found: &[f32]) -> Result<f32, Failure> {
        let wanted = self.emit()?;
        let data = self.graph.data();
        let plan = make_plan(&mut self.planner, &data, &wanted)?;
        let expected = AnyExecutor::new(&Device::Cpu, 0)?.execute(&plan, &self.weights, &data)?;
        let largest = expected.iter().fold(f32::MIN_POSITIVE, |most, x| most.max(x.abs()));
        let errors = found.iter().zip(&expected).map(|(a, b)| (a - b).abs() / largest);
        Ok(errors.fold(0.0, |most, error| if error.is_nan() { f32::INFINITY } else { most.max(error) }))
    }

    /// The graph of the first instances, with a name for every output.
    fn named_first(&self, instances: usize) -> Result<GraphData, Failure> {
        let graph = Graph::new(&self.problem.module);
        for instance in 0..instances {
            let mut outputs = Vec::new();
            graph.instance(instance as u64);
            self.problem.workload.emit(&graph, instance, &mut outputs);
            for (number, &output) in outputs.iter().enumerate() {
                graph.output(&format!("{instance}.{number}"), output);
            }
        }
        Ok(graph.finish().map_err(autobatch::Error::from)?)
    }

    fn named(&self) -> Result<GraphData, Failure> {
        self.named_first(self.instances)
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
