//! Executes plans on a device.
//!
//! An [`Executor`] owns all state that outlives a run: the device, pipelines, loaded plans, the arena and the
//! parameters. It uploads a parameter again when its version changes. If the device is lost, the run fails with
//! [`GpuError::Lost`], and the next run opens the device again. Parameter values belong to the caller, so only time is
//! lost.

pub(crate) mod build;
mod cache;
mod growing;
mod memory;
mod pace;
mod paused;
mod pipelines;
mod plans;
mod prerecord;
mod profile;
pub(crate) mod readback;
mod run;
mod split_array;
mod update;

pub use profile::DispatchTime;
pub use update::{StoresMut, Trained};

use crate::compile::{Compiled, DEFAULT_DISPATCH_TIME, DEFAULT_SCRATCH, Packing, Target};
use crate::counters::Counters;
use crate::device::Gpu;
use crate::error::GpuError;
use crate::options::Options;
use autobatch_ir::plan::{FieldId, Inputs, Mode, Plan, StoreId, StoreKind, Stores, Verified};
use growing::Growing;
use memory::Memory;
use pace::Pace;
use pipelines::Pipelines;
use plans::Plans;
use readback::submit;
use run::{Finished, PlanPart, Request};
use std::fmt;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use update::Training;

/// Host time of a run, by phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Compiling the plan and building pipelines. Zero from the second run on.
    pub prepare: Duration,
    /// Uploading inputs and parameters.
    pub upload: Duration,
    /// Recording commands, unless they were prerecorded, and submitting them.
    pub encode: Duration,
    /// Loading the next plan and recording its commands while the device works.
    pub prerecord: Duration,
    /// Waiting for the device afterwards and reading results back.
    pub wait: Duration,
}

/// The open device and its state that all plans share.
struct DeviceState {
    gpu: Gpu,
    memory: Memory,
    pipelines: Pipelines,
    training: Training,
    pace: Pace,
}

/// Everything that lives on the device.
struct Resident {
    device: DeviceState,
    plans: Plans,
    /// The growing plan whose rows are in the arena.
    growing: Option<Growing>,
}

/// The plan that follows the current run: pending, known to be none, or this one.
pub type Next = Poll<Option<Arc<Verified<Plan>>>>;

/// Executes plans on a GPU.
pub struct Executor {
    options: Options,
    resident: Option<Resident>,
    outputs: Vec<u32>,
    /// For each output its first element in `outputs` and its width.
    places: Vec<(usize, usize)>,
    last: Option<Arc<Compiled>>,
    /// The plan that paused, while its rows are in the arena.
    paused: Option<u64>,
    counters: Counters,
    accumulate: bool,
    /// How the device stores parameters. It changes to one element per word when a plan makes gradients, because an
    /// update may follow, and stays so until the device is closed.
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
    /// If no adapter matches or the adapter gives no device.
    pub fn new(options: Options) -> Result<Self, GpuError> {
        let mut executor = Self {
            options,
            resident: None,
            outputs: Vec::new(),
            places: Vec::new(),
            last: None,
            paused: None,
            counters: Counters::default(),
            accumulate: false,
            packing: Packing::default(),
            times: Times::default(),
        };
        executor.open()?;
        Ok(executor)
    }

    /// The open device, or `None` between the loss of a device and the next run.
    #[must_use]
    pub fn gpu(&self) -> Option<&Gpu> {
        self.resident.as_ref().map(|resident| &resident.device.gpu)
    }

    /// Counters of the last run.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Host times of the last run.
    #[must_use]
    pub fn times(&self) -> Times {
        self.times
    }

    /// The device limits that plans are compiled for.
    ///
    /// # Errors
    /// If the device was lost and cannot be opened again.
    pub fn target(&mut self) -> Result<Target, GpuError> {
        let scratch = self.options.budget.scratch.map_or(DEFAULT_SCRATCH, |bytes| (bytes / 4).max(1));
        let (strict, packing) = (self.options.strict, self.packing);
        let gpu = &self.open()?.device.gpu;
        Ok(Target {
            binding: gpu.binding(),
            bindings: gpu.bindings(),
            scratch,
            strict,
            packing,
            tallest: gpu.tallest(),
            dispatch_time: gpu.options().budget.dispatch_time.unwrap_or(DEFAULT_DISPATCH_TIME),
            iterations: gpu.iterations(),
        })
    }

    fn open(&mut self) -> Result<&mut Resident, GpuError> {
        self.drop_lost_device();
        if self.resident.is_none() {
            let gpu = Gpu::open(self.options.clone())?;
            let (pipelines, training) = (Pipelines::new(&gpu), Training::new(&gpu));
            let device =
                DeviceState { gpu, memory: Memory::default(), pipelines, training, pace: Pace::default() };
            self.resident = Some(Resident { device, plans: Plans::default(), growing: None });
        }
        Ok(self.resident.as_mut().expect("it was opened just now"))
    }

