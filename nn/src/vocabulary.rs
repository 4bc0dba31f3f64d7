//! [`AdaptiveSoftmax`] and [`SampledSoftmax`]: losses over many classes, for language models.
//!
//! A softmax over 10^5 words multiplies with a matrix of 10^5 rows for every position. Frequent words are few: the adaptive
//! softmax computes scores of the frequent words and of one group of rare words. The sampled softmax computes the scores of the
//! label and of a few random words; it is a loss for training only.

use crate::{Linear, Values};
use autobatch_ir::graph::ValueKey;
use autobatch_ir::hash::split_mix;
use autobatch_ir::{Graph, Init, ModuleBuilder, Table, Value};
use std::panic::Location;

/// A softmax over classes in the order of their frequency, in groups of falling frequency and width.
///
/// The head scores the classes below the first cutoff and each of the other groups. A group first projects `x` to a fraction
/// of its width: `1 / reduction` for the first group, `1 / reduction^2` for the second, and so on. A loss emits the head and at
/// most one group, so nodes of one group share batches.
///
/// Parameters: `name.head.w`, `name.head.b`, and for group `i` from 0 `name.i.project.w`, `name.i.out.w`.
///
/// ```
/// # use autobatch_ir::{EmitError, Graph, ModuleBuilder};
/// # use autobatch_nn::AdaptiveSoftmax;
/// # fn main() -> Result<(), EmitError> {
/// let mut m = ModuleBuilder::new("m");
/// let words = AdaptiveSoftmax::new(&mut m, "words", 16, &[100, 1000, 10_000], 4);
/// let g = Graph::new(&m.build()?);
/// let x = g.input(&[0.5; 16]);
/// g.loss("frequent", words.loss(x, 7));
/// g.loss("rare", words.loss(x, 1234));
/// # g.finish().map(|_| ())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct AdaptiveSoftmax {
    head: Linear,
    groups: Vec<Group>,
    /// The number of classes of the head.
    frequent: u32,
}

/// A group of rare classes.
#[derive(Clone, Copy, Debug)]
struct Group {
    project: Linear,
    out: Linear,
    /// The first class.
    first: u32,
    /// The number of classes.
    count: u32,
}

impl AdaptiveSoftmax {
    /// A layer on vectors of width `input`. The cutoffs ascend strictly; the last one is the number of classes.
    /// Cutoffs that do not ascend from 1, and a reduction of 0, are faults of the module.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, input: usize, cutoffs: &[u32], reduction: usize) -> Self {
        let ascend = cutoffs.first().is_some_and(|&first| first > 0) && cutoffs.is_sorted_by(|a, b| a < b);
        let cutoffs = if ascend && reduction > 0 { cutoffs } else { &[1] };
        if !ascend || reduction == 0 {
            let message =
                "the cutoffs of an adaptive softmax must ascend from 1, and its reduction must be at least 1";
            let help = "for example cutoffs of [2000, 10000, 50000] for 50,000 classes, and a reduction of 4";
            m.fail("adaptive softmax", message, Some(help.to_owned()), Location::caller());
        }
        let frequent = cutoffs[0];
        let head_width = frequent as usize + cutoffs.len() - 1;
        let head = Linear::new(m, &format!("{name}.head"), input, head_width);
        let mut width = input;
        let groups = cutoffs.windows(2).enumerate().map(|(number, pair)| {
            width = (width / reduction.max(1)).max(1);
            let count = pair[1] - pair[0];
            let project = Linear::no_bias(m, &format!("{name}.{number}.project"), input, width);
            let out = Linear::no_bias(m, &format!("{name}.{number}.out"), width, count as usize);
            Group { project, out, first: pair[0], count }
        });
        Self { head, groups: groups.collect(), frequent }
    }

    /// The negative log-probability of a class.
    #[track_caller]
    #[must_use]
    pub fn loss<'g>(&self, x: Value<'g>, class: u32) -> Value<'g> {
        let scores = self.head.on(x);
        let Some(number) = self.groups.iter().rposition(|group| group.first <= class) else {
            return scores.cross_entropy(class);
        };
        let group = &self.groups[number];
        scores.cross_entropy(self.frequent + number as u32)
            + group.scores(x).cross_entropy(class - group.first)
    }

    /// The log-probabilities of all classes.
    #[track_caller]
    #[must_use]
    pub fn log_probabilities<'g>(&self, x: Value<'g>) -> Value<'g> {
        let g = x.graph();
        let (head, frequent) = (self.head.on(x).log_softmax(), self.frequent as usize);
        let groups = self.groups.iter().enumerate().map(|(number, group)| {
            let whole = head.slice(frequent + number..frequent + number + 1);
            group.scores(x).log_softmax() + whole.broadcast([group.count as usize])
        });
        g.concat(std::iter::once(head.slice(0..frequent)).chain(groups))
    }

    /// The number of classes.
    #[must_use]
    pub fn classes(&self) -> u32 {
        self.groups.last().map_or(self.frequent, |group| group.first + group.count)
    }
}

