//! Complete steps of all models, beside the CPU.

use super::Examination;
use super::plans::{Planned, Sizes, planned};
use crate::error::BenchError;
use crate::{Mode, run};
use autobatch::Device;
use autobatch::runtime_wgpu::compile::compile;
use autobatch_models::catalogue::ENTRIES;
use serde_json::{Value as Json, json};
use std::time::Duration;

/// Times complete steps of every model on both devices, and compares the device's part with its prediction.
pub(super) fn steps(examination: &mut Examination<'_>) -> Result<Json, BenchError> {
    let (sizes, rounds, turn) = match examination.is_software() {
        true => (Sizes::SMALL, 1, Duration::from_millis(1)),
        false => (Sizes::FULL, 3, Duration::from_millis(100)),
    };
    // Its executor is opened only to learn the limits that plans are compiled for.
    let mut executor = examination.executor(examination.gpu_options())?;
    if examination.takes_device_away() {
        executor.target()?;
        return Err(BenchError::Gpu("the device was lost: it was taken away".to_owned()));
    }
    let (mut rows, mut skipped) = (Vec::new(), 0);
    for entry in &ENTRIES {
        for mode in [Mode::Infer, Mode::Train] {
            if examination.is_late() {
                skipped += 1;
                continue;
            }
            let name = entry.name;
            let measure = |device: Device| {
                examination.beat(&format!("steps of {name}, {mode}, on {device}"));
                let options = crate::Options {
                    sizes: sizes.options(name)?,
                    mode,
                    device,
                    threads: 0,
                    rounds,
                    turn,
                    variants: false,
                    phases: true,
                    ..crate::Options::default()
                };
                run(name, &options)
            };
            let there = measure(Device::Gpu(examination.options.selector.clone()))?;
            let here = measure(Device::Cpu)?;
            let Planned { plan, .. } = planned(name, &sizes, mode)?;
            let compiled = compile(&plan, executor.target()?)?;
            let predicted = examination.card().map(|card| card.time_of_plan(&compiled).as_secs_f64());
            let device: f64 = there.kernels.iter().map(|kernel| kernel.seconds).sum();
            let templates = there.kernels.iter().map(|kernel| {
                json!({ "template": kernel.name, "dispatches": kernel.steps, "seconds": kernel.seconds, "gflops": kernel.gflops })
            });
            let total = there.seconds_per_step;
            rows.push(json!({
                "model": name, "mode": mode, "gpu": total, "cpu": here.seconds_per_step, "device": device,
                "idle": (1.0 - device / total.max(1e-9)).max(0.0), "predicted": predicted,
                "dispatches": compiled.dispatches.len(), "phases": there.gpu_phases,
                "templates": templates.collect::<Vec<_>>(),
            }));
        }
    }
    Ok(json!({ "steps": rows, "skipped": skipped }))
}
