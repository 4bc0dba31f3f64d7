//! Tests of spans.

use super::*;

fn runs(spans: &Spans) -> usize {
    match spans {
        Spans::Few(runs) => runs.len(),
        Spans::Many(runs) => runs.len(),
    }
}

#[test]
fn runs_that_touch_become_one_and_gaps_are_found() {
    let mut spans = Spans::default();
    spans.insert(4, 6);
    spans.insert(0, 2);
    assert_eq!(spans.first_missing(0, 6), Some(2));
    assert_eq!(spans.first_present(2, 9), Some(4));
    assert_eq!(spans.first_present(2, 4), None);
    spans.insert(1, 5);
    assert_eq!((spans.first_missing(0, 6), spans.len(), runs(&spans)), (None, 6, 1));
    spans.insert(6, 7);
    assert_eq!((spans.first_missing(3, 8), spans.len(), runs(&spans)), (Some(7), 7, 1));
}

#[test]
fn lists_and_trees_say_what_flags_say() {
    let mut state = 1u64;
    let mut below = |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    for round in 0..400 {
        // Short runs in a wide range leave many gaps, long ones in a narrow range leave few.
        let (range, longest) = if round % 2 == 0 { (400, 4) } else { (60, 12) };
        let (mut spans, mut flags) = (Spans::default(), vec![false; 420]);
        for _ in 0..below(120) {
            let start = below(range);
            let end = start + below(longest);
            spans.insert(start, end);
            flags[start as usize..end as usize].fill(true);
            let (start, end) = (below(range), below(range + 20));
            let first = |wanted: bool| (start..end).find(|&at| flags[at as usize] == wanted);
            assert_eq!(spans.first_missing(start, end), first(false), "{spans:?} {start}..{end}");
            assert_eq!(spans.first_present(start, end), first(true), "{spans:?} {start}..{end}");
            assert_eq!(spans.len(), flags.iter().filter(|&&set| set).count() as u64, "{spans:?}");
            let gaps = flags.windows(2).filter(|pair| !pair[0] && pair[1]).count() + usize::from(flags[0]);
            assert_eq!(runs(&spans), gaps, "{spans:?}");
        }
    }
}
