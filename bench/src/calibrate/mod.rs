//! Measures what steps and planning cost on this machine and writes it as a [`CostTable`], which policy `auto` reads.
//!
//! For each class of stages, chains of steps of that class alone are executed at several widths and numbers of rows; the prices of
//! the table's linear model are fitted to the best time of each. What a step costs before its first stage cannot be told from what
//! the first stage costs before its first row, so the cheapest class keeps the default's price for the latter. Searches are not
//! measured: their prices are the default's, scaled as planning itself is.

mod chain;
mod fit;

use crate::BenchError;
use autobatch_planner::schedule::Class;
use autobatch_planner::{ClassCost, CostTable, Work};
use autobatch_runtime_cpu::kernels::Isa;
use chain::{Chain, Reads};
use fit::Sample;
use std::time::Duration;

/// How thoroughly to measure.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// How long each of about a hundred points is executed.
    pub turn: Duration,
    /// Numbers of rows.
    pub rows: Vec<usize>,
    /// Widths of values; products are square.
    pub widths: Vec<usize>,
}

impl Default for Calibration {
    fn default() -> Self {
        Self { turn: Duration::from_millis(10), rows: vec![1, 4, 16, 64, 256], widths: vec![16, 64, 256] }
    }
}

/// Classes in the order in which their prices are found: a kernel of functions holds a map as well.
const ORDER: [Class; 6] =
    [Class::Map, Class::Function, Class::Product, Class::Row, Class::Fold, Class::Lookup];

/// Measures a cost table.
///
/// # Errors
/// If the instruction set that the environment forces is not available.
pub fn calibrate(options: &Calibration) -> Result<CostTable, BenchError> {
    let default = CostTable::default();
    let mut table = default.clone();
    table.machine = format!("{}, 1 thread", Isa::detect().map_err(autobatch_runtime_cpu::RunError::Isa)?);
    let mut known = Vec::new();
    for class in ORDER {
        let cost = class_cost(class, options, &table, &known)?;
        *table.classes.of_mut(class) = cost;
        known.push(class);
    }
    share_step(&mut table, &default);
    (table.gathered_row_ns, table.gathered_byte_ns) = gathered(options)?;
    let rows = options.rows.iter().copied().max().unwrap_or(1);
    let chain = Chain::new(Class::Map, rows, 1, Reads::InPlace)?;
    let each = chain.planning.as_secs_f64() * 1e9 / chain.nodes.max(1) as f64;
    let scale = each / default.planning.node_ns;
    table.planning.node_ns = each;
    table.planning.ratio_ns *= scale;
    table.planning.beam_ns *= scale;
    round(&mut table);
    Ok(table)
}

/// Three digits are more than a measurement has.
fn round(table: &mut CostTable) {
    let round = |price: &mut f64| *price = format!("{price:.2e}").parse().unwrap_or(*price);
    [&mut table.step_ns, &mut table.gathered_row_ns, &mut table.gathered_byte_ns].into_iter().for_each(round);
    let planning = &mut table.planning;
    [&mut planning.node_ns, &mut planning.ratio_ns, &mut planning.beam_ns].into_iter().for_each(round);
    for class in Class::ALL {
        let ClassCost { fixed_ns, weight_ns, row_ns, unit_ns } = table.classes.of_mut(class);
        [fixed_ns, weight_ns, row_ns, unit_ns].into_iter().for_each(round);
    }
}

/// The prices of a class, `fixed_ns` with what the step itself costs unless another class of the kernel has it.
fn class_cost(
    class: Class,
    options: &Calibration,
    table: &CostTable,
    known: &[Class],
) -> Result<ClassCost, BenchError> {
    let mut samples = Vec::new();
    for &width in &options.widths {
        for &rows in &options.rows {
            let mut chain = Chain::new(class, rows, width, Reads::InPlace)?;
            let work = chain.work();
            let nanos = chain.time(options.turn)? - others(&work, rows as f64, table, known);
            let own = work.class(class);
            let (stages, weights, units) = (own.stages as f64, own.weights as f64, own.units as f64);
            let rows = rows as f64;
            samples.push(Sample {
                counts: vec![stages, weights, rows * stages, rows * units],
                nanos: nanos.max(1.0),
            });
        }
    }
    let prices = fit::prices(&samples);
    Ok(ClassCost { fixed_ns: prices[0], weight_ns: prices[1], row_ns: prices[2], unit_ns: prices[3] })
}

/// What the stages of classes with known prices cost.
fn others(work: &Work, rows: f64, table: &CostTable, known: &[Class]) -> f64 {
    let price = |&class: &Class| {
        let (work, cost) = (work.class(class), table.classes.of(class));
        work.stages as f64 * (cost.fixed_ns + rows * cost.row_ns)
            + work.weights as f64 * cost.weight_ns
            + rows * work.units as f64 * cost.unit_ns
    };
    known.iter().map(price).sum()
}

/// Takes what every step costs out of the fixed prices of the classes that stand alone in their kernels.
fn share_step(table: &mut CostTable, default: &CostTable) {
    let alone = ORDER.into_iter().filter(|&class| class != Class::Function);
    let cheapest =
        alone.clone().min_by(|&a, &b| table.classes.of(a).fixed_ns.total_cmp(&table.classes.of(b).fixed_ns));
    let Some(cheapest) = cheapest else { return };
    let least = table.classes.of(cheapest).fixed_ns;
    table.step_ns = (least - default.classes.of(cheapest).fixed_ns).max(0.0);
    for class in alone {
        table.classes.of_mut(class).fixed_ns -= table.step_ns;
    }
}

/// What a row, and what a byte of it, costs more through a table than in place.
fn gathered(options: &Calibration) -> Result<(f64, f64), BenchError> {
    let rows = options.rows.iter().copied().max().unwrap_or(1);
    let mut samples = Vec::new();
    for &width in &options.widths {
        let time = |reads| Chain::new(Class::Map, rows, width, reads)?.time(options.turn);
        let more = time(Reads::Gathered)? - time(Reads::Both)?;
        samples.push(Sample { counts: vec![1.0, (4 * width) as f64], nanos: (more / rows as f64).max(1e-3) });
    }
    let prices = fit::prices(&samples);
    Ok((prices[0], prices[1]))
}
