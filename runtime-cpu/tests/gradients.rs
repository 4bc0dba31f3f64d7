//! Weight gradients, column sums and products of two matrices match their chains bit for bit, for all sizes and layouts.

mod common;

use autobatch_runtime_cpu::kernels::{
    Isa, KernelError, Matrix, Rows, RowsMut, RowsRun, Scratch, WeightGrad, column_sums, multiply,
};
use common::{Random, bits, cases, isas};

/// Rows cut into random runs; some runs use a table.
struct Runs {
    data: Vec<f32>,
    stride: usize,
    pieces: Vec<Piece>,
}

/// The row numbers of a run.
enum Piece {
    Range(std::ops::Range<usize>),
    Table(Vec<u32>),
}

impl Runs {
    fn new(random: &mut Random, rows: usize, width: usize) -> Self {
        let stride = width + random.below(3);
        let data = random.floats((rows + 2) * stride);
        let mut pieces = Vec::new();
        let mut left = rows;
        while left > 0 {
            let count = 1 + random.below(left);
            left -= count;
            pieces.push(if random.below(2) == 0 {
                Piece::Table((0..count).map(|_| random.below(rows + 2) as u32).collect())
            } else {
                let first = random.below(rows + 3 - count);
                Piece::Range(first..first + count)
            });
        }
        Runs { data, stride, pieces }
    }

    fn runs(&self) -> Vec<RowsRun<'_>> {
        self.pieces
            .iter()
            .map(|piece| match piece {
                Piece::Range(rows) => {
                    RowsRun { rows: Rows::range(&self.data, self.stride, rows.start), count: rows.len() }
                }
                Piece::Table(table) => {
                    RowsRun { rows: Rows::table(&self.data, self.stride, table), count: table.len() }
                }
            })
            .collect()
    }

    /// All rows in sum order.
    fn order(&self) -> Vec<&[f32]> {
        let mut order = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Range(rows) => order.extend(rows.clone()),
                Piece::Table(table) => order.extend(table.iter().map(|&row| row as usize)),
            }
        }
        order.into_iter().map(|row| &self.data[row * self.stride..][..self.stride]).collect()
    }
}

#[test]
fn random_weight_gradients_match_the_chain() {
    let mut random = Random::seeded();
    for case in 0..cases(30) {
        let small = cfg!(miri);
        let count = random.below(if small { 5 } else { 600 });
        let k = 1 + random.below(if small { 9 } else { 70 });
        let n = 1 + random.below(if small { 20 } else { 70 });
        let (x, dy) = (Runs::new(&mut random, count, k), Runs::new(&mut random, count, n));
        let stride = n + random.below(3);
        let before = random.floats(k * stride);
        let accumulate = random.below(2) == 0;
        let mut expected = before.clone();
        let (x_order, dy_order) = (x.order(), dy.order());
        for i in 0..k {
            for j in 0..n {
                let slot = &mut expected[i * stride + j];
                let start = if accumulate { *slot } else { 0.0 };
                *slot = x_order.iter().zip(&dy_order).fold(start, |acc, (x, dy)| x[i].mul_add(dy[j], acc));
            }
        }
        let (x_runs, dy_runs) = (x.runs(), dy.runs());
        for isa in isas() {
            let grad = WeightGrad { isa, k, n, x: &x_runs, dy: &dy_runs, accumulate };
            let mut out = before.clone();
            grad.run(RowsMut::new(&mut out, stride), &mut Scratch::new()).unwrap();
            let name = format!("seed {} case {case} {isa} rows {count} k {k} n {n}", random.seed);
            assert_eq!(bits(&out), bits(&expected), "{name}");
        }
    }
}

