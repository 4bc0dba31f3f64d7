//! Runs any number of cases of the targets, and prints their counts.
//!
//! `cargo run --release -p autobatch-fuzz --bin volume -- --cases 1000000`
//!
//! A run is a list of cases that its seed determines. With `--state` the program stores its counts every thousand cases and
//! continues where an interrupted run ended. A failing case prints the arguments that replay it. The program ends with the
//! exit code 1 if a case failed.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the program prints its counts")]

use autobatch_fuzz::{Bench, Case, Counts, Tally, Target, targets};
use autobatch_testing::hostile::Counting;
use clap::Parser;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The number of cases of a target between two writes of the state file.
const STRIDE: u64 = 1000;
/// The most failures of a target that the program keeps.
const FAILURES: usize = 20;
/// The most characters of a failure that the program shows.
const SHOWN: usize = 2000;

/// Runs cases of fuzz targets.
#[derive(Parser)]
struct Arguments {
    /// The targets, separated by commas. By default all.
    #[arg(long, value_delimiter = ',')]
    target: Vec<String>,
    /// The number of cases of each target.
    #[arg(long, default_value_t = 10_000)]
    cases: u64,
    /// The number of the first case.
    #[arg(long, default_value_t = 0)]
    start: u64,
    /// The seed of the run.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The file that holds the counts of an interrupted run.
    #[arg(long)]
    state: Option<PathBuf>,
    /// Print the number of each case before it runs, to find one that ends the process.
    #[arg(long)]
    trace: bool,
    /// Write the seeds of the targets into this folder, one folder for each target, and run no case.
    #[arg(long)]
    write_seeds: Option<PathBuf>,
    /// Write the input of the case --start into this file, and run no case.
    #[arg(long)]
    write_input: Option<PathBuf>,
}

/// The progress of one target.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Progress {
    /// The number of cases that ran.
    done: u64,
    counts: Counts,
    failures: Vec<String>,
}

/// The progress of all targets of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    seed: u64,
    start: u64,
    targets: BTreeMap<String, Progress>,
}

fn main() -> ExitCode {
    // A failing case prints its message below, with the arguments that replay it.
    std::panic::set_hook(Box::new(|_| {}));
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("volume: {message}");
            ExitCode::from(2)
        }
    }
}

/// Runs what the arguments request. Returns whether every case passed.
fn run(arguments: &Arguments) -> Result<bool, String> {
    let chosen = chosen(&arguments.target)?;
    if let Some(folder) = &arguments.write_seeds {
        return write_seeds(&chosen, folder).map(|()| true);
    }
    if let Some(file) = &arguments.write_input {
        let [target] = chosen[..] else { return Err("--write-input needs one --target".to_owned()) };
        let case = Case { seed: arguments.seed, number: arguments.start };
        let input = Bench::new(target).input(case);
        return std::fs::write(file, input).map(|()| true).map_err(|error| said(file, &error));
    }
    let mut state = stored(arguments)?;
    let mut benches: Vec<Bench> = chosen.into_iter().map(Bench::new).collect();
    // The targets take turns, so an interrupted run has cases of all of them.
    while benches.iter().any(|bench| state.done(bench) < arguments.cases) {
        for bench in &mut benches {
            let progress = state.targets.entry(bench.target().name.to_owned()).or_default();
            run_cases(bench, progress, arguments);
        }
        store(arguments, &state)?;
    }
    print(&state);
    Ok(state.targets.values().all(|progress| progress.failures.is_empty()))
}

impl State {
    /// Returns the number of cases of a target that ran.
    fn done(&self, bench: &Bench) -> u64 {
        self.targets.get(bench.target().name).map_or(0, |progress| progress.done)
    }
}

/// Runs the next cases of a target.
fn run_cases(bench: &mut Bench, progress: &mut Progress, arguments: &Arguments) {
    let end = arguments.cases.min(progress.done + STRIDE);
    while progress.done < end {
        let case = Case { seed: arguments.seed, number: arguments.start + progress.done };
        if arguments.trace {
            eprintln!("{} case {}", bench.target().name, case.number);
        }
        run_case(bench, case, progress);
        progress.done += 1;
    }
}

