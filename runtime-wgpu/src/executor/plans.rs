//! Plans that are on the device: compiled once, their tables and records in buffers of their own, pipelines
//! at hand. Executing one again brings up what is bound and nothing else.
//!
//! A bounded number of plans stays; the one unused for longest goes, and its buffers are used again. Writes
//! to a queue come after all that was submitted before, so a buffer can be written while its last run runs.

use super::ahead::Ahead;
use super::build::binding;
use super::memory::Memory;
use super::pipelines::Pipelines;
use crate::border::{self, Limited, Origins};
use crate::compile::{Compiled, Known, Layout, Space, Target, compile_from};
use crate::counters::Counters;
use crate::device::Gpu;
use crate::error::GpuError;
use crate::module::Cuts;
use autobatch_ir::plan::{Plan, Verified};
use autobatch_shaders::Numbers;
use std::sync::Arc;
use wgpu::BufferUsages as Usage;

/// So many plans stay on the device.
const MOST_PLANS: usize = 16;
/// So many words of tables stay, those of the plan being executed aside: 256 MiB.
const MOST_WORDS: u64 = 64 << 20;
/// Buffers are as large as a multiple of so many words.
const GRAIN: u64 = 1 << 12;
/// Words of a dispatch's numbers where they are bound.
const BOUND: u64 = 4;

/// A plan on the device.
pub(super) struct Loaded {
    identity: u64,
    target: Target,
    pub(super) compiled: Arc<Compiled>,
    /// Which bound words are indices or truth values.
    pub(super) limited: Limited,
    tables: Growing,
    /// How many words of the plan's tables are there.
    known_tables: usize,
    /// The numbers of dispatches, where they do not go among the commands.
    numbers: Option<Numbered>,
    pipelines: Vec<wgpu::ComputePipeline>,
    /// The bind group, and what memory it names.
    bound: Option<(u64, Cuts, wgpu::BindGroup)>,
    /// The commands of its next run, if they were written.
    pub(super) ahead: Option<Ahead>,
    /// Whether it was executed.
    pub(super) was_executed: bool,
    used: u64,
}

/// The numbers of all dispatches in a buffer.
struct Numbered {
    growing: Growing,
    /// Words from one dispatch's numbers to the next.
    stride: u64,
}

/// A buffer, and how many words it holds.
pub(super) struct Growing {
    buffer: wgpu::Buffer,
    words: u64,
}

/// Plans on the device, and buffers of plans that were.
#[derive(Default)]
pub(super) struct Plans {
    loaded: Vec<Loaded>,
    spare_tables: Vec<Growing>,
    spare_numbers: Vec<Growing>,
    /// What compiling keeps from plan to plan.
    pub(super) known: Known,
    clock: u64,
}

impl Plans {
    /// The plan on the device, brought there unless it is; the tables of one that `stays` are not written over.
    pub(super) fn load(
        &mut self,
        gpu: &Gpu,
        plan: &Verified<Plan>,
        target: Target,
        (stays, counters): (Option<u64>, &mut Counters),
    ) -> Result<&mut Loaded, GpuError> {
        self.clock += 1;
        let known = |loaded: &Loaded| loaded.identity == plan.identity() && loaded.target == target;
        let at = match self.loaded.iter().position(known) {
            Some(at) => at,
            None => {
                let loaded = self.bring(gpu, plan, target, (stays, counters))?;
                self.loaded.push(loaded);
                self.loaded.len() - 1
            }
        };
        let loaded = &mut self.loaded[at];
        loaded.used = self.clock;
        Ok(loaded)
    }

    /// Forgets commands that were written: they hold the buffers that they name.
    pub(super) fn forget_commands(&mut self) {
        self.loaded.iter_mut().for_each(|loaded| loaded.ahead = None);
    }

    fn bring(
        &mut self,
        gpu: &Gpu,
        plan: &Verified<Plan>,
        target: Target,
        (stays, counters): (Option<u64>, &mut Counters),
    ) -> Result<Loaded, GpuError> {
        let layout = Layout::new(plan, target.packing, Space::Exact)?;
        let mut compiled = compile_from(plan, target, layout, 0, &mut self.known)?;
        let words = std::mem::take(&mut compiled.tables);
        self.make_room(words.len() as u64, stays);
        let tables = self.tables(gpu, words.len() as u64)?;
        gpu.queue.write_buffer(&tables.buffer, 0, bytemuck::cast_slice(&words));
        counters.uploaded += words.len() as u64 * 4;
        let numbers = self.numbers(gpu, &compiled, counters)?;
        Ok(Loaded {
            identity: plan.identity(),
            target,
            compiled: Arc::new(compiled),
            limited: border::limited(plan, 0, &mut Origins::default()),
            tables,
            known_tables: plan.tables.len(),
            numbers,
            pipelines: Vec::new(),
            bound: None,
            ahead: None,
            was_executed: false,
            used: self.clock,
        })
    }

