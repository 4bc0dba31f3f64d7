//! Measures the costs of steps and of planning on this machine, as a [`CostTable`] for policy `auto`.
//!
//! For each class of stages, the calibration executes chains of steps that contain that class only,
//! at several widths and numbers of rows. It then fits the costs of the table's linear model to the
//! best time of each chain. The fit cannot separate the fixed cost of a step from the fixed cost of
//! its first stage. The cheapest class therefore takes its fixed cost from the default table.
//!
//! The calibration does not measure schedule searches. It scales their default costs by the ratio of
//! the measured to the default planning time.

mod chain;
mod fit;

use crate::Result;
use autobatch_planner::schedule::Class;
use autobatch_planner::{ClassCost, CostTable, Work};
use autobatch_runtime_cpu::kernels::Isa;
use chain::{Chain, Reads};
use fit::Sample;
use std::time::Duration;

/// Options of a calibration.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// How long the calibration executes each of its measuring points, about a hundred.
    pub duration: Duration,
    /// The numbers of rows to measure.
    pub rows: Vec<usize>,
    /// The widths of values to measure; matrix products are square.
    pub widths: Vec<usize>,
}

impl Default for Calibration {
    fn default() -> Self {
        Self { duration: Duration::from_millis(10), rows: vec![1, 4, 16, 64, 256], widths: vec![16, 64, 256] }
    }
}

/// The order in which classes are measured. Kernels of class `Function` also contain a `Map` stage,
/// so `Map` comes first.
const ORDER: [Class; 6] =
    [Class::Map, Class::Function, Class::Product, Class::Row, Class::Fold, Class::Lookup];

/// Measures a cost table.
///
/// # Errors
/// If `AUTOBATCH_CPU` names an instruction set that this processor does not have, or if an execution
/// fails.
pub fn calibrate(options: &Calibration) -> Result<CostTable> {
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
    let GatherCost { row_ns, byte_ns } = gather_cost(options)?;
    (table.gathered_row_ns, table.gathered_byte_ns) = (row_ns, byte_ns);
    let rows = options.rows.iter().copied().max().unwrap_or(1);
    let chain = Chain::new(Class::Map, rows, 1, Reads::Direct)?;
    let each = chain.planning.as_secs_f64() * 1e9 / chain.nodes.max(1) as f64;
    let scale = each / default.planning.node_ns;
    table.planning.node_ns = each;
    table.planning.ratio_ns *= scale;
    table.planning.beam_ns *= scale;
    round(&mut table);
    Ok(table)
}

/// Rounds every cost to three significant digits; measurements are less precise.
fn round(table: &mut CostTable) {
    let round = |cost: &mut f64| *cost = format!("{cost:.2e}").parse().unwrap_or(*cost);
    [&mut table.step_ns, &mut table.gathered_row_ns, &mut table.gathered_byte_ns].into_iter().for_each(round);
    let planning = &mut table.planning;
    [&mut planning.node_ns, &mut planning.ratio_ns, &mut planning.beam_ns].into_iter().for_each(round);
    for class in Class::ALL {
        let ClassCost { fixed_ns, weight_ns, row_ns, unit_ns } = table.classes.of_mut(class);
        [fixed_ns, weight_ns, row_ns, unit_ns].into_iter().for_each(round);
    }
}

/// Measures the costs of a class. Its `fixed_ns` includes the fixed cost of the step, unless the
/// kernel also contains a class with known costs.
fn class_cost(class: Class, options: &Calibration, table: &CostTable, known: &[Class]) -> Result<ClassCost> {
    let mut samples = Vec::new();
    for &width in &options.widths {
        for &rows in &options.rows {
            let mut chain = Chain::new(class, rows, width, Reads::Direct)?;
            let work = chain.work();
            let nanos = chain.time(options.duration)? - known_cost(&work, rows as f64, table, known);
            let own = work.class(class);
            let (stages, weights, units) = (own.stages as f64, own.weights as f64, own.units as f64);
            let rows = rows as f64;
            samples.push(Sample {
                counts: vec![stages, weights, rows * stages, rows * units],
                nanos: nanos.max(1.0),
            });
        }
    }
    let costs = fit::costs(&samples);
    Ok(ClassCost { fixed_ns: costs[0], weight_ns: costs[1], row_ns: costs[2], unit_ns: costs[3] })
}

/// The cost of the stages whose classes are measured already.
fn known_cost(work: &Work, rows: f64, table: &CostTable, known: &[Class]) -> f64 {
    let cost_of = |&class: &Class| {
        let (work, cost) = (work.class(class), table.classes.of(class));
        work.stages as f64 * (cost.fixed_ns + rows * cost.row_ns)
            + work.weights as f64 * cost.weight_ns
            + rows * work.units as f64 * cost.unit_ns
    };
    known.iter().map(cost_of).sum()
}

/// Moves the fixed cost of a step from the `fixed_ns` of the classes to `step_ns`. Class `Function` is
/// exempt: its kernels contain another class, which already accounts for the step.
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

/// The extra cost of a gathered operand over a direct one.
struct GatherCost {
    /// Nanoseconds a row.
    row_ns: f64,
    /// Nanoseconds a byte.
    byte_ns: f64,
}

fn gather_cost(options: &Calibration) -> Result<GatherCost> {
    let rows = options.rows.iter().copied().max().unwrap_or(1);
    let mut samples = Vec::new();
    for &width in &options.widths {
        let time = |reads| Chain::new(Class::Map, rows, width, reads)?.time(options.duration);
        let more = time(Reads::Gathered)? - time(Reads::TwoDirect)?;
        samples.push(Sample { counts: vec![1.0, (4 * width) as f64], nanos: (more / rows as f64).max(1e-3) });
    }
    let costs = fit::costs(&samples);
    Ok(GatherCost { row_ns: costs[0], byte_ns: costs[1] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calibration_produces_a_table_that_survives_a_round_trip() {
        let quick = Calibration { duration: Duration::ZERO, rows: vec![1, 8], widths: vec![4, 32] };
        let table = calibrate(&quick).unwrap();
        assert_eq!(CostTable::from_json(&table.to_json()), Ok(table.clone()));
        assert!(table.step_ns >= 0.0 && table.planning.node_ns > 0.0, "{table:?}");
        let ClassCost { fixed_ns, weight_ns, row_ns, unit_ns } = table.classes.product;
        assert!(fixed_ns + weight_ns + row_ns + unit_ns > 0.0, "{table:?}");
        assert!(table.machine.ends_with("1 thread"), "{}", table.machine);
    }
}
