//! Tests of disjoint blocks, and of the scan over bound words.

use super::blocks::lie_apart;
use super::limits::any_reaches;
use crate::hash::split_mix;
use autobatch_testing::hostile::metered;
use std::ops::Range;
use std::time::Duration;

#[test]
fn the_sweep_agrees_with_a_comparison_of_all_pairs() {
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
fn a_hundred_thousand_blocks_are_compared_in_time() {
    let columns = |n: u64| [0..1 << 20, n..n + 1];
    let (apart, spent) = metered(|| {
        [lie_apart((0..100_000).map(columns)), lie_apart((0..100_000).chain([99_999]).map(columns))]
    });
    assert_eq!(apart, [true, false]);
    assert!(spent.time.unwrap_or_default() < Duration::from_secs(5), "{spent:?}");
}

#[test]
fn a_word_at_the_limit_is_found_at_every_position() {
    for len in 0..70 {
        let mut words = vec![6; len];
        assert!(!any_reaches(&words, 7) && (len == 0 || any_reaches(&words, 6)));
        for at in 0..len {
            words[at] = 7 + at as u32;
            assert!(any_reaches(&words, 7), "word {at} of {len}");
            words[at] = 6;
        }
    }
}