    fn drop_lost_device(&mut self) -> Option<Resident> {
        self.resident.take_if(|resident| resident.device.gpu.is_lost())
    }

    /// Reports a device loss between runs, once. The next run opens the device again.
    fn report_device_loss(&mut self) -> Result<(), GpuError> {
        match self.drop_lost_device() {
            Some(lost) => lost.device.gpu.take_error(),
            None => Ok(()),
        }
    }

    /// Closes the device. The next run opens it again and uploads the parameters that it is given.
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
        inputs: Inputs<'_>,
    ) -> Result<(), GpuError> {
        self.execute_and_prepare(plan, stores, inputs, || Poll::Ready(None))
    }

    /// Executes a plan and prepares the next one. While the device works, the executor polls `next` until it is ready.
    /// It then loads that plan and records its commands, so that the next run only submits them. A failure to prepare
    /// is not an error here: the run of that plan reports it.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn execute_and_prepare(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        inputs: Inputs<'_>,
        mut next: impl FnMut() -> Next,
    ) -> Result<(), GpuError> {
        self.execute_with(plan, stores, inputs, |executor, request| executor.run_exact(request, &mut next))
    }

    /// Executes only the steps that a growing plan gained since its last run on this executor, over the rows on the
    /// device. It executes the whole plan if the plan does not [grow](Verified::<Plan>::grow) from the last one, or if
    /// the reserved rows are used up. Reservations double, so whole runs become rarer. The results have the bits of a
    /// whole run, provided that the inputs of earlier steps are the same.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn resume(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        inputs: Inputs<'_>,
    ) -> Result<(), GpuError> {
        if plan.mode != Mode::Grow {
            return self.execute(plan, stores, inputs);
        }
        self.execute_with(plan, stores, inputs, Self::run_growing)
    }

    fn execute_with<'r>(
        &mut self,
        plan: &'r Verified<Plan>,
        stores: &'r dyn Stores,
        inputs: Inputs<'r>,
        run: impl FnOnce(&mut Self, &Request<'r>) -> Result<Finished, GpuError>,
    ) -> Result<(), GpuError> {
        inputs.check(plan, stores)?;
        let (accumulate, uploaded) = (self.accumulate, [0; 2]);
        self.execute_request(Request { plan, stores, inputs, accumulate, uploaded, part: PlanPart::All }, run)
    }

    /// Executes a request that was checked.
    fn execute_request<'r>(
        &mut self,
        request: Request<'r>,
        run: impl FnOnce(&mut Self, &Request<'r>) -> Result<Finished, GpuError>,
    ) -> Result<(), GpuError> {
        let plan = request.plan;
        self.paused = None;
        self.report_device_loss()?;
        self.outputs.clear();
        self.places.clear();
        self.last = None;
        let finished = run(self, &request).inspect_err(|_| drop(self.drop_lost_device()))?;
        let Finished { compiled, outputs, counters, times } = finished;
        let widths = plan.outputs.iter().map(|output| plan.field(output.field).width() as usize);
        self.places.extend(compiled.outputs.iter().map(|&at| at as usize).zip(widths));
        (self.last, self.outputs, self.counters, self.times) = (Some(compiled), outputs, counters, times);
        Ok(())
    }

    /// The elements of an output of the last plan, as floats (words by their bits).
    ///
    /// # Panics
    /// If the plan has no such output, or no plan was executed.
    #[must_use]
    pub fn output(&self, number: usize) -> &[f32] {
        let (at, width) = self.places[number];
        &bytemuck::cast_slice(&self.outputs)[at..at + width]
    }

    /// Reads the gradient of a store that the last run made, or `None` for other stores.
    ///
    /// # Errors
    /// If the device fails.
    pub fn gradient(&mut self, store: StoreId) -> Result<Option<Vec<f32>>, GpuError> {
        let range = self.last.as_ref().and_then(|last| last.layout.gradient(store));
        let Some(range) = range else { return Ok(None) };
        Ok(Some(bytemuck::cast_slice(&self.words(range)?).to_vec()))
    }

    /// Reads a row of a field as the last run left it, or `None` if there is no such row.
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

    fn words(&mut self, range: (u64, u64)) -> Result<Vec<u32>, GpuError> {
        // A device that was opened since has executed nothing.
        let resident = self.resident.as_mut().filter(|resident| resident.device.memory.is_fitted());
        let Some(Resident { device: DeviceState { gpu, memory, .. }, .. }) = resident else {
            return Err(GpuError::Lost { reason: "the rows of the last run were lost with it".to_owned() });
        };
        let started = Instant::now();
        let encoder = gpu.encoder();
        let submission = submit(gpu, memory.finish(gpu, encoder, &[range])?)?;
        let staging = memory.staging().clone();
        memory.wait(gpu, &staging, submission, range.1, gpu.time_left(started))
    }
}

/// Returns whether a plan makes parameter gradients.
fn makes_gradients(plan: &Plan) -> bool {
    plan.stores.iter().any(|store| matches!(store.kind, StoreKind::Grad(_)))
}
