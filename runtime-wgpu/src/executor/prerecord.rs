//! Commands recorded ahead of their run. While the device works, the host records the commands of a later run. They are
//! those of the next plan if the caller announced one. Otherwise they are those of the current plan, if it has been
//! executed before. The later run then only submits its commands. Commands name buffers, so a run uses recorded
//! commands only if it needs the same buffers.

use super::memory::Memory;
use super::pace::Pace;
use super::pipelines::Pipelines;
use super::plans::{Loaded, Plans};
use super::{Next, makes_gradients};
use crate::compile::{Packing, Target};
use crate::counters::Counters;
use crate::device::Gpu;
use crate::error::GpuError;
use crate::module::Split;
use autobatch_ir::plan::{Plan, Verified};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Pause between two polls for the next plan while the device works.
const POLL_INTERVAL: Duration = Duration::from_micros(250);

/// Recorded commands, for a run that may not happen.
pub(super) struct Prerecorded {
    first: usize,
    generation: u64,
    split: Split,
    staging: wgpu::Buffer,
    commands: wgpu::CommandBuffer,
}

impl Prerecorded {
    /// Records the commands of a plan from dispatch `first` on, if they fit one submission.
    pub(super) fn record(
        gpu: &Gpu,
        memory: &mut Memory,
        loaded: &Loaded,
        first: usize,
        pace: Pace,
    ) -> Result<Option<Self>, GpuError> {
        let compiled = &*loaded.compiled;
        if pace.submission_end(compiled, first) < compiled.dispatches.len() {
            return Ok(None);
        }
        let mut encoder = memory.begin(gpu, compiled);
        loaded.encode(&mut encoder, first..compiled.dispatches.len(), None);
        let commands = memory.finish(gpu, encoder, &compiled.readback)?;
        let (generation, split, staging) = (memory.generation(), memory.split(), memory.staging().clone());
        Ok(Some(Self { first, generation, split, staging, commands }))
    }

    /// Returns whether the commands start with dispatch `first` and name the current buffers.
    fn fits(&self, memory: &Memory, first: usize) -> bool {
        (self.first, self.generation, self.split) == (first, memory.generation(), memory.split())
            && memory.has_staging(&self.staging)
    }

    /// Returns the commands if they start with dispatch `first` and name the current buffers.
    pub(super) fn fitting(self, memory: &Memory, first: usize) -> Option<wgpu::CommandBuffer> {
        self.fits(memory, first).then_some(self.commands)
    }
}

/// The run that the device executes while the next one is prepared.
pub(super) struct CurrentRun {
    pub(super) identity: u64,
    /// True if no update of parameters can follow the run.
    pub(super) keeps_parameters: bool,
    pub(super) target: Target,
    pub(super) pace: Pace,
}

impl CurrentRun {
    /// Loads the next plan and records its commands. It records nothing if the next plan needs other memory, because
    /// the current run, and an update with its gradients, still read the current memory.
    pub(super) fn prepare_next(
        &self,
        gpu: &Gpu,
        next: &Verified<Plan>,
        memory: &mut Memory,
        pipelines: &mut Pipelines,
        plans: &mut Plans,
        counters: &mut Counters,
    ) -> Result<(), GpuError> {
        let &Self { identity, keeps_parameters, target, pace } = self;
        if makes_gradients(next) && target.packing != Packing::Words {
            return Ok(());
        }
        let loaded = plans.load(gpu, next, target, Some(identity), counters)?;
        if !memory.has_room(gpu, target, &loaded.compiled) {
            return Ok(());
        }
        loaded.prepare(gpu, memory, pipelines)?;
        let skips_prologue = keeps_parameters && memory.has_persistent(&loaded.compiled);
        let first = if skips_prologue { loaded.compiled.prologue as usize } else { 0 };
        if loaded.prerecorded.as_ref().is_none_or(|commands| !commands.fits(memory, first)) {
            loaded.prerecorded = Prerecorded::record(gpu, memory, loaded, first, pace)?;
        }
        Ok(())
    }
}

/// Polls for the next plan until it is known or the submission is done.
pub(super) fn poll_next(
    gpu: &Gpu,
    submission: &wgpu::SubmissionIndex,
    next: &mut dyn FnMut() -> Next,
) -> Option<Arc<Verified<Plan>>> {
    let started = Instant::now();
    loop {
        if let Poll::Ready(next) = next() {
            return next;
        }
        let (submission_index, timeout) = (Some(submission.clone()), Some(POLL_INTERVAL));
        let polled = gpu.device.poll(wgpu::PollType::Wait { submission_index, timeout });
        let is_working = matches!(polled, Err(wgpu::PollError::Timeout));
        if !is_working || gpu.time_left(started).is_zero() {
            return None;
        }
    }
}
