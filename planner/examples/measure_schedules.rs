//! Measures the batching policies on real trees, lattices and sentences: batches per minibatch and time per job.
//!
//! `cargo run --release -p autobatch-planner --example measure_schedules -- DATA [SECTION [WORKLOAD]]` where DATA is a folder with
//! `sst/valid.txt` (one bracketed binary tree per line), `zh_lattice/train.txt` (three lines per sentence: characters, labels,
//! word spans `start:end`) and `wikiner/valid.txt` (tokens by spaces). SECTION is `counts` or
//! `speed`, any other word runs both. WORKLOAD is a part of the name of a workload.

use autobatch_planner::schedule::{
    Agenda, Auto, Batches, Beam, Depth, Fsm, Mean, Problem, Ratio, Schedule, Scratch, Training, Unbatched,
    check, path_sum_bound, train,
};
use autobatch_planner::{JobId, TypeIndex};
use bytemuck::TransparentWrapper;
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// An owned problem.
#[derive(Default, Clone)]
struct Graph {
    types: u32,
    ty: Vec<u32>,
    start: Vec<u32>,
    operands: Vec<u32>,
}

impl Graph {
    fn add(&mut self, ty: u32, operands: &[u32]) -> u32 {
        if self.start.is_empty() {
            self.start.push(0);
        }
        self.types = self.types.max(ty + 1);
        self.ty.push(ty);
        self.operands.extend_from_slice(operands);
        self.start.push(self.operands.len() as u32);
        self.ty.len() as u32 - 1
    }

    fn problem(&self) -> Problem<'_> {
        let (ty, operands) = (TypeIndex::wrap_slice(&self.ty), JobId::wrap_slice(&self.operands));
        Problem::new(self.types, ty, &[], &self.start, operands).expect("jobs are in topological order")
    }
}

/// Adds one bracketed tree: leaves of type 0, inner jobs of types 1..=cells, and with `out` an output on every job.
fn tree(graph: &mut Graph, line: &str, cells: u32, out: bool) {
    let spaced = line.replace('(', " ( ").replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split(' ').filter(|token| !token.is_empty()).collect();
    let (mut open, mut values, mut all) = (Vec::new(), Vec::new(), Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at] {
            "(" => {
                open.push(values.len());
                at += 1;
            }
            ")" => {
                let from = open.pop().unwrap_or(0);
                let job = match values.len() - from {
                    0 => graph.add(0, &[]),
                    _ => {
                        let cell = 1 + (mix(graph.ty.len() as u64) % u64::from(cells)) as u32;
                        graph.add(cell, &values.split_off(from))
                    }
                };
                values.push(job);
                all.push(job);
            }
            _ => {}
        }
        at += 1;
    }
    if out {
        for job in all {
            graph.add(cells + 1, &[job]);
        }
    }
}

fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (z ^ (z >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32
}

/// Adds one sentence with its word lattice. Types: 0 input, 1 character cell, 2 word cell, 3 sum of the words that end here,
/// 4 output. With `arity` the type of a sum depends on its number of words.
fn lattice(graph: &mut Graph, characters: usize, spans: &str, arity: bool) {
    let mut ending: Vec<Vec<usize>> = vec![Vec::new(); characters + 1];
    for span in spans.split(' ') {
        if let Some((from, to)) = span.split_once(':')
            && let (Ok(from), Ok(to)) = (from.parse::<usize>(), to.parse::<usize>())
        {
            ending[to].push(from);
        }
    }
    let mut cells: Vec<u32> = Vec::new();
    for at in 0..characters {
        let input = graph.add(0, &[]);
        let mut operands = vec![input];
        operands.extend(cells.last());
        let mut words = Vec::new();
        for &from in &ending[at + 1] {
            words.push(graph.add(2, &[cells[from]]));
        }
        if !words.is_empty() {
            let ty = if arity { 4 + words.len() as u32 } else { 3 };
            operands.push(graph.add(ty, &words));
        }
        cells.push(graph.add(1, &operands));
    }
    for cell in cells {
        graph.add(4, &[cell]);
    }
}

/// Two layers of forward and backward chains and an output.
fn bilstm(graph: &mut Graph, tokens: usize) {
    let mut inputs: Vec<Vec<u32>> = (0..tokens).map(|_| vec![graph.add(0, &[])]).collect();
    for layer in 0..2u32 {
        let chain = |graph: &mut Graph, ty: u32, order: &mut dyn Iterator<Item = usize>| {
            let (mut last, mut cells) = (None, vec![0; tokens]);
            for at in order {
                let operands: Vec<u32> = inputs[at].iter().copied().chain(last).collect();
                let cell = graph.add(ty, &operands);
                cells[at] = cell;
                last = Some(cell);
            }
            cells
        };
        let forward = chain(graph, 1 + 2 * layer, &mut (0..tokens));
        let backward = chain(graph, 2 + 2 * layer, &mut (0..tokens).rev());
        inputs = forward.into_iter().zip(backward).map(|(one, two)| vec![one, two]).collect();
    }
    for input in inputs {
        graph.add(5, &input);
    }
}

type Workload = (&'static str, Vec<Graph>);

fn minibatches<T>(items: &[T], size: usize, mut add: impl FnMut(&mut Graph, &T)) -> Vec<Graph> {
    items
        .chunks(size)
        .filter(|chunk| chunk.len() == size)
        .map(|chunk| {
            let mut graph = Graph::default();
            chunk.iter().for_each(|item| add(&mut graph, item));
            graph
        })
        .collect()
}

fn workloads(data: &Path) -> Result<Vec<Workload>, Box<dyn Error>> {
    let trees = std::fs::read_to_string(data.join("sst/valid.txt"))?;
    let trees: Vec<&str> = trees.lines().collect();
    let train = std::fs::read_to_string(data.join("sst/train.txt"))?;
    let train: Vec<&str> = train.lines().step_by(4).collect();
    let sentences = std::fs::read_to_string(data.join("zh_lattice/train.txt"))?;
    let lines: Vec<&str> = sentences.lines().collect();
    let lattices: Vec<(usize, &str)> =
        lines.chunks(4).filter(|lines| lines.len() >= 3).map(|l| (l[0].split(' ').count(), l[2])).collect();
    let tagged = std::fs::read_to_string(data.join("wikiner/valid.txt"))?;
    let lengths: Vec<usize> = tagged.lines().map(|line| line.split(' ').count()).collect();
    Ok(vec![
        ("sst binary Tree-LSTM", minibatches(&trees, 32, |graph, line| tree(graph, line, 1, true))),
        ("sst binary, training set", minibatches(&train, 32, |graph, line| tree(graph, line, 1, true))),
        (
            "sst two cell types, training set",
            minibatches(&train, 32, |graph, line| tree(graph, line, 2, true)),
        ),
        ("sst two cell types", minibatches(&trees, 32, |graph, line| tree(graph, line, 2, true))),
        ("sst three cell types", minibatches(&trees, 32, |graph, line| tree(graph, line, 3, true))),
        ("lattice LSTM", minibatches(&lattices, 32, |graph, &(n, spans)| lattice(graph, n, spans, true))),
        (
            "lattice, arity-free",
            minibatches(&lattices, 32, |graph, &(n, spans)| lattice(graph, n, spans, false)),
        ),
        ("2-layer BiLSTM", minibatches(&lengths, 32, |graph, &n| bilstm(graph, n))),
    ])
}

fn counts(out: &mut impl Write, workloads: &[Workload]) -> Result<(), Box<dyn Error>> {
    let mut scratch = Scratch::default();
    writeln!(out, "batches per minibatch of 32 (mean), and milliseconds per minibatch")?;
    for (name, graphs) in workloads {
        let problems: Vec<Problem<'_>> = graphs.iter().map(Graph::problem).collect();
        let mean = |total: usize| total as f64 / graphs.len() as f64;
        let bound: usize =
            problems.iter().map(|problem| path_sum_bound(problem, &mut scratch).total as usize).sum();
        let jobs: usize = problems.iter().map(Problem::len).sum();
        write!(
            out,
            "{name}: {} minibatches, jobs {:.0}, bound {:.1}",
            graphs.len(),
            mean(jobs),
            mean(bound)
        )?;
        let table = train(&problems[..problems.len().min(4)], &Training::default(), &mut scratch).table;
        let states = table.len();
        let policies: [(&str, Box<dyn Schedule>); 9] = [
            ("depth", Box::new(Depth)),
            ("agenda", Box::new(Agenda { mean: Mean::All })),
            ("agenda:remaining", Box::new(Agenda { mean: Mean::Remaining })),
            ("ratio", Box::new(Ratio)),
            ("fsm", Box::new(Fsm { table })),
            ("beam:1", Box::new(Beam { width: 1, ..Beam::default() })),
            ("beam:8", Box::new(Beam::default())),
            ("beam:32", Box::new(Beam { width: 32, ..Beam::default() })),
            ("auto", Box::new(Auto::default())),
        ];
        for (name, policy) in &policies {
            let begin = Instant::now();
            let orders: Vec<Batches> =
                problems.iter().map(|problem| policy.schedule(problem, &mut scratch)).collect();
            let each = begin.elapsed().as_secs_f64() * 1e3 / graphs.len() as f64;
            for (problem, order) in problems.iter().zip(&orders) {
                check(problem, order)?;
            }
            write!(out, " | {name} {:.1} ({each:.2} ms)", mean(orders.iter().map(Batches::len).sum()))?;
        }
        writeln!(out, " | {states} learned states")?;
    }
    Ok(())
}

/// The best time of several repetitions, in nanoseconds per job.
fn best(problem: &Problem<'_>, mut work: impl FnMut()) -> f64 {
    let repetitions = (4_000_000 / problem.len().max(1)).clamp(3, 200);
    let mut once = || {
        let begin = Instant::now();
        work();
        begin.elapsed().as_secs_f64() * 1e9 / problem.len() as f64
    };
    (0..repetitions).map(|_| once()).fold(f64::INFINITY, f64::min)
}

fn speed(out: &mut impl Write, workloads: &[Workload]) -> Result<(), Box<dyn Error>> {
    let mut scratch = Scratch::default();
    writeln!(out, "nanoseconds per job, best repetition, bound included where the policy computes it")?;
    for (name, graphs) in workloads {
        for size in [2_400, 24_000, 240_000, 1_000_000] {
            let mut graph = Graph::default();
            for source in graphs.iter().cycle() {
                if graph.ty.len() >= size {
                    break;
                }
                append(&mut graph, source, size);
            }
            let problem = graph.problem();
            write!(out, "{name}, {} jobs, {} edges:", problem.len(), problem.operand_count())?;
            let (agenda, beam, auto) = (Agenda::default(), Beam::default(), Auto::default());
            let policies: [&dyn Schedule; 6] = [&Unbatched, &Depth, &agenda, &Ratio, &beam, &auto];
            for policy in policies {
                if policy.name() == "beam" && size > 24_000 {
                    continue;
                }
                write!(
                    out,
                    " {} {:.1}",
                    policy.name(),
                    best(&problem, || drop(policy.schedule(&problem, &mut scratch)))
                )?;
            }
            let taken = best(&problem, || drop(path_sum_bound(&problem, &mut scratch)));
            let made = best(&problem, || _ = std::hint::black_box(graph.problem().len()));
            writeln!(out, " (bound {taken:.1}, checking the problem {made:.1})")?;
        }
    }
    Ok(())
}

/// Appends jobs of `source` until `graph` has `size` jobs.
fn append(graph: &mut Graph, source: &Graph, size: usize) {
    let base = graph.ty.len() as u32;
    let problem = source.problem();
    for job in problem.jobs().take(size - graph.ty.len()) {
        let operands: Vec<u32> = problem.operands(job).map(|operand| operand.0 + base).collect();
        graph.add(problem.ty_of(job).0, &operands);
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let data = arguments.next().ok_or("expected the data folder as first argument")?;
    let section = arguments.next();
    let filter = arguments.next().unwrap_or_default();
    let mut workloads = workloads(Path::new(&data))?;
    workloads.retain(|(name, _)| name.contains(&filter));
    let mut out = std::io::stdout().lock();
    if section.as_deref() != Some("speed") {
        counts(&mut out, &workloads)?;
    }
    if section.as_deref() != Some("counts") {
        speed(&mut out, &workloads)?;
    }
    Ok(())
}
