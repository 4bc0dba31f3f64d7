//! Losses.

use super::{Op, one, refuse};
use crate::lazy::call::Call;
use crate::lazy::dims::{Dims, broadcast, written};
use crate::lazy::tensor::{Elements, Kind, Operand, Tensor, elements_of};
use crate::lazy::{Made, Outcome, Recording};
use autobatch::ir::graph::Value;

const PAIR: &[&str] = &["input", "target", "size_average", "reduce", "reduction", "weight"];

pub(super) const OPS: &[Op] = &[
    Op::new(
        &["cross_entropy"],
        &[
            "input",
            "target",
            "weight",
            "size_average",
            "ignore_index",
            "reduce",
            "reduction",
            "label_smoothing",
        ],
        |r, call| {
            let smoothing = call.number(7, 0.0)? as f32;
            r.classified(call, smoothing, true)
        },
    ),
    Op::new(
        &["nll_loss"],
        &["input", "target", "weight", "size_average", "ignore_index", "reduce", "reduction"],
        |r, call| r.classified(call, 0.0, false),
    ),
    Op::new(&["mse_loss"], PAIR, |r, call| r.compared(call, |x, y| (x - y).square())),
    Op::new(&["l1_loss"], PAIR, |r, call| r.compared(call, |x, y| (x - y).abs())),
    Op::new(
        &["smooth_l1_loss"],
        &["input", "target", "size_average", "reduce", "reduction", "beta"],
        |r, call| {
            let beta = call.number(5, 1.0)? as f32;
            r.compared(call, |x, y| {
                let far = (x - y).abs();
                if beta == 0.0 {
                    return far;
                }
                far.less(beta).select(far.square() * (0.5 / beta), far - 0.5 * beta)
            })
        },
    ),
    Op::new(&["huber_loss"], &["input", "target", "reduction", "delta", "weight"], |r, call| {
        let delta = call.number(3, 1.0)? as f32;
        let reduction = call.word(2, "mean")?;
        r.compared_by(call, &reduction, Weights::AsCounts(4), |x, y| {
            let far = (x - y).abs();
            far.less(delta).select(far.square() * 0.5, (far - 0.5 * delta) * delta)
        })
    }),
    Op::new(
        &["binary_cross_entropy_with_logits"],
        &["input", "target", "weight", "size_average", "reduce", "reduction", "pos_weight"],
        |r, call| {
            let reduction = call.word(5, "mean")?;
            let Some(weight) = call.get(6)? else {
                return r.compared_by(call, &reduction, Weights::AsFactors(2), |x, y| x.softplus() - x * y);
            };
            // The weight of the positive class counts where the target is one.
            let (x, y) = (r.operand(&call.need(0)?)?, r.operand(&call.need(1)?)?);
            let weight = r.operand(&weight)?;
            let positive = r.pair(y.clone(), weight, |y, weight| y * weight)?;
            let yes = r.pair(x.clone(), Operand::Tensor(positive), |x, weight| (-x).softplus() * weight)?;
            let no = r.pair(x, y, |x, y| x.softplus() * (-y + 1.0))?;
            let losses = r.pair(Operand::Tensor(yes), Operand::Tensor(no), |yes, no| yes + no)?;
            r.weighed(call, losses, &reduction, Weights::AsFactors(2))
        },
    ),
    Op::new(
        &["binary_cross_entropy"],
        &["input", "target", "weight", "size_average", "reduce", "reduction"],
        |r, call| {
            let reduction = call.word(5, "mean")?;
            let low = -100.0;
            r.compared_by(call, &reduction, Weights::AsFactors(2), |x, y| {
                let (yes, no) =
                    (x.log().clamp(low, f32::INFINITY), (-x + 1.0).log().clamp(low, f32::INFINITY));
                -(y * yes + (-y + 1.0) * no)
            })
        },
    ),
    Op::new(
        &["kl_div"],
        &["input", "target", "size_average", "reduce", "reduction", "log_target"],
        |r, call| {
            let reduction = call.word(4, "mean")?;
            match call.flag(5, false)? {
                true => r.compared_by(call, &reduction, Weights::None, |x, y| y.exp() * (y - x)),
                false => r.compared_by(call, &reduction, Weights::None, |x, y| {
                    let positive = y.greater(0.0);
                    // The logarithm of a zero is replaced, so that no gradient is NaN.
                    let safe = positive.select(y, y * 0.0 + 1.0);
                    positive.select(y * (safe.log() - x), y * 0.0)
                }),
            }
        },
    ),
];

