//! Memory of the device that plans share: the arena and the parameters, each cut into bindings, and the
//! buffer through which words come back. Buffers grow, and shrink only where a budget leaves no other way.

use super::cut::{Cut, Growing};
use super::fetch::{mapped, submitted};
use super::{Bound, Stores};
use crate::compile::{Compiled, HEAD, Packing, Stretch, Target};
use crate::device::Gpu;
use crate::error::GpuError;
use crate::module::Cuts;
use autobatch_ir::numeric::half::{f32_to_bf16, f32_to_f16};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Store, StoreId};
use autobatch_ir::types::{DType, Type};
use std::borrow::Cow;
use std::time::Duration;
use wgpu::BufferUsages as Usage;

/// Words up to which what is not to be written goes up as well, because a second write costs more.
const MOST_BETWEEN: u64 = 256;

/// What lives on the device between runs.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) arena: Cut,
    pub(super) params: Cut,
    cuts: Option<Cuts>,
    /// Counts the buffers that arena and parameters have had.
    generation: u64,
    /// Per parameter that is there its type and version.
    pub(super) held: Vec<(Type, u64)>,
    /// How these lie there.
    packing: Packing,
    /// What stands in the arena of constants and whole parameters ([`Compiled::standing`]), if that is known.
    standing: Option<Vec<u32>>,
    /// What is before them.
    head: Option<[u32; HEAD as usize]>,
    staging: Growing,
    /// Words that go up, kept so that a run allocates little.
    numbers: Vec<u32>,
}

impl Memory {
    /// Words of the arena and of the parameters with room for a plan, and how they are cut.
    fn sizes(&self, gpu: &Gpu, target: Target, compiled: &Compiled) -> Result<(u64, u64, Cuts), GpuError> {
        // What is there already and larger is used as it is, if both still fit the bindings and the budget. Parameters
        // that were updated here are nowhere else, so those of the same module stay whatever happens.
        let (own_arena, own_params) = (compiled.layout.total(), compiled.layout.params());
        let params = own_params.max(self.params.words);
        let sizes = [(own_arena.max(self.arena.words), params), (own_arena, params), (own_arena, own_params)];
        let bytes = |(arena, params): (u64, u64)| (arena + params) * 4;
        let affordable = |sizes| gpu.options().budget.memory.is_none_or(|budget| bytes(sizes) <= budget);
        let fits = |&sizes: &(u64, u64)| target.cuts(sizes.0, sizes.1).is_ok() && affordable(sizes);
        let (arena, params) = sizes.into_iter().find(fits).unwrap_or((own_arena, own_params));
        let cuts = target.cuts(arena, params)?;
        if !affordable((arena, params)) {
            let bytes = bytes((arena, params));
            return Err(GpuError::Memory { what: "the rows and parameters of the plan", bytes });
        }
        Ok((arena, params, cuts))
    }

    /// Whether there is room for a plan as things are.
    pub(super) fn has_room(&self, gpu: &Gpu, target: Target, compiled: &Compiled) -> bool {
        let size = target.binding / 4;
        let same = |cut: &Cut, words| {
            !cut.buffers.is_empty() && cut.words >= words && cut.words <= Cut::room(words, size)
        };
        let fits = |(arena, params, _)| same(&self.arena, arena) && same(&self.params, params);
        self.packing == target.packing && self.sizes(gpu, target, compiled).is_ok_and(fits)
    }

    /// Makes room for a plan.
    pub(super) fn fit(&mut self, gpu: &Gpu, target: Target, compiled: &Compiled) -> Result<(), GpuError> {
        let size = target.binding / 4;
        let (arena, params, cuts) = self.sizes(gpu, target, compiled)?;
        self.cuts = Some(cuts);
        if Cut::room(arena, size) < self.arena.words {
            self.arena = Cut::default();
        }
        if Cut::room(params, size) < self.params.words {
            // What was updated here is nowhere else, so it moves.
            let mut smaller = Cut::default();
            smaller.fit(gpu, "the parameters", (params, size))?;
            let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            self.params.copy(&mut encoder, 0, (&smaller, 0), smaller.words);
            submitted(gpu, encoder.finish())?;
            self.params = smaller;
            self.generation += 1;
        }
        if self.arena.fit(gpu, "the rows of the plan", (arena, size))? {
            (self.standing, self.head) = (None, None);
            self.generation += 1;
        }
        if self.params.fit(gpu, "the parameters", (params, size))? {
            self.held.clear();
            self.generation += 1;
        }
        if self.packing != target.packing {
            // Nothing is lost: halves that share words were never updated here.
            self.held.clear();
            self.packing = target.packing;
        }
        Ok(())
    }

    /// Whether there was room for a plan ever.
    pub(super) const fn is_fitted(&self) -> bool {
        self.cuts.is_some()
    }

