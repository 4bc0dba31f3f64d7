//! Folds inside a value, and losses.

use super::{Results, index_value};
use crate::random::act::Act;
use crate::random::recipe::Step;
use crate::random::stage::{Bounded, Stage};
use autobatch_ir::Value;
use autobatch_ir::graph::{Fold, Over};

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
        Act::LayerNorm => (x.layer_norm(0.125), count.sqrt()),
        _ => unreachable!("not an act on rows"),
    };
    vec![result]
}

/// The fold of each member.
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

/// Labels of the rows of a matrix: bound, computed, or several times one index.
fn labelled_rows<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Bounded<'g> {
    let (x, bound) = stage.matrix(step, 0);
    let rows = x.shape().dims()[0];
    let width = stage.width() as u32;
    let labels = match step.size % 3 {
        _ if stage.in_body => {
            let label = stage.index(step, width as usize);
            index_value(stage, label).broadcast([rows as usize])
        }
        0 if !stage.options.differentiable => x.argmax(),
        _ => {
            let labels: Vec<u32> = (0..rows).map(|row| (step.size / 4 + row) % width).collect();
            stage.g.indices(&labels)
        }
    };
    (x.cross_entropy(labels), 2.0 * bound + f64::from(width).ln())
}