/// The argument that has weights of elements.
#[derive(Clone, Copy)]
enum Weights {
    None,
    /// The mean divides by the number of elements.
    AsFactors(usize),
    /// The mean divides by the sum of the weights.
    AsCounts(usize),
}

impl<'g> Recording<'_, 'g> {
    /// A tensor of losses as the call asks for it.
    fn reduced(&self, losses: &Tensor, reduction: &str) -> Made<Outcome> {
        self.reduced_of(losses, reduction, losses.dims.first().copied())
    }

    /// The same, of an input with a first extent.
    fn reduced_of(&self, losses: &Tensor, reduction: &str, first: Option<u32>) -> Made<Outcome> {
        let all: Vec<usize> = (0..losses.rank()).collect();
        match reduction {
            "none" => one(losses.clone()),
            "sum" => one(self.summed(losses, &all, false)?),
            "mean" => one(self.folded(losses, &all, false, super::reductions::Fold::Mean)?),
            "batchmean" => {
                let count = first.unwrap_or(1) as f32;
                let sum = self.summed(losses, &all, false)?;
                one(self.map(&sum, |sum| sum / count)?)
            }
            other => refuse(format!("reduction={other:?}")),
        }
    }

    fn compared(
        &mut self,
        call: &Call<'_, '_>,
        f: impl Fn(Value<'g>, Value<'g>) -> Value<'g>,
    ) -> Made<Outcome> {
        let weights = if call.names.get(5) == Some(&"weight") { Weights::AsCounts(5) } else { Weights::None };
        let reduction = call.word(4, "mean")?;
        self.compared_by(call, &reduction, weights, f)
    }

    /// A loss of pairs of elements.
    fn compared_by(
        &mut self,
        call: &Call<'_, '_>,
        reduction: &str,
        weights: Weights,
        f: impl Fn(Value<'g>, Value<'g>) -> Value<'g>,
    ) -> Made<Outcome> {
        let (mut x, mut y) = (self.operand(&call.need(0)?)?, self.operand(&call.need(1)?)?);
        let first = if let Operand::Tensor(x) = &x { x.dims.first().copied() } else { None };
        if let (Operand::Tensor(a), Operand::Tensor(b)) = (&mut x, &mut y)
            && a.dims != b.dims
        {
            let dims = broadcast(&a.dims, &b.dims)?;
            (*a, *b) = (self.expanded(a, dims.clone())?, self.expanded(b, dims)?);
        }
        let losses = self.pair(x, y, f)?;
        match weights {
            Weights::None => self.reduced_of(&losses, reduction, first),
            _ => self.weighed(call, losses, reduction, weights),
        }
    }

    /// Losses of elements with their weights, as the call asks for them.
    fn weighed(
        &mut self,
        call: &Call<'_, '_>,
        losses: Tensor,
        reduction: &str,
        weights: Weights,
    ) -> Made<Outcome> {
        let (place, are_counts) = match weights {
            Weights::None => return self.reduced(&losses, reduction),
            Weights::AsFactors(place) => (place, false),
            Weights::AsCounts(place) => (place, true),
        };
        let Some(weight) = call.get(place)? else { return self.reduced(&losses, reduction) };
        let weight = self.operand(&weight)?;
        let weighed = self.pair(Operand::Tensor(losses), weight.clone(), |loss, weight| loss * weight)?;
        let (true, "mean", Operand::Tensor(weight)) = (are_counts, reduction, weight) else {
            return self.reduced(&weighed, reduction);
        };
        let total = |x: &Tensor| self.summed(x, &(0..x.rank()).collect::<Vec<_>>(), false);
        let (sum, count) = (total(&weighed)?, total(&weight)?);
        one(self.pair(Operand::Tensor(sum), Operand::Tensor(count), |sum, count| sum / count)?)
    }

    /// The loss of classes: `cross_entropy` of scores, or `nll_loss` of log-probabilities.
    fn classified(&mut self, call: &Call<'_, '_>, smoothing: f32, scores: bool) -> Made<Outcome> {
        let x = self.float_tensor(&call.need(0)?)?;
        let reduction = call.word(6, "mean")?;
        let target = call.need(1)?;
        let ignored = call.int(4)?.unwrap_or(-100);
        let Some((&classes, outer)) = x.dims.split_last() else { return refuse("scores that are a scalar") };
        if x.rank() > 2 {
            return refuse(format!(
                "scores of shape {}; their classes must be the last axis",
                written(&x.dims)
            ));
        }
        let weights = match call.get(2)? {
            None => None,
            Some(weights) => match elements_of(self.torch, &weights)? {
                Elements::Floats(weights) if weights.len() == classes as usize => Some(weights),
                _ => return refuse("weights that are not one float for each class"),
            },
        };
        let labels = match self.known_indices(&target) {
            Ok(labels) => labels,
            Err(_) if scores && weights.is_none() => {
                let y = self.operand(&target)?;
                let logs = self.by_last_axis(&x, classes, |x| x.log_softmax())?;
                let y = match y {
                    Operand::Tensor(y) if smoothing > 0.0 => {
                        Operand::Tensor(self.map(&y, |y| y * (1.0 - smoothing) + smoothing / classes as f32)?)
                    }
                    y => y,
                };
                let products = self.pair(Operand::Tensor(logs), y, |log, y| -(log * y))?;
                let losses = self.summed(&products, &[products.rank() - 1], false)?;
                return self.reduced(&losses, &reduction);
            }
            Err(fail) => return Err(fail),
        };
        let flat =
            self.reshaped(&x, [outer.iter().product::<u32>(), classes].into_iter().collect::<Dims>())?;
        let rows = (0..flat.dims[0]).map(|row| {
            let row = self.range(&flat, 0, row, 1)?;
            self.whole_as(&row, &[classes])
        });
        let rows = rows.collect::<Made<Vec<_>>>()?;
        let loss = |row: Value<'g>, label: autobatch::ir::graph::Arg<'g>| {
            let hard = if scores { row.cross_entropy(label) } else { -row.pick(label) };
            if smoothing == 0.0 {
                return hard;
            }
            hard * (1.0 - smoothing) - row.log_softmax().mean() * smoothing
        };
        let Some((labels, dims)) = labels else {
            let target = self.tensor(&target)?;
            if target.kind != Kind::Int || weights.is_some() || target.dims[..] != *outer {
                return refuse("recorded labels of this type or shape");
            }
            let labels = self.rows(&target)?;
            let losses = rows.into_iter().zip(labels).map(|(row, label)| loss(row, label.into())).collect();
            let losses = self.made_of_rows(losses, outer)?;
            return self.reduced(&losses, &reduction);
        };
        if dims[..] != *outer {
            return refuse(format!(
                "labels of shape {} for scores of shape {}",
                written(&dims),
                written(&x.dims)
            ));
        }
        let (mut losses, mut total) = (Vec::with_capacity(rows.len()), 0.0);
        for (row, label) in rows.into_iter().zip(labels) {
            if label == ignored {
                losses.push(None);
                continue;
            }
            let Some(label) = u32::try_from(label).ok().filter(|&label| label < classes) else {
                return refuse(format!("label {label} of {classes} classes"));
            };
            let own = loss(row, label.into());
            let weight = weights.as_ref().map_or(1.0, |weights| weights[label as usize]);
            if weights.is_some() && smoothing > 0.0 {
                return refuse("label_smoothing with weights of classes");
            }
            losses.push(Some(if weights.is_some() { own * weight } else { own }));
            total += weight;
        }
        let zero = || self.graph.constant(0.0);
        if reduction == "none" || (losses.len() == 1 && losses[0].is_some() && weights.is_none()) {
            let losses = losses.into_iter().map(|loss| loss.unwrap_or_else(zero)).collect();
            let losses = self.made_of_rows(losses, outer)?;
            return self.reduced(&losses, &reduction);
        }
        let counted: Vec<Value<'g>> = losses.into_iter().flatten().collect();
        let sum = match counted[..] {
            [] => zero(),
            [only] => only,
            _ => self.graph.list(&counted).sum(),
        };
        match &*reduction {
            "sum" => one(self.made(sum, Dims::new())?),
            // Torch divides by zero where all labels are ignored.
            "mean" => one(self.made(sum / total, Dims::new())?),
            other => refuse(format!("reduction={other:?}")),
        }
    }
}
