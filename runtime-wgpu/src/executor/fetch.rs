//! How words come back: a copy into a buffer that is mapped when the device is done.

use crate::device::Gpu;
use crate::error::GpuError;
use std::sync::mpsc;
use std::time::Duration;
use wgpu::BufferUsages as Usage;

/// Words that come back at once: 64 MiB.
const AT_ONCE: u64 = 16 << 20;

/// Submits what was encoded, whose last commands write the staging buffer, and reads that.
pub(super) fn fetched(
    gpu: &Gpu,
    staging: &wgpu::Buffer,
    encoder: wgpu::CommandEncoder,
    words: u64,
    patience: Duration,
) -> Result<Vec<u32>, GpuError> {
    let index = submitted(gpu, encoder.finish())?;
    mapped(gpu, staging, index, words, patience)
}

/// Submits what was encoded.
pub(super) fn submitted(gpu: &Gpu, commands: wgpu::CommandBuffer) -> Result<wgpu::SubmissionIndex, GpuError> {
    let index = gpu.queue.submit([commands]);
    gpu.heard()?;
    Ok(index)
}

/// Waits for a submission, and reads the staging buffer that it wrote.
pub(super) fn mapped(
    gpu: &Gpu,
    staging: &wgpu::Buffer,
    index: wgpu::SubmissionIndex,
    words: u64,
    patience: Duration,
) -> Result<Vec<u32>, GpuError> {
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
            return Err(GpuError::Silent { seconds: gpu.options().patience.max(1) });
        }
        (Err(error), _) => return Err(gpu.lost_or(GpuError::Rejected { reason: error.to_string() })),
        (Ok(_), Ok(Err(error))) => return Err(gpu.lost_or(GpuError::Rejected { reason: error.to_string() })),
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

/// A stretch of a buffer: the first byte, and how many words.
pub(super) type Stretch<'a> = (&'a wgpu::Buffer, u64, u64);

/// Reads stretches of buffers, one behind the other, with memory of its own for the while.
pub(super) fn read(gpu: &Gpu, stretches: &[Stretch<'_>], patience: Duration) -> Result<Vec<u32>, GpuError> {
    let total: u64 = stretches.iter().map(|stretch| stretch.2).sum();
    let room = total.min(AT_ONCE);
    let mut words = Vec::new();
    if room == 0 {
        return Ok(words);
    }
    let staging = gpu.buffer("what comes back", room * 4, Usage::MAP_READ | Usage::COPY_DST)?;
    let mut left = stretches.iter().copied().filter(|stretch| stretch.2 > 0).peekable();
    let mut done = 0;
    while left.peek().is_some() {
        let descriptor = wgpu::CommandEncoderDescriptor::default();
        let (mut encoder, mut full) = (gpu.device.create_command_encoder(&descriptor), 0);
        while let Some(&(buffer, byte, count)) = left.peek().filter(|_| full < room) {
            let part = (count - done).min(room - full);
            encoder.copy_buffer_to_buffer(buffer, byte + done * 4, &staging, full * 4, part * 4);
            (full, done) = (full + part, done + part);
            if done == count {
                left.next();
                done = 0;
            }
        }
        words.extend(fetched(gpu, &staging, encoder, full, patience)?);
    }
    Ok(words)
}
