//! Memory of the device that plans share: the arena and the parameters, each split across bindings, and the staging
//! buffer. Buffers grow. They shrink only where a memory budget requires it.

use super::readback::{map_and_read, submit};
use super::split_array::{GrowableBuffer, SplitArray};
use super::{Inputs, Stores};
use crate::compile::{ArenaRange, Compiled, HEAD, Packing, Target};
use crate::device::Gpu;
use crate::error::GpuError;
use crate::module::Split;
use autobatch_ir::numeric::half::{f32_to_bf16, f32_to_f16};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Store, StoreId};
use autobatch_ir::types::{DType, Type};
use std::borrow::Cow;
use std::time::Duration;
use wgpu::BufferUsages as Usage;

/// The largest gap, in words, that an upload fills with zeros because a second write costs more.
const MAX_GAP: u64 = 256;

/// The arena, the parameters and the staging buffer.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) arena: SplitArray,
    pub(super) params: SplitArray,
    split: Option<Split>,
    /// Counts how often the arena or the parameters got new buffers.
    generation: u64,
    /// The type and version of each uploaded parameter.
    pub(super) held: Vec<(Type, u64)>,
    packing: Packing,
    /// The constants and whole parameters that the arena holds ([`Compiled::persistent`]), if known.
    persistent: Option<Vec<u32>>,
    /// The words before them.
    head: Option<[u32; HEAD as usize]>,
    staging: GrowableBuffer,
    scratch: Vec<u32>,
}

/// Words of the arena and of the parameters, and their split.
struct Sizes {
    arena: u64,
    params: u64,
    split: Split,
}

impl Memory {
    /// The sizes with which a plan fits. Larger buffers are kept if bindings and budget allow it. Updated parameters
    /// exist only on the device, so those of the same module are kept in any case.
    fn sizes(&self, gpu: &Gpu, target: Target, compiled: &Compiled) -> Result<Sizes, GpuError> {
        let (own_arena, own_params) = (compiled.layout.total(), compiled.layout.params());
        let params = own_params.max(self.params.words);
        let sizes = [(own_arena.max(self.arena.words), params), (own_arena, params), (own_arena, own_params)];
        let bytes = |(arena, params): (u64, u64)| (arena + params) * 4;
        let affordable = |sizes| gpu.options().budget.memory.is_none_or(|budget| bytes(sizes) <= budget);
        let fits = |&sizes: &(u64, u64)| target.split(sizes.0, sizes.1).is_ok() && affordable(sizes);
        let (arena, params) = sizes.into_iter().find(fits).unwrap_or((own_arena, own_params));
        let split = target.split(arena, params)?;
        if !affordable((arena, params)) {
            let bytes = bytes((arena, params));
            return Err(GpuError::Memory { what: "the rows and parameters of the plan", bytes });
        }
        Ok(Sizes { arena, params, split })
    }

    /// Returns whether a plan fits the current buffers.
    pub(super) fn has_room(&self, gpu: &Gpu, target: Target, compiled: &Compiled) -> bool {
        let size = target.binding / 4;
        let fits = |array: &SplitArray, words| {
            !array.buffers.is_empty()
                && array.words >= words
                && array.words <= SplitArray::allocated(words, size)
        };
        self.packing == target.packing
            && self
                .sizes(gpu, target, compiled)
                .is_ok_and(|sizes| fits(&self.arena, sizes.arena) && fits(&self.params, sizes.params))
    }

