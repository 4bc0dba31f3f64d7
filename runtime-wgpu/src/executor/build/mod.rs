//! Building pipelines: a module, its layouts, and what a driver says to them.

use crate::compile::VECTOR;
use crate::device::Gpu;
use crate::error::GpuError;
use pollster::block_on;
use std::num::NonZeroU64;

/// A pipeline to be.
pub(super) struct Build<'a> {
    pub(super) gpu: &'a Gpu,
    /// The template.
    pub(super) name: &'static str,
    pub(super) text: String,
    /// What the driver made of pipelines before.
    pub(super) cache: Option<&'a wgpu::PipelineCache>,
}

impl Build<'_> {
    /// The pipeline of a layout.
    pub(super) fn on(self, layout: &wgpu::PipelineLayout) -> Result<wgpu::ComputePipeline, GpuError> {
        let Self { gpu, name, text, cache } = self;
        let internal = gpu.device.push_error_scope(wgpu::ErrorFilter::Internal);
        let validation = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let module = gpu.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(name),
            source: wgpu::ShaderSource::Wgsl(text.into()),
        });
        let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(name),
            layout: Some(layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                // Every template writes group memory before it reads it.
                zero_initialize_workgroup_memory: false,
                ..wgpu::PipelineCompilationOptions::default()
            },
            cache,
        });
        let said = (block_on(validation.pop()), block_on(internal.pop()));
        gpu.take_error()?;
        if let (Some(error), _) | (_, Some(error)) = said {
            return Err(GpuError::Shader {
                template: name.to_owned(),
                reason: error.to_string().trim().to_owned(),
            });
        }
        Ok(pipeline)
    }

    /// The pipeline of one group of bindings, and the group's layout.
    pub(super) fn with_entries(
        self,
        entries: &[wgpu::BindGroupLayoutEntry],
    ) -> Result<(wgpu::BindGroupLayout, wgpu::ComputePipeline), GpuError> {
        let (group, layout) = layouts(self.gpu, entries, 0);
        Ok((group, self.on(&layout)?))
    }
}

/// The layouts of one group of bindings, and of so many bytes of immediates.
pub(super) fn layouts(
    gpu: &Gpu,
    entries: &[wgpu::BindGroupLayoutEntry],
    immediates: u32,
) -> (wgpu::BindGroupLayout, wgpu::PipelineLayout) {
    let label = Some("a dispatch");
    let group = gpu.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label, entries });
    let pipeline = gpu.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label,
        bind_group_layouts: &[Some(&group)],
        immediate_size: immediates,
    });
    (group, pipeline)
}

fn entry(
    number: u32,
    ty: wgpu::BufferBindingType,
    dynamic: bool,
    least: Option<u64>,
) -> wgpu::BindGroupLayoutEntry {
    wgpu::BindGroupLayoutEntry {
        binding: number,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty,
            has_dynamic_offset: dynamic,
            min_binding_size: least.and_then(NonZeroU64::new),
        },
        count: None,
    }
}

/// The layout of a uniform whose offset a dispatch says.
pub(super) fn uniform(number: u32) -> wgpu::BindGroupLayoutEntry {
    entry(number, wgpu::BufferBindingType::Uniform, true, None)
}

/// The layout of an array of words. Its least size is said here, so that no dispatch asks for it.
pub(super) fn storage(number: u32, read_only: bool) -> wgpu::BindGroupLayoutEntry {
    entry(number, wgpu::BufferBindingType::Storage { read_only }, false, Some(4))
}

/// The layout of an array of vectors that is only read.
pub(super) fn vectors(number: u32) -> wgpu::BindGroupLayoutEntry {
    entry(number, wgpu::BufferBindingType::Storage { read_only: true }, false, Some(VECTOR * 4))
}

/// A buffer in a group: all of it, or so many bytes from an offset that a dispatch says.
pub(super) fn binding(number: u32, buffer: &wgpu::Buffer, bytes: Option<u64>) -> wgpu::BindGroupEntry<'_> {
    let size = bytes.and_then(NonZeroU64::new);
    let resource = wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset: 0, size });
    wgpu::BindGroupEntry { binding: number, resource }
}

#[cfg(test)]
mod tests;
