//! Losses that are more than one op of [`Value`]: each is a scalar of *one* instance, to be
//! averaged by the trainer.
//!
//! One op each, as methods: `cross_entropy`, `cross_entropy_with`, `kl_div`, `mse`, `bce`, `hinge`.
//!
//! A reduction is what is done with several: [`total`] sums them, [`weighted_mean`] divides by what counted.

use autobatch_ir::{DType, Graph, Type, Value};
use std::borrow::Borrow;
use std::panic::Location;

/// The sum over a sequence of the cross-entropies of logits and labels; 0 for an empty one. Labels are numbers, or
/// options of which `None` is no label: its logits add nothing and get no gradient.
///
/// ```
/// # use autobatch_ir::{EmitError, Graph, ModuleBuilder};
/// # use autobatch_nn::losses;
/// # fn main() -> Result<(), EmitError> {
/// # let g = Graph::new(&ModuleBuilder::new("m").build()?);
/// let logits = [[1.0, 2.0], [0.5, -0.5], [3.0, 0.0]].map(|row| g.input(&row));
/// let tags = [1, -100, 0]; // as other libraries mark what has no label
/// let labels = tags.map(|tag| u32::try_from(tag).ok());
/// g.loss("loss", losses::sequence_cross_entropy(&g, logits, labels));
/// # g.finish().map(|_| ())
/// # }
/// ```
#[track_caller]
#[must_use]
pub fn sequence_cross_entropy<'g>(
    g: &'g Graph,
    logits: impl IntoIterator<Item = impl Borrow<Value<'g>>>,
    labels: impl IntoIterator<Item = impl Into<Option<u32>>>,
) -> Value<'g> {
    let logits: Vec<Value<'g>> = logits.into_iter().map(|x| *x.borrow()).collect();
    let labels: Vec<Option<u32>> = labels.into_iter().map(Into::into).collect();
    if logits.len() != labels.len() {
        let message = format!("{} logits want as many labels, found {}", logits.len(), labels.len());
        return g.refuse("cross_entropy", &message, "give each element its label", Location::caller());
    }
    let mut losses = Vec::with_capacity(labels.len());
    for (logits, label) in logits.into_iter().zip(labels) {
        if let Some(label) = label {
            losses.push(logits.cross_entropy(label));
        }
    }
    total(g, &losses)
}

/// `weights[label] * -log_softmax(logits)[label]`, with a weight for each class.
///
/// The trainer's mean divides by the number of items, whatever they weigh; [`weighted_mean`] of plain cross-entropies
/// divides by the weights.
#[track_caller]
#[must_use]
pub fn weighted_cross_entropy<'g>(logits: Value<'g>, label: u32, weights: &[f32]) -> Value<'g> {
    let (g, classes) = (logits.graph(), logits.shape().elements());
    if weights.len() != classes {
        let message = format!("{classes} logits want as many weights, found {}", weights.len());
        return g.refuse("cross_entropy", &message, "give each class its weight", Location::caller());
    }
    // A label that is no class is refused where labels are bound.
    let weight = weights.get(label as usize).copied().unwrap_or(1.0);
    logits.cross_entropy(label) * g.input_shaped([], &[weight])
}

