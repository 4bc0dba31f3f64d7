//! Products. The weight is `[0.5 -1 2; 1.5 0.25 -0.5]`, the bias `[0.125 0.25 -0.5]`.

use super::{OpCase, TRUE, entry, good};

/// `ROW` is `[0.5 -1.5] · W`; `ROWS` adds `[1 2] · W` as a second row.
const ROW: [f64; 3] = [-2.0, -0.875, 1.75];
const ROWS: [f64; 6] = [-2.0, -0.875, 1.75, 3.5, -0.5, 1.0];
const X: [f32; 2] = [0.5, -1.5];
const XS: [f32; 4] = [0.5, -1.5, 1.0, 2.0];

fn biased(products: &[f64]) -> Vec<f64> {
    products.iter().enumerate().map(|(at, x)| x + [0.125, 0.25, -0.5][at % 3]).collect()
}

pub(super) fn affine() -> OpCase {
    entry(
        vec![
            good(&["f32[3]"], vec![ROW.to_vec()], |g, h| vec![g.input(&X).affine(h.weight, None)]),
            good(&["f32[2,3]"], vec![ROWS.to_vec()], |g, h| {
                vec![g.input_shaped([2, 2], &XS).affine(h.weight, None)]
            }),
            good(&["f32[3]"], vec![ROW.to_vec()], |g, h| {
                let [a, b] = g.input(&X).split();
                vec![g.affine([a, b], h.weight, None)]
            }),
            good(&["f32[3]"], vec![ROW.to_vec()], |g, h| vec![g.input(&X).affine(h.half, None)]),
        ],
        TRUE,
        "the value has 3 elements, the weight takes 2",
        |g, h| vec![g.input(&[1.0, 2.0, 3.0]).affine(h.weight, None)],
    )
}

pub(super) fn affine_bias() -> OpCase {
    entry(
        vec![
            good(&["f32[3]"], vec![biased(&ROW)], |g, h| vec![g.input(&X).affine(h.weight, Some(h.bias))]),
            good(&["f32[2,3]"], vec![biased(&ROWS)], |g, h| {
                vec![g.input_shaped([2, 2], &XS).affine(h.weight, Some(h.bias))]
            }),
            good(&["f32[2,3]"], vec![biased(&ROWS)], |g, h| {
                let [a, b] = g.input_shaped([2, 2], &XS).split();
                vec![g.affine([a, b], h.weight, Some(h.bias))]
            }),
        ],
        TRUE,
        "the bias must have 3 elements, found f32[2,3]",
        |g, h| vec![g.input(&X).affine(h.weight, Some(h.weight))],
    )
}

pub(super) fn affine_transposed() -> OpCase {
    entry(
        vec![
            good(&["f32[3]"], vec![ROW.to_vec()], |g, h| vec![g.input(&X).affine_transposed(h.turned, None)]),
            // A tied embedding: the product of `[0.5 -1.5]` with every row `[2i 2i+1]` of the table.
            good(&["f32[4]"], vec![vec![-1.5, -3.5, -5.5, -7.5]], |g, h| {
                vec![g.input(&X).affine_transposed(h.table.as_param(), None)]
            }),
        ],
        TRUE,
        "the weight must be a matrix, found f32[3]",
        |g, h| vec![g.input(&X).affine_transposed(h.bias, None)],
    )
}

pub(super) fn affine_transposed_bias() -> OpCase {
    entry(
        vec![good(&["f32[2,3]"], vec![biased(&ROWS)], |g, h| {
            vec![g.input_shaped([2, 2], &XS).affine_transposed(h.turned, Some(h.bias))]
        })],
        TRUE,
        "the bias must have 2 elements, found f32[3]",
        |g, h| vec![g.input(&[1.0; 3]).affine_transposed(h.weight, Some(h.bias))],
    )
}

/// `-1.5 · W[1..2]`.
const SECOND: [f64; 3] = [-2.25, -0.375, 0.75];