    /// The plan on the device with what it has gained: tables behind those that are up, records and segments of what
    /// is new. `before` is what there was of it; without it all tables go up.
    pub(super) fn lengthen(
        &mut self,
        gpu: &Gpu,
        (plan, target): (&Verified<Plan>, Target),
        before: Option<Loaded>,
        (mut compiled, limited): (Compiled, Limited),
        counters: &mut Counters,
    ) -> Result<Loaded, GpuError> {
        let records = std::mem::take(&mut compiled.tables);
        let at = u64::from(compiled.tables_at);
        let needed = at + records.len() as u64;
        let mut known = 0;
        let (tables, bound) = match before {
            None => (self.tables(gpu, needed.next_power_of_two())?, None),
            Some(Loaded { tables, numbers, bound, known_tables, .. }) => {
                let is_numbered = numbers.is_some();
                if let Some(Numbered { growing, .. }) = numbers {
                    keep(&mut self.spare_numbers, growing);
                }
                if tables.words >= needed {
                    known = known_tables;
                    (tables, bound.filter(|_| !is_numbered))
                } else {
                    keep(&mut self.spare_tables, tables);
                    (self.tables(gpu, needed.next_power_of_two())?, None)
                }
            }
        };
        for (at, words) in [(known as u64, &plan.tables[known..]), (at, records.as_slice())] {
            gpu.queue.write_buffer(&tables.buffer, at * 4, bytemuck::cast_slice(words));
            counters.uploaded += words.len() as u64 * 4;
        }
        let numbers = self.numbers(gpu, &compiled, counters)?;
        Ok(Loaded {
            identity: plan.identity(),
            target,
            compiled: Arc::new(compiled),
            limited,
            tables,
            known_tables: plan.tables.len(),
            numbers,
            pipelines: Vec::new(),
            bound,
            ahead: None,
            was_executed: true,
            used: self.clock,
        })
    }

    /// A buffer for so many words of tables.
    fn tables(&mut self, gpu: &Gpu, words: u64) -> Result<Growing, GpuError> {
        buffer(gpu, &mut self.spare_tables, "the tables", words, Usage::STORAGE | Usage::COPY_DST)
    }

    /// The numbers of all dispatches, where they do not go among the commands.
    fn numbers(
        &mut self,
        gpu: &Gpu,
        compiled: &Compiled,
        counters: &mut Counters,
    ) -> Result<Option<Numbered>, GpuError> {
        match gpu.numbers() {
            Numbers::Immediate => Ok(None),
            Numbers::Uniform => self.number(gpu, compiled, counters).map(Some),
        }
    }

    /// Writes the numbers of all dispatches into a buffer, as far apart as offsets must be.
    fn number(
        &mut self,
        gpu: &Gpu,
        compiled: &Compiled,
        counters: &mut Counters,
    ) -> Result<Numbered, GpuError> {
        let stride = u64::from(gpu.limits.min_uniform_buffer_offset_alignment).max(BOUND * 4) / 4;
        let mut own = Vec::with_capacity(compiled.dispatches.len() * stride as usize);
        for dispatch in &compiled.dispatches {
            let start = own.len();
            own.extend(dispatch.numbers());
            own.resize(start + stride as usize, 0);
        }
        let usage = Usage::UNIFORM | Usage::COPY_DST;
        let what = "the numbers of dispatches";
        let growing = buffer(gpu, &mut self.spare_numbers, what, (own.len() as u64).max(BOUND), usage)?;
        gpu.queue.write_buffer(&growing.buffer, 0, bytemuck::cast_slice(&own));
        counters.uploaded += own.len() as u64 * 4;
        Ok(Numbered { growing, stride })
    }

