//! Memory of the device that plans share: the arena and the parameters, each cut into bindings, and the
//! buffer through which words come back. Buffers grow and never shrink.

use super::{Bound, Stores};
use crate::compile::{Compiled, HEAD, Target, words_of};
use crate::device::Gpu;
use crate::error::GpuError;
use crate::module::Cuts;
use autobatch_ir::numeric::half::{f32_to_bf16, f32_to_f16};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Plan, StoreId};
use autobatch_ir::types::{DType, Type};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::mpsc;
use std::time::Duration;
use wgpu::BufferUsages as Usage;

/// Buffers grow to a multiple of so many words.
const GRAIN: u64 = 1 << 14;

/// A buffer that grows.
#[derive(Default)]
struct Growing {
    buffer: Option<wgpu::Buffer>,
    words: u64,
}

impl Growing {
    /// Makes room; says whether the buffer is another one now.
    fn fit(&mut self, gpu: &Gpu, what: &'static str, words: u64, usage: Usage) -> Result<bool, GpuError> {
        if self.buffer.is_some() && self.words >= words {
            return Ok(false);
        }
        let limit = gpu.limits.max_buffer_size / 4;
        let words = words.max(1).next_multiple_of(GRAIN).min(limit.max(words));
        self.buffer = None;
        self.buffer = Some(gpu.buffer(what, words * 4, usage)?);
        self.words = words;
        Ok(true)
    }

    fn get(&self) -> &wgpu::Buffer {
        self.buffer.as_ref().expect("memory is fitted before it is used")
    }
}

/// An array of words cut into bindings.
#[derive(Default)]
struct Cut {
    buffers: Vec<wgpu::Buffer>,
    words: u64,
    /// Words of a binding.
    size: u64,
}

impl Cut {
    fn fit(&mut self, gpu: &Gpu, what: &'static str, (words, size): (u64, u64)) -> Result<bool, GpuError> {
        if !self.buffers.is_empty() && self.words >= words && self.size == size {
            return Ok(false);
        }
        // Within the bindings that the words take anyway.
        let room = words.max(1).div_ceil(size) * size;
        let words = words.max(1).next_multiple_of(GRAIN).min(room);
        *self = Self::default();
        let mut buffers = Vec::new();
        for start in (0..words).step_by(size as usize) {
            let bytes = size.min(words - start) * 4;
            let usage = Usage::STORAGE | Usage::COPY_DST | Usage::COPY_SRC;
            buffers.push(gpu.buffer(what, bytes, usage)?);
        }
        *self = Self { buffers, words, size };
        Ok(true)
    }

    /// The pieces of a run of words: the buffer, the first byte in it, and which words of the run.
    fn pieces(&self, at: u64, words: u64) -> impl Iterator<Item = (&wgpu::Buffer, u64, Range<u64>)> {
        let mut done = 0;
        std::iter::from_fn(move || {
            let left = words - done;
            let (buffer, offset) = ((at + done) / self.size, (at + done) % self.size);
            let len = left.min(self.size - offset);
            let piece = (self.buffers.get(buffer as usize)?, offset * 4, done..done + len);
            done += len;
            (left > 0).then_some(piece)
        })
    }

    fn write(&self, gpu: &Gpu, at: u64, words: &[u32]) {
        for (buffer, byte, range) in self.pieces(at, words.len() as u64) {
            let piece = &words[range.start as usize..range.end as usize];
            gpu.queue.write_buffer(buffer, byte, bytemuck::cast_slice(piece));
        }
    }
}

/// What lives on the device between plays.
#[derive(Default)]
pub(super) struct Memory {
    arena: Cut,
    params: Cut,
    cuts: Option<Cuts>,
    /// Counts the buffers that arena and parameters have had.
    generation: u64,
    /// Per store that is there its type and version.
    held: Vec<(Type, u64)>,
    /// The plan whose constants and whole parameters are in the arena.
    tenant: Option<u64>,
    staging: Growing,
    /// Words that go up, kept so that a play allocates little.
    numbers: Vec<u32>,
}

impl Memory {
    /// Makes room for a plan.
    pub(super) fn fit(&mut self, gpu: &Gpu, target: Target, compiled: &Compiled) -> Result<(), GpuError> {
        let size = target.binding / 4;
        // What is there already and larger is used as it is, if both still fit the bindings.
        let arena = compiled.layout.total().max(self.arena.words);
        let params = compiled.layout.params().max(self.params.words);
        let (arena, params) = match target.cuts(arena, params) {
            Ok(_) => (arena, params),
            Err(_) => {
                (self.arena, self.params) = (Cut::default(), Cut::default());
                (compiled.layout.total(), compiled.layout.params())
            }
        };
        self.cuts = Some(target.cuts(arena, params)?);
        let bytes = (arena + params) * 4;
        if gpu.options().budget.memory.is_some_and(|budget| bytes > budget) {
            return Err(GpuError::Memory { what: "the rows and parameters of the plan", bytes });
        }
        if self.arena.fit(gpu, "the rows of the plan", (arena, size))? {
            self.tenant = None;
            self.generation += 1;
        }
        if self.params.fit(gpu, "the parameters", (params, size))? {
            self.held.clear();
            self.generation += 1;
        }
        Ok(())
    }

    /// A number that changes when arena or parameters get other buffers.
    pub(super) const fn generation(&self) -> u64 {
        self.generation
    }

