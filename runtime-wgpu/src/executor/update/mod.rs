//! Updates: parameters and optimiser states change on the device, along gradients that never leave it.
//!
//! An update plan is compiled once. Each update writes the bound floats and one record per dispatch, and is one
//! submission that the host does not wait for. Afterwards the changed stores have new versions, whose values exist only
//! on the device until [`Executor::updated`] reads them.
//!
//! **Bits.** An update has the bits of the naive executor wherever the device adds, multiplies, divides and takes roots
//! as IEEE defines. [`Arithmetic::Exact`](crate::Arithmetic) provides that on devices that divide otherwise.

mod gradients;
mod records;
mod runs;
mod sparse_rows;
mod states;
mod trained;

use super::build::{Build, Builder, Layouts, bind_group, binding, layouts, storage, uniform};
use super::memory::Memory;
use super::readback::submit;
use super::split_array::GrowableBuffer;
use super::{DeviceState, Executor, Resident, readback};
use crate::compile::{BufferLayout, UpdateOp, UpdateProgram, Updates, compile_update};
use crate::counters::UpdateCounters;
use crate::device::Gpu;
use crate::error::GpuError;
use crate::options::Arithmetic;
use autobatch_ir::plan::{BindError, Kernel, Plan, Store, StoreId, Update, UpdatePlan, Verified};
use autobatch_shaders::Library;
use gradients::{ArenaGradients, SavedGradients};
use records::{ArrayLocations, Records};
use runs::{BufferRun, run_of};
use sparse_rows::SparseRows;
use states::States;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use trained::check;
pub use trained::{StoresMut, Trained};
use wgpu::BufferUsages as Usage;

/// Words of a dispatch's arguments.
const ARG_WORDS: u64 = 4;
/// Maximum number of pipelines kept between updates. One update may exceed it.
const MAX_PIPELINES: usize = 256;
/// Maximum number of compiled update plans: that of all parameters, that of the parameters which the last minibatch used,
/// and the one that sums the squares of gradients.
const MAX_COMPILED: usize = 3;
/// Storage buffers of a module.
const BINDINGS: u32 = 6;

/// A compiled update plan and the parts of the plan that identify it.
struct CompiledUpdate {
    kernels: Vec<Arc<Kernel>>,
    stores: Vec<Store>,
    updates: Vec<Update>,
    compiled: Arc<Updates>,
}

impl CompiledUpdate {
    fn is_of(&self, plan: &UpdatePlan) -> bool {
        self.kernels.len() == plan.kernels.len()
            && self.kernels.iter().zip(&plan.kernels).all(|(a, b)| Arc::ptr_eq(a, b))
            && self.updates == plan.updates
            && self.stores == plan.stores
    }
}

/// The state of training on the device: gradients between runs, optimiser states, and compiled updates.
pub(super) struct Training {
    library: Library,
    /// The compiled update plans, the last used one first.
    compiled: Vec<CompiledUpdate>,
    /// The layouts of all modules of updates.
    layouts: Option<Layouts>,
    pipelines: HashMap<UpdateProgram, wgpu::ComputePipeline>,
    states: States,
    sparse_rows: SparseRows,
    saved: SavedGradients,
    /// The gradients of the last run.
    last: Option<ArenaGradients>,
    numbers: GrowableBuffer,
    records: GrowableBuffer,
    args: GrowableBuffer,
    counters: UpdateCounters,
}

impl Training {
    pub(super) fn new(gpu: &Gpu) -> Self {
        Self {
            library: Library::new(gpu.options().arithmetic == Arithmetic::Exact, gpu.joins()),
            compiled: Vec::new(),
            layouts: None,
            pipelines: HashMap::new(),
            states: States::default(),
            sparse_rows: SparseRows::default(),
            saved: SavedGradients::default(),
            last: None,
            numbers: GrowableBuffer::default(),
            records: GrowableBuffer::default(),
            args: GrowableBuffer::default(),
            counters: UpdateCounters::default(),
        }
    }

