//! The report: sections as JSON, findings as sentences, and a table for people.

use super::{Options, SECTIONS};
use autobatch_ir::files;
use serde_json::{Map, Value as Json, json};
use std::fmt::Write as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The format of the file. Its number changes if readers of an earlier one would misunderstand it.
const FORMAT: &str = "autobatch gpu report 1";

/// A report on a GPU.
#[derive(Clone, Debug)]
pub struct Report {
    device: String,
    /// Seconds since 1970 at which it began.
    date: u64,
    sections: Map<String, Json>,
    findings: Vec<String>,
    /// True if every section was reached.
    pub complete: bool,
}

impl Report {
    pub(super) fn new(options: &Options) -> Self {
        let date = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self {
            device: options.selector.to_string(),
            date,
            sections: Map::new(),
            findings: Vec::new(),
            complete: false,
        }
    }

    pub(super) fn add(&mut self, name: &str, mut section: Json, seconds: f64) {
        section["seconds"] = json!((seconds * 1e3).round() / 1e3);
        self.sections.insert(name.to_owned(), section);
    }

    pub(super) fn find(&mut self, finding: String) {
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// The sentences that say what is wrong and what to do.
    #[must_use]
    pub fn findings(&self) -> &[String] {
        &self.findings
    }

    /// A section, if it was reached.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&Json> {
        self.sections.get(name)
    }

    /// True if every section was reached and nothing is wrong.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.complete && self.findings.is_empty()
    }

    /// The whole report.
    #[must_use]
    pub fn json(&self) -> Json {
        json!({
            "format": FORMAT, "version": env!("CARGO_PKG_VERSION"), "date": self.date, "device": self.device,
            "complete": self.complete, "findings": self.findings, "sections": self.sections,
            "expected_sections": SECTIONS.map(|section| section.0),
        })
    }

    /// Writes the file, if there is one.
    pub(super) fn write(&self, file: Option<&Path>) -> Result<(), crate::BenchError> {
        let Some(file) = file else { return Ok(()) };
        let text = format!("{:#}\n", self.json());
        files::write(file, text.as_bytes()).map_err(|error| {
            let remedy = files::write_remedy(&error);
            crate::BenchError::Gpu(format!("cannot write {}: {error}; {remedy}", file.display()))
        })
    }

    /// A table of the most important numbers, then the findings.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, _) in SECTIONS {
            let Some(section) = self.sections.get(name) else { continue };
            match section.get("error") {
                Some(error) => _ = writeln!(text, "{name:<12}{}", error.as_str().unwrap_or_default()),
                None => lines(name, section, &mut text),
            }
        }
        text.push('\n');
        match self.findings.as_slice() {
            [] => text.push_str("nothing is wrong\n"),
            findings => findings.iter().for_each(|finding| _ = writeln!(text, "finding: {finding}")),
        }
        text
    }
}

/// The lines of a section, each with its name.
fn lines(name: &str, section: &Json, text: &mut String) {
    let table = match name {
        "self_test" => table(section, "variants", self_test),
        "models" => table(section, "models", model),
        "kernels" => table(section, "products", product),
        "steps" => table(section, "steps", step),
        _ => vec![line(name, section)],
    };
    for line in table {
        let _ = writeln!(text, "{name:<12}{line}");
    }
    if let Some(skipped) = section.get("skipped").and_then(Json::as_u64).filter(|skipped| *skipped > 0) {
        let _ = writeln!(text, "{name:<12}{skipped} more were skipped, because the time was over");
    }
}

/// The line of a section without a table.
fn line(name: &str, section: &Json) -> String {
    let (number, word) = (|at: &str| number(section, at), |at: &str| word(section, at));
    match name {
        "identity" => format!("{}, {}, {}, {}", word("name"), word("kind"), word("backend"), word("driver")),
        "arithmetic" => format!(
            "fma rounds once in {:.0} %, division within {} ulp, root within {} ulp",
            100.0 * number("fused"),
            number("division_ulp"),
            number("root_ulp")
        ),
        "latencies" => format!(
            "submission {}, read-back {}, dispatch {}, dependent load {}",
            seconds(number("submission")),
            seconds(number("read_back")),
            seconds(number("dispatch")),
            seconds(number("load"))
        ),
        "roofs" => format!(
            "{:.2} TFLOP/s in registers, {:.1} GB/s copied, about {:.0} groups at once",
            2e-12 * number("multiply_adds"),
            1e-9 * number("copy"),
            number("groups")
        ),
        "pipelines" => {
            format!("first run {}, with a cache {}", seconds(number("cold")), seconds(number("warm")))
        }
        "memory" => format!("{:.1} GiB given; {}", number("given") / f64::from(1 << 30), word("end")),
        "loss" => format!("reopened after a loss in {}", seconds(number("reopened"))),
        _ => section.to_string(),
    }
}

fn self_test(row: &Json) -> String {
    let (same, all, error) = (number(row, "same_bits"), number(row, "compared"), number(row, "max_error"));
    format!("{:<22} {same} of {all} with the CPU's bits, error {error:.1e}", word(row, "variant"))
}

fn model(row: &Json) -> String {
    let (outputs, gradients) = (number(row, "max_error"), number(row, "max_gradient_error"));
    format!("{:<12} error of outputs {outputs:.1e}, of gradients {gradients:.1e}", word(row, "model"))
}

fn product(row: &Json) -> String {
    let of = |at: &str| number(row, at);
    format!(
        "{:>5} rows, width {:>4}, {} gates: {:>9}, {:>7.1} GFLOP/s, {:>4.1} % of the roof",
        of("rows"),
        of("width"),
        of("gates"),
        seconds(of("seconds")),
        of("gflops"),
        100.0 * of("share_of_roof")
    )
}

fn step(row: &Json) -> String {
    let of = |at: &str| number(row, at);
    format!(
        "{:<12} {:<6} GPU {:>9}, CPU {:>9}, device idle {:>3.0} %, execution predicted {:>9}, found {:>9}",
        word(row, "model"),
        word(row, "mode"),
        seconds(of("gpu")),
        seconds(of("cpu")),
        100.0 * of("idle"),
        seconds(of("predicted")),
        seconds(of("device"))
    )
}

fn number(row: &Json, at: &str) -> f64 {
    row.get(at).and_then(Json::as_f64).unwrap_or(f64::NAN)
}

fn word<'r>(row: &'r Json, at: &str) -> &'r str {
    row.get(at).and_then(Json::as_str).unwrap_or_default()
}

/// The lines of a table in a section.
fn table(section: &Json, name: &str, line: fn(&Json) -> String) -> Vec<String> {
    section.get(name).and_then(Json::as_array).into_iter().flatten().map(line).collect()
}

/// A time with a unit that fits.
fn seconds(time: f64) -> String {
    match time {
        time if time.is_nan() => "-".to_owned(),
        time if time < 1e-6 => format!("{:.0} ns", time * 1e9),
        time if time < 1e-3 => format!("{:.1} µs", time * 1e6),
        time if time < 1.0 => format!("{:.2} ms", time * 1e3),
        time => format!("{time:.2} s"),
    }
}
