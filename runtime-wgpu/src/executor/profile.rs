//! Device times of dispatches, by timestamp queries.

use super::plans::Loaded;
use super::readback::{map_and_read, submit};
use super::{DeviceState, Executor, Resident};
use crate::compile::{Compiled, Cost};
use crate::counters::Counters;
use crate::device::Gpu;
use crate::error::GpuError;
use autobatch_ir::plan::{Inputs, Plan, Stores, Verified};
use std::ops::Range;
use std::time::{Duration, Instant};
use wgpu::BufferUsages as Usage;

/// Dispatches per submission. Each takes two queries, and a query set holds 4,096.
const DISPATCHES: usize = 1024;

/// The device time of a dispatch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DispatchTime {
    /// The template of its program.
    pub template: &'static str,
    /// Its workgroups.
    pub groups: u64,
    /// Its segments: units of steps that it executes together.
    pub segments: u32,
    /// Its multiply-adds, about.
    pub cost: Cost,
    /// From the end of the dispatch before it to its own end, barrier included.
    pub time: Duration,
}

impl Executor {
    /// Executes a plan, then executes all its dispatches again with a timestamp before and after each, and returns their
    /// device times in order. `None` if the device has no timestamps. The outputs are those of the first execution.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn profile(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        inputs: Inputs<'_>,
    ) -> Result<Option<Vec<DispatchTime>>, GpuError> {
        self.execute(plan, stores, inputs)?;
        let target = self.target()?;
        let Resident { device: DeviceState { gpu, memory, pipelines, .. }, plans, .. } = self.open()?;
        if !gpu.device.features().contains(wgpu::Features::TIMESTAMP_QUERY) {
            return Ok(None);
        }
        let loaded = plans.load(gpu, plan, target, None, &mut Counters::default())?;
        loaded.prepare(gpu, memory, pipelines)?;
        let compiled = loaded.compiled.clone();
        submit(gpu, memory.begin(gpu, &compiled).finish())?;
        let mut times = Vec::with_capacity(compiled.dispatches.len());
        for start in (0..compiled.dispatches.len()).step_by(DISPATCHES) {
            let range = start..compiled.dispatches.len().min(start + DISPATCHES);
            times.extend(timed(gpu, loaded, &compiled, range)?);
        }
        Ok(Some(times))
    }
}

/// Executes a range of dispatches, each in a pass of its own.
fn timed(
    gpu: &Gpu,
    loaded: &Loaded,
    compiled: &Compiled,
    range: Range<usize>,
) -> Result<Vec<DispatchTime>, GpuError> {
    let queries = 2 * range.len() as u32;
    let set = gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
        label: Some("times of dispatches"),
        ty: wgpu::QueryType::Timestamp,
        count: queries,
    });
    let bytes = u64::from(queries) * 8;
    let resolved = gpu.buffer("timestamps", bytes, Usage::QUERY_RESOLVE | Usage::COPY_SRC)?;
    let staging = gpu.buffer("timestamps to read", bytes, Usage::MAP_READ | Usage::COPY_DST)?;
    let mut encoder = gpu.encoder();
    for (number, dispatch) in range.clone().enumerate() {
        let query = 2 * number as u32;
        let timestamps = wgpu::ComputePassTimestampWrites {
            query_set: &set,
            beginning_of_pass_write_index: Some(query),
            end_of_pass_write_index: Some(query + 1),
        };
        loaded.encode(&mut encoder, dispatch..dispatch + 1, Some(timestamps));
    }
    encoder.resolve_query_set(&set, 0..queries, &resolved, 0);
    encoder.copy_buffer_to_buffer(&resolved, 0, &staging, 0, bytes);
    let started = Instant::now();
    let submission = submit(gpu, encoder.finish())?;
    let words = map_and_read(gpu, &staging, submission, bytes / 4, gpu.time_left(started))?;
    let ticks: &[u64] =
        &words.chunks_exact(2).map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32).collect::<Vec<_>>();
    let nanos = f64::from(gpu.queue.get_timestamp_period());
    let time = |pair: &[u64]| Duration::from_nanos((pair[1].saturating_sub(pair[0]) as f64 * nanos) as u64);
    let dispatches = compiled.dispatches[range].iter().zip(ticks.chunks_exact(2));
    Ok(dispatches
        .map(|(dispatch, pair)| DispatchTime {
            template: compiled.programs[dispatch.program as usize].template().name,
            groups: u64::from(dispatch.groups[0]) * u64::from(dispatch.groups[1]),
            segments: dispatch.count,
            cost: dispatch.cost,
            time: time(pair),
        })
        .collect())
}
