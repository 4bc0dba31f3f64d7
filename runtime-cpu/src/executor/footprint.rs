//! The footprint of a plan on this executor: tiles, scratch space, copies of constants and weights, and sums of shards.

use super::prepared::{PreparedSteps, StepArgs, writes_directly};
use super::program::Program;
use super::shards;
use crate::kernels::{
    AttentionSpace, GRADIENT_SCRATCH_FLOATS, GraphSpace, LabelGradient, LabelSpace, PRODUCT_SCRATCH_FLOATS,
    PackedWeights,
};
use autobatch_ir::graph::Op;
use autobatch_ir::plan::{
    Footprint, Kernel, ListSource, ParamPort, Plan, ReductionSum, RegId, Stage, Step, StoreId, Verified,
};
use std::collections::HashSet;

/// The memory and the work of executing a plan on some threads. None of the memory is allocated for the answer.
#[must_use]
pub fn footprint(plan: &Verified<Plan>, threads: usize) -> Footprint {
    with_programs(plan, threads.max(1), &PreparedSteps::default())
}

/// As [`footprint`], with the programs that an executor compiled before.
pub(super) fn with_programs(plan: &Verified<Plan>, threads: usize, prepared: &PreparedSteps) -> Footprint {
    let mut sizes: Vec<[Option<Sizes>; 2]> = plan.kernels.iter().map(|_| [None, None]).collect();
    let mut packed: HashSet<PackedPart> = HashSet::new();
    let mut attention = AttentionBytes::default();
    let (mut tile, mut copies) =
        (0u64, (plan.steps.len() * (size_of::<StepArgs>() + size_of::<usize>())) as u64);
    for step in &plan.steps {
        let (kernel, direct) = (&plan.kernels[step.kernel.index()], writes_directly(plan, step));
        let own = sizes[step.kernel.index()][usize::from(direct)].get_or_insert_with(|| {
            let own = match prepared.known_program(kernel, direct) {
                Some(program) => Sizes::of(kernel, program),
                None => Sizes::of(kernel, &Program::new(kernel, direct)),
            };
            copies = copies.saturating_add(own.constants);
            own
        });
        tile = tile.max(own.tile(step.rows));
        attention.add(plan, step, kernel);
        attention.add_graphs(plan, step, kernel, own.tile_rows);
        for part in &own.packed {
            let store = plan.stores(step)[part.port.index()];
            if packed.insert(PackedPart { store, port: ParamPort(0), ..*part }) {
                copies = copies.saturating_add(part.bytes);
            }
        }
    }
    let of_weight = |sum: &ReductionSum| matches!(sum, ReductionSum::Wgrad { .. });
    if plan.reductions.iter().any(|own| of_weight(&own.sum)) {
        tile = tile.saturating_add(4 * GRADIENT_SCRATCH_FLOATS as u64);
    }
    let of_labels = plan.reductions.iter().filter(|own| own.sum == ReductionSum::Lgrad);
    let widths = of_labels.map(|own| plan.stores[own.store.index()].ty.shape.width());
    let labels = widths.map(LabelGradient::scratch_bytes).max().unwrap_or(0);
    let tile = tile.saturating_add(labels);
    let tile = tile.saturating_add(attention.total());
    let copies = copies.saturating_add(shards::slot_bytes(plan));
    Footprint { copies, per_thread: tile, threads: threads as u64, ..Footprint::of(plan) }
}

/// A part of a store that products read in packed form.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PackedPart {
    /// The store. A kernel does not know it: its parts have `u32::MAX`.
    store: StoreId,
    /// The parameter port. The parts of a plan have 0, so that two kernels share the part of a store.
    port: ParamPort,
    transposed: bool,
    col: u32,
    width: u32,
    bytes: u64,
}

/// The sizes of a compiled kernel, in bytes.
struct Sizes {
    row: u64,
    tile_rows: u32,
    /// Blocks and scratch space, whatever the number of lanes.
    fixed: u64,
    constants: u64,
    packed: Vec<PackedPart>,
}

impl Sizes {
    fn of(kernel: &Kernel, program: &Program) -> Self {
        let packed = program.weights.iter().map(|weight| {
            let shape = kernel.params[weight.param.index()].shape;
            let k = if weight.transposed { shape.width() } else { shape.rows() };
            PackedPart {
                store: StoreId(u32::MAX),
                port: weight.param,
                transposed: weight.transposed,
                col: weight.col,
                width: weight.width,
                bytes: 4 * PackedWeights::max_floats(k, weight.width as usize) as u64,
            }
        });
        let has_labels = kernel.stages.iter().any(|stage| matches!(stage, Stage::LabelLoss { .. }));
        let scratch = kernel.stages.iter().map(scratch_floats).max().unwrap_or(0);
        Self {
            row: 4 * program.row_floats as u64 + if has_labels { LabelSpace::LANE_BYTES } else { 0 },
            tile_rows: program.tile_rows as u32,
            fixed: 4 * (program.block_floats + scratch) as u64,
            constants: 4 * program.constant_floats() as u64,
            packed: packed.collect(),
        }
    }

