//! Row stages: ops that read a value as a whole.

use super::record::{Record, RowAddress};
use super::step::{Lanes, Move};
use crate::error::GpuError;
use crate::module::Program;
use autobatch_ir::graph::{Fold, Op, Over};
use autobatch_ir::numeric::noise::dropout_scale;
use autobatch_ir::plan::View;
use autobatch_ir::types::{Shape, Type};
use autobatch_shaders::{DROPOUT, FORK_NOISE, MATMUL, ONE_HOT, PICK, TOP_K};
use std::ops::Range;

/// Adds the segment of a row stage.
pub(super) fn lower(
    lanes: &mut Lanes<'_, '_>,
    op: Op,
    sources: &[(View, Type)],
    dsts: &[View],
) -> Result<(), GpuError> {
    let addresses: Vec<RowAddress> = sources.iter().map(|(view, _)| lanes.address(*view)).collect();
    let types: Vec<Shape> = sources.iter().map(|(_, ty)| ty.shape).collect();
    let to: Vec<RowAddress> = dsts.iter().map(|dst| lanes.address(*dst)).collect();
    if let Some(moves) = moves(op, &addresses, &types, &to) {
        return lanes.moves(&moves);
    }
    if let Some((function, whole)) = row_function(op) {
        let fold =
            RowFold { function, whole, op, sources: &addresses, shape: types[0], width: dsts[0].width };
        return fold.lower(lanes, to[0]);
    }
    let width = dsts[0].width;
    // The addresses of all sources and results follow these words.
    let (program, each, mut record) = match op {
        Op::Matmul | Op::Outer => {
            let columns = if types[1].rank() == 1 && op == Op::Matmul { 1 } else { types[1].width() as u32 };
            let depth = if op == Op::Matmul { types[0].width() as u32 } else { 0 };
            (MATMUL, width, Record::new(&[width, columns, depth]))
        }
        Op::Pick => (PICK, width, Record::new(&[width, types[0].dims()[0] - 1])),
        Op::OneHot { .. } => (ONE_HOT, width, Record::new(&[width])),
        Op::TopK { k } => {
            let rows = types[0].rows() as u32;
            (TOP_K, rows, Record::new(&[rows, types[0].width() as u32, k]))
        }
        Op::Dropout { rate, ordinal } => {
            let scale: f32 = dropout_scale(rate.get());
            (DROPOUT, width, Record::new(&[width, rate.bits(), scale.to_bits(), ordinal]))
        }
        Op::ForkNoise { ordinal } => (FORK_NOISE, 1, Record::new(&[1, ordinal])),
        // Ops of other templates are no row stages (rule P12).
        _ => return Ok(()),
    };
    addresses.iter().chain(&to).for_each(|address| _ = record.all(address));
    lanes.segment(Program::Fixed(program), &record, each)
}

/// The library's function for an op, and whether it sees the value as one row.
fn row_function(op: Op) -> Option<(&'static str, bool)> {
    Some(match op {
        Op::Reduce { fold, over } => {
            let function = match fold {
                Fold::Sum => "store_sum",
                Fold::Mean => "store_mean",
                Fold::Max => "store_max",
                Fold::Min => "store_min",
            };
            (function, over == Over::All)
        }
        Op::ArgMax => ("store_argmax", false),
        Op::Softmax => ("store_softmax", false),
        Op::LogSoftmax => ("store_log_softmax", false),
        Op::LogSumExp => ("store_logsumexp", false),
        Op::Norm => ("store_norm", false),
        Op::LayerNorm { .. } => ("store_layer_norm", false),
        Op::PickNegLogSoftmax => ("store_pick_neg_log_softmax", false),
        Op::Hinge { .. } => ("store_hinge", false),
        Op::Dot => ("store_dot", true),
        Op::CrossEntropy => ("store_cross_entropy", true),
        Op::KlDiv => ("store_kl_div", true),
        Op::Mse => ("store_mse", true),
        Op::Bce => ("store_bce", true),
        _ => return None,
    })
}

/// A row op that is a fold.
struct RowFold<'a> {
    function: &'static str,
    /// True if the value counts as one row.
    whole: bool,
    op: Op,
    sources: &'a [RowAddress],
    /// The shape of the first source.
    shape: Shape,
    /// Elements of the result.
    width: u32,
}