    /// Prepares for a run: forgets the gradients of the last one, or saves them if the run accumulates.
    pub(super) fn before(
        &mut self,
        gpu: &Gpu,
        memory: &Memory,
        plan: &Plan,
        accumulate: bool,
        cache: Option<&wgpu::PipelineCache>,
    ) -> Result<(), GpuError> {
        let last = self.last.take();
        if !accumulate {
            return Ok(());
        }
        let last = last.filter(|last| last.are_those_of(plan)).ok_or(GpuError::OtherGradients)?;
        let mut encoder = gpu.encoder();
        self.saved.save(gpu, memory, &last, &mut encoder)?;
        let listing = match last.listed {
            true => Arc::clone(&self.sparse_rows.listing),
            false => {
                let builder = Builder { gpu, library: &self.library, cache };
                self.sparse_rows.list(builder, memory, &last, &mut encoder)?
            }
        };
        submit(gpu, encoder.finish())?;
        self.sparse_rows.listing = listing;
        Ok(())
    }

    /// Encodes the first commands of an accumulating run: they restore the saved gradients.
    pub(super) fn restore(&self, memory: &Memory, layout: &BufferLayout, encoder: &mut wgpu::CommandEncoder) {
        self.saved.restore(memory, layout, encoder);
    }

    /// Notes the gradients that a run left in the arena.
    pub(super) fn after(
        &mut self,
        plan: &Plan,
        layout: &BufferLayout,
        tables: &wgpu::Buffer,
        accumulated: bool,
    ) {
        self.last = Some(ArenaGradients::of(plan, layout, tables, accumulated));
    }

    fn create_layouts(&mut self, gpu: &Gpu) -> Result<(), GpuError> {
        if self.layouts.is_none() {
            let found = gpu.bindings();
            if found < BINDINGS {
                let what = format!("{BINDINGS} storage buffers per stage, for updates (it has {found})");
                return Err(GpuError::Missing { adapter: gpu.facts().name.clone(), what });
            }
            let mut entries = vec![uniform(0), storage(1, true), storage(2, true)];
            entries.extend([3, 4, 5].map(|number| storage(number, false)));
            entries.push(storage(6, true));
            self.layouts = Some(layouts(gpu, &entries, 0));
        }
        Ok(())
    }

    fn layouts(&self) -> &Layouts {
        self.layouts.as_ref().expect("layouts are created before they are used")
    }

    fn compiled(&mut self, plan: &Verified<UpdatePlan>) -> Result<Arc<Updates>, GpuError> {
        let known = match self.compiled.iter().position(|known| known.is_of(plan)) {
            Some(at) => self.compiled.remove(at),
            None => CompiledUpdate {
                kernels: plan.kernels.clone(),
                stores: plan.stores.clone(),
                updates: plan.updates.clone(),
                compiled: Arc::new(compile_update(plan)?),
            },
        };
        let compiled = Arc::clone(&known.compiled);
        self.compiled.truncate(MAX_COMPILED - 1);
        self.compiled.insert(0, known);
        Ok(compiled)
    }

    fn update(
        &mut self,
        gpu: &Gpu,
        memory: &mut Memory,
        plan: &Verified<UpdatePlan>,
        stores: &mut dyn StoresMut,
        floats: &[f32],
        cache: Option<&wgpu::PipelineCache>,
    ) -> Result<(), GpuError> {
        let updates = self.compiled(plan)?;
        self.create_layouts(gpu)?;
        self.sparse_rows.fit(gpu)?;
        let gradients = check(plan, &updates, stores, memory, self.last.as_ref())?;
        let parameters = memory.upload_parameters(gpu, &plan.stores[..updates.params], stores)?;
        self.states.fit(gpu, plan, &updates, memory.bytes())?;
        let states = self.states.upload(gpu, stores);

        let mut encoder = gpu.encoder();
        let is_sparse = |op: &UpdateOp| matches!(op, UpdateOp::Apply { sparse: true, .. });
        let lists = !gradients.listed && updates.ops.iter().any(is_sparse);
        let listing = match lists {
            true => {
                let builder = Builder { gpu, library: &self.library, cache };
                self.sparse_rows.list(builder, memory, gradients, &mut encoder)?
            }
            false => Arc::clone(&self.sparse_rows.listing),
        };
        let runs = self.runs(&updates, memory);
        let at = ArrayLocations { plan, updates: &updates, listing: &listing, runs: &runs };
        let records = Records::new(&at)?;
        let pipelines = self.build_pipelines(gpu, &updates, &records, cache)?;
        let uploaded = self.upload_numbers(gpu, &records, &floats[..plan.floats as usize])?;
        self.encode(gpu, memory, &updates, &records, listing.rows(), &mut encoder);
        let commands = encoder.finish();
        // Errors so far are reported before anything changes.
        gpu.take_error()?;
        submit(gpu, commands)?;
        self.sparse_rows.listing = listing;
        if let Some(last) = self.last.as_mut().filter(|_| lists) {
            last.listed = true;
        }
        if plan.updates.iter().any(|update| !update.targets().is_empty()) {
            memory.invalidate_persistent();
        }
        for &target in plan.updates.iter().flat_map(Update::targets) {
            stores.renew(target);
            let version = stores.version(target);
            match memory.held.get_mut(target.index()).filter(|_| target.index() < updates.params) {
                Some(held) => held.1 = version,
                None => self.states.renew(target, version),
            }
        }
        let dispatches = records.dispatches.len() as u32;
        self.counters = UpdateCounters { dispatches, uploaded, stores: parameters + states, pipelines };
        Ok(())
    }

