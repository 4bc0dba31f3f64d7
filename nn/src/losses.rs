//! Losses that combine several ops of [`Value`]. Each is a scalar of *one* instance; the trainer
//! averages over instances.
//!
//! Losses of a single op are methods: `cross_entropy`, `cross_entropy_with`, `kl_div`, `mse`, `bce`, `hinge`.
//!
//! Two functions combine several losses: [`total`] sums them, and [`weighted_mean`] divides by the weights.

use crate::values::Values;
use autobatch_ir::{DType, Graph, Type, Value};
use std::panic::Location;

/// The sum over a sequence of the cross-entropies of logits and labels; 0 for an empty sequence. A label is a number, or
/// an option. Logits with the label `None` add nothing and get no gradient.
///
/// ```
/// # use autobatch_ir::{EmitError, Graph, ModuleBuilder};
/// # use autobatch_nn::losses;
/// # fn main() -> Result<(), EmitError> {
/// # let g = Graph::new(&ModuleBuilder::new("m").build()?);
/// let logits = [[1.0, 2.0], [0.5, -0.5], [3.0, 0.0]].map(|row| g.input(&row));
/// let tags = [1, -100, 0]; // other libraries mark missing labels with -100
/// let labels = tags.map(|tag| u32::try_from(tag).ok());
/// g.loss("loss", losses::sequence_cross_entropy(&g, logits, labels));
/// # g.finish().map(|_| ())
/// # }
/// ```
#[track_caller]
#[must_use]
pub fn sequence_cross_entropy<'g>(
    g: &'g Graph,
    logits: impl Values<'g>,
    labels: impl IntoIterator<Item = impl Into<Option<u32>>>,
) -> Value<'g> {
    let logits = logits.into_vec();
    let labels: Vec<Option<u32>> = labels.into_iter().map(Into::into).collect();
    if logits.len() != labels.len() {
        let message = format!("{} logits need {} labels, found {}", logits.len(), logits.len(), labels.len());
        return g.refuse("cross_entropy", &message, "give one label for each element", Location::caller());
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
/// The trainer's mean divides by the number of items regardless of weights. [`weighted_mean`] of plain cross-entropies
/// divides by the sum of weights.
#[track_caller]
#[must_use]
pub fn weighted_cross_entropy<'g>(logits: Value<'g>, label: u32, weights: &[f32]) -> Value<'g> {
    let (g, classes) = (logits.graph(), logits.shape().elements());
    if weights.len() != classes {
        let message = format!("{classes} logits need {classes} weights, found {}", weights.len());
        return g.refuse("cross_entropy", &message, "give one weight for each class", Location::caller());
    }
    // The binding check rejects a label that is not a class.
    let weight = weights.get(label as usize).copied().unwrap_or(1.0);
    logits.cross_entropy(label) * g.input_shaped([], &[weight])
}

/// `sum of w * x / sum of w` over pairs of a weight and a scalar. Pairs of weight 0 are skipped, so their scalars may have
/// any value and get no gradient. The mean of no pairs is 0.
///
/// Over all labels of a minibatch (in a step that emits its loss itself), this is the mean of libraries with a batch axis,
/// which divide by the number or the weights of labels:
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

/// Cross-entropy against a smoothed label: weight `1 - smoothing` for the label, the rest spread
/// evenly over all `n` classes: `(1 - s) * -log p[label] + s / n * sum_j -log p_j`.
///
/// A [masked](Value::mask) class makes the loss infinite, unless `smoothing` is 0, which gives the plain
/// cross-entropy.
#[track_caller]
#[must_use]
pub fn label_smoothing<'g>(logits: Value<'g>, label: u32, smoothing: f32) -> Value<'g> {
    if smoothing == 0.0 {
        return logits.cross_entropy(label);
    }
    // The mean of log-probabilities is more accurate than that of logits, which may be large with small differences.
    let spread = -logits.log_softmax().mean_rows();
    (1.0 - smoothing) * logits.cross_entropy(label) + smoothing * spread
}

/// `-x[label]` of log-probabilities.
#[track_caller]
#[must_use]
pub fn nll<'g>(log_probabilities: Value<'g>, label: u32) -> Value<'g> {
    -log_probabilities.pick(label)
}

/// The contrastive loss of Hadsell et al. (2006), with `d = |a - b|`: `d² / 2` for a positive pair,
/// `max(0, margin - d)² / 2` for a negative one.
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

/// `max(0, |anchor - positive| - |anchor - negative| + margin)`, with distances instead of the squares of [`triplet`]. As in
/// PyTorch, 1e-6 is added to each element of the differences.
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

/// `max(0, margin - good + bad)`: the score `good` should exceed `bad` by a margin.
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
/// `delta * (|d| - delta / 2)` elsewhere. Both cases equal `q * (d - q / 2)` with `q = clamp(d)`, so
/// no branch is necessary.
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

/// The mean binary cross-entropy of logits against targets in `0..=1`, with the weight `positive` for positive
/// targets. With weight 1 it is [`Value::bce`].
#[track_caller]
#[must_use]
pub fn weighted_bce<'g>(logits: Value<'g>, target: Value<'g>, positive: f32) -> Value<'g> {
    let counts = 1.0 + (positive - 1.0) * target;
    ((1.0 - target) * logits + counts * (-logits).softplus()).mean()
}

/// `1 - cos(a, b)` for a positive pair, `max(0, cos(a, b) - margin)` for a negative one.
#[track_caller]
#[must_use]
pub fn cosine_embedding<'g>(a: Value<'g>, b: Value<'g>, together: bool, margin: f32) -> Value<'g> {
    let cosine = cosine_similarity(a, b);
    if together { 1.0 - cosine } else { (cosine - margin).relu() }
}

/// The mean of `(log v + (x - target)² / v) / 2` with the variance `v`, which is at least 1e-6.
#[track_caller]
#[must_use]
pub fn gaussian_nll<'g>(x: Value<'g>, target: Value<'g>, variance: Value<'g>) -> Value<'g> {
    let v = variance.maximum(1e-6);
    (0.5 * (v.log() + (x - target).square() / v)).mean()
}

/// The mean of `e^x - target * x`, where `x` is the logarithm of the expected count.
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

/// The distribution over `classes` ratings from 1 whose mean is `score` (Tai et al. 2015): all weight
/// on the rating itself, or shared between the two neighbours. Scores outside the range are clamped.
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
