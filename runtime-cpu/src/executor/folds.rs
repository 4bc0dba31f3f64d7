//! Executes folds over lists and their gradients on a tile, lane by lane.
//!
//! Sums, means and maxima over rows of a field run in one call per tile. Most lists of reverse steps are such sums: the
//! contributions to a gradient.

use super::prepared::recycled;
use super::program::RegisterLocation;
use super::tile::{StageScratch, Strip, Tile};
use crate::kernels::list_gradients::{self, FoldGradient};
use crate::kernels::{
    Attending, Attention, AttentionGradient, AttentionPull, AttentionSpace, GatheredFold, GatheredFoldFn,
    GraphAttention, PackedLists, StageSpace, Strided, StridedMut, attend_unchecked, gathered_fold, lists,
};
use autobatch_ir::graph::Op;
use autobatch_ir::plan::row_ops::mean_grad;
use autobatch_ir::plan::{List, ListSource, RegId, Stage, StepOperand, View};
use std::ptr::NonNull;
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// The lists that the attentions of a step packed, and the number of the next attention of the tile.
pub(super) struct Attentions<'h, 'a> {
    pub(super) lists: &'h mut Vec<PackedLists<'a>>,
    pub(super) next: usize,
}

impl<'a> Attentions<'_, 'a> {
    /// The space of the next attention.
    fn next<'s>(&'s mut self, space: &'s mut AttentionSpace) -> StageSpace<'s, 'a> {
        let number = self.next;
        self.next += 1;
        if self.lists.len() <= number {
            self.lists.push([None; 2]);
        }
        space.stage(number, &mut self.lists[number])
    }
}

