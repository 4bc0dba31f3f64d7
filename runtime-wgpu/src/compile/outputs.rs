//! Outputs: which ranges of the arena the host reads back.

use super::record::Record;
use super::wave::Threads;
use super::{ArenaRange, Build};
use crate::error::GpuError;
use crate::module::Program;
use autobatch_ir::plan::{FieldId, PlanOutput};
use autobatch_shaders::COLLECT;
use std::ops::Range;

/// Maximum number of ranges that are read back in place. Outputs in more ranges are collected first.
const MAX_RANGES: usize = 2;

/// Chooses how outputs are read back: in place if they are contiguous, else collected behind the scratch rows.
pub(super) fn lower(build: &mut Build<'_>) -> Result<(), GpuError> {
    let result = build.layout.reserve_outputs(build.scratch)?;
    if let Some((readback, outputs)) = in_place(build) {
        (build.readback, build.outputs) = (readback, outputs);
        return build.layout.fit_outputs(0);
    }
    let mut record = Record::default();
    record.push(0).push(result).push(build.plan.outputs.len() as u32);
    let mut end = 0u64;
    for output in &build.plan.outputs {
        let (base, width) = build.layout.field(output.field);
        let from = u64::from(base) + u64::from(output.row) * u64::from(width);
        build.outputs.push(end as u32);
        let shift = (from as u32).wrapping_sub(end as u32);
        end += u64::from(width);
        record.push(end as u32).push(shift);
    }
    build.layout.fit_outputs(end)?;
    build.readback = vec![(result.into(), end)];
    build.segment(Program::Fixed(COLLECT), &record, 0, Threads::of(end))
}

/// The ranges of the arena that hold exactly the outputs, and the first word of each output; `None` if there are too
/// many.
fn in_place(build: &Build<'_>) -> Option<(Vec<ArenaRange>, Vec<u32>)> {
    let outputs = &build.plan.outputs;
    let mut rows: Vec<(FieldId, u32)> = outputs.iter().map(|output| (output.field, output.row)).collect();
    rows.sort_unstable();
    rows.dedup();
    let mut runs: Vec<(FieldId, Range<u32>)> = Vec::new();
    for (field, row) in rows {
        let full = runs.len() == MAX_RANGES;
        match runs.last_mut() {
            Some((last, rows)) if *last == field && rows.end == row => rows.end += 1,
            _ if full => return None,
            _ => runs.push((field, row..row + 1)),
        }
    }
    let (mut ranges, mut starts, mut end) = (Vec::new(), Vec::new(), 0u64);
    for (field, rows) in &runs {
        let (base, width) = build.layout.field(*field);
        let [at, words] = [rows.start, rows.len() as u32].map(|rows| u64::from(rows) * u64::from(width));
        ranges.push((u64::from(base) + at, words));
        starts.push(end);
        end += words;
    }
    let start = |output: &PlanOutput| {
        let is_here =
            |(field, rows): &(FieldId, Range<u32>)| *field == output.field && rows.contains(&output.row);
        let run = runs.iter().position(is_here)?;
        let (_, width) = build.layout.field(output.field);
        let before = u64::from(output.row - runs[run].1.start) * u64::from(width);
        u32::try_from(starts[run] + before).ok()
    };
    Some((ranges, outputs.iter().map(start).collect::<Option<_>>()?))
}
