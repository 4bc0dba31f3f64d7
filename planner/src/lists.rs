//! Lists in flat memory: grouped by key, and written by index.

use crate::ids::Id;

/// Lists of items, one list for each key.
#[derive(Debug)]
pub(crate) struct Groups<T> {
    /// The start of each key's items; the last entry is the end of all.
    start: Vec<u32>,
    items: Vec<T>,
}

/// Without keys. Items need no default.
impl<T> Default for Groups<T> {
    fn default() -> Self {
        Self { start: Vec::new(), items: Vec::new() }
    }
}

impl<T: Copy> Groups<T> {
    /// Groups pairs of key and item. The items of a key keep their order.
    pub(crate) fn fill(&mut self, keys: usize, pairs: impl Iterator<Item = (usize, T)> + Clone) {
        group(keys, pairs, &mut self.start, &mut self.items);
    }

    /// The items of a key.
    #[inline]
    pub(crate) fn of(&self, key: usize) -> &[T] {
        &self.items[self.start[key] as usize..self.start[key + 1] as usize]
    }

    /// Sorts the items of each key.
    pub(crate) fn sort_each_by_key<K: Ord>(&mut self, by: impl Fn(&T) -> K) {
        for ends in self.start.windows(2) {
            self.items[ends[0] as usize..ends[1] as usize].sort_unstable_by_key(&by);
        }
    }

    /// The keys that have items, with their items.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &[T])> {
        (0..self.start.len().saturating_sub(1))
            .map(|key| (key, self.of(key)))
            .filter(|group| !group.1.is_empty())
    }
}

/// Groups pairs of key and item by one counting sort. The items of a key keep their order. `start` gets the start of each key's
/// items, then the end of all.
pub(crate) fn group<T: Copy>(
    keys: usize,
    pairs: impl Iterator<Item = (usize, T)> + Clone,
    start: &mut Vec<u32>,
    items: &mut Vec<T>,
) {
    let mut counts = Counts::new(keys, start);
    pairs.clone().for_each(|(key, _)| counts.add(key));
    counts.group(pairs, items);
}

/// Pairs of each key and the id of its position, for [`group`].
pub(crate) fn by_key<I: Id>(
    keys: impl Iterator<Item = usize> + Clone,
) -> impl Iterator<Item = (usize, I)> + Clone {
    keys.zip((0..).map(I::from_index))
}

/// The first half of [`group`]: the number of items of each key. A caller that computes keys counts them in the same pass.
pub(crate) struct Counts<'a> {
    /// Counts lie two places ahead. So entry `key + 1` is the place of the key's next item while items are written, and in the
    /// end the place of the next key's first item.
    start: &'a mut Vec<u32>,
}

impl<'a> Counts<'a> {
    /// Starts without items.
    pub(crate) fn new(keys: usize, start: &'a mut Vec<u32>) -> Self {
        start.clear();
        start.resize(keys + 2, 0);
        Self { start }
    }

    /// Counts an item of a key.
    #[inline]
    pub(crate) fn add(&mut self, key: usize) {
        self.start[key + 2] += 1;
    }

    /// Writes the counted items, key after key.
    #[inline]
    pub(crate) fn group<T: Copy>(self, pairs: impl Iterator<Item = (usize, T)> + Clone, items: &mut Vec<T>) {
        let Self { start } = self;
        for at in 2..start.len() {
            start[at] += start[at - 1];
        }
        // Every item is written, so the list only needs its length.
        let count = start.last().map_or(0, |&end| end as usize);
        match pairs.clone().next() {
            Some((_, any)) => items.resize(count, any),
            None => items.clear(),
        }
        let start_of = start.as_mut_slice();
        for (key, item) in pairs {
            let at = &mut start_of[key + 1];
            items[*at as usize] = item;
            *at += 1;
        }
        start.pop();
    }
}

/// Makes a list that is written by index at least `least` long. The list fills its capacity, or doubles. Its length is a capacity:
/// the writer keeps the end.
#[inline]
pub(crate) fn ensure_len<T: Copy + Default>(items: &mut Vec<T>, least: usize) {
    if items.len() < least {
        lengthen(items, least);
    }
}

#[cold]
fn lengthen<T: Copy + Default>(items: &mut Vec<T>, least: usize) {
    let length = if items.capacity() >= least { items.capacity() } else { least.max(2 * items.len()) };
    items.resize(length, T::default());
}