/// `sum of w * x / sum of w` over pairs of a weight and a scalar. What weighs 0 is left out, so it gets no gradient and
/// may be anything; if nothing is left the mean is 0.
///
/// Over all labels of a minibatch, in a step that is emitted freely, that is the mean of libraries with an axis of the
/// minibatch, which divides by the labels, or weights of labels, that count:
///
/// ```
/// # use autobatch_ir::{EmitError, Graph, ModuleBuilder};
/// # use autobatch_nn::losses;
/// # fn main() -> Result<(), EmitError> {
/// # let g = Graph::new(&ModuleBuilder::new("m").build()?);
/// let weights = [1.0, 5.0];
/// let tokens = [([1.0, 2.0], 1), ([0.5, -0.5], -100), ([3.0, 0.0], 0)];
/// let terms = tokens.iter().filter_map(|(logits, tag)| {
///     let label = u32::try_from(*tag).ok()?;
///     Some((weights[label as usize], g.input(logits).cross_entropy(label)))
/// });
/// g.loss("loss", losses::weighted_mean(&g, terms)); // divided by 6
/// # g.finish().map(|_| ())
/// # }
/// ```
#[track_caller]
#[must_use]
pub fn weighted_mean<'g>(g: &'g Graph, terms: impl IntoIterator<Item = (f32, Value<'g>)>) -> Value<'g> {
    let terms: Vec<(f32, Value<'g>)> = terms.into_iter().filter(|&(weight, _)| weight != 0.0).collect();
    let whole: f64 = terms.iter().map(|&(weight, _)| f64::from(weight)).sum();
    let mut shares = Vec::with_capacity(terms.len());
    for (weight, x) in terms {
        shares.push(x * g.input_shaped([], &[(f64::from(weight) / whole) as f32]));
    }
    total(g, &shares)
}

/// The sum of scalars as one node; 0 if there are none.
#[track_caller]
#[must_use]
pub fn total<'g>(g: &'g Graph, losses: &[Value<'g>]) -> Value<'g> {
    let list = if losses.is_empty() { g.empty_list(Type::scalar(DType::F32)) } else { g.list(losses) };
    list.sum()
}

/// Cross-entropy against a label that is believed with `1 - smoothing` only, the rest spread
/// evenly over all `n` classes: `(1 - s) * -log p[label] + s / n * sum_j -log p_j`.
///
/// A class that is [masked](Value::mask) out makes that infinite; with nothing to spread it is the plain
/// cross-entropy, whatever is masked.
#[track_caller]
#[must_use]
pub fn label_smoothing<'g>(logits: Value<'g>, label: u32, smoothing: f32) -> Value<'g> {
    if smoothing == 0.0 {
        return logits.cross_entropy(label);
    }
    // Of log-probabilities, not of logits: those may be large, and their differences small.
    let spread = -logits.log_softmax().mean_rows();
    (1.0 - smoothing) * logits.cross_entropy(label) + smoothing * spread
}

/// `-x[label]` of log-probabilities.
#[track_caller]
#[must_use]
pub fn nll<'g>(log_probabilities: Value<'g>, label: u32) -> Value<'g> {
    -log_probabilities.pick(label)
}

/// The contrastive loss of Hadsell et al. (2006), with `d = |a - b|`: `d² / 2` for a pair that
/// belongs together, `max(0, margin - d)² / 2` for one that does not.
#[track_caller]
#[must_use]
pub fn contrastive<'g>(a: Value<'g>, b: Value<'g>, together: bool, margin: f32) -> Value<'g> {
    let apart = a - b;
    if together { 0.5 * apart.dot(apart) } else { 0.5 * (margin - apart.norm()).relu().square() }
}

/// `max(0, |anchor - positive|² - |anchor - negative|² + margin)`
#[track_caller]
#[must_use]
pub fn triplet<'g>(anchor: Value<'g>, positive: Value<'g>, negative: Value<'g>, margin: f32) -> Value<'g> {
    let (near, far) = (anchor - positive, anchor - negative);
    (near.dot(near) - far.dot(far) + margin).relu()
}

/// `max(0, |anchor - positive| - |anchor - negative| + margin)`: of distances, where [`triplet`] is of their squares. As PyTorch's,
/// distances are of differences with 1e-6 added to each element.
#[track_caller]
#[must_use]
pub fn triplet_distance<'g>(
    anchor: Value<'g>,
    positive: Value<'g>,
    negative: Value<'g>,
    margin: f32,
) -> Value<'g> {
    let (near, far) = (anchor - positive + 1e-6, anchor - negative + 1e-6);
    (near.norm() - far.norm() + margin).relu()
}

/// `max(0, margin - good + bad)`: of two scores, `good` is to be the larger by a margin.
#[track_caller]
#[must_use]
pub fn margin_ranking<'g>(good: Value<'g>, bad: Value<'g>, margin: f32) -> Value<'g> {
    (margin - good + bad).relu()
}

