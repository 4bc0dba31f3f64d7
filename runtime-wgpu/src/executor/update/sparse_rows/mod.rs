//! The sparse rows of table gradients: for each table the rows that lookups named, in order, and for each row the
//! lookup that owns it. Both lists stay on the device; the host knows only how many lookups there are.
//!
//! A longer list is another [`Listing`]. It becomes current when its commands are submitted, so a failure keeps the old
//! one.

use super::super::memory::Memory;
use super::super::split_array::SplitArray;
use super::gradients::ArenaGradients;
use crate::compile::SparseTable;
use crate::device::Gpu;
use crate::error::GpuError;
use crate::executor::build::{Build, Builder, bind_group, binding, storage, uniform};
use crate::module::{GROUP, Split};
use autobatch_ir::plan::StoreId;
use autobatch_shaders::SPARSE_ROWS;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use wgpu::BufferUsages as Usage;

/// Words of a dispatch's arguments.
const ARG_WORDS: u64 = 12;
/// Maximum number of groups in a dimension.
const MAX_GROUPS: u32 = 65_535;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Table {
    rows: u32,
    /// The first word of its owners.
    owners: u32,
    lookups: Vec<Range<u32>>,
}

/// A list of sparse rows.
#[derive(Clone, Default)]
pub(super) struct Listing {
    /// Tables whose sparse rows are listed, by parameter.
    tables: BTreeMap<u32, Table>,
    /// Words of owners. The list of rows follows them.
    owners: u32,
    listed: u32,
    rows: Option<wgpu::Buffer>,
}

/// The current list, and the pipelines that write lists.
#[derive(Default)]
pub(super) struct SparseRows {
    /// The list for the gradients that runs accumulate now.
    pub(super) listing: Arc<Listing>,
    args: Option<wgpu::Buffer>,
    /// By the number of arena bindings and their size.
    pipelines: BTreeMap<(u32, u32), (wgpu::BindGroupLayout, wgpu::ComputePipeline)>,
}

/// The dispatches that append lookups to a list.
struct Dispatches {
    args: Vec<u32>,
    /// Words from one dispatch's arguments to the next.
    stride: u64,
    groups: Vec<u32>,
}

impl Listing {
    /// The lookups of a table as ranges of the list, or `None` if the update must visit all rows.
    pub(super) fn lookups(&self, param: StoreId) -> Option<&[Range<u32>]> {
        self.tables.get(&param.0).map(|table| table.lookups.as_slice())
    }

    /// The first word of the list.
    pub(super) fn list_at(&self) -> u32 {
        self.owners
    }

    /// The first word of the owners of a table's rows.
    pub(super) fn owners_at(&self, param: StoreId) -> u32 {
        self.tables.get(&param.0).map_or(0, |table| table.owners)
    }

    /// The buffer of the owners and the list.
    pub(super) fn rows(&self) -> &wgpu::Buffer {
        self.rows.as_ref().expect("it is fitted before it is used")
    }

    /// An empty list.
    fn of(tables: &[SparseTable], rows: Option<wgpu::Buffer>) -> Self {
        let mut listing = Self { rows, ..Self::default() };
        for table in tables {
            let entry = Table { rows: table.rows, owners: listing.owners, lookups: Vec::new() };
            listing.owners += table.rows;
            listing.tables.insert(table.param.index() as u32, entry);
        }
        listing
    }

    /// This list without the tables that are not among `tables`: some of their rows are unknown, so updates visit all.
    fn restricted_to(&self, tables: &[SparseTable]) -> Self {
        let known: HashSet<u32> = tables.iter().map(|table| table.param.index() as u32).collect();
        let mut listing = self.clone();
        listing.tables.retain(|param, _| known.contains(param));
        listing
    }

    /// Appends the lookups of tables. Returns the dispatches that write them.
    fn append(&mut self, gpu: &Gpu, tables: &[SparseTable]) -> Result<Dispatches, GpuError> {
        let stride = u64::from(gpu.limits.min_uniform_buffer_offset_alignment).max(ARG_WORDS * 4) / 4;
        let (mut args, mut groups) = (Vec::new(), Vec::new());
        for table in tables {
            let Some(entry) = self.tables.get_mut(&(table.param.index() as u32)) else { continue };
            for &(indices, lookups) in &table.indices {
                let start = args.len();
                args.extend(indices);
                args.extend([self.owners, entry.owners, self.listed, lookups, entry.rows - 1]);
                args.resize(start + stride as usize, 0);
                let end = self.listed.checked_add(lookups);
                let end = end.filter(|end| end.checked_add(self.owners).is_some());
                let all = u64::from(self.listed) + u64::from(lookups);
                let end = end.ok_or(GpuError::beyond_addresses("the sparse rows", all))?;
                entry.lookups.push(self.listed..end);
                self.listed = end;
                groups.push(u64::from(lookups).div_ceil(GROUP) as u32);
            }
        }
        Ok(Dispatches { args, stride, groups })
    }

