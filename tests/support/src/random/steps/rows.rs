//! Reductions within a value, and losses.

use super::{Results, index_value};
use crate::random::act::Act;
use crate::random::kit::{ROWS, WEIGHT};
use crate::random::recipe::Step;
use crate::random::stage::{Bounded, Stage};
use autobatch_ir::graph::{Fold, Over};
use autobatch_ir::{DType, Type, Value};

pub(super) fn emit<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Results<'g> {
    match step.act {
        Act::PickNegLogSoftmax
        | Act::LabelledRows
        | Act::CrossEntropy
        | Act::KlDiv
        | Act::Mse
        | Act::Bce
        | Act::Hinge => return vec![loss(stage, step)],
        _ => {}
    }
    let (x, bound) = stage.rows(step, 0);
    let x = if step.size / 4096 % 6 == 1 { x.reshape([x.shape().elements(), 1]) } else { x };
    let width = x.shape().width();
    let count = x.shape().elements() as f64;
    let result = match step.act {
        Act::Reduce(fold, over) => {
            let bound = if fold == Fold::Sum { count * bound } else { bound };
            (reduced(fold, over, x), bound)
        }
        Act::ArgMax => (x.argmax(), (width - 1) as f64),
        Act::TopK => {
            let [values, places] = x.top_k(1 + step.size as usize % width);
            return vec![(values, bound), (places, (width - 1) as f64)];
        }
        Act::Softmax => (x.softmax(), 1.0),
        Act::LogSoftmax => (x.log_softmax(), 2.0 * bound + count.ln()),
        Act::LogSumExp => (x.logsumexp(), bound + count.ln()),
        Act::Norm if stage.options.wild => (x.norm(), bound),
        Act::Norm => ((x.square() + 0.5).norm(), (bound * bound + 0.5) * count.sqrt()),
        Act::LayerNorm => (layer_norm(stage, step, x), count.sqrt()),
        _ => unreachable!("not an action on rows"),
    };
    vec![result]
}

/// Emits a layer norm. Without `eps` a row must not be constant unless numbers are wild, so one element is set apart.
fn layer_norm<'g>(stage: &Stage<'g, '_>, step: &Step, x: Value<'g>) -> Value<'g> {
    let width = x.shape().width();
    match step.size % 3 {
        1 if stage.options.wild && width > 1 => x.layer_norm(0.0),
        1 if width > 1 => {
            let rest = stage.g.zeros([width - 1]);
            let far = stage.g.concat([stage.g.fill([1], 16.0), rest]).broadcast(x.shape());
            (x + far).layer_norm(0.0)
        }
        _ => x.layer_norm(0.125),
    }
}

/// Applies a reduction.
pub(crate) fn reduced<'g>(fold: Fold, over: Over, x: Value<'g>) -> Value<'g> {
    match (fold, over) {
        (Fold::Sum, Over::Last) => x.sum_rows(),
        (Fold::Sum, Over::All) => x.sum(),
        (Fold::Mean, Over::Last) => x.mean_rows(),
        (Fold::Mean, Over::All) => x.mean(),
        (Fold::Max, Over::Last) => x.max_rows(),
        (Fold::Max, Over::All) => x.max(),
        (Fold::Min, Over::Last) => x.min_rows(),
        (Fold::Min, Over::All) => x.min(),
    }
}

fn loss<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Bounded<'g> {
    let width = stage.width();
    let log_width = (width as f64).ln();
    match step.act {
        Act::Mse | Act::Bce => {
            let x = stage.float(step, 0);
            let y = stage.like(step, x);
            match step.act {
                Act::Mse => (x.0.mse(y.0), (x.1 + y.1).powi(2)),
                _ => (x.0.bce(y.0.sigmoid()), 2.0 * x.1 + 1.0),
            }
        }
        Act::LabelledRows => labelled_rows(stage, step),
        _ => {
            let (x, bound) = stage.vector(step, 0);
            let wide = 2.0 * bound + log_width;
            match step.act {
                Act::PickNegLogSoftmax if step.size / 16 % 3 == 1 => {
                    let (rows, count) = match step.size % 2 {
                        0 => (stage.kit.table.as_param(), ROWS),
                        _ => (stage.kit.square, width),
                    };
                    let label = stage.index(step, count);
                    let score = bound * WEIGHT * width as f64;
                    (x.label_loss(rows, label), 2.0 * score + (count as f64).ln())
                }
                Act::PickNegLogSoftmax => {
                    let label = stage.index(step, width);
                    (x.cross_entropy(label), wide)
                }
                Act::Hinge => {
                    let label = stage.index(step, width);
                    (x.hinge(label, 0.5), width as f64 * (2.0 * bound + 0.5))
                }
                Act::CrossEntropy => {
                    let target = stage.vector(step, 1).0.softmax();
                    (x.cross_entropy_with(target), wide)
                }
                _ => {
                    let target = stage.vector(step, 1).0.softmax();
                    (x.log_softmax().kl_div(target), 2.0 * wide)
                }
            }
        }
    }
}

/// Emits the losses of all rows of a value. The labels are bindings, computed values, or one index for all rows.
fn labelled_rows<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Bounded<'g> {
    let fits = |ty: Type| ty.dtype == DType::F32 && ty.shape.rank() > 1;
    let found = if (step.size / 64).is_multiple_of(2) { stage.find(step, 0, fits) } else { None };
    let (x, bound) = found.unwrap_or_else(|| stage.matrix(step, 0));
    let (width, rows) = (x.shape().width(), x.shape().without_last());
    let labels = match step.size % 3 {
        _ if stage.in_body => {
            let label = stage.index(step, width);
            index_value(stage, label).broadcast(rows)
        }
        0 if !stage.options.smooth => x.argmax(),
        _ => {
            let labels: Vec<u32> =
                (0..rows.elements() as u32).map(|row| (step.size / 4 + row) % width as u32).collect();
            stage.g.indices(&labels).reshape(rows)
        }
    };
    if step.size / 128 % 3 == 1 && !stage.options.smooth {
        return (x.hinge(labels, -0.25), width as f64 * (2.0 * bound + 0.25));
    }
    (x.cross_entropy(labels), 2.0 * bound + (width as f64).ln())
}
