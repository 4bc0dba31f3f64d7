//! Pipelines by content: a program and the split of memory determine a pipeline, not the plan.

use super::build::{self, Build, Layouts, storage, uniform, vectors};
use super::cache::PipelineFile;
use crate::device::{Gpu, NUMBERS};
use crate::error::GpuError;
use crate::module::{Program, Split};
use crate::options::Arithmetic;
use autobatch_shaders::{Library, Numbers};
use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

/// Maximum number of threads that build pipelines.
const MAX_BUILDERS: usize = 16;
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
    /// Pipelines of updates.
    others: u32,
    file: PipelineFile,
}

impl Drop for Pipelines {
    fn drop(&mut self) {
        self.file.save(self.made + self.others);
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
            others: 0,
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

    /// The driver's cache, for pipelines that are built elsewhere.
    pub(super) fn cache(&self) -> Option<&wgpu::PipelineCache> {
        self.file.cache()
    }

    /// Saves the driver's cache if the number of pipelines has doubled since: a process may end without dropping this.
    /// `others` are pipelines that were built elsewhere.
    pub(super) fn save_if_doubled(&mut self, others: u32) {
        self.others += others;
        self.file.save_if_doubled(self.made + self.others);
    }

    /// The pipelines of programs. Missing ones are built first.
    pub(super) fn all(
        &mut self,
        gpu: &Gpu,
        programs: &[Arc<Program>],
        split: Split,
    ) -> Result<Vec<wgpu::ComputePipeline>, GpuError> {
        let is_missing = |program: &&Arc<Program>| !self.is_known(program, split);
        let missing: Vec<&Arc<Program>> = programs.iter().filter(is_missing).collect();
        for (program, built) in missing.iter().zip(self.build(gpu, &missing, split)) {
            let known = self.by_content.entry(split).or_default();
            if known.len() >= MAX_PIPELINES {
                known.clear();
            }
            known.insert(Arc::clone(program), built?);
            self.made += 1;
        }
        programs.iter().map(|program| self.get(gpu, program, split)).collect()
    }

    fn is_known(&self, program: &Arc<Program>, split: Split) -> bool {
        self.by_address.contains_key(&(Arc::as_ptr(program) as usize, split))
            || self.by_content.get(&split).is_some_and(|known| known.contains_key(program))
    }

    /// The pipeline of a known program.
    fn get(
        &mut self,
        gpu: &Gpu,
        program: &Arc<Program>,
        split: Split,
    ) -> Result<wgpu::ComputePipeline, GpuError> {
        let key = (Arc::as_ptr(program) as usize, split);
        if let Some((_, pipeline)) = self.by_address.get(&key) {
            return Ok(pipeline.clone());
        }
        let pipeline = match self.by_content.get(&split).and_then(|known| known.get(program)) {
            Some(pipeline) => pipeline.clone(),
            // A plan with more programs than are kept.
            None => self.build(gpu, &[program], split).swap_remove(0)?,
        };
        if self.by_address.len() >= MAX_PIPELINES {
            self.by_address.clear();
        }
        self.by_address.insert(key, (Arc::clone(program), pipeline.clone()));
        Ok(pipeline)
    }

    /// Builds pipelines on all cores, because drivers take tens of milliseconds for one.
    fn build(
        &mut self,
        gpu: &Gpu,
        programs: &[&Arc<Program>],
        split: Split,
    ) -> Vec<Result<wgpu::ComputePipeline, GpuError>> {
        self.layouts(gpu, split);
        let Self { library, layouts, file, .. } = &*self;
        let layout = &layouts[&split].pipeline;
        let one = |program: &Arc<Program>| {
            let (name, text) = (program.template().name, program.text(library, split));
            Build { gpu, name, text, cache: file.cache() }.on(layout)
        };
        let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_BUILDERS);
        let share = programs.len().div_ceil(threads).max(1);
        let mut shares = programs.chunks(share);
        let Some(own) = shares.next() else { return Vec::new() };
        thread::scope(|scope| {
            let build =
                |share: &[&Arc<Program>]| share.iter().map(|program| one(program)).collect::<Vec<_>>();
            let others: Vec<_> = shares.map(|share| scope.spawn(move || build(share))).collect();
            let mut built = build(own);
            for other in others {
                built.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            built
        })
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
