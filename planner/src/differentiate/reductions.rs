//! The reductions that make the gradients of parameters.
//!
//! The graph defines the order of each sum: by signature, by the place in its body that uses the parameter, by node. So a
//! reduction names the rows of all steps of a signature in the order of the nodes, whatever order the steps have.

use super::emitter::Emitter;
use super::input::Input;
use super::kernel::RowSource;
use super::operands::ReducedRows;
use crate::ids::{PartId, ReverseId};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{ParamId, SigId};
use autobatch_ir::plan::blocks::lie_apart;
use autobatch_ir::plan::{
    Address, Origin, Plan, PortRole, Reduction, ReductionPart, ReductionSum, StepOperand, Store, StoreId,
    StoreKind,
};
use autobatch_ir::types::{DType, Type};
use std::ops::Range;

/// The suffix of the name of a parameter's gradient.
const SUFFIX: &str = ".grad";

/// Working memory of reductions, reused from plan to plan.
#[derive(Default)]
pub(super) struct Reductions {
    /// Per parameter the store of its gradient, if it gets one.
    stores: Vec<Option<StoreId>>,
    /// Parameters whose names end like names of gradients, sorted by name.
    suffixed: Vec<ParamId>,
    /// The steps in reverse of signatures with reductions, by signature in the order of the sums.
    steps: Vec<(SigId, ReverseId)>,
    /// Per signature the number of its live lanes so far.
    counts: Vec<u32>,
    /// For each shard behind the first, and each signature, the number of live lanes in the shards before it.
    cuts: Vec<u32>,
    /// Per live lane of all steps its place among those of its signature, in the order of their nodes.
    order: Vec<u32>,
    sources: Sources,
    parts: Vec<Part>,
    /// The blocks of a store.
    blocks: Vec<[Range<u64>; 2]>,
}

/// A part of a reduction.
struct Part {
    /// The reduction.
    of: (StoreId, ReductionSum),
    /// Its place among all parts, in the order of the sums.
    number: u32,
    /// The lanes, among those of the signature.
    sig: SigId,
    lanes: Range<u32>,
    each: u32,
    x: Option<StepOperand>,
    dy: StepOperand,
}

/// The rows that the reductions of a signature take. Several reductions mostly take the same.
#[derive(Default)]
struct Sources {
    /// The row numbers by their source, with the first source that has them.
    numbers: Vec<(RowSource, u32)>,
    /// Per lane the memory of its row, if it is not the same for all lanes.
    origins: Vec<Origin>,
}

/// The rows of a source, in the order of the nodes.
struct Rows {
    /// The first row number in the tables.
    at: u32,
    /// The memory of all rows.
    origin: Origin,
    /// Per lane the memory of its row, among those of [`Sources`]; empty if one holds all rows.
    origins: Range<usize>,
}

impl Reductions {
    /// Adds stores for gradients, and the reductions of each block of each parameter.
    pub(super) fn add(&mut self, plan: &mut Plan, params: &[bool], emitter: &Emitter<'_>) {
        let Input { graph, shards, .. } = *emitter.input;
        self.add_stores(plan, graph, params);
        plan.shards.extend_from_slice(shards);
        self.order_lanes(emitter);
        self.parts.clear();
        let steps = std::mem::take(&mut self.steps);
        for steps in steps.chunk_by(|a, b| a.0 == b.0) {
            self.add_parts(plan, steps, emitter);
        }
        self.steps = steps;
        self.sort_parts(plan);
        for parts in self.parts.chunk_by(|a, b| a.of == b.of) {
            let (store, sum) = parts[0].of;
            let parts = parts.iter().map(|part| self.reduction_part(part, shards.len())).collect();
            plan.reductions.push(Reduction { store, sum, parts });
        }
    }

    fn reduction_part(&self, part: &Part, cuts: usize) -> ReductionPart {
        let Part { sig, ref lanes, each, x, dy, .. } = *part;
        let cut = |cut: usize| self.cuts[cut * self.counts.len() + sig.index()];
        let cuts = (0..cuts).map(|number| cut(number).clamp(lanes.start, lanes.end) - lanes.start).collect();
        ReductionPart { lanes: lanes.len() as u32, each, x, dy, cuts }
    }

    fn add_stores(&mut self, plan: &mut Plan, graph: &GraphData, params: &[bool]) {
        let Self { stores, suffixed, .. } = self;
        let decls = &graph.module.params;
        let name = |param: &ParamId| decls[param.index()].name.as_str();
        suffixed.clear();
        suffixed.extend(
            (0..decls.len())
                .map(ParamId::new)
                .filter(|param| name(param).trim_end_matches('_').ends_with(SUFFIX)),
        );
        suffixed.sort_unstable_by_key(|param| name(param));
        stores.clear();
        for ((param, decl), &wanted) in (0..).zip(decls).zip(params) {
            stores.push(wanted.then(|| {
                let ty = Type::new(DType::F32, decl.ty.shape);
                // Two gradients never have one name, but a parameter may have the name of a gradient.
                let mut name = [&decl.name, SUFFIX].concat();
                while suffixed.binary_search_by(|own| decls[own.index()].name.cmp(&name)).is_ok() {
                    name.push('_');
                }
                plan.stores.push(Store { name, ty, kind: StoreKind::Grad(StoreId(param)) });
                StoreId(plan.stores.len() as u32 - 1)
            }));
        }
    }