    /// Builds missing pipelines. Returns how many.
    fn build_pipelines(
        &mut self,
        gpu: &Gpu,
        updates: &Updates,
        records: &Records,
        cache: Option<&wgpu::PipelineCache>,
    ) -> Result<u32, GpuError> {
        if self.pipelines.len() >= MAX_PIPELINES {
            self.pipelines.clear();
        }
        let before = self.pipelines.len();
        for dispatch in &records.dispatches {
            let program = &updates.ops[dispatch.op].programs()[dispatch.program];
            if !self.pipelines.contains_key(program) {
                let text = program.text(&self.library);
                let build = Build { gpu, name: program.template.name, text, cache };
                self.pipelines.insert(program.clone(), build.on(&self.layouts().pipeline)?);
            }
        }
        Ok((self.pipelines.len() - before) as u32)
    }

    /// The gradient, the value and the states of every parameter.
    fn runs(&self, updates: &Updates, memory: &Memory) -> Vec<[BufferRun; 3]> {
        let mut runs = Vec::with_capacity(updates.params);
        for (param, (at, words)) in (0..).map(StoreId).zip(memory.held_at()) {
            let gradient = self.last.as_ref().and_then(|last| last.gradient(param));
            let gradient = gradient.map(|(at, words)| run_of(&memory.arena, at, words));
            runs.push([
                gradient.unwrap_or_default(),
                run_of(&memory.params, at, words),
                self.states.run(param).clone(),
            ]);
        }
        runs
    }

    /// Uploads bound floats, records and arguments of dispatches. Returns the uploaded bytes.
    fn upload_numbers(&mut self, gpu: &Gpu, records: &Records, floats: &[f32]) -> Result<u64, GpuError> {
        let storage = Usage::STORAGE | Usage::COPY_DST;
        self.numbers.fit(gpu, "scalars of updates", records.numbers, storage | Usage::COPY_SRC)?;
        self.records.fit(gpu, "records of updates", records.words.len() as u64, storage)?;
        let stride = arg_stride(gpu);
        let mut args: Vec<u32> = Vec::new();
        for dispatch in &records.dispatches {
            let start = args.len();
            args.extend([dispatch.record, dispatch.groups_with_work, 0, 0]);
            args.resize(start + stride as usize, 0);
        }
        let usage = Usage::UNIFORM | Usage::COPY_DST;
        self.args.fit(gpu, "the arguments of updates", args.len() as u64, usage)?;
        gpu.queue.write_buffer(self.numbers.get(), 0, bytemuck::cast_slice(floats));
        gpu.queue.write_buffer(self.records.get(), 0, bytemuck::cast_slice(&records.words));
        gpu.queue.write_buffer(self.args.get(), 0, bytemuck::cast_slice(&args));
        Ok((floats.len() + records.words.len() + args.len()) as u64 * 4)
    }

    fn encode(
        &self,
        gpu: &Gpu,
        memory: &Memory,
        updates: &Updates,
        records: &Records,
        rows: &wgpu::Buffer,
        encoder: &mut wgpu::CommandEncoder,
    ) {
        let mut groups: HashMap<[usize; 3], wgpu::BindGroup> = HashMap::new();
        for dispatch in &records.dispatches {
            let [gradient, value, state] = dispatch.buffers;
            groups.entry(dispatch.buffers).or_insert_with(|| {
                let entries = [
                    binding(0, self.args.get(), Some(ARG_WORDS * 4)),
                    binding(1, self.records.get(), None),
                    binding(2, &memory.arena.buffers[gradient], None),
                    binding(3, &memory.params.buffers[value], None),
                    binding(4, &self.states.buffers[state], None),
                    binding(5, self.numbers.get(), None),
                    binding(6, rows, None),
                ];
                bind_group(gpu, "an update", &self.layouts().group, &entries)
            });
        }
        let stride = arg_stride(gpu);
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        for (number, dispatch) in records.dispatches.iter().enumerate() {
            let program = &updates.ops[dispatch.op].programs()[dispatch.program];
            pass.set_pipeline(&self.pipelines[program]);
            pass.set_bind_group(0, &groups[&dispatch.buffers], &[(number as u64 * stride * 4) as u32]);
            pass.dispatch_workgroups(dispatch.groups[0], dispatch.groups[1], 1);
        }
    }
}

