//! Blocks of matrices: whether they are disjoint.

use std::collections::BTreeMap;
use std::ops::Range;

/// Whether no two blocks of rows and columns share an element.
///
/// A line sweeps down the rows and holds the columns of the blocks that it crosses. These columns are disjoint as long as no
/// two blocks overlap, so a new block is compared with its neighbours only. The cost of n blocks is n log n.
#[must_use]
pub fn lie_apart(blocks: impl IntoIterator<Item = [Range<u64>; 2]>) -> bool {
    let mut blocks: Vec<[Range<u64>; 2]> = blocks.into_iter().collect();
    blocks.retain(|block| block.iter().all(|range| !range.is_empty()));
    let events = blocks.iter().flat_map(|[rows, columns]| {
        [(rows.start, true, columns.start, columns.end), (rows.end, false, columns.start, columns.end)]
    });
    let mut events: Vec<(u64, bool, u64, u64)> = events.collect();
    // At one row, blocks end before others begin.
    events.sort_unstable();
    let mut crossed: BTreeMap<u64, u64> = BTreeMap::new();
    for (_, begins, start, end) in events {
        if !begins {
            crossed.remove(&start);
            continue;
        }
        // Of the columns that begin before its end, the last reach furthest.
        if crossed.range(..end).next_back().is_some_and(|(_, &before)| before > start) {
            return false;
        }
        crossed.insert(start, end);
    }
    true
}
