//! Lists in flat memory: grouped by key, and written by index.

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
    // Counts lie two places ahead. So entry `key + 1` is the place of the key's next item, and in the end the place of the next
    // key's first item.
    start.clear();
    start.resize(keys + 2, 0);
    pairs.clone().for_each(|(key, _)| start[key + 2] += 1);
    for at in 2..start.len() {
        start[at] += start[at - 1];
    }
    items.clear();
    items.extend(pairs.clone().map(|(_, item)| item));
    for (key, item) in pairs {
        let at = &mut start[key + 1];
        items[*at as usize] = item;
        *at += 1;
    }
    start.pop();
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
