//! Tests of the shares of a wave.

use crate::executor::waves::{lane_at, share_start};

#[test]
fn the_shares_of_a_wave_cover_every_lane_once() {
    for (steps, parts) in [
        (vec![(1, 7)], 2),
        (vec![(100, 3), (5, 1000), (57, 1)], 3),
        (vec![(56, 9), (56, 9)], 2),
        (vec![(14, 1), (1, 1 << 40), (900, 2)], 5),
    ] {
        let whole = steps.iter().map(|(rows, row_work)| rows * row_work).sum();
        let mut begin = 0;
        for &(rows, row_work) in &steps {
            let cuts: Vec<usize> = (0..=parts)
                .map(|part| {
                    lane_at(rows, rows * row_work, share_start(whole, part, parts).saturating_sub(begin))
                })
                .collect();
            assert_eq!((cuts[0], cuts[parts]), (0, rows), "{steps:?}");
            assert!(cuts.is_sorted(), "{steps:?} {cuts:?}");
            begin += rows * row_work;
        }
    }
}