    fn tile(&self, lanes: u32) -> u64 {
        self.row.saturating_mul(u64::from(lanes.min(self.tile_rows))).saturating_add(self.fixed)
    }
}

/// The scratch space of attention, in bytes.
#[derive(Default)]
struct AttentionBytes {
    /// By the number of an attention among those of its step, the most that one needs.
    packed: Vec<u64>,
    shared: u64,
    /// The most that a graph attention needs.
    graph: u64,
}

impl AttentionBytes {
    fn add_graphs(&mut self, plan: &Plan, step: &Step, kernel: &Kernel, tile_rows: u32) {
        for (port, heads) in kernel.stages.iter().filter_map(graph_lists) {
            let operand = plan.operands(step)[port.index()];
            let length = |lane: u32| plan.list_rows(operand, lane).map_or(0, |(_, list)| list.len() as u64);
            let (longest, all) =
                (0..step.rows).map(length).fold((0, 0), |(longest, all), own| (own.max(longest), all + own));
            let lanes = u64::from(tile_rows.min(step.rows));
            let items = longest.saturating_mul(lanes).min(all);
            self.graph = self.graph.max(GraphSpace::bytes(items, lanes, u64::from(heads)));
        }
    }

    fn add(&mut self, plan: &Plan, step: &Step, kernel: &Kernel) {
        let lists = kernel.stages.iter().filter_map(packed_lists);
        for (number, (port, width)) in lists.enumerate() {
            let operand = plan.operands(step)[port.index()];
            let length = |lane: u32| plan.list_rows(operand, lane).map_or(0, |(_, list)| list.len());
            let longest = (0..step.rows).map(length).max().unwrap_or(0);
            if self.packed.len() <= number {
                self.packed.push(0);
            }
            self.packed[number] =
                self.packed[number].max(AttentionSpace::packed_bytes(longest, width as usize));
            self.shared = self.shared.max(AttentionSpace::shared_bytes(longest));
        }
    }

    fn total(&self) -> u64 {
        let shared = self.shared.saturating_add(self.graph);
        self.packed.iter().fold(shared, |sum, &bytes| sum.saturating_add(bytes))
    }
}

/// The port of the lists whose rows an attention packs, and the floats of a row of both sides.
fn packed_lists(stage: &Stage) -> Option<(RegId, u32)> {
    match stage {
        Stage::Seg { op: Op::Attend { .. }, query: Some(query), lists, .. } => match lists[..] {
            [ListSource::Port(keys), ListSource::Port(_)] => Some((keys, query.width)),
            _ => None,
        },
        Stage::AttendGrad { op: Op::Attend { .. }, query, keys, dy, .. } => {
            Some((*keys, query.width + dy.width))
        }
        Stage::AttendPull { op: Op::Attend { .. }, key, value, readers, .. } => {
            Some((*readers, key.width + value.width))
        }
        _ => None,
    }
}

/// The port of the lists that a graph attention goes over, and its heads.
fn graph_lists(stage: &Stage) -> Option<(RegId, u32)> {
    match stage {
        Stage::Seg { op: Op::GraphAttend { .. }, query: Some(query), lists, .. } => match lists[..] {
            [ListSource::Port(keys), ListSource::Port(_)] => Some((keys, query.width)),
            _ => None,
        },
        Stage::AttendGrad { op: Op::GraphAttend { .. }, query, keys, .. } => Some((*keys, query.width)),
        Stage::AttendPull { op: Op::GraphAttend { .. }, key, readers, .. } => Some((*readers, key.width)),
        _ => None,
    }
}

/// The scratch space of a stage: operand rows of products, and the packed right matrix of a product of two values.
fn scratch_floats(stage: &Stage) -> usize {
    match stage {
        Stage::Prod { .. } => PRODUCT_SCRATCH_FLOATS,
        Stage::Row { op: Op::Matmul, sources, .. } => {
            let right = sources
                .get(1)
                .map_or(0, |(_, ty)| PackedWeights::max_floats(ty.shape.rows(), ty.shape.width()));
            PRODUCT_SCRATCH_FLOATS + right
        }
        Stage::LabelLoss { x, .. } => PRODUCT_SCRATCH_FLOATS + LabelSpace::floats(x.width as usize),
        _ => 0,
    }
}
