//! Pipelines with and without a cache, memory, and the loss of the device.

use super::Examination;
use super::plans::{Planned, Sizes, inputs, planned};
use crate::Mode;
use crate::error::BenchError;
use autobatch::runtime_wgpu::{self as gpu, GpuError, PipelineCacheDir};
use serde_json::{Value as Json, json};
use std::time::Instant;

/// Bytes that the ladder of memory asks for at most.
const LADDER: u64 = 64 << 30;
/// Plans that grow.
const PLANS: usize = 50;

/// Times the first run of a model with an empty cache of pipelines, and with the one that it left.
pub(super) fn pipelines(examination: &mut Examination<'_>) -> Result<Json, BenchError> {
    let folder = std::env::temp_dir().join(format!("autobatch-doctor-{}", std::process::id()));
    let Planned { graph, plan, weights } = planned("treelstm", &Sizes::SMALL, Mode::Train)?;
    let first = || -> Result<(f64, u32), BenchError> {
        let pipelines = PipelineCacheDir::Folder(folder.clone());
        let mut executor = examination.executor(gpu::Options { pipelines, ..examination.gpu_options() })?;
        examination.beat("the first run of a model");
        let start = Instant::now();
        executor.execute(&plan, &weights, inputs(&graph))?;
        Ok((start.elapsed().as_secs_f64(), executor.counters().pipelines))
    };
    let runs = first().and_then(|cold| Ok((cold, first()?)));
    // A folder that stays is not worth an error.
    let _ = std::fs::remove_dir_all(&folder);
    let ((cold, built), (warm, _)) = runs?;
    Ok(json!({ "cold": cold, "warm": warm, "pipelines": built }))
}

/// Asks for memory, and executes plans that grow.
pub(super) fn memory(examination: &mut Examination<'_>) -> Result<Json, BenchError> {
    examination.beat("the ladder of memory");
    let ladder = examination.probe()?.memory(LADDER)?;
    let mut executor = examination.executor(examination.gpu_options())?;
    let plans = if examination.is_software() { 5 } else { PLANS };
    let mut allocated = Vec::new();
    for number in 1..=plans {
        examination.beat(&format!("growing plan {number} of {plans}"));
        let sizes = Sizes { instances: Some(2 * number), hidden: Sizes::SMALL.hidden };
        let Planned { graph, plan, weights } = planned("treelstm", &sizes, Mode::Train)?;
        executor.execute(&plan, &weights, inputs(&graph))?;
        allocated.push(executor.gpu().and_then(gpu::Gpu::allocated));
    }
    Ok(json!({ "given": ladder.bytes, "end": ladder.end, "allocated": allocated }))
}

/// Destroys the device and executes again.
pub(super) fn loss(examination: &mut Examination<'_>) -> Result<Json, BenchError> {
    let Planned { graph, plan, weights } = planned("treelstm", &Sizes::SMALL, Mode::Infer)?;
    let mut executor = examination.executor(examination.gpu_options())?;
    executor.execute(&plan, &weights, inputs(&graph))?;
    let before = executor.output(0).to_vec();
    if let Some(gpu) = executor.gpu() {
        gpu.destroy();
    }
    let reported = matches!(executor.execute(&plan, &weights, inputs(&graph)), Err(GpuError::Lost { .. }));
    let start = Instant::now();
    executor.execute(&plan, &weights, inputs(&graph))?;
    let (reopened, same) = (start.elapsed().as_secs_f64(), executor.output(0) == before);
    if !reported || !same {
        examination.find(
            "a lost device is not reported, or has other results when it is opened again; send this report"
                .to_owned(),
        );
    }
    Ok(json!({ "reported": reported, "reopened": reopened, "same_results": same }))
}
