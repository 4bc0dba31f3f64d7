//! Weights that are read four neighbours at a time give the bits of weights that are read one by one, wherever they
//! are in memory and whatever kernel reads them.

use crate::common::{Within, executor};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Inputs, Plan, StoreId, Stores, Verified};
use autobatch_oracle::naive;
use autobatch_runtime_wgpu::compile::compile;
use autobatch_runtime_wgpu::module::{LoadWidth, Program, Tile};
use autobatch_runtime_wgpu::{Budget, Executor, Options};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Two parts of a product with blocks of two weights.
#[derive(Clone, Copy, Debug)]
struct Case {
    lanes: u32,
    /// The number of column groups, and the columns of each.
    groups: u32,
    columns: u32,
    /// Whether the epilogue also reads a product of the second part alone.
    twice: bool,
    /// Columns of the operands.
    widths: [u32; 2],
    /// Which weights are stored transposed.
    transposed: [bool; 2],
    /// Where the blocks start in the weights, down and across.
    block: (u32, u32),
    /// Rows of the stored weights are a multiple of the first number, plus the second.
    pitch: (u32, u32),
    stored: &'static str,
}

/// Where a block starts, down and across, and the length of stored rows; see [`Case`].
type Where = ((u32, u32), (u32, u32));

/// A place that allows no vector reads.
const APART: Where = ((1, 1), (4, 2));

impl Case {
    fn at(self, (block, pitch): Where) -> Self {
        Self { block, pitch, ..self }
    }

    fn all_columns(&self) -> u32 {
        self.groups * self.columns
    }

    /// Rows and columns of a stored weight.
    fn extents(&self, part: usize) -> (u32, u32) {
        let (deep, wide) = (self.widths[part], self.all_columns());
        let (rows, columns) = if self.transposed[part] { (wide, deep) } else { (deep, wide) };
        let (down, across) = self.stored_block(part);
        (down + rows + 1, (across + columns).next_multiple_of(self.pitch.0) + self.pitch.1)
    }

    /// Where the block starts in the weight as it is stored.
    fn stored_block(&self, part: usize) -> (u32, u32) {
        let (row, column) = self.block;
        if self.transposed[part] { (column, row) } else { (row, column) }
    }

    fn plan(&self) -> Verified<Plan> {
        let Self { lanes, groups, columns, twice, widths: [a, b], transposed, stored, .. } = *self;
        let (row, column) = self.block;
        let all = self.all_columns();
        let shape = |part| {
            let (rows, columns) = self.extents(part);
            format!("{stored}[{rows},{columns}]")
        };
        let word = transposed.map(|transposed| if transposed { "transposed " } else { "" });
        let mut tail = format!("t0 = mul %2[0..{columns}], 2.0");
        for group in 1..groups {
            let (from, to) = (group * columns, (group + 1) * columns);
            let _ = write!(tail, " t{group} = sub t{}, %2[{from}..{to}]", group - 1);
        }
        let (mut temp, mut second) = (String::new(), String::new());
        if twice {
            temp = format!(", %4: f32[{columns}]");
            second =
                format!("prod %4 = 0 + %1 . {}@1[{row}..{}, {}..]", word[1], row + b, column + all - columns);
            let _ = write!(tail, " t{groups} = add t{}, %4", groups - 1);
        }
        let mut text = format!(
            "autobatch plan 5 module \"vectors\" structure 0x00000000000000000000000000000001 mode infer
             store @v param {} store @w param {} store @b param {stored}[{biases}]
             bind words 0 floats {floats}
             slab s0 value {{h: f32[{columns}]}} x{lanes}
             kernel k0 cell (%0: f32[{a}], %1: f32[{b}]) [@0: {}, @1: {}, @2: {stored}[{biases}]] {{
               temp %2: f32[{all}], %3: f32[{columns}]{temp}
               prod %2 = @2 + %0 . {}@0[{row}..{}, {column}..] + %1 . {}@1[{row}..{}, {column}..]
               {second}
               map {columns} {{ {tail} -> %3 }}
               return %3
             }}
             wave 0 f0 k0[@v, @w, @b] x{lanes} -> s0.h[0..{lanes}] <- x[0..{x} by {a}] x[{x}..{floats} by {b}] = n0..n{lanes}\n",
            shape(0),
            shape(1),
            shape(0),
            shape(1),
            word[0],
            row + a,
            word[1],
            row + b,
            biases = column + all,
            floats = lanes * (a + b),
            x = lanes * a,
        );
        for lane in 0..lanes {
            let _ = writeln!(text, "output \"{lane}\" s0.h[{lane}]");
        }
        let bytes = 4 * lanes * columns;
        let _ = writeln!(
            text,
            "certificate batches 1 bound 1 | rows copied 0 gathered 0 direct 0 | slabs {bytes} bytes"
        );
        Plan::from_text(&text).unwrap_or_else(|error| panic!("{error}")).verify().expect("verifies")
    }

