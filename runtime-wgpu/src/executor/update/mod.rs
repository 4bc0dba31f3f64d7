//! Updates: parameters and what optimisers keep change on the device, along gradients that never leave it.
//!
//! An update plan is compiled once. Each update writes the bound floats and a record a dispatch, and is one
//! submission that nobody waits for. Afterwards the versions of what changed are new ones, whose values are
//! on the device alone until [`Executor::updated`] brings them.
//!
//! **Bits.** An update is elementwise arithmetic in the order of its kernel, and sums of squares are folds
//! of a row and of blocks, as the language defines them; so an update has the bits of the naive executor
//! wherever the device adds, multiplies, divides and takes roots as IEEE says, which
//! [`Arithmetic::Exact`](crate::Arithmetic) makes of devices that divide otherwise.

mod kept;
mod records;
mod runs;
mod sparse_rows;
mod states;
mod trained;

use super::build::{Build, binding, layouts, storage, uniform};
use super::cut::Growing;
use super::fetch::submitted;
use super::memory::Memory;
use super::{Executor, Resident, fetch};
use crate::compile::{Deed, Layout, UpdateProgram, Updates, compile_update};
use crate::counters::UpdateCounters;
use crate::device::Gpu;
use crate::error::GpuError;
use crate::options::Arithmetic;
use autobatch_ir::plan::{BindError, Kernel, Plan, Store, StoreId, StoreKind, Update, UpdatePlan, Verified};
use autobatch_shaders::Library;
use kept::{Kept, Made};
use records::{Records, Whereabouts};
use runs::{Run, run_of};
use sparse_rows::SparseRows;
use states::States;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
pub use trained::{StoresMut, Trained};
use wgpu::BufferUsages as Usage;

/// Words of a dispatch's numbers.
const EXECUTE_WORDS: u64 = 4;
/// So many pipelines are kept from update to update, and those that one update makes beside them.
const MOST_PIPELINES: usize = 256;
/// Storage buffers of a module.
const BINDINGS: u32 = 6;

/// An update plan that was compiled, and what it is known by.
struct Known {
    kernels: Vec<Arc<Kernel>>,
    stores: Vec<Store>,
    updates: Vec<Update>,
    compiled: Arc<Updates>,
}

impl Known {
    fn is(&self, plan: &UpdatePlan) -> bool {
        self.kernels.len() == plan.kernels.len()
            && self.kernels.iter().zip(&plan.kernels).all(|(a, b)| Arc::ptr_eq(a, b))
            && self.updates == plan.updates
            && self.stores == plan.stores
    }
}

/// What updates keep on the device.
pub(super) struct Training {
    library: Library,
    known: Option<Known>,
    layouts: Option<(wgpu::BindGroupLayout, wgpu::PipelineLayout)>,
    pipelines: HashMap<UpdateProgram, wgpu::ComputePipeline>,
    states: States,
    touched: SparseRows,
    kept: Kept,
    last: Option<Made>,
    numbers: Growing,
    records: Growing,
    executes: Growing,
    pub(super) counters: UpdateCounters,
}

impl Training {
    pub(super) fn new(gpu: &Gpu) -> Self {
        Self {
            library: Library::new(gpu.options().arithmetic == Arithmetic::Exact, gpu.joins()),
            known: None,
            layouts: None,
            pipelines: HashMap::new(),
            states: States::default(),
            touched: SparseRows::default(),
            kept: Kept::default(),
            last: None,
            numbers: Growing::default(),
            records: Growing::default(),
            executes: Growing::default(),
            counters: UpdateCounters::default(),
        }
    }

    /// Before a run: what the last one made is forgotten, or saved if the next is added to it.
    pub(super) fn before(
        &mut self,
        gpu: &Gpu,
        memory: &Memory,
        plan: &Plan,
        sum: bool,
    ) -> Result<(), GpuError> {
        let last = self.last.take();
        if !sum {
            return Ok(());
        }
        let last = last.filter(|last| last.is_continued_by(plan)).ok_or(GpuError::OtherGradients)?;
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        self.kept.save(gpu, memory, &last, &mut encoder)?;
        let listing = match last.listed {
            true => Arc::clone(&self.touched.listing),
            false => self.touched.with(gpu, &self.library, memory, &last, &mut encoder)?,
        };
        submitted(gpu, encoder.finish())?;
        self.touched.listing = listing;
        Ok(())
    }

