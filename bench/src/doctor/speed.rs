//! How fast the device is: latencies, roofs, and products below them.

use super::Examination;
use crate::error::BenchError;
use autobatch::runtime_wgpu::predict::Card;
use autobatch::runtime_wgpu::{DispatchTime, Executor};
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_ir::types::f32;
use autobatch_ir::{Graph, Weights};
use autobatch_planner::{Planner, Request};
use serde_json::{Value as Json, json};

/// The share of the multiply-adds of a device that products reach, about.
pub(super) const SHARE: f64 = 0.4;
/// Executions of a product; the fastest counts.
const ROUNDS: usize = 5;

/// Measures latencies.
pub(super) fn latencies(examination: &mut Examination<'_>) -> Result<Json, BenchError> {
    let found = examination.probe()?.latencies()?;
    let uploads: Vec<Json> =
        found.uploads.iter().map(|(bytes, seconds)| json!({ "bytes": bytes, "seconds": seconds })).collect();
    let section = json!({
        "submission": found.submission, "read_back": found.read_back, "dispatch": found.dispatch, "load": found.load,
        "uploads": uploads,
    });
    examination.latencies = Some(found);
    Ok(section)
}

/// Measures roofs.
pub(super) fn roofs(examination: &mut Examination<'_>) -> Result<Json, BenchError> {
    let found = examination.probe()?.roofs()?;
    let section = json!({ "multiply_adds": found.multiply_adds, "copy": found.copy, "groups": found.groups });
    examination.roofs = Some(found);
    Ok(section)
}

impl Examination<'_> {
    /// The device as its probes describe it.
    pub(super) fn card(&self) -> Option<Card> {
        Some(Card::measured(self.latencies.as_ref()?, self.roofs.as_ref()?, SHARE))
    }
}

/// Times products of many shapes.
pub(super) fn kernels(examination: &mut Examination<'_>) -> Result<Json, BenchError> {
    let mut executor = examination.executor(examination.gpu_options())?;
    let (rows, widths, gates): (&[usize], &[usize], &[usize]) = match examination.is_software() {
        true => (&[1, 64], &[16, 50], &[1, 4]),
        false => (&[1, 16, 64, 256, 1024, 4096], &[50, 100, 256, 512, 1024], &[1, 4, 5]),
    };
    let (mut products, mut skipped) = (Vec::new(), 0);
    for &width in widths {
        for &gates in gates {
            for &rows in rows {
                if examination.is_late() {
                    skipped += 1;
                    continue;
                }
                examination.beat(&format!("a product of {rows} rows of width {width} with {gates} gates"));
                let Some(found) = product(&mut executor, rows, width, gates)? else {
                    return Ok(json!({ "products": [], "reason": "the device has no timestamps" }));
                };
                let rate = found.cost.work as f64 / found.time.as_secs_f64().max(1e-9);
                let roof = examination.roofs.as_ref().map(|roofs| rate / roofs.multiply_adds);
                let predicted = examination.card().map(|card| card.time(&found.cost).as_secs_f64());
                products.push(json!({
                    "rows": rows, "width": width, "gates": gates, "template": found.template, "groups": found.groups,
                    "seconds": found.time.as_secs_f64(), "gflops": 2e-9 * rate, "share_of_roof": roof,
                    "predicted": predicted,
                }));
            }
        }
    }
    Ok(json!({ "products": products, "skipped": skipped }))
}

/// The fastest execution of the dispatch of a product with an epilogue; `None` without timestamps.
fn product(
    executor: &mut Executor,
    rows: usize,
    width: usize,
    gates: usize,
) -> Result<Option<DispatchTime>, BenchError> {
    let mut m = ModuleBuilder::new("products");
    let w = m.param("w", [width, gates * width], Init::Glorot(1.0));
    let b = m.param("b", [gates * width], Init::Uniform(0.1));
    let cell = m.cell("cell", [f32([width])], |g, [x]| {
        let gates = g.affine([x], w, Some(b)).chunks(0, gates).into_iter();
        [gates.map(|gate| gate.sigmoid()).reduce(|all, gate| all * gate).unwrap_or(x)]
    });
    let graph = Graph::new(&m.build()?);
    let mut wanted = Vec::new();
    let row: Vec<f32> = (0..width).map(|at| (at % 97) as f32 * 0.01).collect();
    for instance in 0..rows {
        graph.instance(instance as u64);
        let [y] = graph.call(cell, [graph.input(&row)]);
        wanted.extend(y.id());
    }
    let graph = graph.finish()?;
    let request = Request { wanted: &wanted, ..Request::default() };
    let plan = Planner::default().plan(&graph, &request)?.verify()?;
    let weights = Weights::init(&graph.module, 1);
    let mut fastest: Option<DispatchTime> = None;
    for _ in 0..ROUNDS {
        let Some(times) = executor.profile(&plan, &weights, super::plans::inputs(&graph))? else {
            return Ok(None);
        };
        let largest = times.into_iter().max_by_key(|dispatch| dispatch.cost.work);
        fastest = fastest.into_iter().chain(largest).min_by_key(|dispatch| dispatch.time);
    }
    Ok(fastest)
}