    /// Bytes of the arena and the parameters.
    pub(super) fn bytes(&self) -> u64 {
        (self.arena.words + self.params.words) * 4
    }

    /// A number that changes when arena or parameters get other buffers.
    pub(super) const fn generation(&self) -> u64 {
        self.generation
    }

    /// The buffers of the arena, then those of the parameters.
    pub(super) fn bindings(&self) -> impl Iterator<Item = &wgpu::Buffer> {
        self.arena.buffers.iter().chain(&self.params.buffers)
    }

    /// Per parameter that is there its first word, and how many it takes.
    pub(super) fn held_at(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.held.iter().scan(0, |at, held| {
            let first = *at;
            *at += self.packing.room_of(held.0);
            Some((first, self.packing.words_of(held.0)))
        })
    }

    /// How the arena and the parameters are cut.
    pub(super) fn cuts(&self) -> Cuts {
        let cuts = self.cuts.expect("memory is fitted before it is used");
        Cuts { arena: self.arena.buffers.len() as u32, params: self.params.buffers.len() as u32, ..cuts }
    }

    /// Writes the parameters that changed; gives how many bytes went up.
    pub(super) fn bring_parameters(
        &mut self,
        gpu: &Gpu,
        params: &[Store],
        stores: &dyn Stores,
    ) -> Result<u64, GpuError> {
        if !self.held.iter().map(|held| held.0).eq(params.iter().map(|store| store.ty)) {
            self.held = params.iter().map(|store| (store.ty, 0)).collect();
        }
        let (mut at, mut bytes) = (0, 0);
        for (number, held) in self.held.iter_mut().enumerate() {
            let store = StoreId(number as u32);
            if held.1 != stores.version(store) {
                let words = as_stored(self.packing, held.0.dtype, stores.values(store));
                self.params.write(gpu, at, &words);
                held.1 = stores.version(store);
                bytes += words.len() as u64 * 4;
            }
            at += self.packing.room_of(held.0);
        }
        if bytes > 0 {
            // Those that kernels take whole are in the arena as well.
            self.standing = None;
        }
        gpu.heard()?;
        Ok(bytes)
    }

    /// Writes the bound numbers that a plan has behind so many words and floats, and constants and noise unless they are
    /// there; gives how many bytes went up.
    pub(super) fn bring_numbers(
        &mut self,
        gpu: &Gpu,
        compiled: &Compiled,
        bound: Bound<'_>,
        known: [u64; 2],
    ) -> u64 {
        let layout = &compiled.layout;
        let head = head(bound.noise);
        let (is_known, numbers) = (self.head.replace(head) == Some(head), &mut self.numbers);
        let (mut bytes, mut first) = (0, 0);
        let mut write = |at: u64, words: &[u32]| {
            self.arena.write(gpu, at, words);
            bytes += words.len() as u64 * 4;
        };
        numbers.clear();
        if !is_known || self.standing.is_none() {
            numbers.extend(head);
        }
        if self.standing.is_none() {
            numbers.extend_from_slice(&compiled.constants);
        }
        let [words, floats] = layout.bound().map(|count| count as usize);
        let (words_at, floats_at) = (u64::from(layout.bound_words()), u64::from(layout.bound_floats()));
        let is_near = self.standing.is_none() && words_at - numbers.len() as u64 <= MOST_BETWEEN;
        if is_near && known == [0; 2] {
            // What is between is written by the run's first dispatches.
            numbers.resize(words_at as usize, 0);
        } else {
            write(0, numbers);
            numbers.clear();
            first = words_at + known[0];
        }
        numbers.extend_from_slice(&bound.words[known[0] as usize..words]);
        let floats: &[u32] = bytemuck::cast_slice(&bound.floats[known[1] as usize..floats]);
        if first + numbers.len() as u64 == floats_at + known[1] {
            numbers.extend_from_slice(floats);
        } else {
            write(floats_at + known[1], floats);
        }
        write(first, numbers);
        bytes
    }

    /// Whether what a plan wants to stand in the arena is there.
    pub(super) fn has_standing(&self, compiled: &Compiled) -> bool {
        self.standing.as_ref() == Some(&compiled.standing)
    }

    /// The same before its run, which puts it there otherwise.
    pub(super) fn stands(&mut self, compiled: &Compiled) -> bool {
        if !self.has_standing(compiled) {
            self.standing = None;
        }
        self.standing.is_some()
    }

    /// Parameters changed on the device: those that the arena holds as well are old.
    pub(super) fn unsettle(&mut self) {
        self.standing = None;
    }

    /// A plan was submitted, and what it wants to stand in the arena is there from now on.
    pub(super) fn settle(&mut self, compiled: &Compiled) {
        if self.standing.is_none() {
            self.standing = Some(compiled.standing.clone());
        }
    }