impl Group {
    #[track_caller]
    fn scores<'g>(&self, x: Value<'g>) -> Value<'g> {
        self.out.on(self.project.on(x))
    }
}

/// A softmax over a class and a sample of other classes, for training.
///
/// The sample is drawn with probability `log((k + 2) / (k + 1)) / log(classes + 1)` for class `k`, which fits classes in the
/// order of their frequency. The loss subtracts the logarithm of the expected count from each score, and leaves out sampled
/// classes that equal the label. The rows of the weight are read by lookups, so its gradient is sparse. All losses of a graph
/// may share one [`Sample`]: a sequence then takes one product with its rows.
///
/// Parameters: the tables `name.w: [classes, input]` and `name.b: [classes, 1]`.
///
/// ```
/// # use autobatch_ir::{EmitError, Graph, ModuleBuilder};
/// # use autobatch_nn::SampledSoftmax;
/// # fn main() -> Result<(), EmitError> {
/// let mut m = ModuleBuilder::new("m");
/// let words = SampledSoftmax::new(&mut m, "words", 16, 50_000, 512);
/// let g = Graph::new(&m.build()?);
/// let sample = words.sample(&g, 1); // the number of the step
/// for (number, sentence) in [&[7, 1234][..], &[49_999]].into_iter().enumerate() {
///     let states: Vec<_> = sentence.iter().map(|_| g.input(&[0.5; 16])).collect();
///     g.loss(&format!("sentence {number}"), words.loss(&sample, states, sentence));
/// }
/// # g.finish().map(|_| ())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SampledSoftmax {
    weight: Table,
    bias: Table,
    classes: u32,
    samples: u32,
}

/// Classes that losses of one graph compare theirs with.
#[derive(Clone, Debug)]
pub struct Sample<'g> {
    classes: Vec<u32>,
    /// The rows of the weight as columns.
    columns: Value<'g>,
    /// The addend of the score of each class: its bias, minus the logarithm of its expected count.
    corrections: Value<'g>,
}

/// A [`Sample`] without the lifetime of its graph, for programs that cannot hold a `Value`.
#[derive(Clone, Debug)]
pub struct DetachedSample {
    classes: Vec<u32>,
    values: [Option<ValueKey>; 2],
}

impl DetachedSample {
    /// The sample in its graph; `None` after a fault, and in another graph.
    #[track_caller]
    #[must_use]
    pub fn attach<'g>(&self, graph: &'g Graph) -> Option<Sample<'g>> {
        let [columns, corrections] = self.values;
        let [columns, corrections] = [graph.value(columns?)?, graph.value(corrections?)?];
        Some(Sample { classes: self.classes.clone(), columns, corrections })
    }
}

impl Sample<'_> {
    /// The sample without the lifetime of its graph.
    #[must_use]
    pub fn detach(&self) -> DetachedSample {
        let values = [self.columns, self.corrections].map(Value::key);
        DetachedSample { classes: self.classes.clone(), values }
    }
}

