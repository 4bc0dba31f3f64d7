//! Commands written ahead: while the device executes, the host, which would only wait, writes the commands of a later
//! execute: of the plan that it was told of, or else of the same one if that was executed before. They stay with their plan
//! until it is executed: then nothing is left but to submit them. They name buffers, so they are used only while these
//! are the ones that a run would name.

use super::memory::Memory;
use super::pipelines::Pipelines;
use super::plans::{Loaded, Plans};
use super::{Next, makes_gradients, one_submission};
use crate::compile::{Packing, Target};
use crate::counters::Counters;
use crate::device::Gpu;
use crate::error::GpuError;
use crate::module::Cuts;
use autobatch_ir::plan::{Plan, Verified};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// How long a device that works is left alone between two questions for the plan that is executed next.
const BETWEEN_QUESTIONS: Duration = Duration::from_micros(250);

/// The run that another one is prepared behind.
pub(super) struct Behind {
    pub(super) identity: u64,
    /// Whether no update can follow it.
    pub(super) leaves_parameters: bool,
    pub(super) target: Target,
}

/// The commands of a run that may come, of the plan that holds them.
pub(super) struct Ahead {
    /// From this dispatch on.
    first: usize,
    generation: u64,
    cuts: Cuts,
    staging: wgpu::Buffer,
    commands: wgpu::CommandBuffer,
}

impl Ahead {
    /// Writes the commands of a plan from a dispatch on, if they are one submission.
    pub(super) fn write(
        gpu: &Gpu,
        memory: &mut Memory,
        loaded: &Loaded,
        first: usize,
    ) -> Result<Option<Self>, GpuError> {
        let compiled = &*loaded.compiled;
        if one_submission(compiled, first) < compiled.dispatches.len() {
            return Ok(None);
        }
        let mut encoder = memory.begin(gpu, compiled);
        loaded.encode(&mut encoder, first..compiled.dispatches.len());
        let commands = memory.finish(gpu, encoder, &compiled.back)?;
        let (generation, cuts, staging) = (memory.generation(), memory.cuts(), memory.staging().clone());
        Ok(Some(Self { first, generation, cuts, staging, commands }))
    }

    /// Brings the plan that follows a run to the device, and writes its commands; nothing if it needs other memory than
    /// there is, which the execute and an update of its gradients still read.
    pub(super) fn of(
        gpu: &Gpu,
        next: &Verified<Plan>,
        behind: &Behind,
        (memory, pipelines, plans): (&mut Memory, &mut Pipelines, &mut Plans),
        counters: &mut Counters,
    ) -> Result<(), GpuError> {
        let &Behind { identity, leaves_parameters, target } = behind;
        if makes_gradients(next) && target.packing != Packing::Words {
            return Ok(());
        }
        let loaded = plans.load(gpu, next, target, (Some(identity), counters))?;
        if !memory.has_room(gpu, target, &loaded.compiled) {
            return Ok(());
        }
        loaded.prepare(gpu, memory, pipelines)?;
        let stays = leaves_parameters && memory.has_standing(&loaded.compiled);
        let first = if stays { loaded.compiled.prologue as usize } else { 0 };
        if loaded.ahead.as_ref().is_none_or(|ahead| !ahead.fits(memory, first)) {
            loaded.ahead = Self::write(gpu, memory, loaded, first)?;
        }
        Ok(())
    }

    /// Whether they begin with this dispatch and name the memory that there is now.
    fn fits(&self, memory: &Memory, first: usize) -> bool {
        let named = (self.first, self.generation, self.cuts);
        named == (first, memory.generation(), memory.cuts()) && memory.has_staging(&self.staging)
    }

    /// The commands, if they begin with this dispatch and name the memory that there is now.
    pub(super) fn fitting(self, memory: &Memory, first: usize) -> Option<wgpu::CommandBuffer> {
        self.fits(memory, first).then_some(self.commands)
    }
}

/// The plan that is executed next, if that becomes known before a submission is done.
pub(super) fn known(
    gpu: &Gpu,
    submitted: &wgpu::SubmissionIndex,
    next: &mut dyn FnMut() -> Next,
) -> Option<Arc<Verified<Plan>>> {
    let started = Instant::now();
    loop {
        if let Poll::Ready(next) = next() {
            return next;
        }
        let (submission_index, timeout) = (Some(submitted.clone()), Some(BETWEEN_QUESTIONS));
        let polled = gpu.device.poll(wgpu::PollType::Wait { submission_index, timeout });
        let is_working = matches!(polled, Err(wgpu::PollError::Timeout));
        if !is_working || gpu.patience_left(started).is_zero() {
            return None;
        }
    }
}
