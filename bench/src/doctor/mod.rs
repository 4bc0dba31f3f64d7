//! The examination of a GPU: one report that tells whether it computes correctly, how fast it is, and what to do.
//!
//! Sections follow each other. After each of them the report is written to its file, so that a device that is lost or hangs
//! leaves the sections before. A section that fails becomes an error in the report, and the next one opens the device again.
//! A watcher ends an examination that shows no sign of life.

mod correctness;
mod identity;
mod limits;
mod plans;
mod report;
mod speed;
mod steps;
mod watcher;

pub use report::Report;

use crate::error::BenchError;
use autobatch::runtime_wgpu::probe::{Latencies, Probe, Roofs};
use autobatch::runtime_wgpu::{self as gpu, AdapterFacts, Executor, Selector};
use serde_json::{Value as Json, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use watcher::Watcher;

/// Options of an examination.
#[derive(Clone, Debug)]
pub struct Options {
    /// The device.
    pub selector: Selector,
    /// The file of the report.
    pub file: Option<PathBuf>,
    /// The time after which only the necessary parts of sections are executed.
    pub budget: Duration,
    /// The time without a sign of life after which the examination ends.
    pub patience: Duration,
    /// The section from which on the device is taken away, for tests of the report.
    pub lost_from: Option<&'static str>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            selector: Selector::Best,
            file: None,
            budget: Duration::from_secs(6 * 60),
            patience: Duration::from_secs(60),
            lost_from: None,
        }
    }
}

/// A section: its name, and the function that fills it.
type Section = (&'static str, fn(&mut Examination<'_>) -> Result<Json, BenchError>);

/// The sections, in order. What a section needs was measured by an earlier one.
const SECTIONS: [Section; 11] = [
    ("identity", identity::identity),
    ("arithmetic", correctness::arithmetic),
    ("self_test", correctness::self_test),
    ("models", correctness::models),
    ("latencies", speed::latencies),
    ("roofs", speed::roofs),
    ("kernels", speed::kernels),
    ("steps", steps::steps),
    ("pipelines", limits::pipelines),
    ("memory", limits::memory),
    ("loss", limits::loss),
];

/// An examination that is under way.
struct Examination<'a> {
    options: &'a Options,
    watcher: &'a Watcher,
    report: &'a Mutex<Report>,
    started: Instant,
    section: &'static str,
    facts: Option<AdapterFacts>,
    latencies: Option<Latencies>,
    roofs: Option<Roofs>,
}

/// Examines a GPU. `progress` is told what happens. `hang` is called with the report so far if the device does not answer; it
/// should end the process, because the thread that waits for the driver cannot be ended.
///
/// # Errors
/// If no adapter matches the selection, or the file cannot be written.
pub fn examine(
    options: &Options,
    progress: impl Fn(&str) + Send + Sync + 'static,
    hang: impl Fn(&Report) + Send + Sync + 'static,
) -> Result<Report, BenchError> {
    let report = Arc::new(Mutex::new(Report::new(options)));
    let watcher = Watcher::start(options.patience, progress, {
        let (report, file) = (Arc::clone(&report), options.file.clone());
        move |last: &str, quiet: Duration| {
            let mut report = locked(&report);
            report.find(format!(
                "the device did not answer for {} seconds during {last}; restart the machine before you use it again, and send this report",
                quiet.as_secs()
            ));
            // The process ends: nothing can be done about a file that cannot be written.
            let _ = report.write(file.as_deref());
            hang(&report);
        }
    });
    let started = Instant::now();
    let mut examination = Examination {
        options,
        watcher: &watcher,
        report: &report,
        started,
        section: "",
        facts: None,
        latencies: None,
        roofs: None,
    };
    for (name, section) in SECTIONS {
        examination.section = name;
        examination.beat(name);
        let begun = Instant::now();
        let found = section(&mut examination);
        let seconds = begun.elapsed().as_secs_f64();
        let mut report = locked(&report);
        match found {
            Ok(found) => report.add(name, found, seconds),
            Err(error) => {
                report.find(format!("{name} ended early: {error}"));
                report.add(name, json!({ "error": error.to_string() }), seconds);
            }
        }
        report.write(options.file.as_deref())?;
        if examination.facts.is_none() {
            break;
        }
    }
    let reached_all = examination.facts.is_some();
    drop(watcher);
    let mut report = locked(&report);
    report.complete = reached_all;
    report.write(options.file.as_deref())?;
    Ok(report.clone())
}

fn locked(report: &Mutex<Report>) -> std::sync::MutexGuard<'_, Report> {
    report.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Examination<'_> {
    /// Shows a sign of life.
    fn beat(&self, what: &str) {
        self.watcher.beat(what);
    }

    /// Adds a sentence that says what is wrong and what to do.
    fn find(&self, finding: String) {
        locked(self.report).find(finding);
    }

    /// True if the device is a program, which gets smaller tasks.
    fn is_software(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.kind == "software")
    }

    /// True if the time for parts that are not necessary is over.
    fn is_late(&self) -> bool {
        self.started.elapsed() > self.options.budget
    }

    /// The options of the device.
    fn gpu_options(&self) -> gpu::Options {
        let timeout = self.options.patience.as_secs().saturating_sub(10).max(1);
        gpu::Options { selector: self.options.selector.clone(), timeout, ..gpu::Options::default() }
    }

    /// True if this section finds that the device was taken away.
    fn takes_device_away(&self) -> bool {
        let number = |name| SECTIONS.iter().position(|section| section.0 == name);
        self.options.lost_from.is_some_and(|from| number(self.section) >= number(from))
    }

    fn executor(&self, options: gpu::Options) -> Result<Executor, BenchError> {
        let executor = Executor::new(options)?;
        if let Some(gpu) = executor.gpu().filter(|_| self.takes_device_away()) {
            gpu.destroy();
        }
        Ok(executor)
    }

    fn probe(&self) -> Result<Probe, BenchError> {
        let probe = Probe::open(self.gpu_options())?;
        if self.takes_device_away() {
            probe.gpu().destroy();
        }
        Ok(probe)
    }
}

#[cfg(test)]
mod tests;
