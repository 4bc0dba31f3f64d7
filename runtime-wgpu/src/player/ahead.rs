//! Commands written ahead: while the device plays, the host, which would only wait, writes the commands of the next
//! play: of the plan that it was told of, or of the same one if that was played twice in a row. If it comes, nothing
//! is left but to submit them; else they are dropped, unused. They name buffers, so they are used only while these
//! are the ones that a play would name.

use super::memory::Memory;
use super::pipelines::Pipelines;
use super::plans::{Loaded, Plans};
use super::{Next, makes_gradients, one_submission};
use crate::compile::{Compiled, Packing, Target};
use crate::counters::Counters;
use crate::device::Gpu;
use crate::error::GpuError;
use crate::module::Cuts;
use autobatch_ir::plan::{Plan, Verified};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// How long a device that works is left alone between two questions for the plan that is played next.
const BETWEEN_QUESTIONS: Duration = Duration::from_micros(250);

/// The play that another one is prepared behind.
pub(super) struct Behind {
    pub(super) identity: u64,
    /// Whether no update can follow it.
    pub(super) leaves_parameters: bool,
    pub(super) target: Target,
}

/// The commands of a play that may come.
pub(super) struct Ahead {
    /// Of this plan on the device: a plan that left and came back is another one, with other tables.
    compiled: Arc<Compiled>,
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
        let compiled = Arc::clone(&loaded.compiled);
        if one_submission(&compiled, first) < compiled.dispatches.len() {
            return Ok(None);
        }
        let mut encoder = memory.begin(gpu, &compiled);
        loaded.encode(&mut encoder, first..compiled.dispatches.len());
        let commands = memory.finish(gpu, encoder, &compiled.back)?;
        let (generation, cuts, staging) = (memory.generation(), memory.cuts(), memory.staging().clone());
        Ok(Some(Self { compiled, first, generation, cuts, staging, commands }))
    }

    /// Brings the plan that follows a play to the device, and writes its commands; nothing if it needs other memory than
    /// there is, which the play and an update of its gradients still read.
    pub(super) fn of(
        gpu: &Gpu,
        next: &Verified<Plan>,
        behind: &Behind,
        (memory, pipelines, plans): (&mut Memory, &mut Pipelines, &mut Plans),
        counters: &mut Counters,
    ) -> Result<Option<Self>, GpuError> {
        let &Behind { identity, leaves_parameters, target } = behind;
        if makes_gradients(next) && target.packing != Packing::Words {
            return Ok(None);
        }
        let loaded = plans.load(gpu, next, target, (Some(identity), counters))?;
        if !memory.has_room(gpu, target, &loaded.compiled) {
            return Ok(None);
        }
        loaded.prepare(gpu, memory, pipelines)?;
        let stays = loaded.identity() == identity && leaves_parameters;
        let first = if stays { loaded.compiled.prologue as usize } else { 0 };
        Self::write(gpu, memory, loaded, first)
    }

    /// Whether they play this plan.
    pub(super) fn is_of(&self, compiled: &Arc<Compiled>) -> bool {
        Arc::ptr_eq(&self.compiled, compiled)
    }

    /// The commands, if they begin with this dispatch and name the memory that there is now.
    pub(super) fn fitting(self, memory: &Memory, first: usize) -> Option<wgpu::CommandBuffer> {
        let named = (self.first, self.generation, self.cuts);
        let same = named == (first, memory.generation(), memory.cuts());
        (same && memory.has_staging(&self.staging)).then_some(self.commands)
    }
}

/// The plan that is played next, if that becomes known before a submission is done.
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
