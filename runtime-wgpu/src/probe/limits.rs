//! How much memory a device gives.

use super::Probe;
use crate::error::GpuError;
use wgpu::BufferUsages as Usage;

/// The memory that a device gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder {
    /// Bytes of all buffers together.
    pub bytes: u64,
    /// The reason why it gave no more: its own, or that the ladder ends there.
    pub end: String,
}

impl Probe {
    /// Asks for buffers of one binding until the device refuses, or until `most` bytes. Software devices take the memory of the
    /// system, so they are asked for little.
    ///
    /// # Errors
    /// If the device fails otherwise.
    pub fn memory(&self, most: u64) -> Result<Ladder, GpuError> {
        let most = if self.is_software() { most.min(256 << 20) } else { most };
        let step = self.gpu.binding().min(most);
        let (mut buffers, mut bytes) = (Vec::new(), 0);
        while bytes < most {
            match self.gpu.buffer("a step of the ladder", step, Usage::STORAGE) {
                Ok(buffer) => buffers.push(buffer),
                Err(error @ (GpuError::Memory { .. } | GpuError::TooLarge { .. })) => {
                    return Ok(Ladder { bytes, end: error.to_string() });
                }
                Err(error) => return Err(error),
            }
            bytes += step;
        }
        let end = format!("the ladder ends at {most} bytes");
        drop(buffers);
        self.gpu.free_unused();
        Ok(Ladder { bytes, end })
    }
}