#[test]
fn weight_gradients_of_several_blocks_and_stripes_match_the_chain() {
    let mut random = Random::seeded();
    // The last panel has one column, more than one vector of columns, or all columns.
    let sizes = [(259, 500, 33), (257, 449, 545), (300, 30, 1046), (3, 2, 1024)];
    for (count, k, n) in if cfg!(miri) { [(2, 140, 2)].to_vec() } else { sizes.to_vec() } {
        let (x, dy) = (random.floats(count * k), random.floats(count * n));
        let x_runs = [RowsRun { rows: Rows::range(&x, k, 0), count }];
        let dy_runs = [RowsRun { rows: Rows::range(&dy, n, 0), count }];
        let mut expected = vec![0.0; k * n];
        for r in 0..count {
            for i in 0..k {
                for j in 0..n {
                    let slot = &mut expected[i * n + j];
                    *slot = x[r * k + i].mul_add(dy[r * n + j], *slot);
                }
            }
        }
        for isa in isas() {
            let grad = WeightGrad { isa, k, n, x: &x_runs, dy: &dy_runs, accumulate: false };
            let mut out = vec![f32::NAN; k * n];
            grad.run(RowsMut::new(&mut out, n), &mut Scratch::new()).unwrap();
            assert!(bits(&out) == bits(&expected), "{isa} rows {count} k {k} n {n}");
        }
    }
}

/// Tests every tile height with panels that end around a vector, as a weight gradient and as a product of two matrices.
#[test]
fn sums_of_every_tile_height_match_the_chain() {
    let mut random = Random::seeded();
    let (max, count) = if cfg!(miri) { (9, 5) } else { (29, 5) };
    for n in [1, 4, 5, 8, 9, 15, 16, 17, 31, 32, 33, 48, 49] {
        let (x, dy) = (random.floats(count * max), random.floats(count * n));
        let before = random.floats(max * n);
        let mut expected = before.clone();
        for (at, slot) in expected.iter_mut().enumerate() {
            *slot = (0..count).fold(*slot, |acc, r| x[r * max + at / n].mul_add(dy[r * n + at % n], acc));
        }
        let x_runs = [RowsRun { rows: Rows::range(&x, max, 0), count }];
        let dy_runs = [RowsRun { rows: Rows::range(&dy, n, 0), count }];
        for (isa, k) in isas().into_iter().flat_map(|isa| (1..=max).map(move |k| (isa, k))) {
            let grad = WeightGrad { isa, k, n, x: &x_runs, dy: &dy_runs, accumulate: true };
            let mut found = [before[..k * n].to_vec(), before[..k * n].to_vec()];
            let [sum, product] = &mut found;
            grad.run(RowsMut::new(sum, n), &mut Scratch::new()).expect("the sizes agree");
            let (a, b) = (Matrix::new(&x, max, count, k).transposed(), Matrix::new(&dy, n, count, n));
            multiply(isa, a, b, RowsMut::new(product, n), true, &mut Scratch::new())
                .expect("the sizes agree");
            for found in &found {
                assert!(bits(found) == bits(&expected[..k * n]), "{isa} {k} rows n {n}");
            }
        }
    }
}

#[test]
fn column_sums_match_the_chain() {
    let mut random = Random::seeded();
    for case in 0..cases(30) {
        let n = 1 + random.below(if cfg!(miri) { 40 } else { 300 });
        let count = random.below(if cfg!(miri) { 4 } else { 50 });
        let dy = Runs::new(&mut random, count, n);
        let before = random.floats(n);
        let accumulate = random.below(2) == 0;
        let expected: Vec<f32> = (0..n)
            .map(|j| {
                let start = if accumulate { before[j] } else { 0.0 };
                dy.order().iter().fold(start, |acc, row| acc + row[j])
            })
            .collect();
        for isa in isas() {
            let mut sums = before.clone();
            column_sums(isa, &dy.runs(), &mut sums, accumulate).unwrap();
            assert_eq!(bits(&sums), bits(&expected), "seed {} case {case} {isa}", random.seed);
        }
    }
}