pub(super) fn affine_rows() -> OpCase {
    entry(
        vec![
            good(&["f32[3]"], vec![SECOND.to_vec()], |g, h| {
                vec![g.affine_rows([g.input(&[-1.5])], h.weight, None, 1)]
            }),
            good(&["f32[3]"], vec![ROW.to_vec()], |g, h| {
                let [a, b] = g.input(&X).split();
                vec![g.affine_rows([a, b], h.weight, None, 0)]
            }),
        ],
        TRUE,
        "the value has 2 elements, but from row 1 on the weight has 1",
        |g, h| vec![g.affine_rows([g.input(&X)], h.weight, None, 1)],
    )
}

pub(super) fn affine_rows_bias() -> OpCase {
    entry(
        vec![
            good(&["f32[3]"], vec![biased(&SECOND)], |g, h| {
                vec![g.affine_rows([g.input(&[-1.5])], h.weight, Some(h.bias), 1)]
            }),
            good(&["f32[2,3]"], vec![biased(&ROWS)], |g, h| {
                vec![g.affine_rows([g.input_shaped([2, 2], &XS)], h.weight, Some(h.bias), 0)]
            }),
        ],
        TRUE,
        "the bias must have 3 elements, found f32[2,3]",
        |g, h| vec![g.affine_rows([g.input(&X)], h.weight, Some(h.weight), 0)],
    )
}

pub(super) fn affine_onto() -> OpCase {
    entry(
        vec![
            good(&["f32[3]"], vec![biased(&ROW)], |g, h| {
                let [a, b] = g.input(&X).split();
                let begun = g.affine_rows([a], h.weight, Some(h.bias), 0);
                vec![g.affine_onto(begun, [b], h.weight, 1)]
            }),
            good(&["f32[2,3]"], vec![ROWS.to_vec()], |g, h| {
                let zeros = g.input_shaped([2, 3], &[0.0; 6]);
                vec![g.affine_onto(zeros, [g.input_shaped([2, 2], &XS)], h.weight, 0)]
            }),
        ],
        TRUE,
        "the sums must be f32[3], found f32[2]",
        |g, h| vec![g.affine_onto(g.input(&X), [g.input(&X)], h.weight, 0)],
    )
}

pub(super) fn matmul() -> OpCase {
    entry(
        vec![
            // [1 2 3; 4 5 6] · [1 0; 0.5 -1; 2 1]
            good(&["f32[2,2]"], vec![vec![8.0, 1.0, 18.5, 1.0]], |g, _| {
                let a = g.input_shaped([2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
                vec![a.matmul(g.input_shaped([3, 2], &[1.0, 0.0, 0.5, -1.0, 2.0, 1.0]))]
            }),
            good(&["f32[2]"], vec![vec![3.5, 11.0]], |g, _| {
                let a = g.input_shaped([2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
                vec![a.matmul(g.input(&[2.0, 0.0, 0.5]))]
            }),
            good(&["f32[3]"], vec![vec![-1.5, -1.5, -1.5]], |g, _| {
                let a = g.input_shaped([2, 3], &[1.0, 2.0, 3.0, 2.0, 3.0, 4.0]);
                vec![g.input(&[1.5, -1.5]).matmul(a)]
            }),
        ],
        TRUE,
        "inner extents must agree, found f32[2] and f32[3,1]",
        |g, _| vec![g.input(&X).matmul(g.input_shaped([3, 1], &[1.0; 3]))],
    )
}

pub(super) fn dot() -> OpCase {
    entry(
        vec![good(&["f32"], vec![vec![-2.5]], |g, _| vec![g.input(&X).dot(g.input(&[1.0, 2.0]))])],
        TRUE,
        "operand 1 must be f32[2] like the first, found f32[3]",
        |g, _| vec![g.input(&X).dot(g.input(&[1.0; 3]))],
    )
}

pub(super) fn outer() -> OpCase {
    entry(
        vec![good(&["f32[2,3]"], vec![vec![0.5, 1.0, -2.0, -1.5, -3.0, 6.0]], |g, _| {
            vec![g.input(&X).outer(g.input(&[1.0, 2.0, -4.0]))]
        })],
        TRUE,
        "expected a vector, found f32[1,2]",
        |g, _| vec![g.input(&X).outer(g.input_shaped([1, 2], &X))],
    )
}
