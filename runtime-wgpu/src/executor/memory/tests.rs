//! Tests of the shared memory.

use super::*;
use crate::options::Options;

#[test]
fn readback_works_after_an_uncaptured_error() {
    let Some(gpu) = Gpu::of_tests(Options::default()) else { return };
    let mut memory = Memory::of_tests(&gpu, &[1, 2, 3, 4]);
    let mut read = |between: fn(&Gpu)| {
        let encoder = gpu.encoder();
        let commands = memory.finish(&gpu, encoder, &[(0, 4)])?;
        let index = submit(&gpu, commands)?;
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

impl Memory {
    /// A memory whose arena holds exactly these words.
    pub(in crate::executor) fn of_tests(gpu: &Gpu, words: &[u32]) -> Self {
        let mut memory = Self { split: Some(Split::ONE), ..Self::default() };
        memory.arena.fit(gpu, "words", words.len() as u64, 1 << 14).expect("there is memory");
        memory.arena.write(gpu, 0, words);
        memory
    }
}