/// Words from the arguments of one dispatch to those of the next.
fn arg_stride(gpu: &Gpu) -> u64 {
    u64::from(gpu.limits.min_uniform_buffer_offset_alignment).max(ARG_WORDS * 4) / 4
}

impl Executor {
    /// Sets whether the next runs add their gradients to those of the run before.
    pub fn set_accumulate_gradients(&mut self, accumulate: bool) {
        self.accumulate = accumulate;
    }

    /// Executes an update plan along the gradients that the last run left on the device. Changed stores get new
    /// versions. Their values stay on the device until [`updated`](Self::updated) reads them.
    ///
    /// # Errors
    /// If floats, stores or gradients do not fit the plan, or the device fails. Nothing has changed then, unless the device is lost: values that only the device held are lost with it.
    pub fn update(
        &mut self,
        plan: &Verified<UpdatePlan>,
        stores: &mut dyn StoresMut,
        floats: &[f32],
    ) -> Result<(), GpuError> {
        BindError::check_count("floats", plan.floats.into(), floats.len())?;
        self.report_device_loss()?;
        let Some(Resident { device, growing, .. }) = &mut self.resident else {
            return Err(GpuError::Lost {
                reason: "the gradients of the last run were lost with it".to_owned(),
            });
        };
        // Rows depend on parameters that change.
        *growing = None;
        self.paused = None;
        let DeviceState { gpu, memory, pipelines, training, .. } = device;
        let updated = training.update(gpu, memory, plan, stores, floats, pipelines.cache());
        if updated.is_ok() {
            pipelines.save_if_doubled(training.counters.pipelines);
        }
        updated.inspect_err(|_| drop(self.drop_lost_device()))
    }

    /// Reads the scalars that the last update computed.
    ///
    /// # Errors
    /// If the device fails, or was lost since.
    pub fn scalars(&self) -> Result<Vec<f32>, GpuError> {
        let Some(Resident { device: DeviceState { gpu, training, .. }, .. }) = &self.resident else {
            return Err(GpuError::Lost {
                reason: "the scalars of the last update were lost with it".to_owned(),
            });
        };
        gpu.take_error()?;
        let Some(CompiledUpdate { compiled, .. }) = training.compiled.first() else { return Ok(Vec::new()) };
        let range = (training.numbers.get(), u64::from(compiled.floats) * 4, compiled.scalars.into());
        let words = readback::read(gpu, &[range], gpu.time_left(Instant::now()))?;
        Ok(words.into_iter().map(f32::from_bits).collect())
    }

    /// Reads a parameter and its states as the last update left them, by the stores of its plan.
    ///
    /// # Errors
    /// If the device fails, or holds no such parameter.
    pub fn updated(&self, param: StoreId) -> Result<Vec<(StoreId, Vec<f32>)>, GpuError> {
        let lost = || GpuError::Lost { reason: "the updated parameters were lost with it".to_owned() };
        let Some(Resident { device: DeviceState { gpu, memory, training, .. }, .. }) = &self.resident else {
            return Err(lost());
        };
        gpu.take_error()?;
        let (at, words) = memory.held_at().nth(param.index()).ok_or_else(lost)?;
        let pieces = memory.params.pieces(at, words);
        let pieces: Vec<_> =
            pieces.map(|(buffer, byte, range)| (buffer, byte, range.end - range.start)).collect();
        let timeout = gpu.time_left(Instant::now());
        let values = readback::read(gpu, &pieces, timeout)?.into_iter().map(f32::from_bits).collect();
        let mut all = vec![(param, values)];
        all.extend(training.states.read(gpu, param, timeout)?);
        Ok(all)
    }

    /// Counters of the last update.
    #[must_use]
    pub fn update_counters(&self) -> UpdateCounters {
        let training = self.resident.as_ref().map(|resident| &resident.device.training);
        training.map(|training| training.counters.clone()).unwrap_or_default()
    }
}
