//! Plans on the device: compiled once, with buffers of their own for tables and records, and with their pipelines.
//! Executing a loaded plan again uploads only its inputs.
//!
//! A bounded number of plans stays loaded. The least recently used one goes first, and later plans reuse its buffers.
//! Queue writes happen after all earlier submissions, so a buffer can be written while its last run is in flight.

use super::build::{bind_group, binding};
use super::memory::Memory;
use super::pipelines::Pipelines;
use super::prerecord::Prerecorded;
use crate::compile::{BufferLayout, Capacity, Compiled, LoweringCache, Target, compile_from};
use crate::counters::Counters;
use crate::device::Gpu;
use crate::error::GpuError;
use crate::module::Split;
use autobatch_ir::plan::{Plan, Verified, WordLimits};
use autobatch_shaders::Numbers;
use std::ops::Range;
use std::sync::Arc;
use wgpu::BufferUsages as Usage;

/// Maximum number of loaded plans.
const MAX_PLANS: usize = 16;
/// Maximum words of tables of all loaded plans but the current one: 256 MiB.
const MAX_WORDS: u64 = 64 << 20;
/// Buffer sizes are multiples of this many words.
const GRAIN: u64 = 1 << 12;
/// Words of a dispatch's arguments in a uniform buffer.
const ARG_WORDS: u64 = 4;

/// A plan on the device.
pub(super) struct Loaded {
    identity: u64,
    target: Target,
    pub(super) compiled: Arc<Compiled>,
    pub(super) word_limits: WordLimits,
    tables: SizedBuffer,
    /// Words of the plan's own tables that are uploaded.
    uploaded_tables: usize,
    /// The arguments of dispatches, unless they are immediates.
    args: Option<DispatchArgs>,
    pipelines: Vec<wgpu::ComputePipeline>,
    group: Option<BoundGroup>,
    /// The recorded commands of its next run.
    pub(super) prerecorded: Option<Prerecorded>,
    pub(super) was_executed: bool,
    /// The time of its last use.
    used: u64,
}

/// A bind group and the memory that it names.
struct BoundGroup {
    generation: u64,
    split: Split,
    group: wgpu::BindGroup,
}

/// The arguments of all dispatches in one buffer.
struct DispatchArgs {
    buffer: SizedBuffer,
    /// Words from one dispatch's arguments to the next.
    stride: u64,
}

/// A buffer and its size in words.
struct SizedBuffer {
    buffer: wgpu::Buffer,
    words: u64,
}

/// The new part of a growing plan.
pub(super) struct Extension<'p> {
    pub(super) plan: &'p Verified<Plan>,
    pub(super) target: Target,
    pub(super) compiled: Compiled,
    /// The plan as it was executed before.
    pub(super) before: Option<Loaded>,
}

/// The buffers that a growing plan keeps.
struct Retained {
    tables: SizedBuffer,
    uploaded_tables: usize,
    group: Option<BoundGroup>,
}

/// Loaded plans, and spare buffers of unloaded ones.
#[derive(Default)]
pub(super) struct Plans {
    loaded: Vec<Loaded>,
    spare_tables: Vec<SizedBuffer>,
    spare_args: Vec<SizedBuffer>,
    /// The cache of compilation across plans.
    pub(super) lowering: LoweringCache,
    clock: u64,
}

impl Plans {
    /// The loaded plan; it is compiled and uploaded first if necessary. The plan `current` stays loaded.
    pub(super) fn load(
        &mut self,
        gpu: &Gpu,
        plan: &Verified<Plan>,
        target: Target,
        current: Option<u64>,
        counters: &mut Counters,
    ) -> Result<&mut Loaded, GpuError> {
        self.clock += 1;
        let matches = |loaded: &Loaded| loaded.identity == plan.identity() && loaded.target == target;
        let at = match self.loaded.iter().position(matches) {
            Some(at) => at,
            None => {
                let loaded = self.upload(gpu, plan, target, current, counters)?;
                self.loaded.push(loaded);
                self.loaded.len() - 1
            }
        };
        let loaded = &mut self.loaded[at];
        loaded.used = self.clock;
        Ok(loaded)
    }

    /// Drops everything that names the arena and the parameters, because it keeps old buffers alive.
    pub(super) fn release_memory(&mut self) {
        self.loaded.iter_mut().for_each(Loaded::release_memory);
    }

