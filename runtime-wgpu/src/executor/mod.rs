//! Executes plans on a device.
//!
//! A [`Executor`] keeps what lasts longer than a run: the device, pipelines by content, plans with their
//! tables, the arena, and the parameters, which go up again only when their version changes. If the device is lost, the run fails
//! with [`GpuError::Lost`] and the next one opens it anew: the values of parameters are the caller's, so
//! nothing but the time is gone.

mod ahead;
mod build;
mod cache;
mod cut;
mod fetch;
mod grown;
mod memory;
mod pipelines;
mod plans;
mod update;

pub use update::{StoresMut, Trained};

use self::ahead::{Ahead, Behind, known};
use crate::border;
use crate::compile::{Compiled, DEFAULT_SCRATCH, Packing, Target};
use crate::counters::Counters;
use crate::device::Gpu;
use crate::error::GpuError;
use crate::options::Options;
use autobatch_ir::plan::{Bound, FieldId, Mode, Plan, StoreId, StoreKind, Stores, Verified};
use fetch::submitted;
use grown::Grown;
use memory::Memory;
use pipelines::Pipelines;
use plans::{Loaded, Plans};
use std::fmt;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use update::Training;

/// Multiply-adds that one submission holds, about: half a second of a slow device, so that no watchdog
/// takes it for hung.
const SUBMISSION_WORK: u64 = 1 << 39;

/// Where the time of a run on the host went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Compiling the plan, and making pipelines: nothing, the second time.
    pub prepare: Duration,
    /// Handing over what goes up.
    pub upload: Duration,
    /// Writing commands, unless they were written ahead, and submitting them.
    pub encode: Duration,
    /// Bringing the next plan up and writing the commands of its run, while the device works.
    pub ahead: Duration,
    /// Waiting for the device after that, and reading what came back.
    pub wait: Duration,
}

/// What lives on the device.
struct Resident {
    gpu: Gpu,
    memory: Memory,
    pipelines: Pipelines,
    training: Training,
    plans: Plans,
    /// The plan that grows whose rows are in the arena.
    grown: Option<Grown>,
}

/// The plan that is executed next: not known yet, none that is known, or this one.
pub type Next = Poll<Option<Arc<Verified<Plan>>>>;

/// Executes plans on a GPU.
pub struct Executor {
    options: Options,
    resident: Option<Resident>,
    outputs: Vec<u32>,
    places: Vec<(usize, usize)>,
    last: Option<Arc<Compiled>>,
    counters: Counters,
    keep: bool,
    /// How parameters lie on the device: a word an element once gradients were asked for, until the device is
    /// closed, since an update may follow.
    packing: Packing,
    times: Times,
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let adapter = self.gpu().map(|gpu| gpu.facts().name.as_str());
        f.debug_struct("Executor").field("adapter", &adapter).finish_non_exhaustive()
    }
}

impl Executor {
    /// Opens a device.
    ///
    /// # Errors
    /// If no adapter fits, or gives no device.
    pub fn new(options: Options) -> Result<Self, GpuError> {
        let mut executor = Self {
            options,
            resident: None,
            outputs: Vec::new(),
            places: Vec::new(),
            last: None,
            counters: Counters::default(),
            keep: false,
            packing: Packing::default(),
            times: Times::default(),
        };
        executor.open()?;
        Ok(executor)
    }

    /// The open device; nothing after it was lost and before the next run.
    #[must_use]
    pub fn gpu(&self) -> Option<&Gpu> {
        self.resident.as_ref().map(|resident| &resident.gpu)
    }

    /// What the last run did.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Where the time of the last run went.
    #[must_use]
    pub fn times(&self) -> Times {
        self.times
    }

    /// What plans are compiled for.
    ///
    /// # Errors
    /// If the device was lost and cannot be opened again.
    pub fn target(&mut self) -> Result<Target, GpuError> {
        let scratch = self.options.budget.scratch.map_or(DEFAULT_SCRATCH, |bytes| (bytes / 4).max(1));
        let (strict, packing) = (self.options.strict, self.packing);
        let gpu = &self.open()?.gpu;
        let (binding, bindings, rounds) = (gpu.binding(), gpu.bindings(), gpu.rounds());
        Ok(Target { binding, bindings, scratch, strict, packing, rounds })
    }

    fn open(&mut self) -> Result<&mut Resident, GpuError> {
        if self.resident.as_ref().is_some_and(|resident| resident.gpu.is_lost()) {
            self.resident = None;
        }
        if self.resident.is_none() {
            let gpu = Gpu::open(self.options.clone())?;
            let (memory, pipelines, training) =
                (Memory::default(), Pipelines::new(&gpu), Training::new(&gpu));
            let plans = Plans::default();
            self.resident = Some(Resident { gpu, memory, pipelines, training, plans, grown: None });
        }
        Ok(self.resident.as_mut().expect("it was opened just now"))
    }

    /// A device that was lost between runs is told of, once; the next run opens it.
    fn forget_lost(&mut self) -> Result<(), GpuError> {
        match self.resident.take_if(|resident| resident.gpu.is_lost()) {
            Some(lost) => lost.gpu.heard(),
            None => Ok(()),
        }
    }