    /// The weights and the bias: the same numbers wherever the blocks are, surrounded by numbers that must not be
    /// read.
    fn stores(&self, version: u64) -> Drawn {
        let number = |part: u32, k: u32, column: u32| {
            ((part * 91 + k * 37 + column * 59 + k * column) % 251) as f32 / 64.0 - 2.0
        };
        let mut all = Vec::new();
        for part in 0..2 {
            let (rows, columns) = self.extents(part);
            let (down, across) = self.stored_block(part);
            let mut values = vec![f32::NAN; (rows * columns) as usize];
            for k in 0..self.widths[part] {
                for column in 0..self.all_columns() {
                    let (i, j) = if self.transposed[part] { (column, k) } else { (k, column) };
                    values[((down + i) * columns + across + j) as usize] = number(part as u32, k, column);
                }
            }
            all.push(values);
        }
        let mut biases = vec![f32::NAN; self.block.1 as usize];
        biases.extend((0..self.all_columns()).map(|column| number(2, 0, column)));
        all.push(biases);
        Drawn { all, version }
    }
}

struct Drawn {
    all: Vec<Vec<f32>>,
    version: u64,
}

impl Stores for Drawn {
    fn values(&self, store: StoreId) -> &[f32] {
        &self.all[store.index()]
    }
    fn version(&self, _: StoreId) -> u64 {
        self.version
    }
}

/// A device, and the programs that it executed.
struct Bench {
    executor: Executor,
    version: u64,
    executed: BTreeMap<Tile, BTreeSet<LoadWidth>>,
}

impl Bench {
    fn new(options: Options) -> Option<Self> {
        Some(Self { executor: executor(options)?, version: 0, executed: BTreeMap::new() })
    }

    /// The rows of all lanes, compared with those of the naive executor, which fuses.
    fn rows(&mut self, case: &Case) -> Vec<Vec<f32>> {
        let plan = case.plan();
        let compiled = compile(&plan, self.executor.target().expect("open")).expect("fits");
        for program in &compiled.programs {
            if let Program::Products(products) = &**program {
                let sums: u32 = products.groups.iter().sum();
                assert_eq!(sums, case.groups + u32::from(case.twice), "one dispatch");
                self.executed.entry(products.tile).or_default().insert(products.load);
            }
        }
        self.version += 1;
        let stores = case.stores(self.version);
        let floats: Vec<f32> = (0..plan.floats).map(|at| (at as f32 * 0.731).sin()).collect();
        let bound = Inputs { words: &[], floats: &floats, noise: Noise::Off };
        self.executor.execute(&plan, &stores, bound).expect("executes");
        let naive = naive::execute(&plan, &stores.all, &[], &floats, Noise::Off).expect("executes");
        let within = Within { row: 1e-5, least: 0.0 };
        (0..case.lanes as usize)
            .map(|lane| {
                let expected: Vec<f32> =
                    naive.output(lane).expect("there").iter().map(|&word| f32::from_bits(word)).collect();
                let found = self.executor.output(lane).to_vec();
                assert!(expected.iter().all(|x| x.is_finite()), "{case:?}");
                assert!(within.holds(&found, &expected), "{case:?}, lane {lane}: {found:?} {expected:?}");
                found
            })
            .collect()
    }

    /// Asserts that exactly these tiles were executed, each with the widest possible loads.
    fn executed(&self, tiles: &[Tile]) {
        let expected: BTreeMap<Tile, BTreeSet<LoadWidth>> =
            tiles.iter().map(|&tile| (tile, LoadWidth::ALL.map(|most| tile.load(most)).into())).collect();
        assert_eq!(self.executed, expected);
    }

