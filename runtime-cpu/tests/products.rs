//! Products match the scalar chain bit for bit, for every instruction set, batch size, position and kind of row numbers.

mod common;

use autobatch_runtime_cpu::kernels::{
    Isa, Matrix, PackedWeights, Product, RowNumbers, Rows, RowsMut, RowsPart, Scratch, Start,
};
use common::{Random, bits, cases, isas};

/// The definition: `acc = start; for k ascending: acc = fma(x, w, acc)`.
fn chain(start: f32, x: &[f32], w: &[f32], n: usize, column: usize) -> f32 {
    x.iter().enumerate().fold(start, |acc, (k, &x)| x.mul_add(w[k * n + column], acc))
}

/// A random operand: its rows and the row number of every lane.
struct Operand {
    data: Vec<f32>,
    stride: usize,
    table: Vec<u32>,
    kind: usize,
    k: usize,
}

impl Operand {
    fn new(random: &mut Random, lanes: usize, k: usize) -> Self {
        // Rows whose distance is a multiple of 1024 floats are gathered.
        let stride = match random.below(5) {
            4 if !cfg!(miri) => k.next_multiple_of(1024),
            more => k + more,
        };
        let kind = random.below(4);
        let rows = 3 * lanes + 3;
        Operand {
            data: random.floats(rows * stride.max(1)),
            stride,
            table: (0..lanes).map(|_| random.below(rows) as u32).collect(),
            kind,
            k,
        }
    }

    fn rows(&self) -> Rows<'_> {
        match self.kind {
            0 => Rows::range(&self.data, self.stride, 2),
            1 => Rows::new(&self.data, self.stride, RowNumbers::Stepped { first: 1, step: 3 }),
            2 => Rows::table(&self.data, self.stride, &self.table),
            _ => Rows::shared(&self.data),
        }
    }

    fn lane(&self, lane: usize) -> &[f32] {
        let row = match self.kind {
            0 => 2 + lane,
            1 => 1 + 3 * lane,
            2 => self.table[lane] as usize,
            _ => 0,
        };
        &self.data[row * self.stride..][..self.k]
    }
}

#[test]
fn random_products_match_the_scalar_chain() {
    let mut random = Random::seeded();
    for case in 0..cases(60) {
        let lanes = 1 + random.below(if cfg!(miri) { 9 } else { 70 });
        // Wide and narrow products use different tiles.
        let n = 1 + random.below(if cfg!(miri) { 200 } else { [60, 200, 500][case % 3] });
        let max_k = if cfg!(miri) { 5 } else { 330 };
        let operands: Vec<_> = (0..random.below(4))
            .map(|_| {
                let k = 1 + random.below(max_k);
                Operand::new(&mut random, lanes, k)
            })
            .collect();
        let k: usize = operands.iter().map(|o| o.k).sum();
        let w = random.floats(k * n);
        let bias = random.floats(n);
        let before = Operand::new(&mut random, lanes, n);
        let stride = n + random.below(4);
        let output = random.floats(lanes * stride);
        let parts: Vec<_> = operands.iter().map(|o| RowsPart { rows: o.rows(), k: o.k }).collect();
        let start = random.below(4);
        for isa in isas() {
            let weights = PackedWeights::pack(isa, Matrix::new(&w, n, k, n)).unwrap();
            let start_from = match start {
                0 => Start::Zero,
                1 => Start::Bias(&bias),
                2 => Start::Rows(before.rows()),
                _ => Start::Output,
            };
            let mut out = output.clone();
            Product::new(&weights, &parts, start_from)
                .run(0..lanes, RowsMut::new(&mut out, stride), &mut Scratch::new())
                .unwrap();
            let expected = (0..lanes * stride).map(|at| {
                let (lane, column) = (at / stride, at % stride);
                let start = match start {
                    _ if column >= n => return output[at],
                    0 => 0.0,
                    1 => bias[column],
                    2 => before.lane(lane)[column],
                    _ => output[at],
                };
                let x: Vec<f32> = operands.iter().flat_map(|o| o.lane(lane)).copied().collect();
                chain(start, &x, &w, n, column)
            });
            let expected: Vec<f32> = expected.collect();
            let differs = bits(&out).iter().zip(bits(&expected)).position(|(&a, b)| a != b);
            assert_eq!(
                differs, None,
                "seed {} case {case} {isa} lanes {lanes} n {n} k {k} stride {stride}",
                random.seed
            );
        }
    }
}

