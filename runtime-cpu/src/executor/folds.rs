//! Executes folds over lists and their gradients on a tile, lane by lane.
//!
//! Sums, means and maxima over rows of a field run in one call per tile. Most lists of reverse steps are such sums: the
//! contributions to a gradient.

use super::prepared::recycled;
use super::program::RegisterLocation;
use super::tile::{StageScratch, Tile};
use crate::kernels::list_gradients::{self, FoldGradient};
use crate::kernels::{Attention, GatheredFold, attend_unchecked, gathered_fold_unchecked, lists};
use autobatch_ir::graph::{ListFold, Op};
use autobatch_ir::plan::{List, ListSource, Operand, Stage, View};
use autobatch_ir::types::Type;
use std::ptr::NonNull;
use std::slice::{from_raw_parts, from_raw_parts_mut};

impl Tile<'_> {
    pub(super) fn seg(
        &self,
        op: Op,
        query: Option<View>,
        lists: &[ListSource],
        elements: &[Type],
        dst: View,
        space: &mut StageScratch,
    ) {
        if let (Op::ListFold(fold), [ListSource::Port(port)]) = (op, lists) {
            return self.fold_rows(fold, *port as usize, dst, space);
        }
        if let (Op::Attend { scale }, Some(query), [ListSource::Port(keys), ListSource::Port(values)]) =
            (op, query, lists)
        {
            return self.attend(scale.get(), query, [*keys, *values].map(|port| port as usize), dst, space);
        }
        let to = self.strip(dst);
        let query = query.map(|view| (self.strip(view), view.width as usize));
        let mut items = std::mem::take(&mut space.lists).map(recycled::<_, &[f32]>);
        for row in 0..self.lanes.len() {
            for ((list, element), items) in lists.iter().zip(elements).zip(&mut items) {
                items.clear();
                self.list_items(list, row, element.shape.elements(), items);
            }
            // SAFETY: the contract of the tile; the result belongs to the lane.
            unsafe {
                let query = query.map_or(&[][..], |(strip, width)| {
                    from_raw_parts(strip.base.add(row * strip.stride), width)
                });
                let base = to.base.wrapping_add(row * to.stride);
                let out = from_raw_parts_mut(base, dst.width as usize);
                lists::kernel(self.step.isa)(op, query, [&items[0], &items[1]], out, &mut space.weights);
            }
        }
        space.lists = items.map(recycled);
    }

    /// Computes the attention over the lists at two ports.
    fn attend(&self, scale: f32, query: View, ports: [usize; 2], dst: View, space: &mut StageScratch) {
        let step = self.step;
        let operands = ports.map(|port| step.operands[port]);
        let list = |lane: usize, of: Operand| of.address.list_of_lane(step.tables, step.groups, lane as u32);
        let mut lists = recycled::<_, [List<'_>; 2]>(std::mem::take(&mut space.attended));
        lists.extend(self.lanes.clone().map(|lane| operands.map(|of| list(lane, of).unwrap_or_default())));
        let [(keys, key_stride), (values, value_stride)] = operands.map(|of| step.memory(of.origin));
        let (from, to) = (self.strip(query), self.strip(dst));
        let attention = Attention {
            query: from.base,
            query_stride: from.stride,
            key_width: query.width as usize,
            keys,
            key_stride,
            values,
            value_stride,
            value_width: dst.width as usize,
            lists: &lists,
            scale,
            out: to.base,
            out_stride: to.stride,
        };
        // SAFETY: the contract of the tile; results belong to the lanes and are no operands of the step.
        unsafe { attend_unchecked(step.isa, &attention, &mut space.attention) };
        space.attended = recycled(lists);
    }

    /// Folds the lists at a port.
    fn fold_rows(&self, fold: ListFold, port: usize, dst: View, space: &mut StageScratch) {
        let step = self.step;
        let Operand { origin, address } = step.operands[port];
        let (offsets, items) = match address.lists() {
            Some((offsets, items)) => {
                let offsets = &step.tables[offsets as usize + self.lanes.start..][..=self.lanes.len()];
                let end = offsets.last().map_or(0, |&end| end);
                (offsets, &step.tables[items as usize..(items + end) as usize])
            }
            None => {
                let [offsets, items] = &mut space.expanded;
                offsets.clear();
                items.clear();
                offsets.push(0);
                for lane in self.lanes.clone() {
                    let list = address.list_of_lane(step.tables, step.groups, lane as u32);
                    items.extend(list.into_iter().flat_map(List::iter));
                    offsets.push(items.len() as u32);
                }
                (&offsets[..], &items[..])
            }
        };
        let to = self.strip(dst);
        let lists = GatheredFold {
            base: step.memory(origin).0,
            // Lists without items may name any field (rule P17), so the result decides.
            width: dst.width as usize,
            items,
            offsets,
            out: to.base,
            stride: to.stride,
        };
        // SAFETY: the contract of the tile; results belong to the lanes and are no operands of the step.
        unsafe { gathered_fold_unchecked(step.isa, fold, &lists) };
    }

    pub(super) fn fold_gradient(&self, stage: &Stage, space: &mut StageScratch) {
        let Stage::SegGrad { op, query, lists, elements, dy, query_dst, dsts } = stage else { return };
        let strip = |view: &View| self.strip(*view);
        let (query, dy_strip, query_to) =
            (query.as_ref().map(strip), strip(dy), query_dst.as_ref().map(strip));
        let mut items = std::mem::take(&mut space.lists).map(recycled::<_, &[f32]>);
        for row in 0..self.lanes.len() {
            for ((&list, element), items) in lists.iter().zip(elements).zip(&mut items) {
                items.clear();
                self.list_items(&ListSource::Port(list), row, element.shape.elements(), items);
            }
            let (width, query_width) = (dy.width as usize, elements[0].shape.elements());
            // SAFETY: the contract of the tile; operand rows are only read, and the results belong to the lane.
            unsafe {
                let dy = from_raw_parts(dy_strip.base.add(row * dy_strip.stride), width);
                let query = query
                    .map_or(&[][..], |strip| from_raw_parts(strip.base.add(row * strip.stride), query_width));
                let query_out = query_to.map_or(&mut [][..], |strip| {
                    from_raw_parts_mut(strip.base.add(row * strip.stride), query_width)
                });
                let edges = |list: usize| {
                    let (Some(dst), Some(element)) = (dsts.get(list), elements.get(list)) else {
                        return &mut [][..];
                    };
                    let floats = items[list].len() * element.shape.elements();
                    let (base, floats) = self.edge_rows(*dst, row, floats);
                    from_raw_parts_mut(base, floats)
                };
                let outs = [edges(0), edges(1)];
                let fold = FoldGradient { op: *op, query, lists: [&items[0], &items[1]], dy };
                list_gradients::kernel(self.step.isa)(fold, query_out, outs, &mut space.fold);
            }
            items.iter_mut().for_each(Vec::clear);
        }
        space.lists = items.map(recycled);
    }

    /// The destination of a lane's edges and their number of floats; empty if the plan does not use them.
    fn edge_rows(&self, reg: Option<u32>, row: usize, floats: usize) -> (*mut f32, usize) {
        let empty = (NonNull::dangling().as_ptr(), 0);
        let Some(reg) = reg else { return empty };
        match self.step.program.registers[reg as usize].location {
            RegisterLocation::Edges(result) if result != u32::MAX && floats > 0 => {
                (self.result_row(result as usize, self.lanes.start + row), floats)
            }
            _ => empty,
        }
    }

    /// Appends the values of a list of one lane.
    fn list_items<'t>(&'t self, list: &ListSource, row: usize, width: usize, items: &mut Vec<&'t [f32]>) {
        match list {
            ListSource::Port(port) => {
                let Operand { origin, address } = self.step.operands[*port as usize];
                let list =
                    address.list_of_lane(self.step.tables, self.step.groups, (self.lanes.start + row) as u32);
                let (base, stride) = self.step.memory(origin);
                items.extend(list.into_iter().flat_map(List::iter).map(|number| {
                    let row = base.wrapping_add(number as usize * stride);
                    // SAFETY: the contract of the tile.
                    unsafe { from_raw_parts(row, width) }
                }));
            }
            ListSource::Views(views) => items.extend(views.iter().map(|&view| {
                let strip = self.strip(view);
                // SAFETY: the contract of the tile.
                unsafe { from_raw_parts(strip.base.add(row * strip.stride), width) }
            })),
        }
    }
}