    /// Makes room for the list. The first `kept` words keep their contents.
    fn grow(&mut self, gpu: &Gpu, kept: u32, encoder: &mut wgpu::CommandEncoder) -> Result<(), GpuError> {
        let words = u64::from(self.owners) + u64::from(self.listed);
        let old = self.rows.take_if(|rows| rows.size() < words * 4);
        if self.rows.is_none() {
            let rows = row_buffer(gpu, words.next_power_of_two().max(64))?;
            if let Some(old) = old.filter(|_| kept > 0) {
                encoder.copy_buffer_to_buffer(&old, 0, &rows, 0, u64::from(kept) * 4);
            }
            self.rows = Some(rows);
        }
        Ok(())
    }
}

impl SparseRows {
    /// Creates the buffer of the list if there is none. All modules of updates bind it.
    pub(super) fn fit(&mut self, gpu: &Gpu) -> Result<(), GpuError> {
        if self.listing.rows.is_none() {
            self.listing = Arc::new(Listing { rows: Some(row_buffer(gpu, 1)?), ..Listing::default() });
        }
        Ok(())
    }

    /// The list with the lookups of the last run, and those of earlier runs if gradients accumulate.
    pub(super) fn list(
        &mut self,
        builder: Builder<'_>,
        memory: &Memory,
        gradients: &ArenaGradients,
        encoder: &mut wgpu::CommandEncoder,
    ) -> Result<Arc<Listing>, GpuError> {
        let gpu = builder.gpu;
        let ArenaGradients { sparse_tables, tables, accumulated, .. } = gradients;
        let before = &self.listing;
        let (mut listing, kept) = match accumulated {
            true => (before.restricted_to(sparse_tables), before.owners + before.listed),
            false => (Listing::of(sparse_tables, before.rows.clone()), 0),
        };
        let dispatches = listing.append(gpu, sparse_tables)?;
        listing.grow(gpu, kept, encoder)?;
        if !*accumulated {
            encoder.clear_buffer(listing.rows(), 0, Some(u64::from(listing.owners) * 4));
        }
        if dispatches.groups.is_empty() {
            return Ok(Arc::new(listing));
        }
        self.upload_args(gpu, &dispatches.args)?;
        let args = self.args.as_ref().expect("it was created just now");
        let split = memory.split();
        let (layout, pipeline) = match self.pipelines.entry((split.arena, split.shift)) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(vacant) => vacant.insert(pipeline(builder, split)?),
        };
        let group = bind(gpu, layout, [args, tables, listing.rows()], &memory.arena);
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(pipeline);
        for (number, &groups) in (0..).zip(&dispatches.groups).filter(|(_, groups)| **groups > 0) {
            pass.set_bind_group(0, &group, &[(number * dispatches.stride * 4) as u32]);
            pass.dispatch_workgroups(groups.min(MAX_GROUPS), groups.div_ceil(MAX_GROUPS), 1);
        }
        drop(pass);
        Ok(Arc::new(listing))
    }

    fn upload_args(&mut self, gpu: &Gpu, args: &[u32]) -> Result<(), GpuError> {
        let bytes = args.len() as u64 * 4;
        if self.args.as_ref().is_none_or(|buffer| buffer.size() < bytes) {
            let what = "the arguments of sparse rows";
            self.args = Some(gpu.buffer(what, bytes, Usage::UNIFORM | Usage::COPY_DST)?);
        }
        let buffer = self.args.as_ref().expect("it was created just now");
        gpu.queue.write_buffer(buffer, 0, bytemuck::cast_slice(args));
        Ok(())
    }
}

fn row_buffer(gpu: &Gpu, words: u64) -> Result<wgpu::Buffer, GpuError> {
    gpu.buffer("the sparse rows", words * 4, Usage::STORAGE | Usage::COPY_DST | Usage::COPY_SRC)
}

fn pipeline(
    Builder { gpu, library, cache }: Builder<'_>,
    split: Split,
) -> Result<(wgpu::BindGroupLayout, wgpu::ComputePipeline), GpuError> {
    let mut entries = vec![uniform(0), storage(1, true), storage(2, false)];
    entries.extend((0..split.arena).map(|number| storage(3 + number, true)));
    Build { gpu, name: SPARSE_ROWS.name, text: split.sparse_rows(library), cache }.with_entries(&entries)
}

fn bind(
    gpu: &Gpu,
    layout: &wgpu::BindGroupLayout,
    [uniforms, tables, rows]: [&wgpu::Buffer; 3],
    arena: &SplitArray,
) -> wgpu::BindGroup {
    let mut entries =
        vec![binding(0, uniforms, Some(ARG_WORDS * 4)), binding(1, tables, None), binding(2, rows, None)];
    let of_arena = arena.buffers.iter().zip(3..);
    entries.extend(of_arena.map(|(buffer, number)| binding(number, buffer, None)));
    bind_group(gpu, "sparse rows", layout, &entries)
}

#[cfg(test)]
mod tests;
