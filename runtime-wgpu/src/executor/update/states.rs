//! Optimiser states on the device, interleaved in tiles: 64 elements of a parameter's first state, 64 of its second,
//! and so on. A tile lies in one buffer, so an update binds one buffer of states.

use super::super::Stores;
use super::super::readback;
use super::runs::{BufferRun, Segment};
use crate::compile::{TILE_ELEMENTS, Updates};
use crate::device::Gpu;
use crate::error::GpuError;
use autobatch_ir::plan::{StoreId, UpdatePlan};
use std::time::Duration;
use wgpu::BufferUsages as Usage;

/// Words that one upload interleaves: 16 MiB.
const UPLOAD_WORDS: u64 = 4 << 20;

struct Held {
    elements: u64,
    /// The states and their uploaded versions; 0 before the first upload.
    stores: Vec<(StoreId, u64)>,
    run: BufferRun,
}

impl Held {
    /// Words of a tile.
    fn tile(&self) -> u64 {
        self.stores.len() as u64 * TILE_ELEMENTS
    }

    /// Places its tiles behind those of other parameters, in buffers of at most `size` words. A tile that is larger
    /// than that gets a buffer of its own. `filled` are the words of each buffer so far.
    fn place(&mut self, size: u64, filled: &mut Vec<u64>) {
        let (tile, mut done) = (self.tile(), 0);
        let tiles = self.elements.div_ceil(TILE_ELEMENTS);
        while done < tiles && tile > 0 {
            let mut free = size.saturating_sub(filled.last().copied().unwrap_or(size)) / tile;
            if free == 0 {
                filled.push(0);
                free = (size / tile).max(1);
            }
            let buffer = filled.len() - 1;
            let taken = free.min(tiles - done);
            let base = (filled[buffer] as u32).wrapping_sub((done * tile) as u32);
            filled[buffer] += taken * tile;
            done += taken;
            self.run.push(Segment { buffer, base, end: done * TILE_ELEMENTS });
        }
    }

    /// The words of some of its tiles, padded with zeros.
    fn interleave(&self, tiles: std::ops::Range<u64>, stores: &dyn Stores, words: &mut Vec<u32>) {
        words.clear();
        for number in tiles {
            let range = number * TILE_ELEMENTS..((number + 1) * TILE_ELEMENTS).min(self.elements);
            for &(store, _) in &self.stores {
                let values = &stores.values(store)[range.start as usize..range.end as usize];
                words.extend_from_slice(bytemuck::cast_slice(values));
                words.resize(words.len() + TILE_ELEMENTS as usize - values.len(), 0);
            }
        }
    }
}

/// The states of all parameters.
#[derive(Default)]
pub(super) struct States {
    params: Vec<Held>,
    pub(super) buffers: Vec<wgpu::Buffer>,
}

impl States {
    /// Makes room for the states of an update plan. The current ones stay if the plan has the same. `others` are the
    /// bytes of other memory that count towards the budget.
    pub(super) fn fit(
        &mut self,
        gpu: &Gpu,
        plan: &UpdatePlan,
        updates: &Updates,
        others: u64,
    ) -> Result<(), GpuError> {
        let elements = |store: usize| plan.stores[store].ty.shape.elements() as u64;
        let same = |(held, (param, states)): (&Held, (usize, &Vec<StoreId>))| {
            held.elements == elements(param) && held.stores.iter().map(|held| &held.0).eq(states)
        };
        if !self.buffers.is_empty()
            && self.params.len() == updates.states.len()
            && self.params.iter().zip(updates.states.iter().enumerate()).all(same)
        {
            return Ok(());
        }
        *self = Self::default();
        let mut created = Self::default();
        let mut sizes: Vec<u64> = Vec::new();
        for (param, states) in updates.states.iter().enumerate() {
            let stores = states.iter().map(|&state| (state, 0)).collect();
            let mut held = Held { elements: elements(param), stores, run: BufferRun::new() };
            held.place(gpu.binding() / 4, &mut sizes);
            created.params.push(held);
        }
        let what = "the optimiser's states";
        let bytes = others + sizes.iter().sum::<u64>() * 4;
        if gpu.options().budget.memory.is_some_and(|budget| bytes > budget) {
            return Err(GpuError::Memory { what, bytes });
        }
        let usage = Usage::STORAGE | Usage::COPY_DST | Usage::COPY_SRC;
        // Modules bind a buffer of states even if there are none.
        sizes.resize(sizes.len().max(1), TILE_ELEMENTS);
        for words in sizes {
            created.buffers.push(gpu.buffer(what, words * 4, usage)?);
        }
        *self = created;
        Ok(())
    }

    /// The segments of a parameter's states.
    pub(super) fn run(&self, param: StoreId) -> &BufferRun {
        &self.params[param.index()].run
    }

    /// Uploads the states of every parameter of which one changed. Returns the uploaded bytes.
    pub(super) fn upload(&mut self, gpu: &Gpu, stores: &dyn Stores) -> u64 {
        let mut bytes = 0;
        let mut words: Vec<u32> = Vec::new();
        for held in &mut self.params {
            if held.stores.iter().all(|&(store, version)| stores.version(store) == version) {
                continue;
            }
            let (tile, mut first) = (held.tile(), 0);
            for segment in &held.run {
                let tiles = segment.end.div_ceil(TILE_ELEMENTS);
                while first < tiles {
                    let end = tiles.min(first + (UPLOAD_WORDS / tile).max(1));
                    held.interleave(first..end, stores, &mut words);
                    let at = u64::from(segment.base.wrapping_add((first * tile) as u32));
                    let buffer = &self.buffers[segment.buffer];
                    gpu.queue.write_buffer(buffer, at * 4, bytemuck::cast_slice(&words));
                    bytes += words.len() as u64 * 4;
                    first = end;
                }
            }
            for (store, version) in &mut held.stores {
                *version = stores.version(*store);
            }
        }
        bytes
    }

    /// Notes the version of a state that the device changed.
    pub(super) fn renew(&mut self, store: StoreId, version: u64) {
        let all = self.params.iter_mut().flat_map(|held| &mut held.stores);
        if let Some(held) = all.into_iter().find(|held| held.0 == store) {
            held.1 = version;
        }
    }

    /// Reads the states of a parameter.
    pub(super) fn read(
        &self,
        gpu: &Gpu,
        param: StoreId,
        timeout: Duration,
    ) -> Result<Vec<(StoreId, Vec<f32>)>, GpuError> {
        let Some(held) = self.params.get(param.index()) else { return Ok(Vec::new()) };
        let (tile, mut first) = (held.tile(), 0);
        let mut ranges = Vec::new();
        for segment in &held.run {
            let end = segment.end.div_ceil(TILE_ELEMENTS);
            let at = u64::from(segment.base.wrapping_add((first * tile) as u32));
            ranges.push((&self.buffers[segment.buffer], at * 4, (end - first) * tile));
            first = end;
        }
        let words = readback::read(gpu, &ranges, timeout)?;
        let values = |number: usize| -> Vec<f32> {
            let start = number * TILE_ELEMENTS as usize;
            let tiles = words.chunks(tile as usize).map(|tile| &tile[start..start + TILE_ELEMENTS as usize]);
            let mut values: Vec<f32> = tiles.flatten().map(|&word| f32::from_bits(word)).collect();
            values.truncate(held.elements as usize);
            values
        };
        Ok(held.stores.iter().enumerate().map(|(number, held)| (held.0, values(number))).collect())
    }
}