fn run_case(bench: &mut Bench, case: Case, progress: &mut Progress) {
    let input = bench.input(case);
    let notes = progress.counts.notes.len();
    let counts = &mut progress.counts;
    let outcome = catch_unwind(AssertUnwindSafe(|| bench.check(&input, counts)));
    let name = bench.target().name;
    let replay = format!("--target {name} --seed {} --start {} --cases 1", case.seed, case.number);
    for note in &mut progress.counts.notes[notes..] {
        *note = format!("{replay}: {note}");
    }
    if let Err(payload) = outcome {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        let text: String = text.chars().take(SHOWN).collect();
        eprintln!("FAILED {replay}\n{text}\n");
        if progress.failures.len() < FAILURES {
            progress.failures.push(format!("{replay}: {text}"));
        }
        // A panic may leave a subject in the middle of a change.
        *bench = Bench::new(bench.target());
    }
}

fn chosen(names: &[String]) -> Result<Vec<Target>, String> {
    let all = targets();
    let known = || all.iter().map(|target| target.name).collect::<Vec<_>>().join(", ");
    let find = |name: &String| all.iter().find(|target| target.name == *name).copied();
    match names {
        [] => Ok(all),
        _ => {
            let found = names.iter().map(|name| {
                find(name).ok_or_else(|| format!("unknown target {name}; use one of {}", known()))
            });
            found.collect()
        }
    }
}

fn said(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

fn write_seeds(chosen: &[Target], folder: &Path) -> Result<(), String> {
    for &target in chosen {
        let folder = folder.join(target.name);
        std::fs::create_dir_all(&folder).map_err(|error| said(&folder, &error))?;
        let bench = Bench::new(target);
        for (number, seed) in bench.seeds().iter().enumerate() {
            let file = folder.join(format!("seed-{number:03}"));
            std::fs::write(&file, seed).map_err(|error| said(&file, &error))?;
        }
        println!("{}: {} seeds", folder.display(), bench.seeds().len());
    }
    Ok(())
}

/// Reads the state of an interrupted run.
fn stored(arguments: &Arguments) -> Result<State, String> {
    let new = State { seed: arguments.seed, start: arguments.start, ..State::default() };
    let Some(path) = arguments.state.as_deref().filter(|path| path.exists()) else { return Ok(new) };
    let text = std::fs::read_to_string(path).map_err(|error| said(path, &error))?;
    let state: State = serde_json::from_str(&text).map_err(|error| said(path, &error))?;
    if (state.seed, state.start) != (new.seed, new.start) {
        let State { seed, start, .. } = state;
        return Err(said(path, &format!("it belongs to --seed {seed} --start {start}; use another file")));
    }
    Ok(state)
}

fn store(arguments: &Arguments, state: &State) -> Result<(), String> {
    let Some(path) = &arguments.state else { return Ok(()) };
    let text = serde_json::to_string_pretty(state).map_err(|error| said(path, &error))?;
    autobatch_ir::files::replace(path, text.as_bytes()).map_err(|error| said(path, &error))
}

/// Prints a row for each target, the plans of each setting, and all notes and failures.
fn print(state: &State) {
    print!("{:14}", "target");
    Tally::ALL.iter().for_each(|tally| print!("{:>11}", tally.name()));
    println!("{:>9}{:>9}", "read ‰", "case ‰");
    let mut total = Counts::default();
    for (name, Progress { counts, .. }) in &state.targets {
        row(name, counts);
        total.merge(counts);
    }
    row("total", &total);
    for (setting, plans) in &total.settings {
        println!("{plans:>11} plans {setting}");
    }
    for progress in state.targets.values() {
        progress.counts.notes.iter().for_each(|note| println!("note {note}"));
        progress.failures.iter().for_each(|failure| println!("FAILED {failure}"));
    }
}

fn row(name: &str, counts: &Counts) {
    print!("{name:14}");
    Tally::ALL.iter().for_each(|&tally| print!("{:>11}", counts.get(tally)));
    println!("{:>9}{:>9}", counts.reading, counts.whole);
}
