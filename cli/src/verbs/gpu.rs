//! What this machine has for executing plans beside the CPU: the lines of `devices`, and `doctor`.

use crate::console::Console;
use crate::failure::{Answer, Failure};
#[cfg(feature = "gpu")]
use crate::files::bytes_in_words;
use autobatch::Device;
#[cfg(feature = "gpu")]
use autobatch::runtime_wgpu::{Options, Selector, SelfTest, adapters, self_test};
use std::io::Write;

/// Lists the adapters, and says which device is the best and by what rule.
pub(super) fn list(console: &mut Console<'_>) -> Result<(), Failure> {
    #[cfg(feature = "gpu")]
    for adapter in adapters() {
        let (number, kind, backend) = (adapter.number, adapter.kind, &adapter.backend);
        let (buffer, binding) = (bytes_in_words(adapter.buffer), bytes_in_words(adapter.binding));
        writeln!(
            console,
            "gpu:{number}  {}, {kind}, {backend}, {} bindings of {binding}, buffers of {buffer}, {}",
            adapter.name,
            adapter.bindings,
            match adapter.subgroups {
                Some((least, most)) if least < most => format!("subgroups of {least} to {most}"),
                Some((size, _)) => format!("subgroups of {size}"),
                None => "no subgroups".to_owned(),
            },
        )?;
    }
    let (best, why) = Device::best_and_why();
    writeln!(
        console,
        "best: {best} ({why}; the rule: the first discrete or integrated GPU if it executes faster, else the cpu)"
    )?;
    Ok(())
}

/// Executes a small plan on an adapter and says what was found.
#[cfg(feature = "gpu")]
pub fn doctor(device: &str, console: &mut Console<'_>) -> Result<Answer, Failure> {
    console.work_on();
    let selector: Selector = device.parse().map_err(|error| Failure::usage(format!("{error}")))?;
    super::devices(console)?;
    let found = match self_test(Options { selector, ..Options::default() }) {
        Ok(found) => found,
        Err(error) => {
            writeln!(console, "self-test: not executed; {error}")?;
            return Ok(Answer::No);
        }
    };
    for line in findings(&found) {
        writeln!(console, "{line}")?;
    }
    Ok(if found.is_healthy() { Answer::Yes } else { Answer::No })
}

/// Says that there is nothing to look at, of a word that names a GPU.
#[cfg(not(feature = "gpu"))]
pub fn doctor(device: &str, console: &mut Console<'_>) -> Result<Answer, Failure> {
    console.work_on();
    let which = device.strip_prefix("gpu:");
    if device != "gpu" && which.is_none_or(|which| which.trim().is_empty()) {
        let message = format!("no GPU is called {device:?}: expected gpu, gpu:0 or gpu:part-of-a-name");
        return Err(Failure::usage(message));
    }
    super::devices(console)?;
    writeln!(
        console,
        "self-test: not executed; this build knows no GPUs: build with the feature gpu, or execute on the cpu"
    )?;
    Ok(Answer::No)
}

#[cfg(feature = "gpu")]
fn findings(found: &SelfTest) -> Vec<String> {
    let SelfTest { adapter, same_bits, max_error, first_run, second_run, .. } = found;
    let (first, again) = (first_run.as_millis(), second_run.as_micros());
    let mut lines = vec![
        format!("self-test: {}, driver {}", adapter.name, adapter.driver),
        format!("  first run {first} ms with opening and compiling, second {again} µs"),
    ];
    lines.push(match (found.is_healthy(), same_bits) {
        (true, true) => "  right: the bits of the cpu".to_owned(),
        (true, false) => format!(
            "  right: off by {max_error:.1e} of the largest element; the device does not fuse or divide as the cpu does"
        ),
        (false, _) => format!("  WRONG: off by {max_error:.1e} of the largest element"),
    });
    lines.push(match (found.is_healthy(), adapter.kind) {
        (false, _) => "advice: update the driver, choose another adapter, or execute on the cpu".to_owned(),
        (true, "software") => "advice: software adapters check results of small models (plans with long loops are refused); execute on the cpu".to_owned(),
        (true, _) => {
            format!("advice: execute with `gpu:{}`; models whose rows are many gain most", adapter.number)
        }
    });
    lines
}
