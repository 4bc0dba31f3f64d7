//! Commands written ahead: while the device plays a plan for the second time in a row, the host, which would
//! only wait, writes the commands of the next play. If that is of the same plan, nothing is left but to submit
//! them; else they are dropped, unused. They name buffers, so they are used only while these are the ones that
//! a play would name.

use super::memory::Memory;
use super::plans::Loaded;
use crate::compile::Compiled;
use crate::device::Gpu;
use crate::error::GpuError;
use crate::module::Cuts;
use std::sync::Arc;

/// The commands of a play that may come.
pub(super) struct Ahead {
    /// Of this plan on the device: a plan that left and came back is another one, with other tables.
    compiled: Arc<Compiled>,
    generation: u64,
    cuts: Cuts,
    staging: wgpu::Buffer,
    commands: wgpu::CommandBuffer,
}

impl Ahead {
    /// Writes the commands of a plan whose constants stay in the arena, all of them one submission.
    pub(super) fn write(gpu: &Gpu, memory: &mut Memory, loaded: &Loaded) -> Result<Self, GpuError> {
        let compiled = Arc::clone(&loaded.compiled);
        let mut encoder = memory.begin(gpu, &compiled);
        loaded.encode(&mut encoder, compiled.prologue as usize..compiled.dispatches.len());
        let commands = memory.finish(gpu, encoder, &compiled.back)?;
        let (generation, cuts, staging) = (memory.generation(), memory.cuts(), memory.staging().clone());
        Ok(Self { compiled, generation, cuts, staging, commands })
    }

    /// Whether they play this plan.
    pub(super) fn is_of(&self, compiled: &Arc<Compiled>) -> bool {
        Arc::ptr_eq(&self.compiled, compiled)
    }

    /// The commands, if they name the memory that there is now.
    pub(super) fn fitting(self, memory: &Memory) -> Option<wgpu::CommandBuffer> {
        let same = (self.generation, self.cuts) == (memory.generation(), memory.cuts());
        (same && memory.has_staging(&self.staging)).then_some(self.commands)
    }
}
