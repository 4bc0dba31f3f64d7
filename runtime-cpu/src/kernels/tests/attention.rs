//! Tests of attention and its reverse: every instruction set gives the bits of the definitions and writes nothing else.

use super::sizes;
use crate::kernels::{
    Attending, Attention, AttentionGradient, AttentionPull, AttentionSpace, GraphAttention, GraphSpace, Isa,
    Strided, StridedMut, attend_unchecked,
};
use autobatch_ir::graph::{Float, Op};
use autobatch_ir::numeric::same_bits;
use autobatch_ir::plan::row_ops::{Scratch, attend_grad, attend_pull, reader_width, seg_op};
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
    let mut lists = vec![some(0, 20); if cfg!(miri) { 3 } else { 8 }];
    lists.extend(sizes(0..40, 10).map(|len| some(5, len)));
    lists.extend(sizes((0..9).rev(), 2).map(|len| some(5, 3 * len)));
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
        (60, 50, GroupRange::Run { start: 5 }, GroupRule::Suffix),
    ] {
        groups.push(Group { end, len, range, rule });
    }
    let mark = (0, tables.len());
    let of_groups = Address::of_last_groups(&mut groups, &mut tables, mark.0, mark.1, std::iter::empty());
    let lists = |address: Address, lanes: u32| -> Vec<List<'_>> {
        (0..lanes).filter_map(|lane| address.list_of_lane(&tables, &groups, lane)).collect()
    };
    let groups = if cfg!(miri) { 16 } else { 60 };
    let [of_tables, of_groups] = [lists(of_tables, rows.len() as u32), lists(of_groups, groups)];
    for lists in [&of_tables, &of_groups] {
        for (key, value) in sizes([(3, 5), (16, 17), (1, 1), (8, 16), (32, 32), (33, 40), (64, 96)], 1) {
            compare(DOT, lists, key, value);
        }
        let sizes =
            sizes([(2, 8), (1, 1), (1, 33), (2, 32), (3, 48), (5, 35), (4, 64), (8, 64), (2, 160)], 1);
        for (heads, value) in sizes {
            compare(GRAPH, lists, heads, value);
        }
    }
}

/// A field whose rows have more floats than a value.
struct Values {
    floats: Vec<f32>,
    stride: usize,
    width: usize,
}

impl Values {
    fn new(width: usize, seed: usize) -> Self {
        let stride = width + 1 + seed % 3;
        Self { floats: field(stride, seed), stride, width }
    }

    /// The rows from a number on.
    fn strided(&self, first: usize) -> Strided {
        Strided { base: self.floats[first * self.stride..].as_ptr(), stride: self.stride, width: self.width }
    }

    fn row(&self, number: usize) -> &[f32] {
        &self.floats[number * self.stride..][..self.width]
    }

    fn listed(&self, list: List<'_>) -> Vec<&[f32]> {
        list.iter().map(|number| self.row(number as usize)).collect()
    }
}

/// Results of lanes, with floats behind each that nothing may write.
struct Results {
    floats: Vec<f32>,
    width: usize,
}

impl Results {
    fn new(lanes: usize, width: usize) -> Self {
        Self { floats: vec![7.0; lanes * (width + 3)], width }
    }

    /// The results from a lane on.
    fn strided(&mut self, first: usize) -> StridedMut {
        let stride = self.width + 3;
        StridedMut { base: self.floats[first * stride..].as_mut_ptr(), stride }
    }

    fn assert_row(&self, lane: usize, expected: &[f32], what: std::fmt::Arguments<'_>) {
        let (found, behind) = self.floats[lane * (self.width + 3)..][..self.width + 3].split_at(self.width);
        let same = found.iter().zip(expected).all(|(&a, &b)| same_bits(a, b));
        assert!(same, "{what}, lane {lane}: {found:?}, expected {expected:?}");
        assert_eq!(behind, [7.0; 3], "{what}, lane {lane}");
    }
}

const NUMBER: f32 = 0.25;
const DOT: Op = Op::Attend { scale: Float::new(NUMBER) };
const GRAPH: Op = Op::GraphAttend { slope: Float::new(NUMBER) };