/// Tests every tile height and number of panels, last panels that end around a vector, and direct and gathered rows.
#[test]
fn products_of_every_tile_shape_match_the_scalar_chain() {
    let mut random = Random::seeded();
    let (max_lanes, max_panels) = if cfg!(miri) { (9, 3) } else { (29, 9) };
    // One unrolled group of four steps, and one more step.
    let k = 5;
    let columns = (0..max_panels).flat_map(|panel| [1, 8, 9, 16, 17, 32].map(|more| panel * 32 + more));
    let wide = [1024; 2].map(|page| random.floats(max_lanes * page));
    for n in columns {
        let w = random.floats(k * n);
        let bias = random.floats(n);
        for (x, stride) in [(&wide[0], k), (&wide[1], 1024)] {
            let expected: Vec<f32> = (0..max_lanes * n)
                .map(|at| chain(bias[at % n], &x[at / n * stride..][..k], &w, n, at % n))
                .collect();
            for isa in isas() {
                let weights = PackedWeights::pack(isa, Matrix::new(&w, n, k, n)).expect("the sizes agree");
                let part = [RowsPart { rows: Rows::range(x, stride, 0), k }];
                let product = Product::new(&weights, &part, Start::Bias(&bias));
                for lanes in 1..=max_lanes {
                    let mut out = vec![f32::NAN; lanes * n];
                    let rows = RowsMut::new(&mut out, n);
                    product.run(0..lanes, rows, &mut Scratch::new()).expect("the sizes agree");
                    assert!(
                        bits(&out) == bits(&expected[..lanes * n]),
                        "{isa}, {lanes} lanes, n {n}, stride {stride}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_bits_of_a_row_do_not_depend_on_the_batch() {
    let mut random = Random::seeded();
    let k = if cfg!(miri) { 9 } else { 301 };
    let x = random.floats(k);
    let sizes = isas().into_iter().flat_map(|isa| [(isa, 21), (isa, 150), (isa, 301)]);
    for (isa, n) in sizes.take(if cfg!(miri) { 1 } else { usize::MAX }) {
        let w = random.floats(k * n);
        let weights = PackedWeights::pack(isa, Matrix::new(&w, n, k, n)).unwrap();
        let mut scratch = Scratch::new();
        let mut alone = vec![0.0; n];
        let part = [RowsPart { rows: Rows::shared(&x), k }];
        Product::new(&weights, &part, Start::Zero)
            .run(0..1, RowsMut::new(&mut alone, n), &mut scratch)
            .unwrap();
        for lanes in if cfg!(miri) { vec![5] } else { vec![2, 4, 7, 15, 29, 61, 113, 200] } {
            let position = random.below(lanes);
            let mut rows = random.floats(lanes * k);
            rows[position * k..][..k].copy_from_slice(&x);
            let mut out = vec![0.0; lanes * n];
            let part = [RowsPart { rows: Rows::range(&rows, k, 0), k }];
            Product::new(&weights, &part, Start::Zero)
                .run(0..lanes, RowsMut::new(&mut out, n), &mut scratch)
                .unwrap();
            let found = &out[position * n..][..n];
            assert_eq!(bits(found), bits(&alone), "{isa}, n {n}, {lanes} lanes, position {position}");
        }
    }
}

#[test]
fn lanes_computed_by_separate_calls_match_one_call() {
    let mut random = Random::seeded();
    let (lanes, k, n) = if cfg!(miri) { (11, 3, 150) } else { (37, 290, 310) };
    let w = random.floats(k * n);
    let x = random.floats(lanes * k);
    let bias = random.floats(n);
    for isa in isas() {
        let weights = PackedWeights::pack(isa, Matrix::new(&w, n, k, n)).unwrap();
        let part = [RowsPart { rows: Rows::range(&x, k, 0), k }];
        let product = Product::new(&weights, &part, Start::Bias(&bias));
        let mut scratch = Scratch::new();
        let mut expected = vec![0.0; lanes * n];
        product.run(0..lanes, RowsMut::new(&mut expected, n), &mut scratch).unwrap();
        let mut out = vec![f32::NAN; lanes * n];
        let row = lanes / 3;
        product.run(0..row, RowsMut::new(&mut out, n), &mut scratch).unwrap();
        product.run(row..lanes, RowsMut::new(&mut out[row * n..], n), &mut scratch).unwrap();
        assert_eq!(bits(&out), bits(&expected), "{isa}");
    }
}

#[test]
fn a_part_computed_ahead_keeps_the_bits() {
    let mut random = Random::seeded();
    // The second part begins inside a block of packed rows and ends in the next block.
    let sizes = if cfg!(miri) { (9, 2, 5, 150) } else { (30, 100, 400, 300) };
    for (lanes, first, k, n) in [(6, 5, 13, 19), sizes] {
        check_part_computed_ahead(&mut random, lanes, first, k, n);
    }
}

fn check_part_computed_ahead(random: &mut Random, lanes: usize, first: usize, k: usize, n: usize) {
    let w = random.floats(k * n);
    let x = random.floats(lanes * k);
    for isa in isas() {
        let weights = PackedWeights::pack(isa, Matrix::new(&w, n, k, n)).expect("the sizes agree");
        let mut scratch = Scratch::new();
        let whole = [RowsPart { rows: Rows::range(&x, k, 0), k }];
        let mut expected = vec![0.0; lanes * n];
        Product::new(&weights, &whole, Start::Zero)
            .run(0..lanes, RowsMut::new(&mut expected, n), &mut scratch)
            .expect("the sizes agree");
        let initial = [RowsPart { rows: Rows::range(&x, k, 0), k: first }];
        let last = [RowsPart { rows: Rows::range(&x[first..], k, 0), k: k - first }];
        let mut partial = vec![0.0; lanes * n];
        Product::new(&weights, &initial, Start::Zero)
            .run(0..lanes, RowsMut::new(&mut partial, n), &mut scratch)
            .expect("the sizes agree");
        let rest = Product { first_k: first, ..Product::new(&weights, &last, Start::Output) };
        rest.run(0..lanes, RowsMut::new(&mut partial, n), &mut scratch).expect("the sizes agree");
        assert_eq!(bits(&partial), bits(&expected), "{isa}");
    }
}

#[test]
fn products_without_lanes_or_parts_are_valid() {
    let weights = PackedWeights::zeroed(Isa::best(), 0, 3).unwrap();
    let bias = [1.0, 2.0, 3.0];
    let product = Product::new(&weights, &[], Start::Bias(&bias));
    let mut out = vec![9.0; 60];
    product.run(0..0, RowsMut::new(&mut out, 3), &mut Scratch::new()).unwrap();
    assert_eq!(out, vec![9.0; 60]);
    product.run(0..20, RowsMut::new(&mut out, 3), &mut Scratch::new()).unwrap();
    assert_eq!(out, bias.repeat(20));
}