    fn upload(
        &mut self,
        gpu: &Gpu,
        plan: &Verified<Plan>,
        target: Target,
        current: Option<u64>,
        counters: &mut Counters,
    ) -> Result<Loaded, GpuError> {
        let layout = BufferLayout::new(plan, target.packing, Capacity::Exact)?;
        let mut compiled = compile_from(plan, target, layout, 0, &mut self.lowering)?;
        let words = std::mem::take(&mut compiled.tables);
        self.evict(words.len() as u64, current);
        let tables = self.tables(gpu, words.len() as u64)?;
        tables.write(gpu, 0, &words, counters);
        let args = self.args(gpu, &compiled, counters)?;
        Ok(Loaded::new(plan, target, compiled, tables, args))
    }

    /// Uploads the new part of a growing plan: its tables behind those on the device, and the records and segments of
    /// its new steps. Without an earlier run it uploads all tables.
    pub(super) fn extend(
        &mut self,
        gpu: &Gpu,
        extension: Extension<'_>,
        counters: &mut Counters,
    ) -> Result<Loaded, GpuError> {
        let Extension { plan, target, mut compiled, before } = extension;
        let records = std::mem::take(&mut compiled.tables);
        let at = u64::from(compiled.tables_at);
        let Retained { tables, uploaded_tables, group } =
            self.retain(gpu, before, at + records.len() as u64)?;
        tables.write(gpu, uploaded_tables as u64, &plan.tables[uploaded_tables..], counters);
        tables.write(gpu, at, &records, counters);
        let args = self.args(gpu, &compiled, counters)?;
        Ok(Loaded { group, ..Loaded::new(plan, target, compiled, tables, args) })
    }

    /// The table buffer of a plan as it was before, if it holds `needed` words, else a new one of up to twice the size.
    fn retain(&mut self, gpu: &Gpu, before: Option<Loaded>, needed: u64) -> Result<Retained, GpuError> {
        if let Some(Loaded { tables, args, group, uploaded_tables, .. }) = before {
            // The bind group names the argument buffer.
            let group = group.filter(|_| args.is_none());
            recycle_args(&mut self.spare_args, args);
            if tables.words >= needed {
                return Ok(Retained { tables, uploaded_tables, group });
            }
            recycle(&mut self.spare_tables, tables);
        }
        let tables = self.tables(gpu, needed.next_power_of_two())?;
        Ok(Retained { tables, uploaded_tables: 0, group: None })
    }

    /// A buffer for `words` words of tables.
    fn tables(&mut self, gpu: &Gpu, words: u64) -> Result<SizedBuffer, GpuError> {
        buffer(gpu, &mut self.spare_tables, "the tables", words, Usage::STORAGE | Usage::COPY_DST)
    }

    /// Writes the arguments of all dispatches into a buffer at the required alignment, unless they are immediates.
    fn args(
        &mut self,
        gpu: &Gpu,
        compiled: &Compiled,
        counters: &mut Counters,
    ) -> Result<Option<DispatchArgs>, GpuError> {
        if gpu.numbers() == Numbers::Immediate {
            return Ok(None);
        }
        let stride = u64::from(gpu.limits.min_uniform_buffer_offset_alignment).max(ARG_WORDS * 4) / 4;
        let mut words = Vec::with_capacity(compiled.dispatches.len() * stride as usize);
        for dispatch in &compiled.dispatches {
            let start = words.len();
            words.extend(dispatch.args());
            words.resize(start + stride as usize, 0);
        }
        let usage = Usage::UNIFORM | Usage::COPY_DST;
        let what = "the arguments of dispatches";
        let size = (words.len() as u64).max(ARG_WORDS);
        let buffer = buffer(gpu, &mut self.spare_args, what, size, usage)?;
        buffer.write(gpu, 0, &words, counters);
        Ok(Some(DispatchArgs { buffer, stride }))
    }

    /// Unloads plans until there is room for another one of `words` words. The plan `current` stays.
    fn evict(&mut self, words: u64, current: Option<u64>) {
        let held = |loaded: &[Loaded]| loaded.iter().map(|plan| plan.tables.words).sum::<u64>();
        while self.loaded.len() >= MAX_PLANS || held(&self.loaded) + words > MAX_WORDS {
            let others = (0..self.loaded.len()).filter(|&at| Some(self.loaded[at].identity) != current);
            let Some(oldest) = others.min_by_key(|&at| self.loaded[at].used) else { return };
            let Loaded { tables, args, .. } = self.loaded.swap_remove(oldest);
            recycle(&mut self.spare_tables, tables);
            recycle_args(&mut self.spare_args, args);
        }
    }
}

impl SizedBuffer {
    fn write(&self, gpu: &Gpu, at: u64, words: &[u32], counters: &mut Counters) {
        gpu.queue.write_buffer(&self.buffer, at * 4, bytemuck::cast_slice(words));
        counters.uploaded += words.len() as u64 * 4;
    }
}

