//! Pipelines by content: what a dispatch runs and how memory is cut decide, not the plan.

use super::build::{self, Build, storage, uniform, vectors};
use super::cache::PipelineFile;
use crate::device::{Gpu, NUMBERS};
use crate::error::GpuError;
use crate::module::{Split, Program};
use crate::options::Arithmetic;
use autobatch_shaders::{Library, Numbers};
use std::collections::HashMap;
use std::sync::Arc;

/// So many pipelines are kept; those that plans hold stay with them.
const MAX_PIPELINES: usize = 4096;

/// The layouts of one kind of cut.
pub(super) struct Layouts {
    pub(super) group: wgpu::BindGroupLayout,
    pipeline: wgpu::PipelineLayout,
}

/// Pipelines and layouts made so far. When they go, what the driver made of them is kept.
pub(super) struct Pipelines {
    library: Library,
    layouts: HashMap<Split, Layouts>,
    kept: HashMap<Split, HashMap<Arc<Program>, wgpu::ComputePipeline>>,
    /// Those that were asked for, by the addresses of the programs that are kept alive here: texts are long.
    asked: HashMap<(usize, Split), (Arc<Program>, wgpu::ComputePipeline)>,
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
            library: Library::new(exact, gpu.joins()).with(gpu.numbers()),
            layouts: HashMap::new(),
            kept: HashMap::new(),
            asked: HashMap::new(),
            made: 0,
            file: PipelineFile::open(gpu),
        }
    }

    /// How many were made so far.
    pub(super) fn made(&self) -> u32 {
        self.made
    }

    /// The layouts of a kind of cut.
    pub(super) fn layouts(&mut self, gpu: &Gpu, split: Split) -> &Layouts {
        self.layouts.entry(split).or_insert_with(|| layouts(gpu, split))
    }

    /// The pipeline of a program, made unless it is there.
    pub(super) fn get(
        &mut self,
        gpu: &Gpu,
        program: &Arc<Program>,
        split: Split,
    ) -> Result<wgpu::ComputePipeline, GpuError> {
        let name = (Arc::as_ptr(program) as usize, split);
        if let Some((_, pipeline)) = self.asked.get(&name) {
            return Ok(pipeline.clone());
        }
        let known = self.kept.get(&split).and_then(|kept| kept.get(program)).cloned();
        let pipeline = match known {
            Some(pipeline) => pipeline,
            None => {
                let pipeline = self.make(gpu, program, split)?;
                let kept = self.kept.entry(split).or_default();
                if kept.len() >= MAX_PIPELINES {
                    kept.clear();
                }
                kept.insert(Arc::clone(program), pipeline.clone());
                self.made += 1;
                pipeline
            }
        };
        if self.asked.len() >= MAX_PIPELINES {
            self.asked.clear();
        }
        self.asked.insert(name, (Arc::clone(program), pipeline.clone()));
        Ok(pipeline)
    }

    fn make(&mut self, gpu: &Gpu, program: &Program, split: Split) -> Result<wgpu::ComputePipeline, GpuError> {
        let text = program.text(&self.library, split);
        let name = program.template().name;
        self.layouts(gpu, split);
        Build { gpu, name, text, cache: self.file.cache() }.on(&self.layouts[&split].pipeline)
    }
}

fn layouts(gpu: &Gpu, split: Split) -> Layouts {
    let mut entries = vec![storage(1, true)];
    let immediates = match gpu.numbers() {
        Numbers::Immediate => NUMBERS,
        Numbers::Uniform => {
            entries.push(uniform(0));
            0
        }
    };
    entries.extend((0..split.arena).map(|number| storage(2 + number, false)));
    entries.extend((0..split.params).map(|number| vectors(2 + split.arena + number)));
    let (group, pipeline) = build::layouts(gpu, &entries, immediates);
    Layouts { group, pipeline }
}
