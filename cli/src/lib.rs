//! The command `autobatch` as a library.
//!
//! Each verb is a function that writes to a [`Console`]. Tests call it in their own process and read
//! the same output as users.

#![forbid(unsafe_code)]

pub mod args;
mod console;
pub mod emit;
pub mod environment;
mod failure;
pub mod files;
mod interrupt;
pub mod limits;
mod measure;
mod npy;
mod output_paths;
pub mod picture;
pub mod planning;
mod progress;
mod ranks;
mod shell;
mod trained;
pub mod verbs;
mod version;

pub use args::Cli;
pub use console::Console;
pub use failure::{Answer, Failure, FailureKind};

use args::Verb;

/// Runs a verb.
///
/// # Errors
/// If the verb fails before it has an answer.
pub fn run(cli: &Cli, console: &mut Console<'_>) -> Result<Answer, Failure> {
    let answer = run_verb(&cli.verb, console)?;
    environment::report_unused_dump(&cli.verb);
    Ok(answer)
}

fn run_verb(verb: &Verb, console: &mut Console<'_>) -> Result<Answer, Failure> {
    match verb {
        Verb::Models { json } => verbs::models(*json, console),
        Verb::Eval(args) => verbs::eval(args, console),
        Verb::Predict(args) => verbs::predict(args, console),
        Verb::Map(args) => verbs::map(args, console),
        Verb::Man { output } => verbs::man(output, console),
        Verb::Show(args) => verbs::show(args, console),
        Verb::Plan(args) => verbs::plan(args, console),
        Verb::Explain(args) => verbs::explain(args, console),
        Verb::Inspect(args) => verbs::inspect(args, console),
        Verb::Policies(args) => verbs::policies(args, console),
        Verb::Diff(args) => verbs::diff(args, console),
        Verb::Check(args) => verbs::check(args, console),
        Verb::Passes { json } => verbs::passes(*json, console),
        Verb::Reduce(args) => verbs::reduce(args, console),
        Verb::FsmTrain(args) => verbs::fsm_train(args, console),
        Verb::Emit(args) => verbs::emit(args, console),
        Verb::Execute(args) => verbs::execute(args, console),
        Verb::Run(args) => verbs::run(args, console),
        Verb::Train(args) => verbs::train(args, console),
        Verb::Bench(args) => verbs::bench(args, console),
        Verb::Scale(args) => verbs::scale(args, console),
        Verb::Sweep(args) => verbs::sweep(args, console),
        Verb::Calibrate(args) => verbs::calibrate(args, console),
        Verb::Devices { json } => verbs::devices(*json, console),
        Verb::Doctor(args) => verbs::doctor(args, console),
        Verb::Completions { shell } => verbs::completions(*shell, console),
    }
}
