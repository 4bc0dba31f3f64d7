//! Speed by batch size.

use crate::{BenchError, Options, run};
use autobatch::train::Bar;
use serde::Serialize;
use std::fmt;

/// The measurement of one batch size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SweepRow {
    /// Number of instances per graph.
    pub batch: usize,
    /// Instances per second.
    pub per_second: f64,
    /// Seconds for all instances.
    pub seconds: f64,
    /// Number of batches of all graphs.
    pub batches: u64,
}

/// Speed by batch size, over the same instances.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sweep {
    /// The model's name.
    pub workload: String,
    /// The name of instances, such as trees.
    pub unit: String,
    /// Number of instances that each row processes.
    pub instances: usize,
    /// The batch sizes, in the requested order.
    pub rows: Vec<SweepRow>,
}

/// Measures a model at several batch sizes, all over the same instances. Their number is the requested
/// one, or else the largest batch size.
///
/// # Errors
/// As [`run`].
pub fn sweep(name: &str, batches: &[usize], options: &Options) -> Result<Sweep, BenchError> {
    let count = options.sizes.count.or(batches.iter().copied().max());
    let mut sweep = Sweep { workload: name.to_owned(), unit: String::new(), instances: 0, rows: Vec::new() };
    let mut bar = Bar::new("sweep", batches.len());
    for &batch in batches {
        let mut options = Options { variants: false, ..options.clone() };
        options.sizes.count = count;
        options.sizes.batch = Some(batch);
        let report = run(name, &options)?;
        bar.advance(&format!("{batch} instances per graph"));
        sweep.rows.push(SweepRow {
            batch,
            per_second: report.per_second(),
            seconds: report.seconds_per_step,
            batches: report.plans.batches,
        });
        (sweep.unit, sweep.instances) = (report.unit, report.instances);
    }
    Ok(sweep)
}

impl Sweep {
    /// One line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and strings serialize")
    }
}

impl fmt::Display for Sweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}  {} {} at each batch size", self.workload, self.instances, self.unit)?;
        writeln!(f, "{:>6}{:>12}{:>16}{:>10}", "batch", "ms", format!("{}/s", self.unit), "batches")?;
        let fastest = self.rows.iter().map(|row| row.per_second).fold(0.0, f64::max);
        for row in &self.rows {
            let bar = "#".repeat((40.0 * row.per_second / fastest).round() as usize);
            let SweepRow { batch, per_second, seconds, batches } = row;
            writeln!(f, "{batch:>6}{:>12.3}{per_second:>16.0}{batches:>10}  {bar}", 1e3 * seconds)?;
        }
        Ok(())
    }
}