    /// The first commands of a run: gradients become zero.
    pub(super) fn begin(&self, gpu: &Gpu, compiled: &Compiled) -> wgpu::CommandEncoder {
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let (at, words) = compiled.layout.gradients();
        for (buffer, byte, range) in self.arena.pieces(at, words) {
            encoder.clear_buffer(buffer, byte, Some((range.end - range.start) * 4));
        }
        encoder
    }

    /// Ends what was encoded with copies of stretches of the arena, one behind the other.
    pub(super) fn finish(
        &mut self,
        gpu: &Gpu,
        mut encoder: wgpu::CommandEncoder,
        stretches: &[Stretch],
    ) -> Result<wgpu::CommandBuffer, GpuError> {
        let all = stretches.iter().map(|stretch| stretch.1).sum();
        self.staging.fit(gpu, "what comes back", all, Usage::MAP_READ | Usage::COPY_DST)?;
        let staging = self.staging.get();
        let mut done = 0;
        for &(at, words) in stretches {
            for (buffer, byte, range) in self.arena.pieces(at, words) {
                let bytes = (range.end - range.start) * 4;
                encoder.copy_buffer_to_buffer(buffer, byte, staging, (done + range.start) * 4, bytes);
            }
            done += words;
        }
        Ok(encoder.finish())
    }

    /// The buffer through which words come back, once something was finished.
    pub(super) fn staging(&self) -> &wgpu::Buffer {
        self.staging.get()
    }

    /// Whether words come back through this buffer.
    pub(super) fn has_staging(&self, buffer: &wgpu::Buffer) -> bool {
        self.staging.buffer.as_ref() == Some(buffer)
    }

    /// Waits for a submission, and reads the words that it copied into a buffer.
    pub(super) fn wait(
        &mut self,
        gpu: &Gpu,
        staging: &wgpu::Buffer,
        index: wgpu::SubmissionIndex,
        words: u64,
        patience: Duration,
    ) -> Result<Vec<u32>, GpuError> {
        let read = mapped(gpu, staging, index, words, patience);
        // A buffer that may still be mapped cannot be used again.
        read.inspect_err(|_| self.staging = Growing::default())
    }
}

/// The words of the arena before anything of a plan.
fn head(noise: Noise) -> [u32; HEAD as usize] {
    let mut head = [0; HEAD as usize];
    if let Noise::On { seed, step } = noise {
        head[..5].copy_from_slice(&[1, seed as u32, (seed >> 32) as u32, step as u32, (step >> 32) as u32]);
    }
    head
}

/// Values as the device stores them: of halves that share words, the first in the lower bits.
fn as_stored(packing: Packing, dtype: DType, values: &[f32]) -> Cow<'_, [u32]> {
    let half: fn(f32) -> u16 = match (packing, dtype) {
        (Packing::Halves, DType::F16) => f32_to_f16,
        (Packing::Halves, DType::BF16) => f32_to_bf16,
        (Packing::Words, _) | (_, DType::F32 | DType::I32 | DType::U32 | DType::Bool) => {
            return Cow::Borrowed(bytemuck::cast_slice(values));
        }
    };
    let upper = |pair: &[f32]| pair.get(1).map_or(0, |&x| u32::from(half(x)));
    Cow::Owned(values.chunks(2).map(|pair| u32::from(half(pair[0])) | (upper(pair) << 16)).collect())
}

#[cfg(test)]
impl Memory {
    /// An arena of these words alone.
    pub(super) fn of_tests(gpu: &Gpu, words: &[u32]) -> Self {
        let mut memory = Self { cuts: Some(Cuts::ONE), ..Self::default() };
        memory.arena.fit(gpu, "words", (words.len() as u64, 1 << 14)).expect("there is memory");
        memory.arena.write(gpu, 0, words);
        memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    #[test]
    fn words_come_back_after_an_error_that_nobody_waited_for() {
        let Some(gpu) = Gpu::of_tests(Options::default()) else { return };
        let mut memory = Memory::of_tests(&gpu, &[1, 2, 3, 4]);
        let mut read = |between: fn(&Gpu)| {
            let encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            let commands = memory.finish(&gpu, encoder, &[(0, 4)])?;
            let index = submitted(&gpu, commands)?;
            between(&gpu);
            let staging = memory.staging().clone();
            memory.wait(&gpu, &staging, index, 4, Duration::from_secs(60))
        };
        let error = read(|gpu| {
            drop(gpu.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("too large"),
                size: 1 << 60,
                usage: Usage::STORAGE,
                mapped_at_creation: false,
            }));
        });
        assert!(matches!(error, Err(GpuError::Rejected { .. })), "{error:?}");
        assert_eq!(read(|_| ()), Ok(vec![1, 2, 3, 4]));
    }
}
