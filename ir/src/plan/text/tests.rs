//! Tests of runs.

use super::runs::{NumberRun, REACHES, runs};

fn expanded(run: NumberRun) -> impl Iterator<Item = u32> {
    (0..run.count as u32).map(move |i| run.start + i * run.stride)
}

#[test]
fn runs_expand_to_the_same_numbers() {
    let numbers = [0, 2, 5, 6, 7, 8, 20, 24, 28, 32, 7, 7, 7, 7, 3, 1, u32::MAX, u32::MAX, 4, 5];
    for reach in REACHES {
        let found: Vec<NumberRun> = runs(&numbers, reach).collect();
        assert_eq!(found.iter().copied().flat_map(expanded).collect::<Vec<u32>>(), numbers);
        assert!(found.iter().all(|run| run.count <= reach));
    }
    assert_eq!(runs(&numbers, usize::MAX).count(), 11);
    assert_eq!(runs(&numbers, 1).count(), numbers.len());
    assert_eq!(runs(&[], 4).count(), 0);
}
