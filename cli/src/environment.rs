//! The environment that libraries of GPUs expect, and variables without an effect.

use crate::args::{Cli, Verb};
use std::io::Write;

/// Says on standard error that `AUTOBATCH_DUMP` is set and a verb that plans wrote nothing: only sessions obey the
/// variable.
pub fn report_unused_dump(verb: &Verb) {
    let remedy = match verb {
        Verb::Run(_) => "`run -o FOLDER` writes its graph and plan",
        Verb::Plan(_) => "`plan -o FILE` writes the plan",
        Verb::Bench(_) | Verb::Sweep(_) => "`emit` and `plan` make the same graphs and plans",
        Verb::Execute(_) | Verb::Policies(_) => {
            "the graph is a file already, and `plan -o FILE` writes its plan"
        }
        _ => return,
    };
    let is_set = std::env::var_os("AUTOBATCH_DUMP").is_some_and(|variable| !variable.is_empty());
    if is_set && autobatch::dumped() == 0 {
        // A note that cannot be written does not change the answer.
        let _ = writeln!(
            std::io::stderr(),
            "note: AUTOBATCH_DUMP wrote nothing, because this verb opens no session; {remedy}"
        );
    }
}

/// Whether a verb may open a GPU.
fn may_open_gpu(verb: &Verb) -> bool {
    let is_gpu = |device: &autobatch::Device| *device != autobatch::Device::Cpu;
    match verb {
        Verb::Devices { .. } | Verb::Doctor { .. } => true,
        Verb::Execute(args) => is_gpu(&args.device),
        Verb::Run(args) => is_gpu(&args.model.device),
        Verb::Train(args) => is_gpu(&args.model.device),
        Verb::Eval(args) => is_gpu(&args.trained.device),
        Verb::Predict(args) => is_gpu(&args.trained.device),
        Verb::Map(args) => is_gpu(&args.trained.device),
        Verb::Bench(args) => args.device.as_deref().is_some_and(|device| device != "cpu"),
        _ => false,
    }
}

/// Starts the program again with a runtime folder, if the environment has none and the verb may open a GPU.
///
/// The drivers of OpenGL look for a Wayland display. Without `XDG_RUNTIME_DIR` the library of Wayland prints an error
/// that resembles one of this program. A process cannot change its own environment safely, so the program replaces
/// itself.
#[cfg(all(unix, feature = "gpu"))]
pub fn set_runtime_folder(cli: &Cli) {
    use std::os::unix::process::CommandExt;
    const VARIABLE: &str = "XDG_RUNTIME_DIR";
    if std::env::var_os(VARIABLE).is_some_and(|folder| !folder.is_empty()) || !may_open_gpu(&cli.verb) {
        return;
    }
    if let Ok(program) = std::env::current_exe() {
        let words = std::env::args_os().skip(1);
        // `exec` returns only if it fails. The verb then runs in this process.
        let _ = std::process::Command::new(program).args(words).env(VARIABLE, std::env::temp_dir()).exec();
    }
}

/// Builds without GPUs need no environment.
#[cfg(not(all(unix, feature = "gpu")))]
pub fn set_runtime_folder(cli: &Cli) {
    let _ = may_open_gpu(&cli.verb);
}
