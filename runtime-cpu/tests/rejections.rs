//! Products that would access memory outside of a slice are rejected with the sizes.

use autobatch_runtime_cpu::kernels::{
    Isa, KernelError, Matrix, PackedWeights, Product, RowNumbers, Rows, RowsMut, RowsPart, Scratch, Start,
};

#[test]
fn accesses_outside_of_a_slice_are_rejected_before_any_write() {
    let (k, n) = (4, 40);
    let w = vec![1.0; k * n];
    let weights = PackedWeights::pack(Isa::Scalar, Matrix::new(&w, n, k, n)).unwrap();
    let x = vec![1.0; 5 * k];
    let short_bias = vec![0.0; n - 1];
    let far = [0, 5];
    let good = RowsPart { rows: Rows::range(&x, k, 0), k };
    let good_parts = [good];
    let good = Product::new(&weights, &good_parts, Start::Zero);
    let overflow = RowNumbers::Stepped { first: 1, step: usize::MAX };
    let parts = [
        ([RowsPart { rows: Rows::range(&x, k, 4), k }], 24),
        ([RowsPart { rows: Rows::table(&x, k, &far), k }], 24),
        ([RowsPart { rows: Rows::table(&x, k, &far[..1]), k }], 2),
        ([RowsPart { rows: Rows::new(&x, k, overflow), k }], usize::MAX),
        ([RowsPart { rows: Rows::range(&x, usize::MAX, 0), k }], usize::MAX),
    ];
    for (parts, needs) in &parts {
        let product = Product { parts, ..good.clone() };
        rejects(&product, n, |e| matches!(e, KernelError::Reach { needs: found, .. } if found == needs));
    }
    rejects(&Product { first_k: 1, ..good.clone() }, n, |e| {
        matches!(e, KernelError::Reach { needs: 5, has: 4, .. })
    });
    rejects(&Product { start: Start::Bias(&short_bias), ..good.clone() }, n, |e| {
        matches!(e, KernelError::Size { expected: 40, found: 39, .. })
    });
    rejects(&Product { start: Start::Rows(Rows::range(&w, n, 3)), ..good.clone() }, n, |e| {
        matches!(e, KernelError::Reach { needs: 200, has: 160, .. })
    });
    rejects(&good, n - 1, |e| matches!(e, KernelError::Reach { needs: 40, has: 39, .. }));
    rejects(&good, n + 30, |e| matches!(e, KernelError::Reach { needs: 110, has: 80, .. }));
}

fn rejects(product: &Product<'_>, stride: usize, expected: impl Fn(&KernelError) -> bool) {
    let mut out = vec![7.0; 80];
    let result = product.run(0..2, RowsMut::new(&mut out, stride), &mut Scratch::new());
    let error = result.expect_err("the product accesses memory outside of a slice");
    assert!(expected(&error), "{error:?}");
    assert_eq!(out, vec![7.0; 80]);
}
