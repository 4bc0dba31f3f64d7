//! What optimisers keep, on the device. The states of a parameter stand together in tiles of 64 elements:
//! those of its first state, those of its second, and so on. A tile lies in one buffer, so an update binds
//! one buffer of states, however many there are.

use super::super::Stores;
use super::super::fetch;
use super::runs::{Piece, Run};
use crate::compile::{TILE_ELEMENTS, Updates};
use crate::device::Gpu;
use crate::error::GpuError;
use autobatch_ir::plan::{StoreId, UpdatePlan};
use std::time::Duration;
use wgpu::BufferUsages as Usage;

/// Words that are put together at once on their way up: 16 MiB.
const AT_ONCE: u64 = 4 << 20;

/// A parameter's states.
struct Held {
    elements: u64,
    /// The states, and their versions that are here; none yet is 0.
    stores: Vec<(StoreId, u64)>,
    run: Run,
}

impl Held {
    /// Words of a tile.
    fn tile(&self) -> u64 {
        self.stores.len() as u64 * TILE_ELEMENTS
    }
}

/// All states.
#[derive(Default)]
pub(super) struct States {
    params: Vec<Held>,
    pub(super) buffers: Vec<wgpu::Buffer>,
}

impl States {
    /// Makes room for the states of an update plan; what is there stays if they are the same.
    pub(super) fn fit(
        &mut self,
        gpu: &Gpu,
        plan: &UpdatePlan,
        updates: &Updates,
        others: u64,
    ) -> Result<(), GpuError> {
        let elements = |store: usize| plan.stores[store].ty.shape.elements() as u64;
        let wanted = updates.states.iter().enumerate();
        let same = |(held, (param, states)): (&Held, (usize, &Vec<StoreId>))| {
            held.elements == elements(param) && held.stores.iter().map(|held| &held.0).eq(states)
        };
        if !self.buffers.is_empty()
            && self.params.len() == updates.states.len()
            && self.params.iter().zip(wanted.clone()).all(same)
        {
            return Ok(());
        }
        *self = Self::default();
        let size = gpu.binding() / 4;
        // Words of each buffer.
        let mut rooms: Vec<u64> = Vec::new();
        for (param, states) in wanted {
            let stores = states.iter().map(|&state| (state, 0)).collect();
            let mut held = Held { elements: elements(param), stores, run: Run::new() };
            let (tile, mut done) = (held.tile(), 0);
            let tiles = held.elements.div_ceil(TILE_ELEMENTS);
            while done < tiles && tile > 0 {
                let free = size.saturating_sub(rooms.last().copied().unwrap_or(size)) / tile;
                if free == 0 {
                    // A tile that is larger than a budget has a buffer of its own.
                    rooms.push(0);
                }
                let buffer = rooms.len() - 1;
                let taken = free.max(if free == 0 { (size / tile).max(1) } else { 0 }).min(tiles - done);
                let base = (rooms[buffer] as u32).wrapping_sub((done * tile) as u32);
                rooms[buffer] += taken * tile;
                done += taken;
                held.run.push(Piece { buffer, base, end: done * TILE_ELEMENTS });
            }
            self.params.push(held);
        }
        let what = "the optimiser's states";
        let bytes = others + rooms.iter().sum::<u64>() * 4;
        if gpu.options().budget.memory.is_some_and(|budget| bytes > budget) {
            *self = Self::default();
            return Err(GpuError::Memory { what, bytes });
        }
        let usage = Usage::STORAGE | Usage::COPY_DST | Usage::COPY_SRC;
        // A module binds one even if nothing is kept.
        rooms.resize(rooms.len().max(1), TILE_ELEMENTS);
        for words in rooms {
            match gpu.buffer(what, words * 4, usage) {
                Ok(buffer) => self.buffers.push(buffer),
                Err(error) => {
                    *self = Self::default();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// The run of a parameter's states.
    pub(super) fn run(&self, param: StoreId) -> &Run {
        &self.params[param.index()].run
    }

    /// Writes the states of every parameter of which one changed; gives how many bytes went up.
    pub(super) fn bring(&mut self, gpu: &Gpu, stores: &dyn Stores) -> u64 {
        let mut bytes = 0;
        let mut words: Vec<u32> = Vec::new();
        for held in &mut self.params {
            if held.stores.iter().all(|&(store, version)| stores.version(store) == version) {
                continue;
            }
            let (tile, mut first) = (held.tile(), 0);
            for piece in &held.run {
                let tiles = piece.end.div_ceil(TILE_ELEMENTS);
                while first < tiles {
                    let end = tiles.min(first + (AT_ONCE / tile).max(1));
                    words.clear();
                    for number in first..end {
                        let range = number * TILE_ELEMENTS..((number + 1) * TILE_ELEMENTS).min(held.elements);
                        for &(store, _) in &held.stores {
                            let values = &stores.values(store)[range.start as usize..range.end as usize];
                            words.extend_from_slice(bytemuck::cast_slice(values));
                            let rest = TILE_ELEMENTS as usize - values.len();
                            words.resize(words.len() + rest, 0);
                        }
                    }
                    let at = u64::from(piece.base.wrapping_add((first * tile) as u32));
                    gpu.queue.write_buffer(&self.buffers[piece.buffer], at * 4, bytemuck::cast_slice(&words));
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

    /// Says that a state changed here and is now of this version.
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
        patience: Duration,
    ) -> Result<Vec<(StoreId, Vec<f32>)>, GpuError> {
        let Some(held) = self.params.get(param.index()) else { return Ok(Vec::new()) };
        let (tile, mut first) = (held.tile(), 0);
        let mut stretches = Vec::new();
        for piece in &held.run {
            let end = piece.end.div_ceil(TILE_ELEMENTS);
            let at = u64::from(piece.base.wrapping_add((first * tile) as u32));
            stretches.push((&self.buffers[piece.buffer], at * 4, (end - first) * tile));
            first = end;
        }
        let words = fetch::read(gpu, &stretches, patience)?;
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
