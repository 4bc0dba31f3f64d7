//! Orders of instances and minibatches of them.
//!
//! Instances stay in place: an [`Order`] is a list of positions, and batches hold references. All
//! randomness is a function of the seed, so an epoch can be repeated.
//!
//! ```
//! use autobatch::prelude::*;
//!
//! let words = ["to", "be", "or", "not"];
//! for batch in words.batches(2).shuffled(7) {
//!     assert_eq!(batch.len(), 2);
//! }
//! let by_length: Vec<_> = words.bucket_by(|word| word.len()).iter().copied().collect();
//! assert_eq!(by_length, ["to", "be", "or", "not"]);
//! let mut random = words.sample(128, 7);
//! assert_eq!(random.next().map(|batch| batch.len()), Some(128));
//! ```

use crate::random::Random;

/// Returns the positions `0..len` in an order that depends on the seed alone.
pub fn shuffled_positions(len: usize, seed: u64) -> Vec<usize> {
    let mut positions: Vec<usize> = (0..len).collect();
    Random::new(seed).shuffle(&mut positions);
    positions
}

/// Splits off `permille` of 1000 items (rounded down) at random as the second part. Both parts keep the
/// order of the items.
pub fn split<T>(items: Vec<T>, permille: u32, seed: u64) -> (Vec<T>, Vec<T>) {
    let held_out = (items.len() as u128 * u128::from(permille.min(1000)) / 1000) as usize;
    let mut is_held_out = vec![false; items.len()];
    for &position in &shuffled_positions(items.len(), seed)[..held_out] {
        is_held_out[position] = true;
    }
    let (second, first): (Vec<_>, Vec<_>) = items.into_iter().zip(is_held_out).partition(|(_, out)| *out);
    let strip = |part: Vec<(T, bool)>| part.into_iter().map(|(item, _)| item).collect();
    (strip(first), strip(second))
}

/// Orders the items of a minibatch such that its [shards](crate::Trainer::shards) have nearly equal costs, for example numbers
/// of tokens or nodes. The largest item goes to the shard with the smallest sum, and so on. Shards are consecutive and
/// differ by at most one item in number. The order depends on items, costs and the number of shards alone.
///
/// ```
/// use autobatch::sampling::balanced;
///
/// let lengths = [9, 1, 8, 2, 7, 3, 6, 4];
/// let shards = balanced(lengths.to_vec(), 4, |&length| length);
/// let sums: Vec<u64> = shards.chunks(2).map(|shard| shard.iter().sum()).collect();
/// assert_eq!(sums, [10, 10, 10, 10]);
/// ```
pub fn balanced<T>(items: Vec<T>, shards: usize, cost: impl Fn(&T) -> u64) -> Vec<T> {
    let (count, shards) = (items.len(), shards.min(items.len()).max(1));
    let costs: Vec<u64> = items.iter().map(cost).collect();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|&item| std::cmp::Reverse(costs[item]));
    let mut filled = vec![(0_u64, Vec::new()); shards];
    for item in order {
        let has_space = |&shard: &usize| {
            let space = count * (shard + 1) / shards - count * shard / shards;
            filled[shard].1.len() < space
        };
        let smallest = (0..shards).filter(has_space).min_by_key(|&shard| filled[shard].0).unwrap_or(0);
        filled[smallest].0 = filled[smallest].0.saturating_add(costs[item]);
        filled[smallest].1.push(item);
    }
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    filled.into_iter().flat_map(|(_, shard)| shard).filter_map(|item| items[item].take()).collect()
}

/// Ways to iterate over a slice of instances.
pub trait Sampling<T> {
    /// Returns all instances in their order.
    fn in_order(&self) -> Order<'_, T>;

