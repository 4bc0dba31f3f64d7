//! Pipelines by content: what a dispatch runs and how memory is cut decide, not the plan.

use super::build::{self, Build, storage, uniform};
use crate::device::{Arithmetic, Gpu};
use crate::error::GpuError;
use crate::module::{Cuts, Program};
use autobatch_shaders::Library;
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
        let layout = &self.layouts(gpu, cuts).pipeline;
        let pipeline = Build { gpu, name, text }.on(layout)?;
        self.made.insert((program.clone(), cuts), pipeline);
        Ok(())
    }

    /// A pipeline that was prepared.
    pub(super) fn get(&self, program: &Program, cuts: Cuts) -> &wgpu::ComputePipeline {
        self.made.get(&(program.clone(), cuts)).expect("programs are prepared before they are played")
    }
}

fn layouts(gpu: &Gpu, cuts: Cuts) -> Layouts {
    let mut entries = vec![uniform(0), storage(1, true)];
    for number in 0..cuts.arena + cuts.params {
        entries.push(storage(2 + number, number >= cuts.arena));
    }
    let (group, pipeline) = build::layouts(gpu, &entries);
    Layouts { group, pipeline }
}
