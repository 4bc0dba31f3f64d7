//! Packed weights hold the packed elements for every source layout and block. The tests read them through products.

mod common;

use autobatch_runtime_cpu::kernels::{
    Isa, KernelError, Matrix, PackedWeights, Product, RowNumbers, Rows, RowsMut, RowsPart, Scratch, Start,
};
use common::{Random, bits, cases, isas};

/// Unpacks weights: multiplies each unit row by them.
fn unpacked(weights: &PackedWeights) -> Vec<f32> {
    let (k, n) = (weights.k(), weights.n());
    let mut units = vec![0.0; k * k];
    for i in 0..k {
        units[i * k + i] = 1.0;
    }
    let parts = [RowsPart { rows: Rows::range(&units, k, 0), k }];
    let mut out = vec![0.0; k * n];
    Product::new(weights, &parts, Start::Zero)
        .run(0..k, RowsMut::new(&mut out, n), &mut Scratch::new())
        .expect("the sizes agree");
    out
}

#[test]
fn filled_blocks_replace_the_old_elements() {
    let mut random = Random::seeded();
    for case in 0..cases(40) {
        let max = if cfg!(miri) { 12 } else { 120 };
        let (k, n) = (1 + random.below(3 * max), 1 + random.below(max));
        for isa in isas() {
            let mut expected = random.floats(k * n);
            let mut weights = PackedWeights::pack(isa, Matrix::new(&expected, n, k, n)).unwrap();
            for _ in 0..3 {
                let (first_k, first_n) = (random.below(k), random.below(n));
                let rows = random.below(k - first_k + 1);
                let columns = random.below(n - first_n + 1);
                let stride = rows.max(columns) + random.below(3);
                let source = random.floats(stride * rows.max(columns));
                let transposed = random.below(2) == 0;
                let block = if transposed {
                    Matrix::new(&source, stride, columns, rows).transposed()
                } else {
                    Matrix::new(&source, stride, rows, columns)
                };
                weights.fill(first_k, first_n, block).unwrap();
                let (down, across) = if transposed { (1, stride) } else { (stride, 1) };
                for at in 0..rows * columns {
                    let (i, j) = (at / columns, at % columns);
                    expected[(first_k + i) * n + first_n + j] = source[i * down + j * across];
                }
            }
            // A product that starts from zero turns -0 into 0, but the random values contain no zero.
            assert_eq!(
                bits(&unpacked(&weights)),
                bits(&expected),
                "seed {} case {case} {isa} k {k} n {n}",
                random.seed
            );
        }
    }
}

#[test]
fn blocks_outside_of_the_weights_and_oversized_weights_are_rejected() {
    let source = vec![1.0; 20];
    let mut weights = PackedWeights::zeroed(Isa::Scalar, 4, 5).unwrap();
    let reach = |what, needs, has| Err(KernelError::Reach { what, needs, has });
    let block = |rows, columns| Matrix::new(&source, 5, rows, columns);
    let rows = "rows of the packed weights";
    assert_eq!(weights.fill(1, 0, block(4, 5)), reach(rows, 5, 4));
    let columns = "columns of the packed weights";
    assert_eq!(weights.fill(0, 3, block(4, 3)), reach(columns, 6, 5));
    assert_eq!(weights.fill(0, 0, block(5, 5)), reach("matrix", 25, 20));
    assert_eq!(weights.fill(usize::MAX, 0, block(1, 1)), reach(rows, usize::MAX, 4));
    // Miri aborts when an allocation fails, so its size must overflow instead.
    let too_much = if cfg!(miri) { 1 << 60 } else { 1 << 40 };
    for (k, n) in [(usize::MAX, 1), (1, usize::MAX), (too_much, 1 << 20)] {
        let error = PackedWeights::zeroed(Isa::Scalar, k, n).unwrap_err();
        assert_eq!(error, KernelError::Memory { k, n });
    }
    for isa in Isa::ALL {
        assert_eq!(PackedWeights::zeroed(isa, 1, 1).is_ok(), isa.is_available(), "{isa}");
    }
}

#[test]
fn operands_and_results_may_be_rows_of_one_slab() {
    let mut random = Random::seeded();
    let (k, n, stride) = (6, 9, 16);
    let w = random.floats(k * n);
    for isa in isas() {
        let weights = PackedWeights::pack(isa, Matrix::new(&w, n, k, n)).unwrap();
        let mut slab = random.floats(8 * stride);
        let before = slab.clone();
        let table = [4, 0, 2];
        let numbers = RowNumbers::Table(&table);
        let base = slab.as_mut_ptr();
        // SAFETY: the operands are rows 0, 2 and 4 of the slab, the results rows 5, 6 and 7.
        unsafe {
            let rows = Rows::from_raw(base, slab.len(), stride, numbers);
            let out = RowsMut::from_raw(base.add(5 * stride), 3 * stride, stride);
            let parts = [RowsPart { rows, k }];
            let product = Product::new(&weights, &parts, Start::Zero);
            assert_eq!(product.check(&(0..3), &out), Ok(()));
            product.run_unchecked(0..3, out, &mut Scratch::new());
        }
        assert_eq!(slab[..5 * stride], before[..5 * stride]);
        for (lane, &row) in table.iter().enumerate() {
            let x = &before[row as usize * stride..][..k];
            for j in 0..n {
                let expected = (0..k).fold(0.0f32, |acc, i| x[i].mul_add(w[i * n + j], acc));
                assert_eq!(slab[(5 + lane) * stride + j].to_bits(), expected.to_bits(), "{isa}");
            }
        }
    }
}