    /// Forgets plans but the one that stays until there is room for another.
    fn make_room(&mut self, words: u64, stays: Option<u64>) {
        let held = |loaded: &[Loaded]| loaded.iter().map(|plan| plan.tables.words).sum::<u64>();
        while self.loaded.len() >= MOST_PLANS || held(&self.loaded) + words > MOST_WORDS {
            let others = (0..self.loaded.len()).filter(|&at| Some(self.loaded[at].identity) != stays);
            let Some(oldest) = others.min_by_key(|&at| self.loaded[at].used) else { return };
            let Loaded { tables, numbers, .. } = self.loaded.swap_remove(oldest);
            keep(&mut self.spare_tables, tables);
            if let Some(Numbered { growing, .. }) = numbers {
                keep(&mut self.spare_numbers, growing);
            }
        }
    }
}

/// Keeps a buffer for the next plan; of two, the larger.
fn keep(spare: &mut Vec<Growing>, buffer: Growing) {
    spare.push(buffer);
    if spare.len() > 2 {
        let least = (0..spare.len()).min_by_key(|&at| spare[at].words).unwrap_or(0);
        spare.swap_remove(least);
    }
}

/// A spare buffer that is large enough, or another one.
fn buffer(
    gpu: &Gpu,
    spare: &mut Vec<Growing>,
    what: &'static str,
    words: u64,
    usage: Usage,
) -> Result<Growing, GpuError> {
    let fitting = (0..spare.len()).filter(|&at| spare[at].words >= words);
    if let Some(at) = fitting.min_by_key(|&at| spare[at].words) {
        return Ok(spare.swap_remove(at));
    }
    let limit = gpu.limits.max_buffer_size / 4;
    let words = words.max(1).next_multiple_of(GRAIN).min(limit.max(words));
    Ok(Growing { buffer: gpu.buffer(what, words * 4, usage)?, words })
}

impl Loaded {
    /// Makes the pipelines that are missing and the bind group, for the memory as it is.
    pub(super) fn prepare(
        &mut self,
        gpu: &Gpu,
        memory: &Memory,
        pipelines: &mut Pipelines,
    ) -> Result<(), GpuError> {
        let (generation, cuts) = (memory.generation(), memory.cuts());
        let is_bound = self.bound.as_ref().is_some_and(|bound| (bound.0, bound.1) == (generation, cuts));
        if is_bound && self.pipelines.len() == self.compiled.programs.len() {
            return Ok(());
        }
        let get = |program| pipelines.get(gpu, program, cuts);
        self.pipelines = self.compiled.programs.iter().map(get).collect::<Result<_, _>>()?;
        if is_bound {
            return Ok(());
        }
        let numbers = self.numbers.iter().map(|own| binding(0, &own.growing.buffer, Some(BOUND * 4)));
        let mut entries: Vec<_> = numbers.chain([binding(1, &self.tables.buffer, None)]).collect();
        for (number, buffer) in memory.bindings().enumerate() {
            entries.push(binding(2 + number as u32, buffer, None));
        }
        let group = gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some("a plan"),
            layout: &pipelines.layouts(gpu, cuts).group,
            entries: &entries,
        });
        self.bound = Some((generation, cuts, group));
        Ok(())
    }

    /// Whether it was brought for such a device.
    pub(super) fn is_for(&self, target: Target) -> bool {
        self.target == target
    }

    /// What names this plan's rows in the arena.
    pub(super) const fn identity(&self) -> u64 {
        self.identity
    }

    /// The tables of row numbers.
    pub(super) const fn tables(&self) -> &wgpu::Buffer {
        &self.tables.buffer
    }

    /// Encodes a stretch of the dispatches. Binding makes wgpu look at every buffer of the group again, so it is
    /// done once where numbers go among the commands.
    pub(super) fn encode(&self, encoder: &mut wgpu::CommandEncoder, dispatches: std::ops::Range<usize>) {
        let Some((_, _, group)) = &self.bound else { return };
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        if self.numbers.is_none() {
            pass.set_bind_group(0, group, &[]);
        }
        let mut current = None;
        for number in dispatches {
            let dispatch = &self.compiled.dispatches[number];
            if current != Some(dispatch.program) {
                pass.set_pipeline(&self.pipelines[dispatch.program as usize]);
                current = Some(dispatch.program);
            }
            match &self.numbers {
                Some(own) => pass.set_bind_group(0, group, &[(number as u64 * own.stride * 4) as u32]),
                None => pass.set_immediates(0, bytemuck::cast_slice(&dispatch.numbers())),
            }
            pass.dispatch_workgroups(dispatch.groups[0], dispatch.groups[1], 1);
        }
    }
}
