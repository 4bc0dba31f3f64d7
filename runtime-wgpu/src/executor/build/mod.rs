//! Builds pipelines: a module, its layouts, and the driver's errors.

use crate::compile::VECTOR;
use crate::device::Gpu;
use crate::error::GpuError;
use autobatch_shaders::Library;
use pollster::block_on;
use std::num::NonZeroU64;

/// The device, the library and the driver's cache, which pipelines share.
#[derive(Clone, Copy)]
pub(crate) struct Builder<'a> {
    pub(crate) gpu: &'a Gpu,
    pub(crate) library: &'a Library,
    pub(crate) cache: Option<&'a wgpu::PipelineCache>,
}

pub(crate) struct Build<'a> {
    pub(crate) gpu: &'a Gpu,
    pub(crate) name: &'static str,
    pub(crate) text: String,
    pub(crate) cache: Option<&'a wgpu::PipelineCache>,
}

impl Build<'_> {
    /// Builds the pipeline for a layout.
    pub(crate) fn on(self, layout: &wgpu::PipelineLayout) -> Result<wgpu::ComputePipeline, GpuError> {
        let Self { gpu, name, text, cache } = self;
        let internal = gpu.device.push_error_scope(wgpu::ErrorFilter::Internal);
        let validation = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let descriptor =
            wgpu::ShaderModuleDescriptor { label: Some(name), source: wgpu::ShaderSource::Wgsl(text.into()) };
        let mut checks = wgpu::ShaderRuntimeChecks::checked();
        checks.force_loop_bounding = gpu.options().counted_loops;
        // SAFETY: the only check that may be missing concerns loops without end. Every loop of the templates counts in
        // steps of one sign towards a bound that it does not change. Bounds are words of records and tables: sizes of rows,
        // lists and parts, which address fewer than 2^32 words of a buffer, so no counter wraps around. Generated code has
        // no loops of its own but those of `Products` and `WgradTile`, which have the same form.
        let module = unsafe { gpu.device.create_shader_module_trusted(descriptor, checks) };
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
        let errors = (block_on(validation.pop()), block_on(internal.pop()));
        gpu.take_error()?;
        if let (Some(error), _) | (_, Some(error)) = errors {
            return Err(GpuError::Shader {
                template: name.to_owned(),
                reason: error.to_string().trim().to_owned(),
            });
        }
        Ok(pipeline)
    }

    /// Builds the pipeline for one bind group. Returns the group's layout as well.
    pub(crate) fn with_entries(
        self,
        entries: &[wgpu::BindGroupLayoutEntry],
    ) -> Result<(wgpu::BindGroupLayout, wgpu::ComputePipeline), GpuError> {
        let Layouts { group, pipeline } = layouts(self.gpu, entries, 0);
        Ok((group, self.on(&pipeline)?))
    }
}

/// The layouts of a bind group, and of pipelines with one such group.
pub(crate) struct Layouts {
    pub(crate) group: wgpu::BindGroupLayout,
    pub(crate) pipeline: wgpu::PipelineLayout,
}

/// Creates layouts for these entries and `immediates` bytes of immediates.
pub(crate) fn layouts(gpu: &Gpu, entries: &[wgpu::BindGroupLayoutEntry], immediates: u32) -> Layouts {
    let label = Some("a dispatch");
    let group = gpu.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label, entries });
    let pipeline = gpu.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label,
        bind_group_layouts: &[Some(&group)],
        immediate_size: immediates,
    });
    Layouts { group, pipeline }
}

pub(crate) fn bind_group(
    gpu: &Gpu,
    label: &str,
    layout: &wgpu::BindGroupLayout,
    entries: &[wgpu::BindGroupEntry<'_>],
) -> wgpu::BindGroup {
    gpu.device.create_bind_group(&wgpu::BindGroupDescriptor { label: Some(label), layout, entries })
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

/// A uniform buffer with a dynamic offset.
pub(crate) fn uniform(number: u32) -> wgpu::BindGroupLayoutEntry {
    entry(number, wgpu::BufferBindingType::Uniform, true, None)
}

/// An array of words. Its minimum size is given here, so that no dispatch checks it.
pub(crate) fn storage(number: u32, read_only: bool) -> wgpu::BindGroupLayoutEntry {
    entry(number, wgpu::BufferBindingType::Storage { read_only }, false, Some(4))
}

/// An array whose elements the module names. Each dispatch checks its size.
pub(crate) fn array(number: u32) -> wgpu::BindGroupLayoutEntry {
    entry(number, wgpu::BufferBindingType::Storage { read_only: false }, false, None)
}

pub(crate) fn vectors(number: u32) -> wgpu::BindGroupLayoutEntry {
    entry(number, wgpu::BufferBindingType::Storage { read_only: true }, false, Some(VECTOR * 4))
}

/// A buffer in a bind group: all of it, or `bytes` bytes from a dynamic offset.
pub(crate) fn binding(number: u32, buffer: &wgpu::Buffer, bytes: Option<u64>) -> wgpu::BindGroupEntry<'_> {
    let size = bytes.and_then(NonZeroU64::new);
    let resource = wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset: 0, size });
    wgpu::BindGroupEntry { binding: number, resource }
}

#[cfg(test)]
mod tests;
