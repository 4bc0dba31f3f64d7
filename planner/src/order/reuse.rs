//! Reuses rows after the last wave that reads them.

use super::heaps::Heaps;
use super::layout;
use super::layout_input::LayoutInput;
use super::rows::Rows;
use crate::context::Context;
use crate::ids::{BatchId, Lane, WaveId};
use crate::storage::Storage;
use autobatch_ir::id::NodeId;

/// No wave: the rows of roots stay live.
const NEVER: WaveId = WaveId(u32::MAX);

/// Laid out batches, whose rows move to free ones.
pub(super) struct Reuse<'a> {
    pub(super) storage: &'a Storage,
    /// Nodes as the problem numbers lanes.
    pub(super) nodes: &'a [NodeId],
    pub(super) input: &'a mut LayoutInput,
    pub(super) layout: &'a mut layout::Memory,
    pub(super) heaps: &'a mut Heaps,
}

impl Reuse<'_> {
    /// Gives every batch rows that no live value holds, and frees them after the last wave that reads them. Roots stay live.
    pub(super) fn reuse_rows(&mut self, context: &Context<'_>, rows: &mut Rows) {
        let list_waves = &mut self.input.list_waves;
        list_waves.resize(rows.problem.rows as usize, WaveId(0));
        for root in context.roots {
            list_waves[rows.row_of[root.index()]] = NEVER;
        }
        let waves = rows.batches.last().map_or(0, |batch| batch.wave.index() + 1);
        self.heaps.restart(self.storage.slabs.len(), waves);
        // Unread batches, descending, without those already visited.
        let mut unread = self.layout.unread().len();
        for id in rows.batches.ids() {
            if self.layout.unread()[..unread].last() == Some(&id) {
                unread -= 1;
                self.follow_widest_operand(rows, id);
            }
            self.place_results(rows, id);
        }
        rows.slab_rows.clear();
        rows.slab_rows.extend(self.heaps.highs());
    }

    /// Sorts the lanes of an unread batch by the rows of its widest operand. Reuse may have moved these rows since the layout.
    fn follow_widest_operand(&mut self, rows: &mut Rows, id: BatchId) {
        let posed = &rows.problem.batches[id];
        let Some(slot) = layout::widest(&rows.problem, posed) else { return };
        let read = rows.problem.slot_rows(slot, posed.lanes);
        let row = |lane: Lane| rows.rows[read[lane.index()]];
        let span = rows.batches[id].lanes.clone();
        let order = &mut rows.lane_order[span.clone()];
        if !order.is_sorted_by_key(|&lane| row(lane)) {
            // The slot repeats no row, so the keys are distinct.
            self.layout.sort_by_place(order, row);
            let own = &self.nodes[span.clone()];
            let lanes = rows.nodes[span].iter_mut().zip(order);
            lanes.for_each(|(node, &mut lane)| *node = own[lane.index()]);
        }
    }

    /// Takes rows for the results of a batch and notes when they become free.
    fn place_results(&mut self, rows: &mut Rows, id: BatchId) {
        let Rows { batches, problem, rows, lane_order, .. } = rows;
        let Self { storage, input, heaps, .. } = self;
        let (batch, posed) = (&batches[id], &problem.batches[id]);
        let (wave, lanes) = (batch.wave, &lane_order[batch.lanes.clone()]);
        let slot_waves = input.slot_waves.as_slice();
        let blocks = storage.sigs[batch.sig].blocks_of(batch.copy).iter();
        for (block, slot) in blocks.zip(problem.batch_slots(posed)) {
            let slab = block.slab;
            let own = problem.result_rows(slot, posed);
            let listed = &input.list_waves[own.clone()];
            let readers = &problem.last_readers[own.clone()];
            let rows = &mut rows[own];
            let start = heaps.take(wave, slab, posed.lanes);
            // Consecutive rows often become free together.
            let (mut last_wave, mut run_start) = (wave, start);
            for (row, &lane) in (start..).zip(lanes) {
                let lane = lane.index();
                rows[lane] = row;
                let read = slot_waves.get(readers[lane].index()).copied().unwrap_or(WaveId(0));
                let free_after = listed[lane].max(read).max(wave);
                if free_after != last_wave {
                    heaps.release_after(last_wave, slab, run_start..row);
                    (last_wave, run_start) = (free_after, row);
                }
            }
            heaps.release_after(last_wave, slab, run_start..start + posed.lanes);
        }
    }
}
