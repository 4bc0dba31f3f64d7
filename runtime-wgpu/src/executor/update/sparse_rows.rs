//! The rows of tables that minibatches touched: a list of them as lookups name them, and for each row of
//! each table the lookup that owns it. Both stay on the device; how many lookups there are is known here. A longer list
//! is another [`Listing`], which counts once the commands that write it were submitted: what fails before leaves the old one.

use super::super::cut::Cut;
use super::super::memory::Memory;
use super::kept::Made;
use crate::compile::Touches;
use crate::device::Gpu;
use crate::error::GpuError;
use crate::executor::build::{Build, binding, storage, uniform};
use crate::module::{Cuts, GROUP};
use autobatch_ir::plan::StoreId;
use autobatch_shaders::{Library, TOUCH};
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use wgpu::BufferUsages as Usage;

/// Words of the numbers of a dispatch.
const TOUCH_WORDS: u64 = 12;
/// Groups of a dimension.
const MOST_GROUPS: u32 = 65_535;

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Table {
    rows: u32,
    /// Where its owners begin.
    owners: u32,
    /// Its lookups in the list.
    lookups: Vec<Range<u32>>,
}

/// Sparse rows of gradients.
#[derive(Clone, Default)]
pub(super) struct Listing {
    /// Tables whose sparse rows are listed, by parameter.
    tables: BTreeMap<u32, Table>,
    /// Words of owners, behind which the list begins.
    owners: u32,
    /// Lookups in the list.
    listed: u32,
    rows: Option<wgpu::Buffer>,
}

/// What lists them.
#[derive(Default)]
pub(super) struct SparseRows {
    /// Those of the gradients that are summed up now.
    pub(super) listing: Arc<Listing>,
    numbers: Option<wgpu::Buffer>,
    pipelines: BTreeMap<(u32, u32), (wgpu::BindGroupLayout, wgpu::ComputePipeline)>,
}

impl Listing {
    /// The lookups that sparse rows of a table, as ranges of the list; `None` if all rows count as touched.
    pub(super) fn lookups(&self, param: StoreId) -> Option<&[Range<u32>]> {
        self.tables.get(&param.0).map(|table| table.lookups.as_slice())
    }

    /// Where the list begins.
    pub(super) fn list_at(&self) -> u32 {
        self.owners
    }

    /// Where the owners of a table's rows begin.
    pub(super) fn owners_at(&self, param: StoreId) -> u32 {
        self.tables.get(&param.0).map_or(0, |table| table.owners)
    }

    /// The list and the owners.
    pub(super) fn rows(&self) -> &wgpu::Buffer {
        self.rows.as_ref().expect("there is room before it is used")
    }

    /// An empty list of tables.
    fn of(touches: &[Touches], rows: Option<wgpu::Buffer>) -> Self {
        let mut listing = Self { rows, ..Self::default() };
        for touch in touches {
            let table = Table { rows: touch.rows, owners: listing.owners, lookups: Vec::new() };
            listing.owners += touch.rows;
            listing.tables.insert(touch.param.index() as u32, table);
        }
        listing
    }

    /// Makes room for the list, behind these words that stay.
    fn grow(&mut self, gpu: &Gpu, stays: u32, encoder: &mut wgpu::CommandEncoder) -> Result<(), GpuError> {
        let words = u64::from(self.owners) + u64::from(self.listed);
        let old = self.rows.take_if(|rows| rows.size() < words * 4);
        if self.rows.is_none() {
            let rows = room(gpu, words.next_power_of_two().max(64))?;
            if let Some(old) = old.filter(|_| stays > 0) {
                encoder.copy_buffer_to_buffer(&old, 0, &rows, 0, u64::from(stays) * 4);
            }
            self.rows = Some(rows);
        }
        Ok(())
    }
}

impl SparseRows {
    /// Makes room for a list, if there never was one: modules bind it in any case.
    pub(super) fn fit(&mut self, gpu: &Gpu) -> Result<(), GpuError> {
        if self.listing.rows.is_none() {
            self.listing = Arc::new(Listing { rows: Some(room(gpu, 1)?), ..Listing::default() });
        }
        Ok(())
    }

