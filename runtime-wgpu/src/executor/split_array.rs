//! Growable buffers, and arrays of words that are split across buffers where one binding cannot hold them.

use crate::device::Gpu;
use crate::error::GpuError;
use std::ops::Range;
use wgpu::BufferUsages as Usage;

/// Buffer sizes are multiples of this many words.
const GRAIN: u64 = 1 << 14;

/// A buffer that grows on demand.
#[derive(Default)]
pub(super) struct GrowableBuffer {
    pub(super) buffer: Option<wgpu::Buffer>,
    words: u64,
}

impl GrowableBuffer {
    /// Replaces the buffer if it is smaller than `words` words. Its contents are lost then.
    pub(super) fn fit(
        &mut self,
        gpu: &Gpu,
        what: &'static str,
        words: u64,
        usage: Usage,
    ) -> Result<(), GpuError> {
        if self.buffer.is_some() && self.words >= words {
            return Ok(());
        }
        let limit = gpu.limits.max_buffer_size / 4;
        let words = words.max(1).next_multiple_of(GRAIN).min(limit.max(words));
        // The old buffer is freed before the new one is created.
        self.buffer = None;
        self.buffer = Some(gpu.buffer(what, words * 4, usage)?);
        self.words = words;
        Ok(())
    }

    pub(super) fn get(&self) -> &wgpu::Buffer {
        self.buffer.as_ref().expect("memory is fitted before it is used")
    }
}

/// An array of words that is split across buffers of one binding each.
#[derive(Default)]
pub(super) struct SplitArray {
    pub(super) buffers: Vec<wgpu::Buffer>,
    pub(super) words: u64,
    /// Words of a full binding.
    pub(super) size: u64,
}

impl SplitArray {
    /// Replaces the array unless it has at least `words` words in bindings of `size` words. Returns true if it did.
    pub(super) fn fit(
        &mut self,
        gpu: &Gpu,
        what: &'static str,
        words: u64,
        size: u64,
    ) -> Result<bool, GpuError> {
        if !self.buffers.is_empty() && self.words >= words && self.size == size {
            return Ok(false);
        }
        let words = Self::allocated(words, size);
        // The old buffers are freed before the new ones are created.
        *self = Self::default();
        gpu.free_unused();
        let mut buffers = Vec::new();
        for start in (0..words).step_by(size as usize) {
            let bytes = size.min(words - start) * 4;
            let usage = Usage::STORAGE | Usage::COPY_DST | Usage::COPY_SRC;
            buffers.push(gpu.buffer(what, bytes, usage)?);
        }
        *self = Self { buffers, words, size };
        Ok(true)
    }

    /// Words that [`fit`](Self::fit) allocates for `words` words: more, but in no more bindings.
    pub(super) fn allocated(words: u64, size: u64) -> u64 {
        words.max(1).next_multiple_of(GRAIN).min(words.max(1).div_ceil(size) * size)
    }

    /// The parts of a range of words: the buffer, the first byte in it, and the words of the range that it holds.
    pub(super) fn pieces(
        &self,
        at: u64,
        words: u64,
    ) -> impl Iterator<Item = (&wgpu::Buffer, u64, Range<u64>)> {
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

    pub(super) fn write(&self, gpu: &Gpu, at: u64, words: &[u32]) {
        for (buffer, byte, range) in self.pieces(at, words.len() as u64) {
            let piece = &words[range.start as usize..range.end as usize];
            gpu.queue.write_buffer(buffer, byte, bytemuck::cast_slice(piece));
        }
    }

    /// Copies `words` words from `at` on to `to_at` of another array.
    pub(super) fn copy(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        at: u64,
        to: &Self,
        to_at: u64,
        words: u64,
    ) {
        for (from, byte, range) in self.pieces(at, words) {
            let mut done = 0;
            for (buffer, at, piece) in to.pieces(to_at + range.start, range.end - range.start) {
                let bytes = (piece.end - piece.start) * 4;
                encoder.copy_buffer_to_buffer(from, byte + done, buffer, at, bytes);
                done += bytes;
            }
        }
    }
}
