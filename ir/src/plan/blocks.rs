//! Blocks of matrices: whether they lie apart.

use std::collections::BTreeMap;
use std::ops::Range;

/// Whether no two of the blocks, of rows and columns each, share an element. Blocks of no element share none.
///
/// A line moves down the rows and knows the columns of the blocks that it crosses, which lie apart as long as no two blocks
/// meet; so a block asks its neighbours only, and n blocks cost n log n.
#[must_use]
pub fn lie_apart(blocks: impl IntoIterator<Item = [Range<u64>; 2]>) -> bool {
    let mut blocks: Vec<[Range<u64>; 2]> = blocks.into_iter().collect();
    blocks.retain(|block| block.iter().all(|range| !range.is_empty()));
    let events = blocks.iter().flat_map(|[rows, columns]| {
        [(rows.start, true, columns.start, columns.end), (rows.end, false, columns.start, columns.end)]
    });
    let mut events: Vec<(u64, bool, u64, u64)> = events.collect();
    // Blocks that end at a row do before others begin there.
    events.sort_unstable();
    let mut crossed: BTreeMap<u64, u64> = BTreeMap::new();
    for (_, begins, start, end) in events {
        if !begins {
            crossed.remove(&start);
            continue;
        }
        // Of those that begin before its end the last reaches furthest.
        if crossed.range(..end).next_back().is_some_and(|(_, &before)| before > start) {
            return false;
        }
        crossed.insert(start, end);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::split_mix;

    #[test]
    fn the_line_finds_what_all_pairs_find() {
        let mut state = 7;
        let mut below = |end: u64| split_mix(&mut state) % end;
        let mut apart = 0;
        for _ in 0..20_000 {
            let blocks: Vec<[Range<u64>; 2]> = (0..1 + below(5))
                .map(|_| {
                    [(); 2].map(|()| {
                        let start = below(8);
                        start..start + below(5)
                    })
                })
                .collect();
            let meet = |a: &Range<u64>, b: &Range<u64>| a.start.max(b.start) < a.end.min(b.end);
            let pairs = (0..blocks.len()).all(|one| {
                blocks[..one].iter().all(|other| !(0..2).all(|axis| meet(&blocks[one][axis], &other[axis])))
            });
            assert_eq!(lie_apart(blocks.iter().cloned()), pairs, "{blocks:?}");
            apart += u32::from(pairs);
        }
        assert!((2_000..18_000).contains(&apart), "{apart}");
    }

    #[test]
    fn a_hundred_thousand_blocks_are_looked_at_in_time() {
        let start = std::time::Instant::now();
        let columns = |n: u64| [0..1 << 20, n..n + 1];
        assert!(lie_apart((0..100_000).map(columns)));
        assert!(!lie_apart((0..100_000).chain([99_999]).map(columns)));
        assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    }
}