    /// Returns all instances in random order.
    fn shuffled(&self, seed: u64) -> Order<'_, T> {
        self.in_order().shuffled(seed)
    }

    /// Returns all instances sorted by `key`, for example the length, so that batches hold instances of
    /// similar size. Equal keys keep their order.
    fn bucket_by<K: Ord>(&self, key: impl FnMut(&T) -> K) -> Order<'_, T> {
        self.in_order().bucket_by(key)
    }

    /// Returns minibatches of `size` instances (0 counts as 1). The last may be smaller.
    fn batches(&self, size: usize) -> Batches<'_, T> {
        self.in_order().batches(size)
    }

    /// Returns endless minibatches of `size` instances drawn with replacement (0 counts as 1). Without
    /// instances it is empty.
    fn sample(&self, size: usize, seed: u64) -> Samples<'_, T>;
}

impl<T> Sampling<T> for [T] {
    fn in_order(&self) -> Order<'_, T> {
        Order { items: self, positions: (0..self.len()).collect() }
    }

    fn sample(&self, size: usize, seed: u64) -> Samples<'_, T> {
        Samples { items: self, size: size.max(1), random: Random::new(seed) }
    }
}

/// Instances in some order.
#[derive(Debug, Clone)]
pub struct Order<'a, T> {
    items: &'a [T],
    positions: Vec<usize>,
}

impl<'a, T> Order<'a, T> {
    /// Returns the positions of the instances in the slice.
    pub fn positions(&self) -> &[usize] {
        &self.positions
    }

    /// Iterates over the instances.
    pub fn iter(&self) -> impl Iterator<Item = &'a T> + '_ {
        self.positions.iter().map(|&position| &self.items[position])
    }

    /// Returns the same instances in random order.
    pub fn shuffled(mut self, seed: u64) -> Self {
        Random::new(seed).shuffle(&mut self.positions);
        self
    }

    /// Returns the same instances sorted by `key`. Equal keys keep their current order, so shuffling first
    /// gives other batches of similar size in every epoch.
    pub fn bucket_by<K: Ord>(mut self, mut key: impl FnMut(&T) -> K) -> Self {
        self.positions.sort_by_cached_key(|&position| key(&self.items[position]));
        self
    }

    /// Returns minibatches of `size` instances (0 counts as 1). The last may be smaller.
    pub fn batches(self, size: usize) -> Batches<'a, T> {
        let size = size.max(1);
        Batches {
            starts: (0..self.positions.len()).step_by(size).collect::<Vec<_>>().into_iter(),
            order: self,
            size,
        }
    }
}

/// An iterator over minibatches.
#[derive(Debug, Clone)]
pub struct Batches<'a, T> {
    order: Order<'a, T>,
    size: usize,
    /// The starts of the remaining batches in the order.
    starts: std::vec::IntoIter<usize>,
}

impl<'a, T> Batches<'a, T> {
    /// Distributes all instances anew in random order.
    pub fn shuffled(self, seed: u64) -> Self {
        self.order.shuffled(seed).batches(self.size)
    }

    /// Keeps the instances of each remaining batch together and shuffles the batches. Use it after
    /// [`Order::bucket_by`].
    pub fn shuffled_batches(mut self, seed: u64) -> Self {
        let mut starts: Vec<usize> = self.starts.collect();
        Random::new(seed).shuffle(&mut starts);
        self.starts = starts.into_iter();
        self
    }
}

impl<'a, T> Iterator for Batches<'a, T> {
    type Item = Vec<&'a T>;

    fn next(&mut self) -> Option<Vec<&'a T>> {
        let start = self.starts.next()?;
        let end = start.saturating_add(self.size).min(self.order.positions.len());
        let positions = &self.order.positions[start..end];
        Some(positions.iter().map(|&position| &self.order.items[position]).collect())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.starts.size_hint()
    }
}

impl<T> ExactSizeIterator for Batches<'_, T> {}

/// An endless iterator over random minibatches.
#[derive(Debug, Clone)]
pub struct Samples<'a, T> {
    items: &'a [T],
    size: usize,
    random: Random,
}

impl<'a, T> Iterator for Samples<'a, T> {
    type Item = Vec<&'a T>;

