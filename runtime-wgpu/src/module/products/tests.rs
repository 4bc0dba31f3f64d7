//! Tests of load widths and tiles.

use super::*;

#[test]
fn vector_reads_need_alignment_to_four() {
    let of = |first, stored_width, transposed, groups: &[u32]| {
        LoadWidth::of(first, stored_width, transposed, groups.iter().copied())
    };
    assert_eq!(of(16, 12, false, &[0, 4, 8]), LoadWidth::Columns);
    assert_eq!(of(16, 12, false, &[0, 6]), LoadWidth::One);
    assert_eq!(of(16, 12, true, &[0, 6]), LoadWidth::Depth);
    for (first, stored_width) in [(2, 12), (16, 10), (17, 12), (16, 13)] {
        for transposed in [false, true] {
            assert_eq!(of(first, stored_width, transposed, &[0]), LoadWidth::One, "{first} {stored_width}");
        }
    }
}

#[test]
fn four_elements_per_thread_need_enough_threads() {
    let many = 4 * MANY_GROUPS * crate::module::GROUP;
    assert_eq!(Tile::of(1, many, LoadWidth::Columns), Tile::Four);
    assert_eq!(Tile::of(1, many - 4, LoadWidth::Columns), Tile::Rows16);
    assert_eq!(Tile::of(15, many / 8, LoadWidth::Columns), Tile::Four);
    assert_eq!(Tile::of(15, many / 8 + 1, LoadWidth::Columns), Tile::Rows16);
    assert_eq!(Tile::of(16, many, LoadWidth::Columns), Tile::Rows16);
    for load in [LoadWidth::One, LoadWidth::Depth] {
        assert_eq!(Tile::of(1, many, load), Tile::Rows16);
        assert_eq!(Tile::of(1, 16, load), Tile::Rows16);
        assert_eq!(Tile::of(15, 15, load), Tile::Few);
    }
}