    /// The buffers of the arena, then those of the parameters.
    pub(super) fn bindings(&self) -> impl Iterator<Item = &wgpu::Buffer> {
        self.arena.buffers.iter().chain(&self.params.buffers)
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
        plan: &Plan,
        stores: &dyn Stores,
    ) -> Result<u64, GpuError> {
        let given = &plan.stores[..plan.given_stores()];
        if !self.held.iter().map(|held| held.0).eq(given.iter().map(|store| store.ty)) {
            self.held = given.iter().map(|store| (store.ty, 0)).collect();
        }
        let (mut at, mut bytes) = (0, 0);
        for (number, held) in self.held.iter_mut().enumerate() {
            let store = StoreId(number as u32);
            if held.1 != stores.version(store) {
                let words = as_stored(held.0.dtype, stores.values(store));
                self.params.write(gpu, at, &words);
                held.1 = stores.version(store);
                bytes += words.len() as u64 * 4;
            }
            at += words_of(held.0);
        }
        if bytes > 0 {
            // Those that kernels take whole are in the arena as well.
            self.tenant = None;
        }
        gpu.heard()?;
        Ok(bytes)
    }

    /// Writes bound numbers, and constants unless they are there; gives how many bytes went up.
    pub(super) fn bring_numbers(&mut self, gpu: &Gpu, compiled: &Compiled, bound: Bound<'_>) -> u64 {
        let numbers = &mut self.numbers;
        numbers.clear();
        numbers.resize(HEAD as usize, 0);
        if let Noise::On { seed, step } = bound.noise {
            let halves = [1, seed as u32, (seed >> 32) as u32, step as u32, (step >> 32) as u32];
            numbers[..5].copy_from_slice(&halves);
        }
        let words = (compiled.layout.bound_floats() - compiled.layout.bound_words()) as usize;
        numbers.extend_from_slice(&bound.words[..words]);
        let floats = compiled.layout.floats() as usize;
        numbers.extend_from_slice(bytemuck::cast_slice(&bound.floats[..floats]));
        if self.tenant.is_none() {
            numbers.extend_from_slice(&compiled.constants);
        }
        self.arena.write(gpu, 0, numbers);
        numbers.len() as u64 * 4
    }

    /// Makes room for what a plan keeps in the arena; says whether it is there still.
    pub(super) fn is_tenant(&mut self, identity: u64) -> bool {
        if self.tenant != Some(identity) {
            self.tenant = None;
        }
        self.tenant.is_some()
    }

    /// A plan was submitted whose constants and whole parameters are in the arena from now on.
    pub(super) fn settle(&mut self, identity: u64) {
        self.tenant = Some(identity);
    }

    /// The first commands of a play: gradients become zero.
    pub(super) fn begin(&self, gpu: &Gpu, compiled: &Compiled) -> wgpu::CommandEncoder {
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let (at, words) = compiled.layout.gradients();
        for (buffer, byte, range) in self.arena.pieces(at, words) {
            encoder.clear_buffer(buffer, byte, Some((range.end - range.start) * 4));
        }
        encoder
    }

    /// Submits what was encoded, and behind it a copy of a run of the arena's words.
    pub(super) fn submit(
        &mut self,
        gpu: &Gpu,
        mut encoder: wgpu::CommandEncoder,
        (at, words): (u64, u64),
    ) -> Result<wgpu::SubmissionIndex, GpuError> {
        self.staging.fit(gpu, "what comes back", words, Usage::MAP_READ | Usage::COPY_DST)?;
        let staging = self.staging.get();
        for (buffer, byte, range) in self.arena.pieces(at, words) {
            let bytes = (range.end - range.start) * 4;
            encoder.copy_buffer_to_buffer(buffer, byte, staging, range.start * 4, bytes);
        }
        let index = gpu.queue.submit([encoder.finish()]);
        gpu.heard()?;
        Ok(index)
    }

    /// Waits for a submission, and reads the words that it copied.
    pub(super) fn wait(
        &mut self,
        gpu: &Gpu,
        index: wgpu::SubmissionIndex,
        words: u64,
        patience: Duration,
    ) -> Result<Vec<u32>, GpuError> {
        let staging = self.staging.get();
        let (said, answer) = mpsc::channel();
        let slice = staging.slice(..(words * 4).max(4));
        slice.map_async(wgpu::MapMode::Read, move |mapped| {
            // Nobody may be waiting any more; then nobody wants to know.
            let _ = said.send(mapped);
        });
        let waited =
            gpu.device.poll(wgpu::PollType::Wait { submission_index: Some(index), timeout: Some(patience) });
        gpu.heard()?;
        match (waited, answer.try_recv()) {
            (Err(wgpu::PollError::Timeout), _) | (Ok(_), Err(_)) => {
                // A buffer that may still be mapped cannot be used again.
                self.staging = Growing::default();
                return Err(GpuError::Silent { seconds: patience.as_secs() });
            }
            (Err(error), _) => return Err(GpuError::Rejected { reason: error.to_string() }),
            (Ok(_), Ok(Err(error))) => return Err(GpuError::Rejected { reason: error.to_string() }),
            (Ok(_), Ok(Ok(()))) => {}
        }
        let read = {
            let view =
                slice.get_mapped_range().map_err(|error| GpuError::Rejected { reason: error.to_string() })?;
            bytemuck::pod_collect_to_vec(&view[..(words * 4) as usize])
        };
        staging.unmap();
        Ok(read)
    }
}

/// Values as the device stores them: halves two a word, the first in the lower bits.
fn as_stored(dtype: DType, values: &[f32]) -> Cow<'_, [u32]> {
    let half: fn(f32) -> u16 = match dtype {
        DType::F16 => f32_to_f16,
        DType::BF16 => f32_to_bf16,
        DType::F32 | DType::I32 | DType::U32 | DType::Bool => {
            return Cow::Borrowed(bytemuck::cast_slice(values));
        }
    };
    let upper = |pair: &[f32]| pair.get(1).map_or(0, |&x| u32::from(half(x)));
    Cow::Owned(values.chunks(2).map(|pair| u32::from(half(pair[0])) | (upper(pair) << 16)).collect())
}