    fn next(&mut self) -> Option<Vec<&'a T>> {
        if self.items.is_empty() {
            return None;
        }
        let Samples { items, size, random } = self;
        Some((0..*size).map(|_| &items[random.index(items.len())]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items() -> Vec<u32> {
        (0..10).collect()
    }

    fn flat(batches: Batches<'_, u32>) -> Vec<u32> {
        batches.flatten().copied().collect()
    }

    #[test]
    fn batches_cover_all_instances_once_and_the_last_may_be_smaller() {
        let items = items();
        let sizes: Vec<usize> = items.batches(4).map(|batch| batch.len()).collect();
        assert_eq!(sizes, [4, 4, 2]);
        assert_eq!(items.batches(4).len(), 3);
        assert_eq!(flat(items.batches(4)), items);
        assert_eq!(items.batches(0).len(), 10);
        assert_eq!(items.batches(usize::MAX).len(), 1);
        assert_eq!([0_u32; 0].batches(4).len(), 0);
    }

    #[test]
    fn shuffled_batches_hold_every_instance_once() {
        let items = items();
        let mut first = flat(items.batches(4).shuffled(1));
        assert_eq!(first, flat(items.batches(4).shuffled(1)));
        assert_eq!(first, flat(items.shuffled(1).batches(4)));
        assert_ne!(first, flat(items.batches(4).shuffled(2)));
        first.sort_unstable();
        assert_eq!(first, items);
    }

    #[test]
    fn buckets_are_sorted_by_size_and_their_batches_can_be_shuffled() {
        let items = items();
        let bucketed = items.bucket_by(|item| item % 3);
        assert_eq!(bucketed.positions(), [0, 3, 6, 9, 1, 4, 7, 2, 5, 8]);
        let first = |seed| bucketed.clone().batches(4).shuffled_batches(seed).next();
        assert!((1..10).any(|seed| first(seed) != first(0)));
        let mut batches: Vec<Vec<&u32>> = bucketed.batches(4).shuffled_batches(1).collect();
        batches.sort();
        assert_eq!(batches, [vec![&0, &3, &6, &9], vec![&1, &4, &7, &2], vec![&5, &8]]);
    }

    #[test]
    fn samples_repeat_instances_and_never_end() {
        let items = items();
        let drawn: Vec<u32> = items.sample(50, 1).take(20).flatten().copied().collect();
        assert_eq!(drawn.len(), 1000);
        for item in &items {
            let count = drawn.iter().filter(|&other| other == item).count();
            assert!((60..150).contains(&count), "seed 1: {item} was drawn {count} times");
        }
        assert!([0_u32; 0].sample(4, 1).next().is_none());
    }

    #[test]
    fn balanced_shards_hold_every_item_once_and_have_similar_costs() {
        for (count, shards) in [(64, 8), (61, 8), (5, 8), (1, 1), (0, 4), (9, 0)] {
            let costs: Vec<u64> = (0..count).map(|item| (item * 37 + 11) % 50 + 1).collect();
            let items: Vec<usize> = (0..count as usize).collect();
            let balanced = balanced(items.clone(), shards, |&item| costs[item]);
            let sums: Vec<u64> = (0..shards.min(items.len()))
                .map(|shard| {
                    let at = |shard: usize| items.len() * shard / shards.min(items.len());
                    balanced[at(shard)..at(shard + 1)].iter().map(|&item| costs[item]).sum()
                })
                .collect();
            let spread = sums.iter().max().unwrap_or(&0) - sums.iter().min().unwrap_or(&0);
            assert!(count != 64 || spread <= 20, "{sums:?}");
            let mut sorted = balanced;
            sorted.sort_unstable();
            assert_eq!(sorted, items, "{count} items in {shards} shards");
        }
    }

    #[test]
    fn a_split_loses_nothing_and_keeps_the_order() {
        let (train, valid) = split(items(), 250, 1);
        assert_eq!((train.len(), valid.len()), (8, 2));
        assert!(train.is_sorted() && valid.is_sorted());
        let mut all = [train, valid].concat();
        all.sort_unstable();
        assert_eq!(all, items());
        assert!(split(items(), 5000, 1).0.is_empty());
    }
}