    /// Blocks at all kinds of places give the bits of elements that are read one by one.
    fn compare(&mut self, case: Case) {
        let expected = self.rows(&case.at(APART));
        let places = [
            // As weights are, with nothing around the blocks.
            ((0, 0), (1, 0)),
            ((0, 0), (4, 0)),
            ((4, 8), (4, 4)),
            // Blocks that start at no vector boundary, in rows that do, and the reverse.
            ((3, 2), (4, 0)),
            ((4, 4), (4, 1)),
        ];
        for place in places {
            let found = self.rows(&case.at(place));
            let same =
                |(a, b): (&Vec<f32>, &Vec<f32>)| a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits());
            let at = found.iter().zip(&expected).position(|pair| !same(pair));
            assert_eq!(at, None, "{:?}, a lane", case.at(place));
        }
    }
}

/// Different numbers of groups put different neighbours into group memory. Some columns and widths are whole vectors
/// and some are not.
const SHAPES: [(u32, u32, bool, [u32; 2]); 6] = [
    (1, 64, false, [16, 24]),
    (1, 37, false, [9, 20]),
    (1, 4, true, [4, 4]),
    (2, 20, true, [8, 21]),
    (2, 18, false, [12, 3]),
    (4, 12, true, [7, 20]),
];
const SIDES: [[bool; 2]; 3] = [[false; 2], [true; 2], [false, true]];

fn case(lanes: u32, shape: usize, transposed: [bool; 2], stored: &'static str) -> Case {
    let ((groups, columns, twice, widths), (block, pitch)) = (SHAPES[shape], APART);
    Case { lanes, groups, columns, twice, widths, transposed, block, pitch, stored }
}

#[test]
fn vector_reads_of_weights_give_the_bits_of_single_reads() {
    let Some(mut bench) = Bench::new(Options::default()) else { return };
    for shape in 0..SHAPES.len() {
        for transposed in SIDES {
            for lanes in [3, 17, 70] {
                bench.compare(case(lanes, shape, transposed, "f32"));
            }
        }
    }
    bench.executed(&[Tile::Few, Tile::Rows16, Tile::Rows64]);
}

#[test]
fn vector_reads_in_tiles_give_the_bits_of_single_reads() {
    let Some(mut bench) = Bench::new(Options::default()) else { return };
    for shape in [0, 1, 3, 5] {
        for transposed in SIDES {
            bench.compare(case(1030, shape, transposed, "f32"));
        }
    }
    bench.executed(&[Tile::Rows128]);
}

#[test]
fn vector_reads_of_16_bit_weights_give_the_bits_of_single_reads() {
    let Some(mut bench) = Bench::new(Options::default()) else { return };
    for stored in ["f16", "bf16"] {
        for shape in [1, 3] {
            for transposed in SIDES {
                for lanes in [3, 17, 70] {
                    bench.compare(case(lanes, shape, transposed, stored));
                }
            }
        }
    }
}

#[test]
fn vector_reads_work_across_many_bindings() {
    let budget = Budget { binding: Some(4 << 10), ..Budget::default() };
    let Some(mut bench) = Bench::new(Options { budget, ..Options::default() }) else { return };
    for transposed in SIDES {
        let case = case(17, 0, transposed, "f32");
        let compiled = compile(&case.plan(), bench.executor.target().expect("open")).expect("fits");
        assert!(compiled.layout.params() > 2 * 1024, "the weights take several bindings");
        bench.compare(case);
    }
}

/// Many columns of few rows: a thread has four of them, unless a weight does not allow it.
#[test]
fn four_elements_per_thread_have_the_bits_of_a_tile() {
    let Some(mut bench) = Bench::new(Options::default()) else { return };
    let (block, pitch) = APART;
    let widths = [5, 4];
    let case = |lanes, columns, groups, twice, transposed, stored| Case {
        lanes,
        groups,
        columns,
        twice,
        widths,
        transposed,
        block,
        pitch,
        stored,
    };
    for (groups, twice, stored) in [(1, false, "f32"), (2, true, "f32"), (1, false, "bf16")] {
        for (lanes, columns) in [(8, 2048), (7, 2344)] {
            bench.compare(case(lanes, columns, groups, twice, [false; 2], stored));
        }
    }
    let executed: Vec<Tile> = bench.executed.keys().copied().collect();
    assert_eq!(executed, [Tile::Four, Tile::Rows16]);
    bench.executed.clear();
    bench.compare(case(8, 2048, 1, false, [false, true], "f32"));
    bench.compare(case(8, 2046, 1, false, [false; 2], "f32"));
    let executed: Vec<Tile> = bench.executed.keys().copied().collect();
    assert_eq!(executed, [Tile::Rows16]);
}