    /// Gives the device back; the next run opens it again, with parameters as they are given then.
    pub fn close(&mut self) {
        self.resident = None;
        self.packing = Packing::default();
    }

    /// Executes a plan. Afterwards [`output`](Self::output) reads its results.
    ///
    /// # Errors
    /// If bindings or stores do not fit the plan, the plan does not fit the device, or the device fails.
    pub fn execute(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        bound: Bound<'_>,
    ) -> Result<(), GpuError> {
        self.execute_and_prepare(plan, stores, bound, || Poll::Ready(None))
    }

    /// Executes a plan, and makes ready for another one: while the device works, `next` is asked which plan follows, until
    /// it knows. That one is brought to the device and its commands are written, so that its run submits them and
    /// no more, if nothing else is executed between. What cannot be prepared is no error: its own execute says why.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn execute_and_prepare(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        bound: Bound<'_>,
        mut next: impl FnMut() -> Next,
    ) -> Result<(), GpuError> {
        self.execute_by(plan, stores, bound, |executor| executor.on_device(plan, stores, bound, &mut next))
    }

    /// Executes what a plan gained since this executor executed it last, over the rows that are on the device; all of it, if it
    /// is none in mode `grow` that [grew](Verified::<Plan>::grow) from what this executor executed last, or if its rows no
    /// longer have room where they are, which becomes rarer as they become more. The bits are those of executing all of it,
    /// if what is bound and stored for the earlier steps is the same.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn resume(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        bound: Bound<'_>,
    ) -> Result<(), GpuError> {
        if plan.mode != Mode::Grow {
            return self.execute(plan, stores, bound);
        }
        self.execute_by(plan, stores, bound, |executor| executor.on_from_rows(plan, stores, bound))
    }

    fn execute_by(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        bound: Bound<'_>,
        how: impl FnOnce(&mut Self) -> Result<Arc<Compiled>, GpuError>,
    ) -> Result<(), GpuError> {
        border::check(plan, stores, bound)?;
        self.forget_lost()?;
        self.outputs.clear();
        self.places.clear();
        self.last = None;
        match how(self) {
            Ok(compiled) => {
                let widths = plan.outputs.iter().map(|output| plan.field(output.field).width() as usize);
                self.places.extend(compiled.outputs.iter().map(|&at| at as usize).zip(widths));
                self.last = Some(compiled);
                Ok(())
            }
            Err(error) => {
                if self.resident.as_ref().is_some_and(|resident| resident.gpu.is_lost()) {
                    self.resident = None;
                }
                Err(error)
            }
        }
    }

    fn on_device(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        bound: Bound<'_>,
        next: &mut dyn FnMut() -> Next,
    ) -> Result<Arc<Compiled>, GpuError> {
        if makes_gradients(plan) {
            self.packing = Packing::Words;
        }
        let target = self.target()?;
        let keep = self.keep;
        let mut counters = Counters::default();
        let started = Instant::now();
        let Resident { gpu, memory, pipelines, training, plans, grown } = self.open()?;
        *grown = None;
        // It reads the tables of the last plan, which loading this one may overwrite.
        training.before(gpu, memory, plan, keep)?;
        let mut loaded = plans.load(gpu, plan, target, (None, &mut counters))?;
        loaded.limited.check(plan, bound.words)?;
        let compiled = Arc::clone(&loaded.compiled);
        if !memory.has_room(gpu, target, &compiled) {
            plans.forget_commands();
            loaded = plans.load(gpu, plan, target, (None, &mut counters))?;
        }
        let written = loaded.ahead.take().filter(|_| !keep);
        let (identity, tables) = (loaded.identity(), loaded.tables().clone());
        memory.fit(gpu, target, &compiled)?;
        let before = pipelines.made();
        loaded.prepare(gpu, memory, pipelines)?;
        counters.pipelines = pipelines.made() - before;
        let prepared = Instant::now();

        counters.parameters = memory.bring_parameters(gpu, &plan.stores[..plan.given_stores()], stores)?;
        let again = memory.stands(&compiled);
        let first = if again { compiled.prologue as usize } else { 0 };
        counters.uploaded += memory.bring_numbers(gpu, &compiled, bound, [0; 2]);
        let uploaded = Instant::now();

        counters.of_steps.clone_from(&compiled.of_steps);
        counters.dispatches = (compiled.dispatches.len() - first) as u32;
        let back = compiled.words_back();
        let commands = match written.and_then(|written| written.fitting(memory, first)) {
            Some(commands) => {
                counters.was_written = true;
                commands
            }
            None => write(gpu, memory, loaded, (first, keep.then_some(&*training)), &mut counters)?,
        };
        let submitted = submitted(gpu, commands)?;
        memory.settle(&compiled);
        // What is prepared now may let words come back through another buffer.
        let staging = memory.staging().clone();
        let encoded = Instant::now();
        let next = known(gpu, &submitted, next);
        let asked = Instant::now();
        let leaves_parameters = !makes_gradients(plan);
        match next {
            None if !keep && std::mem::replace(&mut loaded.was_executed, true) => {
                let first = if again && leaves_parameters { first } else { 0 };
                loaded.ahead = Ahead::write(gpu, memory, loaded, first)?;
            }
            None => {}
            Some(next) => {
                loaded.was_executed = true;
                let made = pipelines.made();
                let behind = Behind { identity, leaves_parameters, target };
                // Its own execute says what is wrong with it.
                let _ = Ahead::of(gpu, &next, &behind, (memory, pipelines, plans), &mut counters);
                counters.pipelines += pipelines.made() - made;
            }
        }
        let idle = Instant::now();
        let outputs = memory.wait(gpu, &staging, submitted, back, gpu.patience_left(encoded))?;
        training.after(plan, &compiled.layout, &tables, keep);
        counters.submissions += 1;
        counters.read = back * 4;
        self.outputs = outputs;
        self.counters = counters;
        self.times = Times {
            prepare: prepared - started,
            upload: uploaded - prepared,
            encode: encoded - uploaded,
            ahead: idle - asked,
            wait: idle.elapsed() + (asked - encoded),
        };
        Ok(compiled)
    }

    /// The elements of an output of the plan that was executed last, as floats (words by their bits).
    ///
    /// # Panics
    /// If the plan has no such output, or none was executed.
    #[must_use]
    pub fn output(&self, number: usize) -> &[f32] {
        let (at, width) = self.places[number];
        &bytemuck::cast_slice(&self.outputs)[at..at + width]
    }

    /// Reads the gradient of a store that the last run made; nothing for other stores.
    ///
    /// # Errors
    /// If the device fails.
    pub fn gradient(&mut self, store: StoreId) -> Result<Option<Vec<f32>>, GpuError> {
        let run = self.last.as_ref().and_then(|last| last.layout.gradient(store));
        let Some(run) = run else { return Ok(None) };
        Ok(Some(bytemuck::cast_slice(&self.words(run)?).to_vec()))
    }

    /// Reads a row of a field as the last run left it; nothing if there is no such field.
    ///
    /// # Errors
    /// If the device fails.
    pub fn row(&mut self, plan: &Plan, field: FieldId, row: u32) -> Result<Option<Vec<u32>>, GpuError> {
        let Some(last) = self.last.as_ref().filter(|_| field.index() < plan.fields.len()) else {
            return Ok(None);
        };
        let (base, width) = last.layout.field(field);
        let at = u64::from(base) + u64::from(row) * u64::from(width);
        if row >= plan.slabs[plan.field(field).slab.index()].rows {
            return Ok(None);
        }
        self.words((at, u64::from(width))).map(Some)
    }

    fn words(&mut self, run: (u64, u64)) -> Result<Vec<u32>, GpuError> {
        let patience = Duration::from_secs(self.options.patience.max(1));
        // One that was opened since has executed nothing.
        let resident = self.resident.as_mut().filter(|resident| resident.memory.is_fitted());
        let Some(Resident { gpu, memory, .. }) = resident else {
            return Err(GpuError::Lost { reason: "rows of the last run went with it".to_owned() });
        };
        let encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let submitted = submitted(gpu, memory.finish(gpu, encoder, &[run])?)?;
        let staging = memory.staging().clone();
        memory.wait(gpu, &staging, submitted, run.1, patience)
    }
}

