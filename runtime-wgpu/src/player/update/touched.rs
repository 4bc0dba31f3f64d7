//! The rows of tables that minibatches touched: a list of them as lookups name them, and for each row of
//! each table the lookup that owns it. Both stay on the device; how many lookups there are is known here.

use super::super::cut::Cut;
use super::super::memory::Memory;
use super::kept::Made;
use crate::compile::Touches;
use crate::device::Gpu;
use crate::error::GpuError;
use crate::module::{Cuts, GROUP};
use crate::player::build::{Build, binding, storage, uniform};
use autobatch_ir::plan::StoreId;
use autobatch_shaders::{Library, TOUCH};
use std::collections::BTreeMap;
use std::ops::Range;
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

/// Touched rows of the gradients that are summed up now.
#[derive(Default)]
pub(super) struct Touched {
    /// Tables whose touched rows are listed, by parameter.
    tables: BTreeMap<u32, Table>,
    /// Words of owners, behind which the list begins.
    owners: u32,
    /// Lookups in the list.
    listed: u32,
    rows: Option<wgpu::Buffer>,
    numbers: Option<wgpu::Buffer>,
    pipelines: BTreeMap<(u32, u32), (wgpu::BindGroupLayout, wgpu::ComputePipeline)>,
}

impl Touched {
    /// The lookups that touched rows of a table, as ranges of the list; `None` if all rows count as touched.
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

    /// Makes room for a list, if there never was one: modules bind it in any case.
    pub(super) fn fit(&mut self, gpu: &Gpu) -> Result<(), GpuError> {
        if self.rows.is_none() {
            self.rows = Some(room(gpu, 1)?);
        }
        Ok(())
    }

    /// The list and the owners.
    pub(super) fn rows(&self) -> &wgpu::Buffer {
        self.rows.as_ref().expect("there is room before it is used")
    }

    /// Adds the lookups of the last play, whose rows and tables are still there; those of plays before are
    /// forgotten unless gradients are summed up.
    pub(super) fn add(
        &mut self,
        gpu: &Gpu,
        library: &Library,
        memory: &Memory,
        made: &Made,
        encoder: &mut wgpu::CommandEncoder,
    ) -> Result<(), GpuError> {
        let Made { touches, tables, summed, .. } = made;
        let old = self.owners + self.listed;
        if *summed {
            // What was not listed before is not known now: all its rows count as touched.
            self.tables.retain(|&param, _| touches.iter().any(|touch| touch.param.index() as u32 == param));
        } else {
            self.start(touches);
        }
        let mut numbers: Vec<u32> = Vec::new();
        let stride = u64::from(gpu.limits.min_uniform_buffer_offset_alignment).max(TOUCH_WORDS * 4) / 4;
        let mut groups = Vec::new();
        for touch in touches {
            let Some(table) = self.tables.get_mut(&(touch.param.index() as u32)) else { continue };
            for &(indices, lookups) in &touch.indices {
                let start = numbers.len();
                numbers.extend(indices);
                numbers.extend([self.owners, table.owners, self.listed, lookups, table.rows - 1]);
                numbers.resize(start + stride as usize, 0);
                let end =
                    self.listed.checked_add(lookups).filter(|end| end.checked_add(self.owners).is_some());
                let end = end.ok_or(GpuError::TooLarge {
                    what: "the touched rows",
                    needed: (u64::from(self.listed) + u64::from(lookups)) * 4,
                    limit: u64::from(u32::MAX) * 4,
                })?;
                table.lookups.push(self.listed..end);
                self.listed = end;
                groups.push(u64::from(lookups).div_ceil(GROUP) as u32);
            }
        }
        self.grow(gpu, if *summed { old } else { 0 }, encoder)?;
        if !*summed {
            encoder.clear_buffer(self.rows(), 0, Some(u64::from(self.owners) * 4));
        }
        if groups.is_empty() {
            return Ok(());
        }
        let bytes = numbers.len() as u64 * 4;
        if self.numbers.as_ref().is_none_or(|buffer| buffer.size() < bytes) {
            let what = "the numbers of touched rows";
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
        let group = bind(gpu, layout, (uniforms, tables, self.rows()), &memory.arena);
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(pipeline);
        for (number, &groups) in groups.iter().enumerate().filter(|(_, groups)| **groups > 0) {
            pass.set_bind_group(0, &group, &[(number as u64 * stride * 4) as u32]);
            pass.dispatch_workgroups(groups.min(MOST_GROUPS), groups.div_ceil(MOST_GROUPS), 1);
        }
        Ok(())
    }

    fn start(&mut self, touches: &[Touches]) {
        self.tables.clear();
        (self.owners, self.listed) = (0, 0);
        for touch in touches {
            let table = Table { rows: touch.rows, owners: self.owners, lookups: Vec::new() };
            self.owners += touch.rows;
            self.tables.insert(touch.param.index() as u32, table);
        }
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

fn room(gpu: &Gpu, words: u64) -> Result<wgpu::Buffer, GpuError> {
    gpu.buffer("the touched rows", words * 4, Usage::STORAGE | Usage::COPY_DST | Usage::COPY_SRC)
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
        label: Some("touched rows"),
        layout,
        entries: &entries,
    })
}
