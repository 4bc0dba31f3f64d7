//! `bench`, `sweep` and `calibrate`: measuring, by the functions of the bench crate.

use crate::args::{CalibrateArgs, SweepArgs};
use crate::console::Console;
use crate::failure::{Answer, Failure, FailureKind};
use crate::files::{Form, form_of, write};
use crate::picture;
use crate::places::writable;
use autobatch::train::CheckpointError;
use autobatch_bench::{BenchArgs, BenchError, Calibration, calibrate as measure};
use autobatch_models::catalogue::OpenError;
use std::io::Write;
use std::time::Duration;

/// What was asked for does not make sense, or a file of data does not.
fn refused(error: &BenchError) -> Failure {
    match error {
        BenchError::Open(OpenError::Unknown(_) | OpenError::Size { .. }) => Failure::usage(error.to_string()),
        BenchError::Step(autobatch::Error::Io { path, error }) => {
            Failure::output(&path.to_string_lossy(), error)
        }
        BenchError::Step(autobatch::Error::Checkpoint(error @ CheckpointError::Io { .. })) => {
            Failure { kind: FailureKind::Output, ..Failure::input(error.to_string()) }
        }
        BenchError::Step(autobatch::Error::Policy(_)) => Failure::usage(error.to_string()),
        BenchError::Open(_) | BenchError::NoInstances | BenchError::Step(_) => {
            Failure::input(error.to_string())
        }
        _ => Failure::usage(error.to_string()),
    }
}

/// Times a model.
pub fn bench(args: &BenchArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    let answer = args.answer().map_err(|error| refused(&error))?;
    writeln!(console, "{}", answer.trim_end())?;
    Ok(Answer::Yes)
}

/// Times a model at several batch sizes, and draws that.
pub fn sweep(args: &SweepArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    let [name] = args.bench.workload.as_slice() else {
        return Err(
            Failure::usage("sweep takes one model").help("autobatch sweep b --batch 1,8,64 -o sweep.svg")
        );
    };
    if let Some(path) = args.output.as_deref().filter(|&path| path != "-" && form_of(path) != Some(Form::Svg))
    {
        return Err(Failure::usage(format!("{path}: the picture is an .svg")).help("write -o sweep.svg"));
    }
    if args.bench.json && args.output.as_deref() == Some("-") {
        return Err(Failure::usage("-o - and --json both write to standard output")
            .help("name a file for the picture: -o sweep.svg"));
    }
    args.output.as_deref().map_or(Ok(()), writable)?;
    let found = args.bench.sweep(name).map_err(|error| refused(&error))?;
    let text = if args.bench.json { format!("{}\n", found.to_json()) } else { found.to_string() };
    write!(console, "{text}")?;
    if let Some(output) = &args.output {
        write(output, picture::sweep(&found).as_bytes(), console)?;
    }
    Ok(Answer::Yes)
}

/// Measures what steps and planning cost on this machine.
pub fn calibrate(args: &CalibrateArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    writable(&args.output)?;
    let options = Calibration { turn: Duration::from_millis(args.turn), ..Calibration::default() };
    let table = measure(&options).map_err(|error| refused(&error))?;
    write(&args.output, format!("{}\n", table.to_json()).as_bytes(), console)?;
    if args.output != "-" {
        writeln!(
            console,
            "{}: {:.0} ns a step, {:.4} ns a multiply-add, {:.0} ns to plan a node",
            table.machine, table.step_ns, table.classes.product.unit_ns, table.planning.node_ns
        )?;
        writeln!(console, "wrote {0}.  Next: AUTOBATCH_COSTS={0} autobatch plan trees.abg", args.output)?;
    }
    Ok(Answer::Yes)
}