    /// The list with the lookups of the last run, whose rows and tables are still there; those of runs before are
    /// forgotten unless gradients are summed up.
    pub(super) fn with(
        &mut self,
        gpu: &Gpu,
        library: &Library,
        memory: &Memory,
        made: &Made,
        encoder: &mut wgpu::CommandEncoder,
    ) -> Result<Arc<Listing>, GpuError> {
        let Made { touches, tables, summed, .. } = made;
        let before = &self.listing;
        let stays = if *summed { before.owners + before.listed } else { 0 };
        let mut listing = if *summed {
            let mut listing = Listing::clone(before);
            // What was not listed before is not known now: all its rows count as touched.
            let known: HashSet<u32> = touches.iter().map(|touch| touch.param.index() as u32).collect();
            listing.tables.retain(|param, _| known.contains(param));
            listing
        } else {
            Listing::of(touches, before.rows.clone())
        };
        let mut numbers: Vec<u32> = Vec::new();
        let stride = u64::from(gpu.limits.min_uniform_buffer_offset_alignment).max(TOUCH_WORDS * 4) / 4;
        let mut groups = Vec::new();
        for touch in touches {
            let Some(table) = listing.tables.get_mut(&(touch.param.index() as u32)) else { continue };
            for &(indices, lookups) in &touch.indices {
                let start = numbers.len();
                numbers.extend(indices);
                numbers.extend([listing.owners, table.owners, listing.listed, lookups, table.rows - 1]);
                numbers.resize(start + stride as usize, 0);
                let (listed, owners) = (listing.listed, listing.owners);
                let end = listed.checked_add(lookups).filter(|end| end.checked_add(owners).is_some());
                let end = end.ok_or(GpuError::TooLarge {
                    what: "the sparse rows",
                    needed: (u64::from(listed) + u64::from(lookups)) * 4,
                    limit: u64::from(u32::MAX) * 4,
                })?;
                table.lookups.push(listed..end);
                listing.listed = end;
                groups.push(u64::from(lookups).div_ceil(GROUP) as u32);
            }
        }
        listing.grow(gpu, stays, encoder)?;
        if !*summed {
            encoder.clear_buffer(listing.rows(), 0, Some(u64::from(listing.owners) * 4));
        }
        if groups.is_empty() {
            return Ok(Arc::new(listing));
        }
        let bytes = numbers.len() as u64 * 4;
        if self.numbers.as_ref().is_none_or(|buffer| buffer.size() < bytes) {
            let what = "the numbers of sparse rows";
            self.numbers = Some(gpu.buffer(what, bytes, Usage::UNIFORM | Usage::COPY_DST)?);
        }
        let cuts = memory.cuts();
        let key = (cuts.arena, cuts.shift);
        if let std::collections::btree_map::Entry::Vacant(vacant) = self.pipelines.entry(key) {
            vacant.insert(pipeline(gpu, library, cuts)?);
        }
        let uniforms = self.numbers.as_ref().expect("it was made just now");
        gpu.queue.write_buffer(uniforms, 0, bytemuck::cast_slice(&numbers));
        let (layout, pipeline) = &self.pipelines[&key];
        let group = bind(gpu, layout, (uniforms, tables, listing.rows()), &memory.arena);
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(pipeline);
        for (number, &groups) in groups.iter().enumerate().filter(|(_, groups)| **groups > 0) {
            pass.set_bind_group(0, &group, &[(number as u64 * stride * 4) as u32]);
            pass.dispatch_workgroups(groups.min(MOST_GROUPS), groups.div_ceil(MOST_GROUPS), 1);
        }
        drop(pass);
        Ok(Arc::new(listing))
    }
}

fn room(gpu: &Gpu, words: u64) -> Result<wgpu::Buffer, GpuError> {
    gpu.buffer("the sparse rows", words * 4, Usage::STORAGE | Usage::COPY_DST | Usage::COPY_SRC)
}

