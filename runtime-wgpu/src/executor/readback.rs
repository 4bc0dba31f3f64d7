//! Readback: a copy into a staging buffer that the host maps when the device is done.

use crate::device::Gpu;
use crate::error::GpuError;
use std::sync::mpsc;
use std::time::Duration;
use wgpu::BufferUsages as Usage;

/// Words that one readback reads at most: 64 MiB.
const MAX_STAGING: u64 = 16 << 20;

pub(crate) fn submit(gpu: &Gpu, commands: wgpu::CommandBuffer) -> Result<wgpu::SubmissionIndex, GpuError> {
    let index = gpu.queue.submit([commands]);
    gpu.take_error()?;
    Ok(index)
}

/// Waits for a submission and reads `words` words of the staging buffer that it wrote.
pub(crate) fn map_and_read(
    gpu: &Gpu,
    staging: &wgpu::Buffer,
    index: wgpu::SubmissionIndex,
    words: u64,
    timeout: Duration,
) -> Result<Vec<u32>, GpuError> {
    let (sender, receiver) = mpsc::channel();
    let slice = staging.slice(..(words * 4).max(4));
    slice.map_async(wgpu::MapMode::Read, move |mapped| {
        // The receiver is gone if the wait has timed out.
        let _ = sender.send(mapped);
    });
    let waited =
        gpu.device.poll(wgpu::PollType::Wait { submission_index: Some(index), timeout: Some(timeout) });
    gpu.take_error()?;
    let rejected = |reason: String| gpu.lost_or(GpuError::Rejected { reason });
    match (waited, receiver.try_recv()) {
        (Err(wgpu::PollError::Timeout), _) | (Ok(_), Err(_)) => {
            return Err(GpuError::Timeout { seconds: gpu.options().timeout.max(1) });
        }
        (Err(error), _) => return Err(rejected(error.to_string())),
        (Ok(_), Ok(Err(error))) => return Err(rejected(error.to_string())),
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

/// A range of a buffer: the buffer, the first byte, and the number of words.
pub(crate) type BufferRange<'a> = (&'a wgpu::Buffer, u64, u64);

/// Reads ranges of buffers, concatenated, through a temporary staging buffer.
pub(crate) fn read(gpu: &Gpu, ranges: &[BufferRange<'_>], timeout: Duration) -> Result<Vec<u32>, GpuError> {
    let total: u64 = ranges.iter().map(|range| range.2).sum();
    let capacity = total.min(MAX_STAGING);
    let mut words = Vec::new();
    if capacity == 0 {
        return Ok(words);
    }
    let staging = gpu.buffer("readback", capacity * 4, Usage::MAP_READ | Usage::COPY_DST)?;
    let mut left = ranges.iter().copied().filter(|range| range.2 > 0).peekable();
    let mut done = 0;
    while left.peek().is_some() {
        let (mut encoder, mut filled) = (gpu.encoder(), 0);
        while let Some(&(buffer, byte, count)) = left.peek().filter(|_| filled < capacity) {
            let part = (count - done).min(capacity - filled);
            encoder.copy_buffer_to_buffer(buffer, byte + done * 4, &staging, filled * 4, part * 4);
            (filled, done) = (filled + part, done + part);
            if done == count {
                left.next();
                done = 0;
            }
        }
        let index = submit(gpu, encoder.finish())?;
        words.extend(map_and_read(gpu, &staging, index, filled, timeout)?);
    }
    Ok(words)
}