    /// The first commands of a run that is added to what was saved.
    pub(super) fn restore(&self, memory: &Memory, layout: &Layout, encoder: &mut wgpu::CommandEncoder) {
        self.kept.restore(memory, layout, encoder);
    }

    /// After a run: these gradients are there.
    pub(super) fn after(&mut self, plan: &Plan, layout: &Layout, tables: &wgpu::Buffer, summed: bool) {
        self.last = Some(Made::of(plan, layout, tables, summed));
    }

    /// Makes the layouts that all modules of updates share.
    fn lay_out(&mut self, gpu: &Gpu) -> Result<(), GpuError> {
        if self.layouts.is_none() {
            let found = gpu.bindings();
            if found < BINDINGS {
                let what = format!("{BINDINGS} storage buffers a stage, for updates (it has {found})");
                return Err(GpuError::Missing { adapter: gpu.facts().name.clone(), what });
            }
            let mut entries = vec![uniform(0), storage(1, true), storage(2, true)];
            entries.extend([3, 4, 5].map(|number| storage(number, false)));
            entries.push(storage(6, true));
            self.layouts = Some(layouts(gpu, &entries, 0));
        }
        Ok(())
    }

    /// The layouts, which an update makes before all else.
    fn laid_out(&self) -> &(wgpu::BindGroupLayout, wgpu::PipelineLayout) {
        self.layouts.as_ref().expect("layouts are made before they are used")
    }

    fn compiled(&mut self, plan: &Verified<UpdatePlan>) -> Result<Arc<Updates>, GpuError> {
        if let Some(known) = self.known.as_ref().filter(|known| known.is(plan)) {
            return Ok(Arc::clone(&known.compiled));
        }
        let compiled = Arc::new(compile_update(plan)?);
        self.known = Some(Known {
            kernels: plan.kernels.clone(),
            stores: plan.stores.clone(),
            updates: plan.updates.clone(),
            compiled: Arc::clone(&compiled),
        });
        Ok(compiled)
    }

    fn update(
        &mut self,
        gpu: &Gpu,
        memory: &mut Memory,
        plan: &Verified<UpdatePlan>,
        stores: &mut dyn StoresMut,
        floats: &[f32],
    ) -> Result<(), GpuError> {
        let updates = self.compiled(plan)?;
        self.lay_out(gpu)?;
        self.touched.fit(gpu)?;
        let made = check(plan, &updates, stores, memory, self.last.as_ref())?;
        let parameters = memory.bring_parameters(gpu, &plan.stores[..updates.params], stores)?;
        self.states.fit(gpu, plan, &updates, memory.bytes())?;
        let states = self.states.bring(gpu, stores);

        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let is_touched = |deed: &Deed| matches!(deed, Deed::Apply { touched: true, .. });
        let lists = !made.listed && updates.deeds.iter().any(is_touched);
        let listing = match lists {
            true => self.touched.with(gpu, &self.library, memory, made, &mut encoder)?,
            false => Arc::clone(&self.touched.listing),
        };
        let runs = self.runs(&updates, memory);
        let at = Whereabouts { plan, updates: &updates, touched: &listing, runs: &runs };
        let records = Records::new(&at)?;
        if self.pipelines.len() >= MOST_PIPELINES {
            self.pipelines.clear();
        }
        let before = self.pipelines.len();
        for dispatch in &records.dispatches {
            let program = &updates.deeds[dispatch.deed].programs()[dispatch.program];
            if !self.pipelines.contains_key(program) {
                let build = Build {
                    gpu,
                    name: program.template.name,
                    text: program.text(&self.library),
                    cache: None,
                };
                self.pipelines.insert(program.clone(), build.on(&self.laid_out().1)?);
            }
        }
        let uploaded = self.bring_numbers(gpu, &records, &floats[..plan.floats as usize])?;
        self.encode(gpu, memory, (&updates, listing.rows()), &records, &mut encoder);
        let commands = encoder.finish();
        // What went wrong so far is told while nothing was changed.
        gpu.heard()?;
        submitted(gpu, commands)?;
        self.touched.listing = listing;
        if let Some(last) = self.last.as_mut().filter(|_| lists) {
            last.listed = true;
        }
        memory.unsettle();
        for target in plan.updates.iter().flat_map(Update::targets) {
            stores.renew(*target);
            let version = stores.version(*target);
            match memory.held.get_mut(target.index()).filter(|_| target.index() < updates.params) {
                Some(held) => held.1 = version,
                None => self.states.renew(*target, version),
            }
        }
        self.counters = UpdateCounters {
            dispatches: records.dispatches.len() as u32,
            uploaded,
            stores: parameters + states,
            pipelines: (self.pipelines.len() - before) as u32,
        };
        Ok(())
    }

