//! Tests of attention: every instruction set gives the bits of the definition and writes nothing else.

use crate::kernels::{Attention, AttentionSpace, Isa, attend_unchecked};
use autobatch_ir::numeric::{list, same_bits};
use autobatch_ir::plan::{Address, Group, GroupRange, GroupRule, List};

const ROWS: usize = 71;

/// Rows with numbers of all kinds, the special ones in few rows.
fn field(stride: usize, seed: usize) -> Vec<f32> {
    let special = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -0.0, 1e-40, 3e38];
    let number = |at: usize| match (at / stride % 29, at * 31 % 17) {
        (28, n) if n < special.len() => special[n],
        (_, n) => ((at * 7 + n + seed) as f32 * 0.37).sin() * 2.0,
    };
    (0..ROWS * stride).map(number).collect()
}

/// The lists of some lanes: shared, growing, shrinking, unlike, empty.
fn table_lists() -> Vec<Vec<u32>> {
    let row = |at: usize| (at * at + 3 * at) as u32 % ROWS as u32;
    let some = |from: usize, len: usize| (from..from + len).map(row).collect::<Vec<u32>>();
    let mut lists = vec![some(0, 20); 8];
    lists.extend((0..40).map(|len| some(5, len)));
    lists.extend((0..9).rev().map(|len| some(5, 3 * len)));
    lists.extend([
        some(1, 1),
        vec![],
        some(2, 16),
        some(2, 17),
        some(3, 17),
        vec![],
        some(9, 70),
        some(9, 69),
    ]);
    lists
}

#[test]
fn attention_matches_the_definition_bit_for_bit() {
    let rows = table_lists();
    let mut tables = Vec::new();
    let of_tables = Address::of_lists(&mut tables, rows.iter(), |tables: &mut Vec<u32>, rows: &Vec<u32>| {
        tables.extend(rows);
    });
    // Groups over neighbours and over a table.
    let mut groups = Vec::new();
    let at = tables.len() as u32;
    tables.extend([7, 3, 9, 9, 1, 60, 2]);
    for (end, len, range, rule) in [
        (13, 40, GroupRange::Run { start: 2 }, GroupRule::All),
        (31, 17, GroupRange::Run { start: 2 }, GroupRule::Prefix),
        (36, 7, GroupRange::Table { at }, GroupRule::Prefix),
        (43, 7, GroupRange::Table { at }, GroupRule::Suffix),
    ] {
        groups.push(Group { end, len, range, rule });
    }
    let mark = (0, tables.len());
    let of_groups = Address::of_last_groups(&mut groups, &mut tables, mark, std::iter::empty());
    let lists = |address: Address, lanes: u32| -> Vec<List<'_>> {
        (0..lanes).filter_map(|lane| address.list_of_lane(&tables, &groups, lane)).collect()
    };
    let [of_tables, of_groups] = [lists(of_tables, rows.len() as u32), lists(of_groups, 43)];
    for (key_width, value_width) in [(1, 1), (3, 5), (8, 16), (16, 17), (32, 32), (33, 40), (64, 96)] {
        for lists in [&of_tables, &of_groups] {
            compare(lists, key_width, value_width);
        }
    }
}

/// Compares every instruction set with the definition.
fn compare(lists: &[List<'_>], key_width: usize, value_width: usize) {
    let (key_stride, value_stride) = (key_width + 2, value_width + 1);
    let (keys, values, queries) = (field(key_stride, 1), field(value_stride, 2), field(key_stride, 3));
    let row = |rows: &[f32], stride: usize, number: usize, width: usize| -> Vec<f32> {
        rows[number * stride..][..width].to_vec()
    };
    let pairs: Vec<[List<'_>; 2]> = lists.iter().map(|&list| [list, list]).collect();
    for isa in Isa::available() {
        let stride = value_width + 3;
        let mut out = vec![7.0f32; lists.len() * stride];
        let attention = Attention {
            query: queries.as_ptr(),
            query_stride: key_stride,
            key_width,
            keys: keys.as_ptr(),
            key_stride,
            values: values.as_ptr(),
            value_stride,
            value_width,
            lists: &pairs,
            scale: 0.25,
            out: out.as_mut_ptr(),
            out_stride: stride,
        };
        // SAFETY: the instruction set is available, the lists name rows of the fields, and each lane has a query and a result.
        unsafe { attend_unchecked(isa, &attention, &mut AttentionSpace::default()) };
        for (lane, (found, list)) in out.chunks_exact(stride).zip(lists).enumerate() {
            let of = |rows: &[f32], stride, width| -> Vec<Vec<f32>> {
                list.iter().map(|number| row(rows, stride, number as usize, width)).collect()
            };
            let (keys, values) = (of(&keys, key_stride, key_width), of(&values, value_stride, value_width));
            let [keys, values] =
                [&keys, &values].map(|rows| rows.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let query = row(&queries, key_stride, lane, key_width);
            let mut expected = vec![9.0f32; value_width];
            list::attend(&query, &keys, &values, 0.25, &mut expected);
            let same = found.iter().zip(&expected).all(|(&a, &b)| same_bits(a, b));
            assert!(
                same,
                "{isa} {key_width} lane {lane}, {} keys: {found:?}, expected {expected:?}",
                keys.len()
            );
            assert_eq!(found[value_width..], [7.0; 3], "{isa} lane {lane}");
        }
    }
}
