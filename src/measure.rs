//! Measures which device is fastest on a small recurrent model.

use crate::device::Device;
use crate::error::Result;
use crate::session::Session;
use autobatch_ir::{Init, ModuleBuilder, types};
use autobatch_runtime_wgpu::{AdapterFacts, Options, PipelineCacheDir, Selector, adapters, self_test};
use std::time::{Duration, Instant};

/// The size of the model: instances, steps per instance, width.
const INSTANCES: u64 = 128;
const STEPS: usize = 16;
const WIDTH: usize = 256;
/// The number of measured runs, after a first one that compiles and uploads. The fastest counts.
const RUNS: usize = 3;

/// Returns the best device and the reason.
pub(crate) fn best() -> (Device, String) {
    let real = |adapter: &AdapterFacts| matches!(adapter.kind, "discrete" | "integrated");
    match adapters().into_iter().find(real) {
        Some(adapter) => faster(&adapter),
        None => (Device::Cpu, "there is no discrete or integrated GPU".to_owned()),
    }
}

/// Returns the faster of an adapter and the CPU. An adapter with wrong results is not chosen.
fn faster(adapter: &AdapterFacts) -> (Device, String) {
    let selector = Selector::Number(adapter.number);
    let name = &adapter.name;
    let pipelines = PipelineCacheDir::from_env();
    match self_test(Options { selector: selector.clone(), pipelines, ..Options::default() }) {
        Err(error) => return (Device::Cpu, format!("{name} does not execute: {error}")),
        Ok(tested) if !tested.is_healthy() => {
            let reason = "has wrong results, see `autobatch doctor`; update its driver";
            return (Device::Cpu, format!("{name} {reason}"));
        }
        Ok(_) => {}
    }
    let gpu = Device::Gpu(selector);
    let (there, here) = match (time(gpu.clone()), time(Device::Cpu)) {
        (Ok(there), Ok(here)) => (there, here),
        (Err(error), _) => return (Device::Cpu, format!("{name} does not execute: {error}")),
        (_, Err(error)) => return (gpu, format!("the cpu does not execute: {error}")),
    };
    let milliseconds = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
    let why = format!(
        "{INSTANCES} chains of {STEPS} steps, {WIDTH} wide: {name} {}, cpu {}",
        milliseconds(there),
        milliseconds(here)
    );
    (if there < here { gpu } else { Device::Cpu }, why)
}

/// Returns the time of a run on a device.
fn time(device: Device) -> Result<Duration> {
    let mut m = ModuleBuilder::new("measure");
    let w = m.param("w", [WIDTH, WIDTH], Init::Glorot(1.0));
    let b = m.param("b", [WIDTH], Init::Uniform(0.1));
    let cell = m.cell("step", [types::f32([WIDTH])], |g, [x]| [g.affine([x], w, Some(b)).tanh()]);
    let mut session = Session::new(&m.build()?, device)?;
    let graph = session.graph();
    let input: Vec<f32> = (0..WIDTH).map(|i| (i as f32 * 0.37).sin()).collect();
    let mut ends = Vec::new();
    for instance in 0..INSTANCES {
        graph.instance(instance);
        ends.push((0..STEPS).fold(graph.input(&input), |x, _| {
            let [x] = graph.call(cell, [x]);
            x
        }));
    }
    let mut fastest = Duration::MAX;
    for execute in 0..=RUNS {
        let start = Instant::now();
        session.run(&graph, &ends)?;
        fastest = if execute == 0 { fastest } else { fastest.min(start.elapsed()) };
    }
    Ok(fastest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faster_device_is_chosen_and_both_times_are_reported() {
        let Some(adapter) = adapters().into_iter().next() else { return };
        let (device, why) = faster(&adapter);
        let words: Vec<&str> = why.split(' ').collect();
        let timed = words.windows(2).filter(|pair| pair[1].trim_end_matches(',') == "ms");
        let times: Vec<f64> = timed.filter_map(|pair| pair[0].parse().ok()).collect();
        assert!(why.contains(&adapter.name) && why.contains(", cpu "), "{why}");
        let [there, here] = times.as_slice() else { panic!("{why}") };
        assert_eq!(device == Device::Cpu, there >= here, "{why}");
    }

    #[test]
    fn an_adapter_that_cannot_execute_is_not_chosen() {
        let Some(mut adapter) = adapters().into_iter().next() else { return };
        adapter.number = 1000;
        let (device, why) = faster(&adapter);
        assert!(
            device == Device::Cpu && why.contains("does not execute: no adapter matches `gpu:1000`"),
            "{why}"
        );
    }
}