/// `max(0, 1 - sign * score)` for a class that is `1` or `-1`.
#[track_caller]
#[must_use]
pub fn binary_hinge(score: Value<'_>, positive: bool) -> Value<'_> {
    let agreement = if positive { score } else { -score };
    (1.0 - agreement).relu()
}

/// The mean of `|x - target|`.
#[track_caller]
#[must_use]
pub fn l1<'g>(x: Value<'g>, target: Value<'g>) -> Value<'g> {
    (x - target).abs().mean()
}

/// The mean of Huber's loss of `d = x - target`: `d² / 2` where `|d| <= delta`,
/// `delta * (|d| - delta / 2)` elsewhere. Written without a branch: with `q = clamp(d)` both are
/// `q * (d - q / 2)`.
#[track_caller]
#[must_use]
pub fn huber<'g>(x: Value<'g>, target: Value<'g>, delta: f32) -> Value<'g> {
    let d = x - target;
    let q = d.clamp(-delta, delta);
    (q * (d - 0.5 * q)).mean()
}

/// Huber's loss divided by `beta`, its `delta`: `d² / (2 beta)` where `|d| <= beta`, `|d| - beta / 2` elsewhere.
#[track_caller]
#[must_use]
pub fn smooth_l1<'g>(x: Value<'g>, target: Value<'g>, beta: f32) -> Value<'g> {
    huber(x, target, beta) / beta
}

/// The mean binary cross-entropy of logits against targets in `0..=1` where what is positive counts `positive` times; with 1 it is
/// [`Value::bce`].
#[track_caller]
#[must_use]
pub fn weighted_bce<'g>(logits: Value<'g>, target: Value<'g>, positive: f32) -> Value<'g> {
    let counts = 1.0 + (positive - 1.0) * target;
    ((1.0 - target) * logits + counts * (-logits).softplus()).mean()
}

/// `1 - cos(a, b)` for a pair that belongs together, `max(0, cos(a, b) - margin)` for one that does not.
#[track_caller]
#[must_use]
pub fn cosine_embedding<'g>(a: Value<'g>, b: Value<'g>, together: bool, margin: f32) -> Value<'g> {
    let cosine = cosine_similarity(a, b);
    if together { 1.0 - cosine } else { (cosine - margin).relu() }
}

/// The mean of `(log v + (x - target)² / v) / 2` with the variance `v`, 1e-6 at least.
#[track_caller]
#[must_use]
pub fn gaussian_nll<'g>(x: Value<'g>, target: Value<'g>, variance: Value<'g>) -> Value<'g> {
    let v = variance.maximum(1e-6);
    (0.5 * (v.log() + (x - target).square() / v)).mean()
}

/// The mean of `e^x - target * x`, where `x` is the logarithm of the rate at which something is counted.
#[track_caller]
#[must_use]
pub fn poisson_nll<'g>(log_rate: Value<'g>, target: Value<'g>) -> Value<'g> {
    (log_rate.exp() - target * log_rate).mean()
}

/// `a · b / (|a| * |b| + 1e-8)`
#[track_caller]
#[must_use]
pub fn cosine_similarity<'g>(a: Value<'g>, b: Value<'g>) -> Value<'g> {
    a.dot(b) / (a.norm() * b.norm() + 1e-8)
}

/// The distribution over `classes` ratings from 1 whose mean is `score` (Tai et al. 2015): all on
/// the rating itself, or shared between the two around it. Scores outside are moved to the ends.
/// Use it with [`Value::kl_div`].
#[must_use]
pub fn rating_distribution(score: f32, classes: usize) -> Vec<f32> {
    let score = if score.is_nan() { 1.0 } else { score.clamp(1.0, classes.max(1) as f32) };
    let below = score.floor();
    let mut distribution = vec![0.0; classes];
    for (class, share) in distribution.iter_mut().enumerate() {
        let rating = (class + 1) as f32;
        if rating == below {
            *share = 1.0 - (score - below);
        } else if rating == below + 1.0 {
            *share = score - below;
        }
    }
    distribution
}
