//! Emits each action. It takes operands from the stage, calls the emitter, and returns results with
//! bounds on their magnitude.

mod calls;
mod elementwise;
mod lists;
mod products;
mod rows;
mod shapes;

use super::act::Act;
use super::kit::{ROWS, WEIGHT};
use super::recipe::Step;
use super::stage::{Bounded, Stage};
use autobatch_ir::{Arg, DType, Shape, Type};

/// The results of a step.
type Results<'g> = Vec<Bounded<'g>>;

/// Emits one step and stores its results for later steps.
pub(super) fn take(stage: &mut Stage<'_, '_>, step: &Step) {
    let results = emit(stage, step);
    if let (true, Some(first)) = (step.alone && !stage.in_body, results.first()) {
        let _ = first.0.alone();
    }
    for (value, bound) in results {
        stage.keep(step, value, bound);
    }
}

fn emit<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Results<'g> {
    match step.act {
        Act::Input
        | Act::InputShaped
        | Act::Fill
        | Act::Param
        | Act::Look
        | Act::LookComputed
        | Act::OneHot
        | Act::Index
        | Act::Indices
        | Act::Words => leaf(stage, step),
        Act::Unary(_)
        | Act::LeakyRelu
        | Act::Elu
        | Act::Clamp
        | Act::Binary(_)
        | Act::WithNumber(_)
        | Act::WithScalar(_)
        | Act::WithRow
        | Act::Ints(_)
        | Act::Compare(_)
        | Act::Select
        | Act::Mask
        | Act::Cast(_) => elementwise::emit(stage, step),
        Act::Affine
        | Act::AffineBias
        | Act::AffineParts
        | Act::AffineTransposed
        | Act::AffineRows
        | Act::Stretch
        | Act::AffineHalf
        | Act::Matmul
        | Act::Dot
        | Act::Outer => products::emit(stage, step),
        Act::Broadcast
        | Act::Concat
        | Act::ConcatAxis
        | Act::Split
        | Act::Chunks
        | Act::Slice
        | Act::SliceAxis
        | Act::Reshape
        | Act::Transpose
        | Act::Pick
        | Act::Stack => shapes::emit(stage, step),
        Act::Reduce(..)
        | Act::ArgMax
        | Act::TopK
        | Act::Softmax
        | Act::LogSoftmax
        | Act::LogSumExp
        | Act::Norm
        | Act::LayerNorm
        | Act::PickNegLogSoftmax
        | Act::LabelledRows
        | Act::CrossEntropy
        | Act::KlDiv
        | Act::Mse
        | Act::Bce
        | Act::Hinge => rows::emit(stage, step),
        Act::ListFold(_) | Act::ListPick | Act::WeightedSum { .. } | Act::Attend | Act::FanOut => {
            lists::emit(stage, step)
        }
        Act::Dropout | Act::StopGradient | Act::ScaleGradient | Act::Call(_) => calls::emit(stage, step),
    }
}

/// Emits a node without value operands.
fn leaf<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Results<'g> {
    const SHAPES: [&[u32]; 8] =
        [&[], &[3], &[2, 3], &[2, 1, 2], &[1, 2, 1, 2], &[1], &[3, 2, 4], &[2, 3, 2, 2]];
    const WORDS: [DType; 3] = [DType::Bool, DType::I32, DType::U32];
    let shape = Shape::new(SHAPES[step.size as usize % SHAPES.len()]).expect("small extents form a shape");
    let (g, kit, width) = (stage.g, stage.kit, stage.width());
    let size = step.size as usize;
    let result = match step.act {
        Act::Fill if size.is_multiple_of(3) => (g.zeros([width]), 0.0),
        Act::Fill => (g.fill([width], stage.numbers(step, 1)[0]), 2.0),
        Act::Param => {
            (g.param([kit.bias, kit.square, kit.out, kit.half][size % 4 % kit_params(stage)]), WEIGHT)
        }
        Act::Look => (kit.table.lookup(g, stage.index(step, ROWS)), WEIGHT),
        Act::LookComputed => {
            let place = stage.vector(step, 0).0.argmax();
            (kit.table.row(place), WEIGHT)
        }
        Act::OneHot => (g.one_hot(stage.index(step, width), width), 1.0),
        Act::Index if !stage.in_body => (g.index(step.size % ROWS as u32), (ROWS - 1) as f64),
        Act::Indices if !stage.in_body => {
            let places: Vec<u32> = (0..1 + step.size % 3).map(|row| (step.size / 8 + row) % 3).collect();
            (g.indices(&places), 2.0)
        }
        Act::InputShaped => (stage.bound_floats(step, shape), 2.0),
        Act::Words => stage.bound(step, Type::new(WORDS[size / 8 % 3], shape)),
        _ => stage.bound(step, stage.vector_type()),
    };
    vec![result]
}

/// Returns the number of parameters that may serve as values. A weight stored in 16 bits is excluded, because
/// its value does not depend smoothly on the stored one.
fn kit_params(stage: &Stage<'_, '_>) -> usize {
    if stage.options.smooth { 3 } else { 4 }
}

/// Converts an index argument to a value.
fn index_value<'g>(stage: &Stage<'g, '_>, index: Arg<'g>) -> autobatch_ir::Value<'g> {
    match index {
        Arg::Value(value) => value,
        Arg::Index(number) => stage.g.index(number),
    }
}
