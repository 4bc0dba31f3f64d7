//! Pipelines by content: what a dispatch runs and how memory is cut decide, not the plan.

use crate::device::{Arithmetic, Gpu};
use crate::error::GpuError;
use crate::module::{Cuts, Program};
use autobatch_shaders::Library;
use pollster::block_on;
use std::collections::HashMap;

/// The layouts of one kind of cut.
pub(super) struct Layouts {
    pub(super) group: wgpu::BindGroupLayout,
    pipeline: wgpu::PipelineLayout,
}

/// Pipelines and layouts made so far.
pub(super) struct Pipelines {
    library: Library,
    layouts: HashMap<Cuts, Layouts>,
    made: HashMap<(Program, Cuts), wgpu::ComputePipeline>,
}

impl Pipelines {
    pub(super) fn new(gpu: &Gpu) -> Self {
        let exact = gpu.options().arithmetic == Arithmetic::Exact;
        Self { library: Library::new(exact), layouts: HashMap::new(), made: HashMap::new() }
    }

    /// How many were made so far.
    pub(super) fn made(&self) -> u32 {
        self.made.len() as u32
    }

    /// The layouts of a kind of cut.
    pub(super) fn layouts(&mut self, gpu: &Gpu, cuts: Cuts) -> &Layouts {
        self.layouts.entry(cuts).or_insert_with(|| layouts(gpu, cuts))
    }

    /// Makes a pipeline, unless it is there.
    pub(super) fn prepare(&mut self, gpu: &Gpu, program: &Program, cuts: Cuts) -> Result<(), GpuError> {
        if self.made.contains_key(&(program.clone(), cuts)) {
            return Ok(());
        }
        let text = program.text(&self.library, cuts);
        let name = program.template().name;
        let internal = gpu.device.push_error_scope(wgpu::ErrorFilter::Internal);
        let validation = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let module = gpu.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(name),
            source: wgpu::ShaderSource::Wgsl(text.into()),
        });
        let layout = &self.layouts(gpu, cuts).pipeline;
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
            cache: None,
        });
        let said = (block_on(validation.pop()), block_on(internal.pop()));
        gpu.heard()?;
        if let (Some(error), _) | (_, Some(error)) = said {
            return Err(GpuError::Shader {
                template: name.to_owned(),
                reason: error.to_string().trim().to_owned(),
            });
        }
        self.made.insert((program.clone(), cuts), pipeline);
        Ok(())
    }

    /// A pipeline that was prepared.
    pub(super) fn get(&self, program: &Program, cuts: Cuts) -> &wgpu::ComputePipeline {
        self.made.get(&(program.clone(), cuts)).expect("programs are prepared before they are played")
    }
}

fn layouts(gpu: &Gpu, cuts: Cuts) -> Layouts {
    let entry = |binding: u32, ty: wgpu::BufferBindingType, dynamic: bool| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: dynamic, min_binding_size: None },
        count: None,
    };
    let storage = |read_only| wgpu::BufferBindingType::Storage { read_only };
    let mut entries = vec![entry(0, wgpu::BufferBindingType::Uniform, true), entry(1, storage(true), false)];
    for number in 0..cuts.arena + cuts.params {
        entries.push(entry(2 + number, storage(number >= cuts.arena), false));
    }
    let group = gpu.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some("a dispatch"),
        entries: &entries,
    });
    let pipeline = gpu.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some("a dispatch"),
        bind_group_layouts: &[Some(&group)],
        immediate_size: 0,
    });
    Layouts { group, pipeline }
}