#[test]
fn products_of_two_matrices_match_the_chain_for_every_layout() {
    let mut random = Random::seeded();
    // One scratch for all cases, so that packed matrices reuse memory with old contents.
    let mut scratch = Scratch::new();
    for case in 0..cases(60) {
        let max = if cfg!(miri) { 10 } else { 90 };
        let (m, n) = (1 + random.below(max), 1 + random.below(2 * max));
        let k = random.below(if cfg!(miri) { 10 } else { 400 });
        let (mut a, mut b) = (Layout::new(&mut random, m, k), Layout::new(&mut random, k, n));
        let stride = n + random.below(3);
        let before = random.floats(m * stride);
        let accumulate = random.below(2) == 0;
        let mut expected = before.clone();
        for i in 0..m {
            for j in 0..n {
                let slot = &mut expected[i * stride + j];
                let start = if accumulate { *slot } else { 0.0 };
                *slot = (0..k).fold(start, |acc, l| a.at(i, l).mul_add(b.at(l, j), acc));
            }
        }
        for isa in isas() {
            let mut out = before.clone();
            let result = RowsMut::new(&mut out, stride);
            multiply(isa, a.matrix(), b.matrix(), result, accumulate, &mut scratch).unwrap();
            assert_eq!(
                bits(&out),
                bits(&expected),
                "seed {} case {case} {isa} m {m} k {k} n {n} transposed {} {}",
                random.seed,
                a.transposed,
                b.transposed
            );
        }
    }
}

/// A matrix in row or column order. Its memory ends with its last element.
struct Layout {
    data: Vec<f32>,
    stride: usize,
    rows: usize,
    columns: usize,
    transposed: bool,
}

impl Layout {
    fn new(random: &mut Random, rows: usize, columns: usize) -> Self {
        let transposed = random.below(2) == 0;
        let (lines, width) = if transposed { (columns, rows) } else { (rows, columns) };
        let stride = width + random.below(3);
        let len = if lines == 0 || width == 0 { 0 } else { (lines - 1) * stride + width };
        Layout { data: random.floats(len), stride, rows, columns, transposed }
    }

    fn matrix(&mut self) -> Matrix<'_> {
        if self.transposed {
            Matrix::new(&self.data, self.stride, self.columns, self.rows).transposed()
        } else {
            Matrix::new(&self.data, self.stride, self.rows, self.columns)
        }
    }

    fn at(&self, row: usize, column: usize) -> f32 {
        let (line, offset) = if self.transposed { (column, row) } else { (row, column) };
        self.data[line * self.stride + offset]
    }
}

#[test]
fn mismatched_sizes_are_rejected() {
    let data = vec![1.0; 12];
    let run = |count| [RowsRun { rows: Rows::range(&data, 3, 0), count }];
    let (four, three, five) = (run(4), run(3), run(5));
    let grad = WeightGrad { isa: Isa::Scalar, k: 3, n: 3, x: &four, dy: &four, accumulate: false };
    let try_grad = |grad: WeightGrad<'_>, stride: usize| {
        let mut out = vec![0.0; 9];
        grad.run(RowsMut::new(&mut out, stride), &mut Scratch::new())
    };
    assert_eq!(try_grad(grad, 3), Ok(()));
    let size = KernelError::Size { what: "rows of dy", expected: 4, found: 3 };
    assert_eq!(try_grad(WeightGrad { dy: &three, ..grad }, 3), Err(size));
    let reach = KernelError::Reach { what: "rows of x", needs: 15, has: 12 };
    assert_eq!(try_grad(WeightGrad { x: &five, ..grad }, 3), Err(reach));
    let reach = KernelError::Reach { what: "result rows", needs: 11, has: 9 };
    assert_eq!(try_grad(grad, 4), Err(reach));
    let mut sums = vec![0.0; 4];
    let reach = KernelError::Reach { what: "rows of dy", needs: 13, has: 12 };
    assert_eq!(column_sums(Isa::Scalar, &four, &mut sums, false), Err(reach));
    let a = Matrix::new(&data, 3, 4, 3);
    let error = multiply(Isa::Scalar, a, a, RowsMut::new(&mut [0.0; 12], 3), false, &mut Scratch::new());
    let size = KernelError::Size { what: "rows of the right matrix", expected: 3, found: 4 };
    assert_eq!(error, Err(size));
}
