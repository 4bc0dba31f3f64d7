//! `fsm-train`: trains a table for policy `fsm` on sample graphs.

use crate::args::FsmArgs;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::files::{Form, form_of, load_graph, write};
use crate::output_paths::{check_distinct, check_writable};
use crate::progress::Waiting;
use autobatch_inspector::text::plural;
use autobatch_planner::Jobs;
use autobatch_planner::schedule::{
    Fsm, Learned, Problem, Ratio, Schedule, Scratch, Training, TrainingLimit, path_sum_bound, train,
};
use std::io::Write;

/// The limit that ended the training, with the remedy.
fn limit_text(limit: TrainingLimit) -> &'static str {
    match limit {
        TrainingLimit::Words => "the states of the table fill their memory; use smaller samples",
        TrainingLimit::Visits => "the limit of work; use smaller samples, or raise --work-limit",
    }
}

/// Trains a table and writes it.
pub fn fsm_train(args: &FsmArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    if args.output != "-" && form_of(&args.output) != Some(Form::Json) {
        let message = format!("{}: the table must be a .json file", args.output);
        return Err(Failure::usage(message).help("name a .json file, or use - for standard output"));
    }
    if args.output == "-" && args.json {
        return Err(
            Failure::usage("-o - and --json both write to standard output").help("name a file for the table")
        );
    }
    check_distinct(&[&args.output], &args.graphs.iter().map(String::as_str).collect::<Vec<_>>())?;
    check_writable(&args.output)?;
    let graphs = args.graphs.iter().map(|path| load_graph(path)).collect::<Result<Vec<_>, Failure>>()?;
    let jobs: Vec<Jobs> = graphs.iter().map(|graph| Jobs::new(graph, &[])).collect();
    let samples: Vec<Problem<'_>> = jobs.iter().map(Jobs::problem).collect();
    let mut scratch = Scratch::default();
    let waiting = Waiting::new("training the table");
    let training = Training { episodes: args.episodes, seed: args.seed, ..Training::default() };
    let training = Training { visits: args.work_limit.unwrap_or(training.visits), ..training };
    let Learned { table, episodes, limit } = train(&samples, &training, &mut scratch);
    drop(waiting);
    write(&args.output, table.to_json().as_bytes(), console)?;
    if args.output == "-" {
        return Ok(Answer::Yes);
    }
    let states = table.len() as u64;
    let policy = Fsm { table };
    let batches = |policy: &dyn Schedule, scratch: &mut Scratch| -> usize {
        samples.iter().map(|sample| policy.schedule(sample, scratch).len()).sum()
    };
    let (fsm, ratio) = (batches(&policy, &mut scratch), batches(&Ratio, &mut scratch));
    let bound: u32 = samples.iter().map(|sample| path_sum_bound(sample, &mut scratch).total).sum();
    if args.json {
        let answer = serde_json::json!({
            "table": args.output, "states": states, "graphs": samples.len(),
            "batches": { "fsm": fsm, "ratio": ratio }, "bound": bound,
            "episodes": episodes, "limit": limit.map(limit_text),
        });
        writeln!(console, "{answer:#}")?;
        return Ok(Answer::Yes);
    }
    writeln!(
        console,
        "trained a table of {} on {}",
        plural(states, "state"),
        plural(samples.len() as u64, "graph")
    )?;
    writeln!(console, "batches on the samples: fsm {fsm}, ratio {ratio}, bound {bound}")?;
    if let Some(limit) = limit {
        writeln!(console, "stopped after {}: {}", plural(episodes.into(), "episode"), limit_text(limit))?;
    }
    if states == 0 {
        writeln!(
            console,
            "the table is empty: in {} no learned choice beat policy ratio, so fsm with this table equals ratio",
            plural(episodes.into(), "episode")
        )?;
    }
    writeln!(
        console,
        "wrote {0}.  Next: autobatch policies {1} --policy fsm:{0}",
        args.output,
        args.graphs.join(" ")
    )?;
    Ok(Answer::Yes)
}