impl SampledSoftmax {
    /// A layer on vectors of width `input`, which draws `samples` classes for a graph. A sample of no class is a fault of the
    /// module.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, input: usize, classes: u32, samples: u32) -> Self {
        if samples == 0 {
            let help = "for example 512 of 50,000 classes".to_owned();
            let message = "a sample must have at least one class";
            m.fail("sampled softmax", message, Some(help), Location::caller());
        }
        let weight = m.table(&format!("{name}.w"), [classes as usize, input], Init::Glorot(1.0));
        let bias = m.table(&format!("{name}.b"), [classes as usize, 1], Init::ZEROS);
        Self { weight, bias, classes, samples: samples.max(1) }
    }

    /// The sample of a graph. Equal seeds draw equal classes; a good seed is the number of the step.
    #[track_caller]
    #[must_use]
    pub fn sample<'g>(&self, g: &'g Graph, seed: u64) -> Sample<'g> {
        let classes: Vec<u32> = (0..self.samples).map(|number| self.draw(seed, number)).collect();
        let columns = g.stack(classes.iter().map(|&class| self.weight.lookup(g, class))).t();
        let corrections = self.corrections(g, &classes);
        Sample { classes, columns, corrections }
    }

    /// The sum of the losses of a sequence of vectors and their classes against a sample; 0 for an empty sequence.
    #[track_caller]
    #[must_use]
    pub fn loss<'g>(&self, sample: &Sample<'g>, xs: impl Values<'g>, classes: &[u32]) -> Value<'g> {
        let (g, xs) = (sample.columns.graph(), xs.into_vec());
        let (count, others) = (xs.len(), sample.classes.len());
        if count != classes.len() {
            let message = format!("{count} vectors need {count} classes, found {}", classes.len());
            return g.refuse(
                "sampled softmax",
                &message,
                "give one class for each vector",
                Location::caller(),
            );
        }
        if count == 0 {
            return g.constant(0.0);
        }
        let x = g.stack(xs);
        let own = g.stack(classes.iter().map(|&class| self.weight.lookup(g, class)));
        let own = (x * own).sum_rows() + self.corrections(g, classes);
        let mut scores = x.matmul(sample.columns) + sample.corrections.broadcast([count, others]);
        let pairs =
            || classes.iter().flat_map(|class| sample.classes.iter().map(move |other| class == other));
        if pairs().any(|same| same) {
            let excluded: Vec<f32> = pairs().map(|same| if same { EXCLUDED } else { 0.0 }).collect();
            scores = scores + g.input_shaped([count, others], &excluded);
        }
        let scores = g.concat_axis(1, [own.reshape([count, 1]), scores]);
        scores.cross_entropy(g.indices(&vec![0; count])).sum()
    }

    /// The bias of each class, minus the logarithm of its expected count.
    #[track_caller]
    fn corrections<'g>(&self, g: &'g Graph, classes: &[u32]) -> Value<'g> {
        let counts: Vec<f32> = classes.iter().map(|&class| -self.expected_count(class).ln() as f32).collect();
        g.concat(classes.iter().map(|&class| self.bias.lookup(g, class))) + g.input(&counts)
    }

    /// The negative log-probability of a class among all classes, for evaluation.
    #[track_caller]
    #[must_use]
    pub fn full_loss<'g>(&self, x: Value<'g>, class: u32) -> Value<'g> {
        let g = x.graph();
        let bias = g.param(self.bias.as_param()).reshape([self.classes as usize]);
        (x.affine_transposed(self.weight.as_param(), None) + bias).cross_entropy(class)
    }

    /// The class that a seed draws for a place of the sample.
    fn draw(&self, seed: u64, place: u32) -> u32 {
        let mut state = seed;
        state = split_mix(&mut state) ^ u64::from(place);
        let bits = split_mix(&mut state);
        let unit = (bits >> 11) as f64 / (1u64 << 53) as f64;
        let class = (unit * f64::from(self.classes).ln_1p()).exp_m1() as u32;
        class.min(self.classes - 1)
    }

    /// How often a sample is expected to hold a class.
    fn expected_count(&self, class: u32) -> f64 {
        let class = f64::from(class);
        let probability = ((class + 2.0) / (class + 1.0)).ln() / f64::from(self.classes).ln_1p();
        f64::from(self.samples) * probability
    }
}

/// The score that excludes a class. It is finite, so that no sum of scores becomes NaN.
const EXCLUDED: f32 = -1e30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_follow_their_probabilities() {
        let mut m = ModuleBuilder::new("m");
        let layer = SampledSoftmax::new(&mut m, "words", 4, 50, 20_000);
        let mut counts = [0u32; 50];
        (0..layer.samples).for_each(|place| counts[layer.draw(9, place) as usize] += 1);
        for (class, &count) in counts.iter().enumerate() {
            let expected = layer.expected_count(class as u32);
            assert!(
                (f64::from(count) - expected).abs() < 6.0 * expected.sqrt(),
                "{class}: {count}, {expected}"
            );
        }
        let total: f64 = (0..50).map(|class| layer.expected_count(class)).sum();
        assert!((total - 20_000.0).abs() < 1e-6, "{total}");
    }
}