impl RowFold<'_> {
    fn lower(&self, lanes: &mut Lanes<'_, '_>, to: RowAddress) -> Result<(), GpuError> {
        let (rows, width) = match self.whole {
            true => (1, self.shape.elements() as u32),
            false => (self.shape.rows() as u32, self.shape.width() as u32),
        };
        let labelled = u32::from(matches!(self.op, Op::PickNegLogSoftmax | Op::Hinge { .. }));
        let attribute = match self.op {
            Op::LayerNorm { eps } => eps.bits(),
            Op::Hinge { margin } => margin.bits(),
            _ => 0,
        };
        let mut record = Record::new(&[rows, width, self.width / rows, attribute, labelled, labelled]);
        record.all(&self.sources[0]).all(self.sources.get(1).unwrap_or(&self.sources[0])).all(&to);
        lanes.segment(Program::Row(self.function), &record, rows)
    }
}

/// The extent and the stride of four axes. Shapes of lower rank get outer axes of extent 1.
fn filled(shape: Shape) -> ([u32; 4], [u32; 4]) {
    let (mut extents, mut steps) = ([1; 4], [0; 4]);
    let outer = 4 - shape.rank();
    let mut step = 1;
    for (axis, &extent) in shape.dims().iter().enumerate().rev() {
        (extents[outer + axis], steps[outer + axis]) = (extent, step);
        step *= extent;
    }
    (extents, steps)
}

/// The number of outer runs, the extent of an axis, and the elements of one step along it.
fn around(shape: Shape, axis: u8) -> (u32, u32, u32) {
    let (dims, axis) = (shape.dims(), axis as usize);
    (dims[..axis].iter().product(), dims[axis], dims[axis + 1..].iter().product())
}

/// The moves of an op that only moves words, or `None` for other ops.
fn moves(op: Op, from: &[RowAddress], shapes: &[Shape], to: &[RowAddress]) -> Option<Vec<Move>> {
    Some(match op {
        Op::Broadcast(shape) => {
            let (own, mut steps) = filled(shapes[0]);
            for (step, &extent) in steps.iter_mut().zip(&own) {
                if extent == 1 {
                    *step = 0;
                }
            }
            let (extents, to_steps) = filled(shape);
            vec![Move { extents, from_steps: steps, to_steps, ..Move::straight(0, from[0], to[0]) }]
        }
        Op::Transpose(permutation) => {
            let (rank, dims) = (shapes[0].rank(), shapes[0].dims());
            let outer = 4 - rank;
            let own = filled(shapes[0]).1;
            let (mut extents, mut from_steps, mut to_steps) = ([1; 4], [0; 4], [0; 4]);
            let mut step = 1;
            for axis in (0..rank).rev() {
                let source = permutation.0[axis] as usize;
                extents[outer + axis] = dims[source];
                from_steps[outer + axis] = own[outer + source];
                to_steps[outer + axis] = step;
                step *= dims[source];
            }
            vec![Move { extents, from_steps, to_steps, ..Move::straight(0, from[0], to[0]) }]
        }
        Op::Slice { axis, start, len } => {
            vec![slice(shapes[0], axis, start..start + len, from[0], to[0])]
        }
        Op::Split { axis, parts } => {
            let len = around(shapes[0], axis).1 / parts;
            let part = |(number, &to): (usize, &RowAddress)| {
                let start = number as u32 * len;
                slice(shapes[0], axis, start..start + len, from[0], to)
            };
            to.iter().enumerate().map(part).collect()
        }
        Op::Concat { axis } => {
            let run = |shape: &Shape| {
                let (_, extent, inner) = around(*shape, axis);
                extent * inner
            };
            let total: u32 = shapes.iter().map(run).sum();
            let mut at = 0;
            let mut piece = |(shape, &from): (&Shape, &RowAddress)| {
                let (outer, run) = (around(*shape, axis).0, run(shape));
                let to_offset = at;
                at += run;
                Move {
                    extents: [1, 1, outer, run],
                    from_steps: [0, 0, run, 1],
                    to_steps: [0, 0, total, 1],
                    to_offset,
                    ..Move::straight(0, from, to[0])
                }
            };
            shapes.iter().zip(from).map(&mut piece).collect()
        }
        _ => return None,
    })
}

/// The move of a range of an axis.
fn slice(shape: Shape, axis: u8, range: Range<u32>, from: RowAddress, to: RowAddress) -> Move {
    let len = range.end - range.start;
    let (outer, extent, inner) = around(shape, axis);
    Move {
        extents: [1, 1, outer, len * inner],
        from_steps: [0, 0, extent * inner, 1],
        to_steps: [0, 0, len * inner, 1],
        from_offset: range.start * inner,
        ..Move::straight(0, from, to)
    }
}
