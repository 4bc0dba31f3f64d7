//! `doctor`: executes a small plan on a GPU and checks its results.

use super::devices::Devices;
use crate::console::Console;
use crate::failure::{Answer, Failure};
#[cfg(feature = "gpu")]
use crate::progress::Waiting;
#[cfg(feature = "gpu")]
use autobatch::runtime_wgpu::{Options, Selector, SelfTest, self_test};
use serde_json::json;
use std::io::Write;

/// Lists the devices, executes a small plan on one GPU and reports the findings.
pub fn doctor(device: &str, json: bool, console: &mut Console<'_>) -> Result<Answer, Failure> {
    console.ignore_closed_pipe();
    let found = examine(device)?;
    let Devices { text, json: devices } = super::devices::all();
    let healthy = found.healthy == Some(true);
    if json {
        let answer = json!({
            "devices": devices, "executed": found.healthy.is_some(), "healthy": healthy, "findings": found.lines,
        });
        writeln!(console, "{answer:#}")?;
    } else {
        console.write_all(text.as_bytes())?;
        for line in &found.lines {
            writeln!(console, "{line}")?;
        }
    }
    Ok(if healthy { Answer::Yes } else { Answer::No })
}

/// The result of the test of a GPU.
struct Found {
    /// Whether the results are correct; `None` if nothing was executed.
    healthy: Option<bool>,
    lines: Vec<String>,
}

/// Executes a small plan on a GPU.
#[cfg(feature = "gpu")]
fn examine(device: &str) -> Result<Found, Failure> {
    let selector: Selector = device.parse().map_err(|error| Failure::usage(format!("{error}")))?;
    let waiting = Waiting::new("testing the GPU");
    let tested = self_test(Options { selector, ..Options::default() });
    drop(waiting);
    Ok(match tested {
        Ok(found) => Found { healthy: Some(found.is_healthy()), lines: findings(&found) },
        Err(error) => Found { healthy: None, lines: vec![format!("self-test: not executed; {error}")] },
    })
}

/// Reports that this build has no GPU support, if `device` names a GPU.
#[cfg(not(feature = "gpu"))]
fn examine(device: &str) -> Result<Found, Failure> {
    let which = device.strip_prefix("gpu:");
    if device != "gpu" && which.is_none_or(|which| which.trim().is_empty()) {
        let message = format!("unknown device {device:?}: expected gpu, gpu:0 or gpu:part-of-a-name");
        return Err(Failure::usage(message));
    }
    let reason = "this build has no GPU support: build with feature gpu, or execute on the cpu";
    Ok(Found { healthy: None, lines: vec![format!("self-test: not executed; {reason}")] })
}

#[cfg(feature = "gpu")]
fn findings(found: &SelfTest) -> Vec<String> {
    let SelfTest {
        adapter,
        compared,
        same_bits,
        max_error,
        worst,
        same_when_repeated,
        first_run,
        second_run,
    } = found;
    let (first, again) = (first_run.as_millis(), second_run.as_micros());
    let result = match (found.is_healthy(), same_when_repeated) {
        (true, _) if same_bits == compared => {
            format!("  correct: {compared} results with the bits of the cpu")
        }
        (true, _) => format!(
            "  correct: {compared} results, {same_bits} with the bits of the cpu; maximum error {max_error:.1e} of the largest element: the device fuses or divides differently from the cpu"
        ),
        (false, true) => format!("  WRONG: {worst} has an error of {max_error:.1e} of its largest element"),
        (false, false) => "  WRONG: the second run had other results than the first".to_owned(),
    };
    let advice = match (found.is_healthy(), adapter.kind) {
        (false, _) => "advice: update the driver, select another adapter, or execute on the cpu".to_owned(),
        (true, "software") => {
            "advice: use software adapters only to check small models; they reject plans with long loops"
                .to_owned()
        }
        (true, _) => {
            format!("advice: execute with `gpu:{}`; models with many rows per step gain most", adapter.number)
        }
    };
    vec![
        format!("self-test: {}, driver {}", adapter.name, adapter.driver),
        format!("  first run {first} ms including setup and compilation, second run {again} µs"),
        result,
        advice,
    ]
}