    pub(super) fn fit(&mut self, gpu: &Gpu, target: Target, compiled: &Compiled) -> Result<(), GpuError> {
        let size = target.binding / 4;
        let Sizes { arena, params, split } = self.sizes(gpu, target, compiled)?;
        self.split = Some(split);
        if SplitArray::allocated(arena, size) < self.arena.words {
            self.arena = SplitArray::default();
        }
        if SplitArray::allocated(params, size) < self.params.words {
            // Updated parameters exist only on the device, so they are copied.
            let mut smaller = SplitArray::default();
            smaller.fit(gpu, "the parameters", params, size)?;
            let mut encoder = gpu.encoder();
            self.params.copy(&mut encoder, 0, &smaller, 0, smaller.words);
            submit(gpu, encoder.finish())?;
            self.params = smaller;
            self.generation += 1;
        }
        if self.arena.fit(gpu, "the rows of the plan", arena, size)? {
            (self.persistent, self.head) = (None, None);
            self.generation += 1;
        }
        if self.params.fit(gpu, "the parameters", params, size)? {
            self.held.clear();
            self.generation += 1;
        }
        if self.packing != target.packing {
            // No value is lost: parameters of 16 bits that share words were never updated here.
            self.held.clear();
            self.packing = target.packing;
        }
        Ok(())
    }

    pub(super) const fn is_fitted(&self) -> bool {
        self.split.is_some()
    }

    /// Bytes of the arena and the parameters.
    pub(super) fn bytes(&self) -> u64 {
        (self.arena.words + self.params.words) * 4
    }

    /// A number that changes when the arena or the parameters get new buffers.
    pub(super) const fn generation(&self) -> u64 {
        self.generation
    }

    /// The buffers of the arena, then those of the parameters.
    pub(super) fn bindings(&self) -> impl Iterator<Item = &wgpu::Buffer> {
        self.arena.buffers.iter().chain(&self.params.buffers)
    }

    /// The first word and the number of words of each uploaded parameter.
    pub(super) fn held_at(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.held.iter().scan(0, |at, held| {
            let first = *at;
            *at += self.packing.padded_words_of(held.0);
            Some((first, self.packing.words_of(held.0)))
        })
    }

    /// The split of the arena and the parameters.
    pub(super) fn split(&self) -> Split {
        let split = self.split.expect("memory is fitted before it is used");
        Split { arena: self.arena.buffers.len() as u32, params: self.params.buffers.len() as u32, ..split }
    }

