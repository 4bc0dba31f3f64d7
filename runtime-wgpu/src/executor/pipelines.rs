//! Pipelines by content: a program and the split of memory determine a pipeline, not the plan.

use super::build::{self, Build, Layouts, storage, uniform, vectors};
use super::cache::PipelineFile;
use crate::device::{Gpu, NUMBERS};
use crate::error::GpuError;
use crate::module::{Program, Split};
use crate::options::Arithmetic;
use autobatch_shaders::{Library, Numbers};
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of cached pipelines. Loaded plans keep theirs.
const MAX_PIPELINES: usize = 4096;

/// All pipelines and layouts so far. Dropping it saves the driver's cache.
pub(super) struct Pipelines {
    library: Library,
    layouts: HashMap<Split, Layouts>,
    by_content: HashMap<Split, HashMap<Arc<Program>, wgpu::ComputePipeline>>,
    /// Pipelines by the addresses of programs, which the entries keep alive: comparing texts is slow.
    by_address: HashMap<(usize, Split), (Arc<Program>, wgpu::ComputePipeline)>,
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
            by_content: HashMap::new(),
            by_address: HashMap::new(),
            made: 0,
            file: PipelineFile::open(gpu),
        }
    }

    /// The number of pipelines built so far.
    pub(super) fn made(&self) -> u32 {
        self.made
    }

    /// The layouts for a split of memory.
    pub(super) fn layouts(&mut self, gpu: &Gpu, split: Split) -> &Layouts {
        self.layouts.entry(split).or_insert_with(|| layouts(gpu, split))
    }

    /// The pipeline of a program. It is built on first use.
    pub(super) fn get(
        &mut self,
        gpu: &Gpu,
        program: &Arc<Program>,
        split: Split,
    ) -> Result<wgpu::ComputePipeline, GpuError> {
        let key = (Arc::as_ptr(program) as usize, split);
        if let Some((_, pipeline)) = self.by_address.get(&key) {
            return Ok(pipeline.clone());
        }
        let known = self.by_content.get(&split).and_then(|known| known.get(program)).cloned();
        let pipeline = match known {
            Some(pipeline) => pipeline,
            None => {
                let pipeline = self.make(gpu, program, split)?;
                let known = self.by_content.entry(split).or_default();
                if known.len() >= MAX_PIPELINES {
                    known.clear();
                }
                known.insert(Arc::clone(program), pipeline.clone());
                self.made += 1;
                pipeline
            }
        };
        if self.by_address.len() >= MAX_PIPELINES {
            self.by_address.clear();
        }
        self.by_address.insert(key, (Arc::clone(program), pipeline.clone()));
        Ok(pipeline)
    }

    fn make(
        &mut self,
        gpu: &Gpu,
        program: &Program,
        split: Split,
    ) -> Result<wgpu::ComputePipeline, GpuError> {
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
    build::layouts(gpu, &entries, immediates)
}