    /// Where gradient, value and states of every parameter are.
    fn runs(&self, updates: &Updates, memory: &Memory) -> Vec<[Run; 3]> {
        let mut runs = Vec::with_capacity(updates.params);
        for (param, (at, words)) in (0..).map(StoreId).zip(memory.held_at()) {
            let gradient = self.last.as_ref().and_then(|made| made.gradient(param));
            let gradient = gradient.map(|(at, words)| run_of(&memory.arena, at, words));
            runs.push([
                gradient.unwrap_or_default(),
                run_of(&memory.params, at, words),
                self.states.run(param).clone(),
            ]);
        }
        runs
    }

    /// Writes what dispatches read beside the arrays; gives how many bytes went up.
    fn bring_numbers(&mut self, gpu: &Gpu, records: &Records, floats: &[f32]) -> Result<u64, GpuError> {
        let storage = Usage::STORAGE | Usage::COPY_DST;
        self.numbers.fit(gpu, "scalars of updates", records.numbers, storage)?;
        self.records.fit(gpu, "records of updates", records.words.len() as u64, storage)?;
        let stride = execute_stride(gpu);
        let mut executes: Vec<u32> = Vec::new();
        for dispatch in &records.dispatches {
            let start = executes.len();
            executes.extend([dispatch.record, dispatch.live, 0, 0]);
            executes.resize(start + stride as usize, 0);
        }
        let usage = Usage::UNIFORM | Usage::COPY_DST;
        self.executes.fit(gpu, "the numbers of updates", executes.len() as u64, usage)?;
        gpu.queue.write_buffer(self.numbers.get(), 0, bytemuck::cast_slice(floats));
        gpu.queue.write_buffer(self.records.get(), 0, bytemuck::cast_slice(&records.words));
        gpu.queue.write_buffer(self.executes.get(), 0, bytemuck::cast_slice(&executes));
        Ok((floats.len() + records.words.len() + executes.len()) as u64 * 4)
    }

    fn encode(
        &self,
        gpu: &Gpu,
        memory: &Memory,
        (updates, rows): (&Updates, &wgpu::Buffer),
        records: &Records,
        encoder: &mut wgpu::CommandEncoder,
    ) {
        let layout = &self.laid_out().0;
        let mut groups: HashMap<[usize; 3], wgpu::BindGroup> = HashMap::new();
        for dispatch in &records.dispatches {
            let [gradient, value, state] = dispatch.buffers;
            groups.entry(dispatch.buffers).or_insert_with(|| {
                let entries = [
                    binding(0, self.executes.get(), Some(EXECUTE_WORDS * 4)),
                    binding(1, self.records.get(), None),
                    binding(2, &memory.arena.buffers[gradient], None),
                    binding(3, &memory.params.buffers[value], None),
                    binding(4, &self.states.buffers[state], None),
                    binding(5, self.numbers.get(), None),
                    binding(6, rows, None),
                ];
                gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
                    label: Some("an update"),
                    layout,
                    entries: &entries,
                })
            });
        }
        let stride = execute_stride(gpu);
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        for (number, dispatch) in records.dispatches.iter().enumerate() {
            let program = &updates.deeds[dispatch.deed].programs()[dispatch.program];
            pass.set_pipeline(&self.pipelines[program]);
            pass.set_bind_group(0, &groups[&dispatch.buffers], &[(number as u64 * stride * 4) as u32]);
            pass.dispatch_workgroups(dispatch.groups[0], dispatch.groups[1], 1);
        }
    }
}

