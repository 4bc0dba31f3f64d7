//! [`Minibatch`]: items with their weights, and how many of them execute together.

use super::error::TrainError;
use crate::error::Result;

/// The items of a step. Any collection of items is a minibatch whose items weigh the same and execute together.
///
/// ```
/// # use autobatch::prelude::*;
/// # use autobatch::nn::{Embedding, losses};
/// # fn main() -> autobatch::Result<()> {
/// # let mut m = ModuleBuilder::new("m");
/// # let words = Embedding::new(&mut m, "words", 9, 3);
/// # let mut trainer = Trainer::new(m.build()?, Sgd::new(0.1))?;
/// let sentences: [(&[u32], &[u32]); 2] = [(&[3, 1, 4], &[0, 1, 2]), (&[1], &[1])];
/// let minibatch = Minibatch::new(sentences).weighted(|(tokens, _)| tokens.len() as f32);
/// let step = trainer.step(minibatch, |g, (tokens, tags)| {
///     let logits: Vec<Value> = tokens.iter().map(|&token| words.lookup(g, token)).collect();
///     losses::sequence_cross_entropy(g, logits, tags.iter().copied())
/// })?;
/// assert_eq!((step.weight, step.losses.len()), (4.0, 2));
/// assert_eq!(step.loss, (step.losses[0] + step.losses[1]) / 4.0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Minibatch<I> {
    pub(super) items: Vec<I>,
    /// The weight of each item; `None` if each weighs 1.
    pub(super) weights: Option<Vec<f32>>,
    /// The most items that execute together.
    pub(super) together: usize,
}

impl<I> Minibatch<I> {
    /// Creates a minibatch whose loss is the mean of the items' losses.
    #[must_use]
    pub fn new(items: impl IntoIterator<Item = I>) -> Self {
        Self { items: items.into_iter().collect(), weights: None, together: usize::MAX }
    }

    /// Sets the weight of each item. The loss of the minibatch is then the sum of the items' losses divided by the sum of
    /// their weights. With the sum over the tokens of an item as its loss and their number as its weight, it is the mean
    /// over all tokens.
    #[must_use]
    pub fn weighted(mut self, weight: impl FnMut(&I) -> f32) -> Self {
        self.weights = Some(self.items.iter().map(weight).collect());
        self
    }

    /// Sets the most items that execute together, for minibatches that do not fit in memory. The trainer adds the
    /// gradients of all parts and updates once. Losses, noise and update equal those of the whole minibatch up to the order of sums:
    /// each part is a sum of its own. With [shards](super::Trainer::shards) no part cuts a shard, and the minibatch has as many
    /// shards as both options ask for.
    #[must_use]
    pub fn in_parts(mut self, most: usize) -> Self {
        self.together = most.max(1);
        self
    }

    /// The sum of the weights, by which the sum of the losses is divided.
    pub(super) fn weight(&self) -> Result<f64> {
        if self.items.is_empty() {
            return Err(TrainError::Empty.into());
        }
        let weights = self.weights.as_ref();
        let sum = weights.map_or(self.items.len() as f64, |weights| sum(weights));
        match sum.is_finite() && sum > 0.0 {
            true => Ok(sum),
            false => Err(TrainError::Weights { sum }.into()),
        }
    }
}

/// The sum of weights.
pub(super) fn sum(weights: &[f32]) -> f64 {
    weights.iter().map(|&weight| f64::from(weight)).sum()
}

/// The argument of [`Trainer::step`](super::Trainer::step): a [`Minibatch`] or any collection of items.
pub trait IntoMinibatch {
    /// The type of the items.
    type Item;

    /// Returns the minibatch.
    fn into_minibatch(self) -> Minibatch<Self::Item>;
}

impl<I> IntoMinibatch for Minibatch<I> {
    type Item = I;

    fn into_minibatch(self) -> Self {
        self
    }
}

impl<T: IntoIterator> IntoMinibatch for T {
    type Item = T::Item;

    fn into_minibatch(self) -> Minibatch<T::Item> {
        Minibatch::new(self)
    }
}