/// Whether a plan leaves gradients.
fn makes_gradients(plan: &Plan) -> bool {
    plan.stores.iter().any(|store| matches!(store.kind, StoreKind::Grad(_)))
}

/// Writes the commands of a run from a dispatch on, behind those that bring back the gradients that it is added to; all
/// but the last submission are submitted.
fn write(
    gpu: &Gpu,
    memory: &mut Memory,
    loaded: &Loaded,
    (first, summed): (usize, Option<&Training>),
    counters: &mut Counters,
) -> Result<wgpu::CommandBuffer, GpuError> {
    let compiled = &loaded.compiled;
    let mut encoder = memory.begin(gpu, compiled);
    if let Some(training) = summed {
        training.restore(memory, &compiled.layout, &mut encoder);
    }
    let mut next = first;
    while next < compiled.dispatches.len() {
        let end = one_submission(compiled, next);
        loaded.encode(&mut encoder, next..end);
        next = end;
        if next < compiled.dispatches.len() {
            let descriptor = wgpu::CommandEncoderDescriptor::default();
            let rest = gpu.device.create_command_encoder(&descriptor);
            gpu.queue.submit([std::mem::replace(&mut encoder, rest).finish()]);
            counters.submissions += 1;
        }
    }
    memory.finish(gpu, encoder, &compiled.back)
}

/// The end of the dispatches that go into one submission from one on: all, unless they are much work.
fn one_submission(compiled: &Compiled, first: usize) -> usize {
    let mut work = 0u64;
    for (number, dispatch) in compiled.dispatches.iter().enumerate().skip(first) {
        work = work.saturating_add(dispatch.work);
        if work > SUBMISSION_WORK && number > first {
            return number;
        }
    }
    compiled.dispatches.len()
}