/// Words from the numbers of a dispatch to those of the next.
fn execute_stride(gpu: &Gpu) -> u64 {
    u64::from(gpu.limits.min_uniform_buffer_offset_alignment).max(EXECUTE_WORDS * 4) / 4
}

/// Checks that everything that the plan names is there, in its size; gives the gradients.
fn check<'m>(
    plan: &UpdatePlan,
    updates: &Updates,
    stores: &dyn StoresMut,
    memory: &Memory,
    made: Option<&'m Made>,
) -> Result<&'m Made, GpuError> {
    let wrong = |number: usize, found: usize| {
        GpuError::from(BindError::Store {
            name: plan.stores[number].name.clone(),
            expected: plan.stores[number].ty.shape.elements(),
            found,
        })
    };
    let Some(made) = made else { return Err(wrong(plan.stores.len().saturating_sub(1), 0)) };
    for (number, store) in plan.stores.iter().enumerate() {
        let found = match store.kind {
            StoreKind::Grad(of) => made.gradient(of).map_or(0, |run| run.1 as usize),
            StoreKind::Param(_) | StoreKind::State(_) => stores.values(StoreId(number as u32)).len(),
        };
        if found != store.ty.shape.elements() {
            return Err(wrong(number, found));
        }
    }
    for (number, store) in plan.stores[..updates.params].iter().enumerate() {
        let found = memory.held.get(number).map_or(0, |held| held.0.shape.elements());
        if found != store.ty.shape.elements() {
            return Err(wrong(number, found));
        }
    }
    Ok(made)
}

impl Executor {
    /// Whether the gradients of the next run are added to those of the last.
    pub fn set_accumulate_gradients(&mut self, keep: bool) {
        self.keep = keep;
    }

    /// Executes an update plan along the gradients that the last run left on the device. What changed gets a
    /// new version; its values stay on the device until [`updated`](Self::updated) brings them.
    ///
    /// # Errors
    /// If floats, stores or gradients do not fit it, or the device fails. Nothing
    /// was changed, unless the device is lost: then what was on it alone is gone.
    pub fn update(
        &mut self,
        plan: &Verified<UpdatePlan>,
        stores: &mut dyn StoresMut,
        floats: &[f32],
    ) -> Result<(), GpuError> {
        let (expected, found) = (plan.floats as usize, floats.len());
        if found < expected {
            return Err(BindError::Missing { what: "floats", expected, found }.into());
        }
        self.forget_lost()?;
        let Some(Resident { gpu, memory, training, grown, .. }) = &mut self.resident else {
            return Err(GpuError::Lost { reason: "gradients of the last run went with it".to_owned() });
        };
        // Its rows were made of parameters that change.
        *grown = None;
        let done = training.update(gpu, memory, plan, stores, floats);
        if done.is_err() && gpu.is_lost() {
            self.resident = None;
        }
        done
    }

    /// Reads a parameter and its states as the last update left them, by the stores of its plan.
    ///
    /// # Errors
    /// If the device fails, or holds no such parameter.
    pub fn updated(&self, param: StoreId) -> Result<Vec<(StoreId, Vec<f32>)>, GpuError> {
        let gone = || GpuError::Lost { reason: "parameters that were updated on it went with it".to_owned() };
        let Some(Resident { gpu, memory, training, .. }) = &self.resident else { return Err(gone()) };
        gpu.heard()?;
        let patience = Duration::from_secs(self.options.patience.max(1));
        let (at, words) = memory.held_at().nth(param.index()).ok_or_else(gone)?;
        let pieces = memory.params.pieces(at, words);
        let pieces: Vec<_> =
            pieces.map(|(buffer, byte, range)| (buffer, byte, range.end - range.start)).collect();
        let values = fetch::read(gpu, &pieces, patience)?.into_iter().map(f32::from_bits).collect();
        let mut all = vec![(param, values)];
        all.extend(training.states.read(gpu, param, patience)?);
        Ok(all)
    }

    /// What the last update did.
    #[must_use]
    pub fn update_counters(&self) -> UpdateCounters {
        self.resident.as_ref().map(|resident| resident.training.counters.clone()).unwrap_or_default()
    }
}
