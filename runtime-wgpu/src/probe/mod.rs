//! Probes of a device by small modules of their own: how it computes, how long it takes, and how much memory it gives.
//!
//! Reports of users need no other program. A probe never changes the state of an executor.

mod arithmetic;
mod limits;
mod speed;

pub use arithmetic::{Arithmetics, Special};
pub use limits::Ladder;
pub use speed::{Latencies, Roofs};

use crate::device::Gpu;
use crate::error::GpuError;
use crate::executor::build::{Build, array, bind_group, binding};
use crate::executor::readback::{map_and_read, submit};
use crate::options::Options;
use std::time::{Duration, Instant};
use wgpu::BufferUsages as Usage;

/// An open device for probes.
#[derive(Debug)]
pub struct Probe {
    gpu: Gpu,
}

/// A module with its buffers: `data`, which it reads and writes, at binding 0, and further arrays of words.
struct Kernel {
    pipeline: wgpu::ComputePipeline,
    group: wgpu::BindGroup,
    buffers: Vec<wgpu::Buffer>,
}

impl Probe {
    /// Opens a device.
    ///
    /// # Errors
    /// If no adapter matches, or the matching one gives no device.
    pub fn open(options: Options) -> Result<Self, GpuError> {
        Ok(Self { gpu: Gpu::open(options)? })
    }

    /// The device.
    #[must_use]
    pub const fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// True if the device is a program.
    fn is_software(&self) -> bool {
        self.gpu.facts().kind == "software"
    }

    /// Builds a module whose arrays have these numbers of words.
    fn kernel(&self, name: &'static str, text: String, words: &[u64]) -> Result<Kernel, GpuError> {
        let gpu = &self.gpu;
        let entries: Vec<_> = (0..words.len() as u32).map(array).collect();
        let (layout, pipeline) = Build { gpu, name, text, cache: None }.with_entries(&entries)?;
        let usage = Usage::STORAGE | Usage::COPY_DST | Usage::COPY_SRC;
        let buffer = |&words: &u64| gpu.buffer("a probe", words.max(4) * 4, usage);
        let buffers = words.iter().map(buffer).collect::<Result<Vec<_>, _>>()?;
        let bindings: Vec<_> =
            (0..).zip(&buffers).map(|(number, buffer)| binding(number, buffer, None)).collect();
        let group = bind_group(gpu, "a probe", &layout, &bindings);
        Ok(Kernel { pipeline, group, buffers })
    }

    /// Dispatches a kernel `times` times in one submission, waits, and returns the time that this took.
    fn run(&self, kernel: &Kernel, groups: u32, times: u32) -> Result<Duration, GpuError> {
        let gpu = &self.gpu;
        let mut encoder = gpu.encoder();
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&kernel.pipeline);
        pass.set_bind_group(0, &kernel.group, &[]);
        for _ in 0..times {
            pass.dispatch_workgroups(groups, 1, 1);
        }
        drop(pass);
        let commands = encoder.finish();
        let start = Instant::now();
        let submission = submit(gpu, commands)?;
        self.wait(submission)?;
        Ok(start.elapsed())
    }

    fn wait(&self, submission: wgpu::SubmissionIndex) -> Result<(), GpuError> {
        let gpu = &self.gpu;
        let timeout = Some(gpu.time_left(Instant::now()));
        let waited = gpu.device.poll(wgpu::PollType::Wait { submission_index: Some(submission), timeout });
        gpu.take_error()?;
        match waited {
            Ok(_) => Ok(()),
            Err(wgpu::PollError::Timeout) => Err(GpuError::Timeout { seconds: gpu.options().timeout.max(1) }),
            Err(error) => Err(gpu.lost_or(GpuError::Rejected { reason: error.to_string() })),
        }
    }

    /// The shortest of several times.
    fn fastest(
        &self,
        rounds: usize,
        mut time: impl FnMut(&Self) -> Result<Duration, GpuError>,
    ) -> Result<Duration, GpuError> {
        let mut fastest = Duration::MAX;
        for _ in 0..rounds {
            fastest = fastest.min(time(self)?);
        }
        Ok(fastest)
    }

    /// Writes words to the first array of a kernel.
    fn write(&self, kernel: &Kernel, words: &[u32]) {
        self.gpu.queue.write_buffer(&kernel.buffers[0], 0, bytemuck::cast_slice(words));
    }

    /// Reads the first words of the first array of a kernel.
    fn read(&self, kernel: &Kernel, words: u64) -> Result<Vec<u32>, GpuError> {
        let gpu = &self.gpu;
        let staging = gpu.buffer("readback", words.max(1) * 4, Usage::MAP_READ | Usage::COPY_DST)?;
        let mut encoder = gpu.encoder();
        encoder.copy_buffer_to_buffer(&kernel.buffers[0], 0, &staging, 0, words * 4);
        let submission = submit(gpu, encoder.finish())?;
        map_and_read(gpu, &staging, submission, words, gpu.time_left(Instant::now()))
    }
}

#[cfg(test)]
mod tests;