    /// Uploads the parameters whose version changed. Returns the uploaded bytes.
    pub(super) fn upload_parameters(
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
                let words = packed(self.packing, held.0.dtype, stores.values(store));
                self.params.write(gpu, at, &words);
                held.1 = stores.version(store);
                bytes += words.len() as u64 * 4;
            }
            at += self.packing.padded_words_of(held.0);
        }
        if bytes > 0 {
            // The arena may hold copies of them.
            self.persistent = None;
        }
        gpu.take_error()?;
        Ok(bytes)
    }

    /// Uploads the words and floats of a plan that are bound, except for the first `uploaded` ones. Uploads the constants and the
    /// noise unless the arena holds them. Returns the uploaded bytes.
    pub(super) fn upload_inputs(
        &mut self,
        gpu: &Gpu,
        compiled: &Compiled,
        inputs: Inputs<'_>,
        uploaded: [u64; 2],
    ) -> u64 {
        let layout = &compiled.layout;
        let head = head(inputs.noise);
        let (has_head, scratch) = (self.head.replace(head) == Some(head), &mut self.scratch);
        let (mut bytes, mut first) = (0, 0);
        let mut write = |at: u64, words: &[u32]| {
            self.arena.write(gpu, at, words);
            bytes += words.len() as u64 * 4;
        };
        scratch.clear();
        if !has_head || self.persistent.is_none() {
            scratch.extend(head);
        }
        if self.persistent.is_none() {
            scratch.extend_from_slice(&compiled.constants);
        }
        let [words, floats] = layout.bound().map(|count| count as usize);
        let (words_at, floats_at) = (u64::from(layout.bound_words()), u64::from(layout.bound_floats()));
        let is_near = self.persistent.is_none() && words_at - scratch.len() as u64 <= MAX_GAP;
        if is_near && uploaded == [0; 2] {
            // The first dispatches of the run write the words in the gap.
            scratch.resize(words_at as usize, 0);
        } else {
            write(0, scratch);
            scratch.clear();
            first = words_at + uploaded[0];
        }
        scratch.extend_from_slice(&inputs.words[uploaded[0] as usize..words]);
        let floats: &[u32] =
            bytemuck::cast_slice(&inputs.floats[uploaded[1] as usize..floats.min(inputs.floats.len())]);
        if first + scratch.len() as u64 == floats_at + uploaded[1] {
            scratch.extend_from_slice(floats);
        } else {
            write(floats_at + uploaded[1], floats);
        }
        write(first, scratch);
        bytes
    }

    /// Returns whether the arena holds the constants and whole parameters of a plan.
    pub(super) fn has_persistent(&self, compiled: &Compiled) -> bool {
        self.persistent.as_ref() == Some(&compiled.persistent)
    }

    /// The same before a run. If they are missing, those of other plans count as overwritten.
    pub(super) fn claim_persistent(&mut self, compiled: &Compiled) -> bool {
        if !self.has_persistent(compiled) {
            self.persistent = None;
        }
        self.persistent.is_some()
    }

    /// Parameters changed on the device, so their copies in the arena are stale.
    pub(super) fn invalidate_persistent(&mut self) {
        self.persistent = None;
    }

    /// The run of a plan was submitted: the arena now holds its constants and whole parameters.
    pub(super) fn mark_persistent(&mut self, compiled: &Compiled) {
        if self.persistent.is_none() {
            self.persistent = Some(compiled.persistent.clone());
        }
    }

    /// The first commands of a run: they set gradients to zero.
    pub(super) fn begin(&self, gpu: &Gpu, compiled: &Compiled) -> wgpu::CommandEncoder {
        let mut encoder = gpu.encoder();
        let (at, words) = compiled.layout.gradients();
        for (buffer, byte, range) in self.arena.pieces(at, words) {
            encoder.clear_buffer(buffer, byte, Some((range.end - range.start) * 4));
        }
        encoder
    }

    /// Ends commands with copies of ranges of the arena into the staging buffer, concatenated.
    pub(super) fn finish(
        &mut self,
        gpu: &Gpu,
        mut encoder: wgpu::CommandEncoder,
        ranges: &[ArenaRange],
    ) -> Result<wgpu::CommandBuffer, GpuError> {
        let all = ranges.iter().map(|range| range.1).sum();
        self.staging.fit(gpu, "readback", all, Usage::MAP_READ | Usage::COPY_DST)?;
        let staging = self.staging.get();
        let mut done = 0;
        for &(at, words) in ranges {
            for (buffer, byte, range) in self.arena.pieces(at, words) {
                let bytes = (range.end - range.start) * 4;
                encoder.copy_buffer_to_buffer(buffer, byte, staging, (done + range.start) * 4, bytes);
            }
            done += words;
        }
        Ok(encoder.finish())
    }

    /// The staging buffer. Commands were [finished](Self::finish) before.
    pub(super) fn staging(&self) -> &wgpu::Buffer {
        self.staging.get()
    }

    /// Returns whether this is the staging buffer.
    pub(super) fn has_staging(&self, buffer: &wgpu::Buffer) -> bool {
        self.staging.buffer.as_ref() == Some(buffer)
    }

    /// Waits for a submission and reads the words that it copied into a staging buffer.
    pub(super) fn wait(
        &mut self,
        gpu: &Gpu,
        staging: &wgpu::Buffer,
        index: wgpu::SubmissionIndex,
        words: u64,
        timeout: Duration,
    ) -> Result<Vec<u32>, GpuError> {
        let read = map_and_read(gpu, staging, index, words, timeout);
        // A buffer that may still be mapped cannot be used again.
        read.inspect_err(|_| self.staging = GrowableBuffer::default())
    }
}

/// The first words of the arena: the state of the noise generator.
fn head(noise: Noise) -> [u32; HEAD as usize] {
    let mut head = [0; HEAD as usize];
    if let Noise::On { seed, step } = noise {
        head[..5].copy_from_slice(&[1, seed as u32, (seed >> 32) as u32, step as u32, (step >> 32) as u32]);
    }
    head
}

/// Values as the device stores them. Of two 16-bit values in a word, the first is in the lower bits.
fn packed(packing: Packing, dtype: DType, values: &[f32]) -> Cow<'_, [u32]> {
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
mod tests;