impl<'a> Tile<'a> {
    pub(super) fn seg(&self, stage: &Stage, space: &mut StageScratch, attentions: &mut Attentions<'_, 'a>) {
        let Stage::Seg { op, query, lists, elements, dst } = stage else { return };
        let (op, query, lists, dst) = (*op, *query, &lists[..], *dst);
        if let (Op::ListFold(fold), [ListSource::Port(port)]) = (op, lists)
            && let Some(fold) = gathered_fold(self.step.isa, fold)
        {
            return self.fold_rows(fold, port.index(), dst, space);
        }
        if let (Some(query), [ListSource::Port(keys), ListSource::Port(values)]) = (query, lists) {
            let ports = [keys, values].map(|port| port.index());
            return self.attend(op, query, ports, dst, space, attentions);
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
                let query = row_of(query, row);
                let base = to.base.wrapping_add(row * to.stride);
                let out = from_raw_parts_mut(base, dst.width as usize);
                lists::kernel(self.step.isa)(op, query, [&items[0], &items[1]], out, &mut space.weights);
            }
        }
        space.lists = items.map(recycled);
    }

    /// Computes the attention over the lists at two ports.
    fn attend(
        &self,
        op: Op,
        query: View,
        ports: [usize; 2],
        dst: View,
        space: &mut StageScratch,
        attentions: &mut Attentions<'_, 'a>,
    ) {
        let lists = self.lists_of_lanes(ports, std::mem::take(&mut space.attended));
        let (out, isa) = (self.strided_mut(dst), self.step.isa);
        let query = self.strided(query);
        let [keys, values] = [(0, query.width as u32), (1, dst.width)];
        let [keys, values] = [keys, values].map(|(port, width)| self.listed(ports[port], width));
        // SAFETY: the contract of the tile; results belong to the lanes and are no operands of the step.
        unsafe {
            match op {
                Op::Attend { scale } => {
                    let scale = scale.get();
                    let attention = Attention { query, keys, values, lists: &lists, scale, out };
                    attend_unchecked(isa, &attention, attentions.next(&mut space.attention));
                }
                Op::GraphAttend { slope } => {
                    let lanes = Attending { query, keys, values, lists: &lists, slope: slope.get() };
                    GraphAttention::Forward { lanes, out }.compute_unchecked(isa, &mut space.graph);
                }
                // Rule P13 allows no other op with a query.
                _ => {}
            }
        }
        space.attended = recycled(lists);
    }

    /// Computes the reverse of attention for the queries.
    pub(super) fn attention_gradient(
        &self,
        stage: &Stage,
        space: &mut StageScratch,
        attentions: &mut Attentions<'_, 'a>,
    ) {
        let &Stage::AttendGrad { op, query, keys, values, dy, dst, reader } = stage else { return };
        let ports = [keys, values].map(RegId::index);
        let lists = self.lists_of_lanes(ports, std::mem::take(&mut space.attended));
        let keys = self.listed(ports[0], query.width);
        let values = self.listed(ports[1], dy.width);
        let [query, dy] = [query, dy].map(|view| self.strided(view));
        let [out, readers] = [dst, reader].map(|view| view.map(|view| self.strided_mut(view)));
        let isa = self.step.isa;
        // SAFETY: the contract of the tile; results belong to the lanes and are no operands of the step.
        unsafe {
            match op {
                Op::Attend { scale } => {
                    let (lists, scale) = (&lists[..], scale.get());
                    let gradient = AttentionGradient { query, dy, keys, values, lists, scale, out, readers };
                    gradient.compute_unchecked(isa, attentions.next(&mut space.attention));
                }
                Op::GraphAttend { slope } => {
                    let lanes = Attending { query, keys, values, lists: &lists, slope: slope.get() };
                    let gradient = GraphAttention::Gradient { lanes, dy, out, readers };
                    gradient.compute_unchecked(isa, &mut space.graph);
                }
                // Rule P38 allows no other op.
                _ => {}
            }
        }
        space.attended = recycled(lists);
    }

    /// Computes the reverse of attention for keys and values.
    pub(super) fn pull(&self, stage: &Stage, space: &mut StageScratch, attentions: &mut Attentions<'_, 'a>) {
        let &Stage::AttendPull { op, key, value, readers, key_dst, value_dst } = stage else { return };
        let port = readers.index();
        let width = self.step.kernel.regs[port].ty.shape.elements() as u32;
        let mut lists = recycled::<_, List<'a>>(std::mem::take(&mut space.readers));
        lists.extend(self.lanes.clone().map(|lane| self.list_of_lane(port, lane)));
        let [key, value] = [key, value].map(|view| self.strided(view));
        let readers = self.listed(port, width);
        let out = [key_dst, value_dst].map(|dst| dst.map(|dst| self.strided_mut(dst)));
        let (isa, of) = (self.step.isa, &lists[..]);
        // SAFETY: the contract of the tile; results belong to the lanes and are no operands of the step.
        unsafe {
            match op {
                Op::Attend { scale } => {
                    let pull = AttentionPull { key, value, readers, lists: of, scale: scale.get(), out };
                    pull.compute_unchecked(isa, attentions.next(&mut space.attention));
                }
                Op::GraphAttend { slope } => {
                    let slope = slope.get();
                    let pull = GraphAttention::Pull { key, value, readers, lists: of, slope, out };
                    pull.compute_unchecked(isa, &mut space.graph);
                }
                // Rule P38 allows no other op.
                _ => {}
            }
        }
        space.readers = recycled(lists);
    }

    fn list_of_lane(&self, port: usize, lane: usize) -> List<'a> {
        let (step, address) = (self.step, self.step.operands[port].address);
        address.list_of_lane(step.tables, step.groups, lane as u32).unwrap_or_default()
    }

    /// The lists of each lane at two ports, in memory that was used before.
    fn lists_of_lanes(&self, ports: [usize; 2], memory: Vec<[List<'static>; 2]>) -> Vec<[List<'a>; 2]> {
        let mut lists = recycled::<_, [List<'a>; 2]>(memory);
        lists.extend(self.lanes.clone().map(|lane| ports.map(|port| self.list_of_lane(port, lane))));
        lists
    }

    fn strided(&self, view: View) -> Strided {
        let Strip { base, stride } = self.strip(view);
        Strided { base, stride, width: view.width as usize }
    }

    fn strided_mut(&self, view: View) -> StridedMut {
        let Strip { base, stride } = self.strip(view);
        StridedMut { base, stride }
    }

    /// The rows that the lists at a port name.
    fn listed(&self, port: usize, width: u32) -> Strided {
        let (base, stride) = self.step.memory(self.step.operands[port].origin);
        Strided { base, stride, width: width as usize }
    }

    /// Folds the lists at a port.
    fn fold_rows(&self, fold: GatheredFoldFn, port: usize, dst: View, space: &mut StageScratch) {
        let step = self.step;
        let StepOperand { origin, address } = step.operands[port];
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
        unsafe { fold(&lists) };
    }

    pub(super) fn fold_gradient(&self, stage: &Stage, space: &mut StageScratch) {
        let Stage::SegGrad { op, query, lists, elements, dy, dsts } = stage else { return };
        let dy_strip = self.strip(*dy);
        let query = query.map(|view| (self.strip(view), view.width as usize));
        let mut items = std::mem::take(&mut space.lists).map(recycled::<_, &[f32]>);
        for row in 0..self.lanes.len() {
            for ((&list, element), items) in lists.iter().zip(elements).zip(&mut items) {
                items.clear();
                self.list_items(&ListSource::Port(list), row, element.shape.elements(), items);
            }
            let width = dy.width as usize;
            // SAFETY: the contract of the tile; operand rows are only read, and the results belong to the lane.
            unsafe {
                let dy = from_raw_parts(dy_strip.base.add(row * dy_strip.stride), width);
                let edges = |list: usize| {
                    let (Some(dst), Some(element)) = (dsts.get(list), elements.get(list)) else {
                        return &mut [][..];
                    };
                    let floats = items[list].len() * element.shape.elements();
                    let (base, floats) = self.edge_rows(*dst, row, floats);
                    from_raw_parts_mut(base, floats)
                };
                let outs = [edges(0), edges(1)];
                let query = row_of(query, row);
                let fold = FoldGradient { op: *op, query, lists: [&items[0], &items[1]], dy };
                list_gradients::kernel(self.step.isa)(fold, outs, &mut space.fold);
            }
            items.iter_mut().for_each(Vec::clear);
        }
        space.lists = items.map(recycled);
    }

    /// Divides the gradients of means by the lengths of their lists.
    pub(super) fn mean_gradient(&self, list: RegId, dy: View, dst: View, space: &mut StageScratch) {
        let (from, to, width) = (self.strip(dy), self.strip(dst), dst.width as usize);
        let [items, _] = &mut space.lists;
        let mut values = recycled::<_, &[f32]>(std::mem::take(items));
        for row in 0..self.lanes.len() {
            values.clear();
            self.list_items(&ListSource::Port(list), row, width, &mut values);
            // SAFETY: the contract of the tile; the result belongs to the lane and is no operand of the stage.
            unsafe {
                let dy = from_raw_parts(from.base.add(row * from.stride), width);
                mean_grad(values.len(), dy, from_raw_parts_mut(to.base.add(row * to.stride), width));
            }
        }
        *items = recycled(values);
    }

    /// The destination of a lane's edges and their number of floats; empty if the plan does not use them.
    fn edge_rows(&self, reg: Option<RegId>, row: usize, floats: usize) -> (*mut f32, usize) {
        let empty = (NonNull::dangling().as_ptr(), 0);
        let Some(reg) = reg else { return empty };
        match self.step.program.registers[reg.index()].location {
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
                let StepOperand { origin, address } = self.step.operands[port.index()];
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

/// A row of a strip of such a width; empty without one.
///
/// # Safety
/// The row exists, and nothing writes it while it is read.
unsafe fn row_of<'r>(strip: Option<(Strip, usize)>, row: usize) -> &'r [f32] {
    // SAFETY: the caller guarantees the row.
    strip.map_or(&[], |(strip, width)| unsafe { from_raw_parts(strip.base.add(row * strip.stride), width) })
}