    /// Sorts the steps that reductions read by signature, and finds the place of each lane among those of its signature.
    fn order_lanes(&mut self, emitter: &Emitter<'_>) {
        let Emitter { input: &Input { graph, shards, .. }, reverse_steps, .. } = *emitter;
        let Self { steps, counts, cuts, order, .. } = self;
        steps.clear();
        let reduced =
            |sig: SigId| emitter.sigs[sig].derivative().is_some_and(|own| !own.reductions.is_empty());
        let all = reverse_steps.all.entries().map(|(id, back)| (back.sig, id));
        steps.extend(all.filter(|(sig, _)| reduced(*sig)));
        steps.sort_unstable_by(|(a, one), (b, other)| match a == b {
            true => one.cmp(other),
            false => graph.sigs.compare(*a, *b, &graph.types),
        });
        counts.clear();
        counts.resize(graph.sigs.items().len(), u32::MAX);
        steps.iter().for_each(|(sig, _)| counts[sig.index()] = 0);
        order.clear();
        order.resize(reverse_steps.lane_count(), 0);
        cuts.clear();
        let mut shards = shards.iter().peekable();
        for node in graph.arena.ids() {
            while shards.next_if(|first| **first <= node).is_some() {
                cuts.extend_from_slice(counts);
            }
            let count = &mut counts[graph.arena.node(node).sig.index()];
            if *count != u32::MAX
                && let Some(at) = reverse_steps.lane_of(node)
            {
                order[at] = *count;
                *count += 1;
            }
        }
        shards.for_each(|_| cuts.extend_from_slice(counts));
    }

    /// Adds the parts of the reductions of a signature, whose steps are given.
    fn add_parts(&mut self, plan: &mut Plan, steps: &[(SigId, ReverseId)], emitter: &Emitter<'_>) {
        let of_sig = OfSig { steps, order: &self.order, lanes: self.counts[steps[0].0.index()], emitter };
        self.sources.numbers.clear();
        let (sig, first) = steps[0];
        let lanes = of_sig.lanes;
        let Some(derivative) = emitter.sigs[sig].derivative() else { return };
        let step = emitter.reverse_steps.all[first].step;
        for lane in &derivative.reductions {
            let param = plan.stores(&plan.steps[step])[lane.param.index()];
            let Some(store) = self.stores[param.index()] else { continue };
            self.sources.origins.clear();
            let x = lane.x.map(|from| self.sources.rows(plan, &of_sig, from));
            let dy = self.sources.rows(plan, &of_sig, lane.dy);
            let mut start = 0;
            while start < lanes {
                let uniform = |rows: &Rows| self.sources.uniform_until(rows, start, lanes);
                let end = x.iter().map(uniform).fold(uniform(&dy), u32::min);
                let operand = |rows: &Rows| self.sources.operand(plan, rows, start..end);
                let (x, dy) = (x.as_ref().map(operand), operand(&dy));
                let (of, number) = ((store, lane.sum), self.parts.len() as u32);
                self.parts.push(Part { of, number, sig, lanes: start..end, each: lane.each, x, dy });
                start = end;
            }
        }
    }

    /// Brings together the parts of each reduction. The blocks of a store mostly lie apart; where they overlap, the order of
    /// all parts stays.
    fn sort_parts(&mut self, plan: &Plan) {
        let Self { parts, blocks, .. } = self;
        parts.sort_unstable_by_key(|part| (part.of.0, part.number));
        for own in parts.chunk_by_mut(|a, b| a.of.0 == b.of.0) {
            own.sort_unstable_by_key(|part| (part.of.1, part.number));
            blocks.clear();
            let same = own.chunk_by(|a, b| a.of.1 == b.of.1);
            blocks.extend(same.map(|same| same[0].of.1.block(&plan.stores, same[0].of.0)));
            if !apart(blocks) {
                own.sort_unstable_by_key(|part| part.number);
            }
        }
    }
}

/// The most blocks that are compared in pairs.
const FEW_BLOCKS: usize = 16;

/// Whether no two blocks of a store share an element.
fn apart(blocks: &[[Range<u64>; 2]]) -> bool {
    if blocks.len() > FEW_BLOCKS {
        return lie_apart(blocks.iter().cloned());
    }
    let overlap = |[rows, columns]: &[Range<u64>; 2], [other_rows, other_columns]: &[Range<u64>; 2]| {
        rows.start < other_rows.end
            && other_rows.start < rows.end
            && columns.start < other_columns.end
            && other_columns.start < columns.end
    };
    (1..blocks.len()).all(|at| blocks[..at].iter().all(|before| !overlap(before, &blocks[at])))
}

