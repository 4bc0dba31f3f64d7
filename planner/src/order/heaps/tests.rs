//! Tests of the heaps.

use super::*;

fn heaps(waves: usize) -> Heaps {
    let mut heaps = Heaps::default();
    heaps.restart(1, waves);
    heaps
}

fn high(heaps: &Heaps) -> u32 {
    heaps.highs().sum()
}

#[test]
fn rows_become_free_after_the_last_wave_that_reads_them() {
    let mut heap = heaps(4);
    assert_eq!(heap.take(WaveId(0), SlabId(0), 3), 0);
    [(0, 1), (1, 2), (2, 1)]
        .into_iter()
        .for_each(|(row, wave)| heap.release_after(WaveId(wave), SlabId(0), row..row + 1));
    assert_eq!(heap.take(WaveId(1), SlabId(0), 2), 3, "nothing is free while wave 1 reads");
    assert_eq!(heap.take(WaveId(2), SlabId(0), 1), 0);
    assert_eq!(heap.take(WaveId(3), SlabId(0), 2), 1, "rows 1 and 2 are one run");
    assert_eq!(high(&heap), 5);
}

#[test]
fn a_free_run_at_the_end_grows() {
    let mut heap = heaps(2);
    heap.take(WaveId(0), SlabId(0), 2);
    [0, 1].into_iter().for_each(|row| heap.release_after(WaveId(0), SlabId(0), row..row + 1));
    assert_eq!(heap.take(WaveId(1), SlabId(0), 5), 0);
    assert_eq!(high(&heap), 5);
}

#[test]
fn a_taken_run_leaves_its_neighbours_free() {
    let mut heap = heaps(2);
    heap.take(WaveId(0), SlabId(0), 8);
    [0, 2, 3, 5].into_iter().for_each(|row| heap.release_after(WaveId(0), SlabId(0), row..row + 1));
    let taken = [2, 1, 1].map(|rows| heap.take(WaveId(1), SlabId(0), rows));
    assert_eq!(taken, [2, 0, 5], "the first run that is long enough comes first");
    assert_eq!(heap.take(WaveId(1), SlabId(0), 1), 8);
}

#[test]
fn restart_forgets_all_rows() {
    let mut heap = heaps(2);
    heap.take(WaveId(0), SlabId(0), 2);
    heap.release_after(WaveId(0), SlabId(0), 1..2);
    heap.restart(2, 2);
    assert_eq!([heap.take(WaveId(1), SlabId(0), 1), heap.take(WaveId(1), SlabId(1), 1)], [0, 0]);
}
