//! One run of a plan: upload, recording of commands, submission, readback. Growing plans and plans of fixed size share
//! these steps.

use super::memory::Memory;
use super::pace::Pace;
use super::plans::Loaded;
use super::prerecord::{CurrentRun, Prerecorded, poll_next};
use super::readback::submit;
use super::update::Training;
use super::{DeviceState, Executor, Next, Resident, Times, makes_gradients};
use crate::compile::{Compiled, Packing};
use crate::counters::Counters;
use crate::device::Gpu;
use crate::error::GpuError;
use autobatch_ir::plan::{Inputs, Plan, Stores, Verified};
use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The part of a plan that a run executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlanPart {
    All,
    BeforePause,
    AfterPause,
}

impl PlanPart {
    /// The dispatches of the part, if the rows of the plan begin with dispatch `first`. Outputs are collected in any case.
    fn dispatches(self, compiled: &Compiled, first: usize) -> [Range<usize>; 2] {
        let end = compiled.dispatches.len();
        match self {
            Self::All => [first..end, end..end],
            Self::BeforePause => [first..compiled.pause.max(first), compiled.collect..end],
            Self::AfterPause => [compiled.pause..end, end..end],
        }
    }
}

/// The caller's request of a run.
pub(super) struct Request<'r> {
    pub(super) plan: &'r Verified<Plan>,
    pub(super) stores: &'r dyn Stores,
    pub(super) inputs: Inputs<'r>,
    /// True if the run adds its gradients to those of the last run.
    pub(super) accumulate: bool,
    /// Bound words and floats that an earlier run has uploaded.
    pub(super) uploaded: [u64; 2],
    pub(super) part: PlanPart,
}

/// A run that the device executes now.
pub(super) struct InFlight {
    compiled: Arc<Compiled>,
    tables: wgpu::Buffer,
    submission: wgpu::SubmissionIndex,
    /// The buffer that receives the outputs. Preparing the next plan may give the memory another one.
    staging: wgpu::Buffer,
    /// The first dispatch of the run.
    first: usize,
    /// The time of the run, as [`Pace`] predicts it.
    predicted: Duration,
    /// The time at which the inputs were uploaded. All submissions of the run follow it.
    uploaded: Instant,
    submitted: Instant,
    counters: Counters,
    times: Times,
}

pub(super) struct Finished {
    pub(super) compiled: Arc<Compiled>,
    pub(super) outputs: Vec<u32>,
    pub(super) counters: Counters,
    pub(super) times: Times,
}

impl DeviceState {
    /// Uploads the inputs of a run and submits its commands. `started` is the time at which the preparation of the plan
    /// began.
    pub(super) fn start(
        &mut self,
        request: &Request<'_>,
        loaded: &mut Loaded,
        mut counters: Counters,
        started: Instant,
    ) -> Result<InFlight, GpuError> {
        let Self { gpu, memory, pipelines, training, pace } = self;
        let made = pipelines.made();
        loaded.prepare(gpu, memory, pipelines)?;
        counters.pipelines = pipelines.made() - made;
        let prepared = Instant::now();

        let params = &request.plan.stores[..request.plan.given_stores()];
        counters.parameters = memory.upload_parameters(gpu, params, request.stores)?;
        let compiled = Arc::clone(&loaded.compiled);
        let first = if memory.claim_persistent(&compiled) { compiled.prologue as usize } else { 0 };
        counters.uploaded += memory.upload_inputs(gpu, &compiled, request.inputs, request.uploaded);
        let uploaded = Instant::now();

        counters.of_steps.clone_from(&compiled.of_steps);
        let dispatches = request.part.dispatches(&compiled, first);
        counters.dispatches = dispatches.iter().map(|range| range.len() as u32).sum();
        let is_whole = request.part == PlanPart::All;
        let prerecorded = loaded.prerecorded.take().filter(|_| is_whole && !request.accumulate);
        let commands = match prerecorded.and_then(|commands| commands.fitting(memory, first)) {
            Some(commands) => {
                counters.was_prerecorded = true;
                commands
            }
            None => {
                let saved = request.accumulate.then_some(&*training);
                let (parts, recording) = (dispatches.clone(), Recording { gpu, loaded, pace: *pace, saved });
                recording.record(memory, parts, &mut counters)?
            }
        };
        let submission = submit(gpu, commands)?;
        counters.submissions += 1;
        memory.mark_persistent(&compiled);
        let submitted = Instant::now();
        let predicted = Pace::predicted(&compiled, dispatches);
        Ok(InFlight {
            compiled,
            tables: loaded.tables().clone(),
            submission,
            staging: memory.staging().clone(),
            first,
            predicted,
            uploaded,
            submitted,
            counters,
            times: Times {
                prepare: prepared - started,
                upload: uploaded - prepared,
                encode: submitted - uploaded,
                ..Times::default()
            },
        })
    }