/// The steps of a signature.
struct OfSig<'a> {
    steps: &'a [(SigId, ReverseId)],
    order: &'a [u32],
    /// The number of its lanes.
    lanes: u32,
    emitter: &'a Emitter<'a>,
}

impl Sources {
    /// Finds or writes the row numbers of a source.
    fn rows(&mut self, plan: &mut Plan, of_sig: &OfSig<'_>, from: RowSource) -> Rows {
        let lanes = of_sig.lanes;
        // All parts of a step have one row number per lane, and so have all saved registers.
        let numbered = match from {
            RowSource::Part(_) => RowSource::Part(PartId(0)),
            RowSource::Port(PortRole::Saved(_)) => RowSource::Port(PortRole::Saved(0)),
            other => other,
        };
        let known = self.numbers.iter().find(|(own, _)| *own == numbered).map(|(_, at)| *at);
        let at = known.unwrap_or_else(|| {
            let at = plan.tables.len() as u32;
            plan.tables.resize((at + lanes) as usize, 0);
            self.numbers.push((numbered, at));
            at
        });
        let (mut origin, mut is_uniform) = (None, true);
        for &(_, number) in of_sig.steps {
            let rows = of_sig.rows(plan, number, from);
            is_uniform &= *origin.get_or_insert(rows.origin()) == rows.origin();
            if known.is_none() {
                of_sig.write(plan, number, rows, at);
            }
        }
        let origin = origin.expect("a signature with reductions has steps");
        let first = self.origins.len();
        if !is_uniform {
            self.origins.resize(first + lanes as usize, origin);
            for &(_, number) in of_sig.steps {
                let own = of_sig.rows(plan, number, from).origin();
                let lanes = of_sig.emitter.reverse_steps.all[number].lanes.clone();
                of_sig.order[lanes].iter().for_each(|&at| self.origins[first + at as usize] = own);
            }
        }
        Rows { at, origin, origins: first..self.origins.len() }
    }

    /// The end of the lanes from `start` on whose rows lie in one memory.
    fn uniform_until(&self, rows: &Rows, start: u32, lanes: u32) -> u32 {
        let Some(origins) = self.origins[rows.origins.clone()].get(start as usize..) else { return lanes };
        let differs = |origin: &Origin| *origin != origins[0];
        origins.iter().position(differs).map_or(lanes, |count| start + count as u32)
    }

    fn operand(&self, plan: &Plan, rows: &Rows, lanes: Range<u32>) -> StepOperand {
        let origin = self.origins[rows.origins.clone()].get(lanes.start as usize).copied();
        let at = rows.at + lanes.start;
        let numbers = &plan.tables[at as usize..(rows.at + lanes.end) as usize];
        let address = Address::steady(numbers.iter().copied()).unwrap_or(Address::Table { at });
        StepOperand { origin: origin.unwrap_or(rows.origin), address }
    }
}

impl ReducedRows {
    fn origin(self) -> Origin {
        let (Self::OfAll(operand) | Self::OfLive(operand)) = self;
        operand.origin
    }
}

impl OfSig<'_> {
    fn rows(&self, plan: &Plan, id: ReverseId, from: RowSource) -> ReducedRows {
        self.emitter.reduced_rows(plan, &self.emitter.reverse_steps.all[id], from)
    }

    /// Writes the row numbers of a step to their places in the tables, from `at` on.
    fn write(&self, plan: &mut Plan, id: ReverseId, rows: ReducedRows, at: u32) {
        let back = &self.emitter.reverse_steps.all[id];
        let order = &self.order[back.lanes.clone()];
        let lanes = self.emitter.reverse_steps.lanes(back);
        let tables = &mut plan.tables;
        let mut put = |place: u32, row: u32| tables[(at + place) as usize] = row;
        match rows {
            ReducedRows::OfLive(operand) => {
                let (start, stride) = operand.address.steps().expect("rows in reverse are consecutive");
                (0..).zip(order).for_each(|(lane, &place)| put(place, start + lane * stride));
            }
            ReducedRows::OfAll(StepOperand { address: Address::Steps { start, stride }, .. }) => {
                lanes.iter().zip(order).for_each(|(&lane, &place)| put(place, start + lane * stride));
            }
            ReducedRows::OfAll(StepOperand { address: Address::Table { at: from }, .. }) => {
                for (&lane, &place) in lanes.iter().zip(order) {
                    tables[(at + place) as usize] = tables[(from + lane) as usize];
                }
            }
            ReducedRows::OfAll(_) => unreachable!("reductions take one row per lane"),
        }
    }
}
