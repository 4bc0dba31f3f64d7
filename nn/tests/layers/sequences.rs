//! Padded arrays and their packed form.

use autobatch_nn::{Packed, Sequences, SequencesError};

/// An array with distinct elements for each step `t` of sequence `n`, with padding that no row may contain.
fn padded(at: impl Fn(usize, usize, usize) -> usize) -> Vec<f32> {
    let mut data = vec![f32::NAN; 4 * 3 * 2];
    for (n, length) in LENGTHS.into_iter().enumerate() {
        for t in 0..length {
            for c in 0..2 {
                data[at(t, n, c)] = (100 * n + 10 * t + c) as f32;
            }
        }
    }
    data
}

const LENGTHS: [usize; 3] = [2, 4, 0];

#[test]
fn both_layouts_give_the_same_rows_without_padding() {
    let time_first = padded(|t, n, c| (t * 3 + n) * 2 + c);
    let batch_first = padded(|t, n, c| (n * 4 + t) * 2 + c);
    let one = Sequences::from_tnc(&time_first, [4, 3, 2], &LENGTHS)
        .expect("array, extents and lengths are consistent");
    let two = Sequences::from_ntc(&batch_first, [3, 4, 2], &LENGTHS)
        .expect("array, extents and lengths are consistent");
    for (sequence, length) in LENGTHS.into_iter().enumerate() {
        let rows: Vec<&[f32]> = one.rows(sequence).collect();
        assert_eq!(rows, two.rows(sequence).collect::<Vec<_>>());
        assert_eq!(rows.len(), length);
        for (time, row) in rows.into_iter().enumerate() {
            let first = (100 * sequence + 10 * time) as f32;
            assert_eq!(row, [first, first + 1.0]);
        }
    }
}

#[test]
fn packing_sorts_stably_by_length() {
    let data: Vec<f32> = (0..12).map(|x| x as f32).collect();
    let sequences = Sequences::from_ntc(&data, [4, 3, 1], &[1, 3, 1, 2])
        .expect("array, extents and lengths are consistent");
    let expected = Packed {
        data: vec![3.0, 9.0, 0.0, 6.0, 4.0, 10.0, 5.0],
        batch_sizes: vec![4, 2, 1],
        sorted: vec![1, 3, 0, 2],
        unsorted: vec![2, 0, 3, 1],
    };
    assert_eq!(sequences.packed(), expected);
}

#[test]
fn packing_no_sequences_gives_empty_arrays() {
    let sequences =
        Sequences::from_tnc(&[], [0, 0, 5], &[]).expect("array, extents and lengths are consistent");
    assert!(sequences.is_empty());
    let Packed { data, batch_sizes, sorted, unsorted } = sequences.packed();
    assert!(data.is_empty() && batch_sizes.is_empty() && sorted.is_empty() && unsorted.is_empty());
}

#[test]
fn inconsistent_arrays_are_rejected() {
    let data = [0.0; 12];
    let refused =
        |extents, lengths: &[usize]| Sequences::from_tnc(&data, extents, lengths).expect_err("it fits");
    assert_eq!(refused([3, 2, 1], &[1, 1]), SequencesError::Elements { expected: Some(6), found: 12 });
    assert_eq!(refused([usize::MAX, 2, 1], &[1, 1]), SequencesError::Elements { expected: None, found: 12 });
    assert_eq!(refused([3, 2, 2], &[1]), SequencesError::Lengths { expected: 2, found: 1 });
    let error = refused([3, 2, 2], &[3, 4]);
    assert_eq!(error.to_string(), "sequence 1 has length 4, the array holds 3 steps");
}
