//! Pipelines by content: what a dispatch runs and how memory is cut decide, not the plan.

use super::cache::PipelineFile;
use crate::device::{Arithmetic, Gpu};
use crate::error::GpuError;
use crate::module::{Cuts, Program};
use autobatch_shaders::Library;
use pollster::block_on;
use std::collections::HashMap;

/// So many pipelines are kept; those that plans hold stay with them.
const MOST_PIPELINES: usize = 4096;

/// The layouts of one kind of cut.
pub(super) struct Layouts {
    pub(super) group: wgpu::BindGroupLayout,
    pipeline: wgpu::PipelineLayout,
}

/// Pipelines and layouts made so far. When they go, what the driver made of them is kept.
pub(super) struct Pipelines {
    library: Library,
    layouts: HashMap<Cuts, Layouts>,
    kept: HashMap<Cuts, HashMap<Program, wgpu::ComputePipeline>>,
    made: u32,
    file: PipelineFile,
}

impl Drop for Pipelines {
    fn drop(&mut self) {
        self.file.save(self.made);
    }
}

impl Pipelines {
    pub(super) fn new(gpu: &Gpu) -> Self {
        let exact = gpu.options().arithmetic == Arithmetic::Exact;
        Self {
            library: Library::new(exact),
            layouts: HashMap::new(),
            kept: HashMap::new(),
            made: 0,
            file: PipelineFile::open(gpu),
        }
    }

    /// How many were made so far.
    pub(super) fn made(&self) -> u32 {
        self.made
    }

    /// The layouts of a kind of cut.
    pub(super) fn layouts(&mut self, gpu: &Gpu, cuts: Cuts) -> &Layouts {
        self.layouts.entry(cuts).or_insert_with(|| layouts(gpu, cuts))
    }

    /// The pipeline of a program, made unless it is there.
    pub(super) fn get(
        &mut self,
        gpu: &Gpu,
        program: &Program,
        cuts: Cuts,
    ) -> Result<wgpu::ComputePipeline, GpuError> {
        if let Some(pipeline) = self.kept.get(&cuts).and_then(|kept| kept.get(program)) {
            return Ok(pipeline.clone());
        }
        let pipeline = self.make(gpu, program, cuts)?;
        let kept = self.kept.entry(cuts).or_default();
        if kept.len() >= MOST_PIPELINES {
            kept.clear();
        }
        kept.insert(program.clone(), pipeline.clone());
        self.made += 1;
        Ok(pipeline)
    }

    fn make(&mut self, gpu: &Gpu, program: &Program, cuts: Cuts) -> Result<wgpu::ComputePipeline, GpuError> {
        let text = program.text(&self.library, cuts);
        let name = program.template().name;
        let internal = gpu.device.push_error_scope(wgpu::ErrorFilter::Internal);
        let validation = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let module = gpu.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(name),
            source: wgpu::ShaderSource::Wgsl(text.into()),
        });
        self.layouts(gpu, cuts);
        let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(name),
            layout: Some(&self.layouts[&cuts].pipeline),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                // Every template writes group memory before it reads it.
                zero_initialize_workgroup_memory: false,
                ..wgpu::PipelineCompilationOptions::default()
            },
            cache: self.file.cache(),
        });
        let said = (block_on(validation.pop()), block_on(internal.pop()));
        gpu.heard()?;
        match said {
            (Some(error), _) | (_, Some(error)) => Err(GpuError::Shader {
                template: name.to_owned(),
                reason: error.to_string().trim().to_owned(),
            }),
            (None, None) => Ok(pipeline),
        }
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