/// Compares every instruction set with the definitions.
fn compare(op: Op, lists: &[List<'_>], key_width: usize, value_width: usize) {
    let [keys, queries] = [1, 3].map(|seed| Values::new(key_width, seed));
    let [values, dys] = [2, 4].map(|seed| Values::new(value_width, seed));
    let reader_width = reader_width(op, [key_width as u32, value_width as u32]).unwrap() as usize;
    let readers = Values::new(reader_width, 5);
    let pairs: Vec<[List<'_>; 2]> = lists.iter().map(|&list| [list, list]).collect();
    let lanes = lists.len();
    for isa in Isa::available() {
        let (mut space, mut graph) = (AttentionSpace::default(), GraphSpace::default());
        let mut all = Results::new(lanes, value_width);
        let [mut dq, mut read] = [key_width, reader_width].map(|width| Results::new(lanes, width));
        let [mut dk, mut dv] = [key_width, value_width].map(|width| Results::new(lanes, width));
        // Two calls, as of two tiles: the second finds rows that the first has packed.
        let mut packed = [[None; 2]; 3];
        let cut = lanes / 3;
        for (first, pairs, lists) in [(0, &pairs[..cut], &lists[..cut]), (cut, &pairs[cut..], &lists[cut..])]
        {
            let [query, dy, key, value] =
                [&queries, &dys, &keys, &values].map(|values| values.strided(first));
            let (keys, values, readers) = (keys.strided(0), values.strided(0), readers.strided(0));
            let [of_query, of_reader, of_key, of_value] =
                [&mut dq, &mut read, &mut dk, &mut dv].map(|made| Some(made.strided(first)));
            let out = all.strided(first);
            // SAFETY: the instruction set is available, the lists name rows of the fields, each lane has its rows and results,
            // and a stage of the space always packs rows of the same fields.
            unsafe {
                if op == DOT {
                    let (scale, own) = (NUMBER, pairs);
                    let attention = Attention { query, keys, values, lists: own, scale, out };
                    attend_unchecked(isa, &attention, space.stage(0, &mut packed[0]));
                    let (out, readers_out) = (of_query, of_reader);
                    let gradient = AttentionGradient {
                        query,
                        dy,
                        keys,
                        values,
                        lists: own,
                        scale,
                        out,
                        readers: readers_out,
                    };
                    gradient.compute_unchecked(isa, space.stage(1, &mut packed[1]));
                    let pull = AttentionPull { key, value, readers, lists, scale, out: [of_key, of_value] };
                    pull.compute_unchecked(isa, space.stage(2, &mut packed[2]));
                } else {
                    let slope = NUMBER;
                    let of = || Attending { query, keys, values, lists: pairs, slope };
                    GraphAttention::Forward { lanes: of(), out }.compute_unchecked(isa, &mut graph);
                    let gradient =
                        GraphAttention::Gradient { lanes: of(), dy, out: of_query, readers: of_reader };
                    gradient.compute_unchecked(isa, &mut graph);
                    let out = [of_key, of_value];
                    let pull = GraphAttention::Pull { key, value, readers, lists, slope, out };
                    pull.compute_unchecked(isa, &mut graph);
                }
            }
        }
        for (lane, &list) in lists.iter().enumerate() {
            let what = |part: &str| {
                let rows = list.len();
                format!("{isa} {} {key_width} {value_width}, {part} of {rows} rows", op.spelling())
            };
            let (query, dy) = (queries.row(lane), dys.row(lane));
            let [own_keys, own_values] = [&keys, &values].map(|rows| rows.listed(list));
            let mut expected = vec![9.0; value_width];
            seg_op(op, query, &[&own_keys, &own_values], &mut expected, &mut Scratch::default());
            all.assert_row(lane, &expected, format_args!("{}", what("result")));
            let mut expected = [vec![9.0; key_width], vec![9.0; reader_width]];
            let [of_query, of_readers] = &mut expected;
            attend_grad(op, query, [&own_keys, &own_values], dy, [of_query, of_readers]);
            dq.assert_row(lane, &expected[0], format_args!("{}", what("gradient of the query")));
            read.assert_row(lane, &expected[1], format_args!("{}", what("reader")));
            let mut expected = [vec![9.0; key_width], vec![9.0; value_width]];
            let [of_key, of_value] = &mut expected;
            let own = readers.listed(list);
            attend_pull(op, keys.row(lane), values.row(lane), &own, [of_key, of_value]);
            dk.assert_row(lane, &expected[0], format_args!("{}", what("gradient of the key")));
            dv.assert_row(lane, &expected[1], format_args!("{}", what("gradient of the value")));
        }
    }
}