/// Keeps a buffer for later plans: at most two, the larger ones.
fn recycle(spare: &mut Vec<SizedBuffer>, buffer: SizedBuffer) {
    spare.push(buffer);
    if spare.len() > 2 {
        let smallest = (0..spare.len()).min_by_key(|&at| spare[at].words).unwrap_or(0);
        spare.swap_remove(smallest);
    }
}

fn recycle_args(spare: &mut Vec<SizedBuffer>, args: Option<DispatchArgs>) {
    if let Some(DispatchArgs { buffer, .. }) = args {
        recycle(spare, buffer);
    }
}

/// The smallest spare buffer of at least `words` words, or a new one.
fn buffer(
    gpu: &Gpu,
    spare: &mut Vec<SizedBuffer>,
    what: &'static str,
    words: u64,
    usage: Usage,
) -> Result<SizedBuffer, GpuError> {
    let fitting = (0..spare.len()).filter(|&at| spare[at].words >= words);
    if let Some(at) = fitting.min_by_key(|&at| spare[at].words) {
        return Ok(spare.swap_remove(at));
    }
    let limit = gpu.limits.max_buffer_size / 4;
    let words = words.max(1).next_multiple_of(GRAIN).min(limit.max(words));
    Ok(SizedBuffer { buffer: gpu.buffer(what, words * 4, usage)?, words })
}

impl Loaded {
    fn new(
        plan: &Verified<Plan>,
        target: Target,
        compiled: Compiled,
        tables: SizedBuffer,
        args: Option<DispatchArgs>,
    ) -> Self {
        Self {
            identity: plan.identity(),
            target,
            compiled: Arc::new(compiled),
            word_limits: WordLimits::new(plan),
            tables,
            uploaded_tables: plan.tables.len(),
            args,
            pipelines: Vec::new(),
            group: None,
            prerecorded: None,
            was_executed: false,
            used: 0,
        }
    }

    /// Builds missing pipelines and the bind group for the current memory.
    pub(super) fn prepare(
        &mut self,
        gpu: &Gpu,
        memory: &Memory,
        pipelines: &mut Pipelines,
    ) -> Result<(), GpuError> {
        let (generation, split) = (memory.generation(), memory.split());
        let is_bound =
            self.group.as_ref().is_some_and(|bound| (bound.generation, bound.split) == (generation, split));
        if is_bound && self.pipelines.len() == self.compiled.programs.len() {
            return Ok(());
        }
        self.pipelines = pipelines.all(gpu, &self.compiled.programs, split)?;
        if is_bound {
            return Ok(());
        }
        let args = self.args.iter().map(|args| binding(0, &args.buffer.buffer, Some(ARG_WORDS * 4)));
        let mut entries: Vec<_> = args.chain([binding(1, &self.tables.buffer, None)]).collect();
        for (number, buffer) in memory.bindings().enumerate() {
            entries.push(binding(2 + number as u32, buffer, None));
        }
        let group = bind_group(gpu, "a plan", &pipelines.layouts(gpu, split).group, &entries);
        self.group = Some(BoundGroup { generation, split, group });
        Ok(())
    }

    /// Drops recorded commands and the bind group.
    pub(super) fn release_memory(&mut self) {
        (self.prerecorded, self.group) = (None, None);
    }

    /// Returns whether it was compiled for this target.
    pub(super) fn is_for(&self, target: Target) -> bool {
        self.target == target
    }

    pub(super) const fn identity(&self) -> u64 {
        self.identity
    }

    pub(super) const fn tables(&self) -> &wgpu::Buffer {
        &self.tables.buffer
    }

    /// Encodes a range of its dispatches as one pass, with timestamps before and after it if asked for. Setting a bind
    /// group is slow, so with immediates it is set only once.
    pub(super) fn encode(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        dispatches: Range<usize>,
        timestamp_writes: Option<wgpu::ComputePassTimestampWrites<'_>>,
    ) {
        let Some(BoundGroup { group, .. }) = &self.group else { return };
        let descriptor = wgpu::ComputePassDescriptor { timestamp_writes, ..Default::default() };
        let mut pass = encoder.begin_compute_pass(&descriptor);
        if self.args.is_none() {
            pass.set_bind_group(0, group, &[]);
        }
        let mut current = None;
        for number in dispatches {
            let dispatch = &self.compiled.dispatches[number];
            if current != Some(dispatch.program) {
                pass.set_pipeline(&self.pipelines[dispatch.program as usize]);
                current = Some(dispatch.program);
            }
            match &self.args {
                Some(args) => pass.set_bind_group(0, group, &[(number as u64 * args.stride * 4) as u32]),
                None => pass.set_immediates(0, bytemuck::cast_slice(&dispatch.args())),
            }
            pass.dispatch_workgroups(dispatch.groups[0], dispatch.groups[1], 1);
        }
    }
}