    /// Waits for a run and reads its outputs.
    pub(super) fn finish(&mut self, request: &Request<'_>, run: InFlight) -> Result<Finished, GpuError> {
        let InFlight { compiled, tables, submission, staging, submitted, mut counters, mut times, .. } = run;
        let Self { gpu, memory, pipelines, training, pace } = self;
        let started = Instant::now();
        let words = compiled.readback_words();
        let outputs = memory.wait(gpu, &staging, submission, words, gpu.time_left(submitted))?;
        pace.learn(run.predicted, run.uploaded.elapsed());
        pipelines.save_if_doubled(0);
        check_indices(request, &compiled, &outputs)?;
        if request.part != PlanPart::BeforePause {
            training.after(request.plan, &compiled.layout, &tables, request.accumulate);
        }
        counters.read = words * 4;
        times.wait += started.elapsed();
        Ok(Finished { compiled, outputs, counters, times })
    }
}

/// Checks the computed indices of the steps that a request executed.
fn check_indices(request: &Request<'_>, compiled: &Compiled, read: &[u32]) -> Result<(), GpuError> {
    let words = &read[read.len() - (compiled.checked as usize).min(read.len())..];
    let end = match request.part {
        PlanPart::BeforePause => request.plan.steps_before_pause(),
        PlanPart::All | PlanPart::AfterPause => request.plan.steps.len(),
    };
    let executed = compiled.checks.iter().filter(|check| (check.step as usize) < end);
    match executed
        .filter_map(|check| check.find(request.plan, words))
        .min_by_key(|fault| (fault.step, fault.lane))
    {
        Some(fault) => Err(GpuError::Index(Box::new(fault))),
        None => Ok(()),
    }
}

impl Executor {
    /// Executes a plan of fixed size, and prepares the next one while the device works.
    pub(super) fn run_exact(
        &mut self,
        request: &Request<'_>,
        next: &mut dyn FnMut() -> Next,
    ) -> Result<Finished, GpuError> {
        let plan = request.plan;
        if makes_gradients(plan) {
            self.packing = Packing::Words;
        }
        let target = self.target()?;
        let (mut counters, started) = (Counters::default(), Instant::now());
        let Resident { device, plans, growing } = self.open()?;
        *growing = None;
        // This reads the tables of the last plan, before loading a plan overwrites them.
        if request.part != PlanPart::AfterPause {
            let DeviceState { gpu, memory, pipelines, training, .. } = &mut *device;
            training.before(gpu, memory, plan, request.accumulate, pipelines.cache())?;
        }
        let loaded = plans.load(&device.gpu, plan, target, None, &mut counters)?;
        loaded.word_limits.check(plan, request.inputs.words)?;
        let compiled = Arc::clone(&loaded.compiled);
        if !device.memory.has_room(&device.gpu, target, &compiled) {
            plans.release_memory();
        }
        device.memory.fit(&device.gpu, target, &compiled)?;
        let loaded = plans.load(&device.gpu, plan, target, None, &mut counters)?;
        let mut run = device.start(request, loaded, counters, started)?;

        let DeviceState { gpu, memory, pipelines, pace, .. } = device;
        let next = poll_next(gpu, &run.submission, next);
        let polled = Instant::now();
        let keeps_parameters = !makes_gradients(plan);
        match next {
            None if request.part != PlanPart::All => {}
            None if !request.accumulate && mem::replace(&mut loaded.was_executed, true) => {
                let first = if keeps_parameters { run.first } else { 0 };
                loaded.prerecorded = Prerecorded::record(gpu, memory, loaded, first, *pace)?;
            }
            None => {}
            Some(next) => {
                loaded.was_executed = true;
                let made = pipelines.made();
                let current =
                    CurrentRun { identity: loaded.identity(), keeps_parameters, target, pace: *pace };
                // The run of the next plan reports the errors of its preparation.
                let _ = current.prepare_next(gpu, &next, memory, pipelines, plans, &mut run.counters);
                run.counters.pipelines += pipelines.made() - made;
            }
        }
        run.times.prerecord = polled.elapsed();
        run.times.wait = polled - run.submitted;
        device.finish(request, run)
    }
}

/// The parts on which the commands of a run depend.
struct Recording<'r> {
    gpu: &'r Gpu,
    loaded: &'r Loaded,
    pace: Pace,
    /// The gradients that the run adds to, if it does.
    saved: Option<&'r Training>,
}

impl Recording<'_> {
    /// Records the commands of a run. Large runs take several submissions. All of them but the last are submitted here.
    fn record(
        &self,
        memory: &mut Memory,
        dispatches: [Range<usize>; 2],
        counters: &mut Counters,
    ) -> Result<wgpu::CommandBuffer, GpuError> {
        let &Self { gpu, loaded, pace, saved } = self;
        let compiled = &loaded.compiled;
        let mut encoder = memory.begin(gpu, compiled);
        if let Some(training) = saved {
            training.restore(memory, &compiled.layout, &mut encoder);
        }
        for Range { start: mut next, end: last } in dispatches {
            while next < last {
                let end = pace.submission_end(compiled, next).min(last);
                loaded.encode(&mut encoder, next..end, None);
                next = end;
                if next < last {
                    gpu.queue.submit([mem::replace(&mut encoder, gpu.encoder()).finish()]);
                    counters.submissions += 1;
                }
            }
        }
        memory.finish(gpu, encoder, &compiled.readback)
    }
}
