//! `doctor`: tests a GPU, with one plan or completely.

#[cfg(feature = "gpu")]
mod complete;
#[cfg(feature = "gpu")]
mod quick;

use super::devices::Devices;
use crate::args::DoctorArgs;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::files;
use serde_json::json;
use std::io::Write;

/// Tests a GPU and reports the findings.
pub fn doctor(args: &DoctorArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    console.ignore_closed_pipe();
    #[cfg(feature = "gpu")]
    if args.gpu {
        return complete::doctor(args, console);
    }
    let found = examine(&args.device)?;
    let Devices { text, json: devices } = super::devices::all();
    let healthy = found.healthy == Some(true);
    let answer = json!({
        "devices": devices, "executed": found.healthy.is_some(), "healthy": healthy, "findings": found.lines,
    });
    let lines = found.lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    if let Some(path) = &args.json {
        files::write(path, format!("{answer:#}\n").as_bytes(), console)?;
    }
    if args.json.as_deref() != Some("-") {
        console.write_all((text + &lines).as_bytes())?;
    }
    Ok(if healthy { Answer::Yes } else { Answer::No })
}

/// The result of the test of a GPU.
struct Found {
    /// Whether the results are correct; `None` if nothing was executed.
    healthy: Option<bool>,
    lines: Vec<String>,
}

#[cfg(feature = "gpu")]
use quick::examine;

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