fn pipeline(
    gpu: &Gpu,
    library: &Library,
    cuts: Cuts,
) -> Result<(wgpu::BindGroupLayout, wgpu::ComputePipeline), GpuError> {
    let mut entries = vec![uniform(0), storage(1, true), storage(2, false)];
    entries.extend((0..cuts.arena).map(|number| storage(3 + number, true)));
    Build { gpu, name: TOUCH.name, text: cuts.touch(library), cache: None }.with_entries(&entries)
}

fn bind(
    gpu: &Gpu,
    layout: &wgpu::BindGroupLayout,
    (uniforms, tables, rows): (&wgpu::Buffer, &wgpu::Buffer, &wgpu::Buffer),
    arena: &Cut,
) -> wgpu::BindGroup {
    let mut entries =
        vec![binding(0, uniforms, Some(TOUCH_WORDS * 4)), binding(1, tables, None), binding(2, rows, None)];
    let of_arena = arena.buffers.iter().enumerate();
    entries.extend(of_arena.map(|(number, buffer)| binding(3 + number as u32, buffer, None)));
    gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: Some("sparse rows"),
        layout,
        entries: &entries,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::fetch::{read, submitted};
    use crate::options::Options;
    use autobatch_ir::ParamId;
    use std::collections::HashMap;
    use std::time::Duration;

    #[test]
    fn a_list_that_finds_no_room_leaves_the_one_before_and_can_be_made_again() {
        let Some(gpu) = Gpu::of_tests(Options::default()) else { return };
        // Rows as lookups name them, of which the last but one is cut to the last row.
        let named: Vec<u32> = [5, 3, 5, 7, 99].into_iter().chain([3; 200]).collect();
        let memory = Memory::of_tests(&gpu, &named);
        let tables = gpu.buffer("tables", 64, Usage::STORAGE).expect("there is memory");
        let made = |lookups: &Range<u32>, summed: bool| Made {
            gradients: Vec::new(),
            by_param: HashMap::new(),
            region: (0, 0),
            touches: vec![Touches {
                param: ParamId::new(0),
                rows: 9,
                indices: vec![([0, lookups.start, 1, 1], lookups.end - lookups.start)],
            }],
            tables: tables.clone(),
            summed,
            listed: false,
        };
        let mut touched = SparseRows::default();
        touched.fit(&gpu).expect("there is memory");
        let library = Library::new(false, gpu.joins());
        let starved = {
            let mut starved = gpu.clone();
            starved.limits.max_buffer_size = 0;
            starved
        };
        let all = [0..2, 2..5, 5..205];
        for (number, lookups) in all.iter().enumerate() {
            let made = made(lookups, number > 0);
            for (gpu, is_starved) in [(&starved, true), (&gpu, false)] {
                let mut encoder =
                    gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                match touched.with(gpu, &library, &memory, &made, &mut encoder) {
                    Ok(listing) => {
                        if is_starved {
                            // It had room, and is dropped before it is submitted.
                            continue;
                        }
                        submitted(gpu, encoder.finish()).expect("executes");
                        touched.listing = listing;
                    }
                    Err(error) => {
                        assert!(is_starved && matches!(error, GpuError::TooLarge { .. }), "{error}")
                    }
                }
            }
        }
        let listing = &touched.listing;
        assert_eq!(listing.lookups(StoreId(0)), Some(all.as_slice()));
        let words = [(listing.rows(), 0, 9 + 205)];
        let words = read(&gpu, &words, Duration::from_secs(60)).expect("reads");
        let listed: Vec<u32> = named.iter().map(|&row| row.min(8)).collect();
        let last = |row: u32| listed.iter().rposition(|&own| own == row).map_or(0, |at| at as u32 + 1);
        assert_eq!(words[..9], (0..9).map(last).collect::<Vec<_>>());
        assert_eq!(words[9..], listed);
    }
}
