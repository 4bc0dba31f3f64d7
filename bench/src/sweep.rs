//! Speed against batch size.

use crate::{BenchError, Options, run};
use serde::Serialize;
use std::fmt;

/// One batch size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SweepRow {
    /// How many instances were in a graph.
    pub batch: usize,
    /// Instances a second.
    pub per_second: f64,
    /// Seconds to go through all instances.
    pub seconds: f64,
    /// Batches over all graphs.
    pub batches: u64,
}

/// Speed against batch size, over the same instances.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sweep {
    /// The model's name.
    pub workload: String,
    /// What instances are.
    pub unit: String,
    /// How many instances each row goes through.
    pub instances: usize,
    /// The batch sizes, in the order asked for.
    pub rows: Vec<SweepRow>,
}

/// Measures a model at several batch sizes. All go through the same instances: as many as asked
/// for, or as the largest batch holds.
///
/// # Errors
/// As [`run`].
pub fn sweep(name: &str, batches: &[usize], options: &Options) -> Result<Sweep, BenchError> {
    let count = options.sizes.count.or(batches.iter().copied().max());
    let mut sweep = Sweep { workload: name.to_owned(), unit: String::new(), instances: 0, rows: Vec::new() };
    for &batch in batches {
        let mut options = Options { one_by_one: false, ..options.clone() };
        options.sizes.count = count;
        options.sizes.batch = Some(batch);
        let report = run(name, &options)?;
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
    /// The same as one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and words have a spelling in JSON")
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
