//! Losses.

use super::{OpCase, TRUE, entry, good};

const X: [f32; 3] = [1.0, -2.0, 0.5];
const Y: [f32; 3] = [0.0, 3.0, -1.0];
/// A distribution whose elements are exact in binary.
const T: [f32; 3] = [0.25, 0.125, 0.625];

fn log_shares(row: [f32; 3]) -> [f64; 3] {
    let row = row.map(f64::from);
    let total = row.iter().map(|x| x.exp()).sum::<f64>().ln();
    row.map(|x| x - total)
}

pub(super) fn pick_neg_log_softmax() -> OpCase {
    let [x, y] = [X, Y].map(log_shares);
    entry(
        vec![
            good(&["f32"], vec![vec![-x[2]]], |g, _| vec![g.input(&X).cross_entropy(2u32)]),
            good(&["f32"], vec![vec![-x[1]]], |g, _| vec![g.input(&X).cross_entropy(g.input(&Y).argmax())]),
            good(&["f32[2]"], vec![vec![-x[1], -y[0]]], |g, _| {
                let rows = g.stack([g.input(&X), g.input(&Y)]);
                vec![rows.cross_entropy(g.indices(&[1, 0]))]
            }),
        ],
        TRUE,
        "labels must be u32[2], one per row of f32[2,3], found u32",
        |g, _| vec![g.stack([g.input(&X), g.input(&Y)]).cross_entropy(1u32)],
    )
}

pub(super) fn label_loss() -> OpCase {
    // The rows of the weight are [0.5, -1, 2] and [1.5, 0.25, -0.5], so the logits are 3.5 and 0.75.
    let first = (-2.75f64).exp().ln_1p();
    // The rows of the table are [0, 1], [2, 3], [4, 5] and [6, 7].
    let logits = [0.5f64, -0.5, -1.5, -2.5];
    let total = logits.iter().map(|x| x.exp()).sum::<f64>().ln();
    entry(
        vec![
            good(&["f32"], vec![vec![first]], |g, h| vec![g.input(&X).label_loss(h.half, 0u32)]),
            good(&["f32"], vec![vec![first + 2.75]], |g, h| {
                vec![g.input(&X).label_loss(h.half, g.input(&Y).argmax())]
            }),
            good(&["f32"], vec![vec![total - logits[3]]], |g, h| {
                vec![g.input(&[-1.0, 0.5]).label_loss(h.table.as_param(), 3u32)]
            }),
        ],
        TRUE,
        "x must be f32[2], as wide as the rows of f32[4,2], found f32[3]",
        |g, h| vec![g.input(&X).label_loss(h.table.as_param(), 1u32)],
    )
}

pub(super) fn cross_entropy() -> OpCase {
    let loss: f64 = log_shares(X).iter().zip(T).map(|(x, t)| -x * f64::from(t)).sum();
    entry(
        vec![good(&["f32"], vec![vec![loss]], |g, _| vec![g.input(&X).cross_entropy_with(g.input(&T))])],
        TRUE,
        "operand 1 must be f32[3] like the first, found f32[2]",
        |g, _| vec![g.input(&X).cross_entropy_with(g.input(&[0.5, 0.5]))],
    )
}

pub(super) fn kl_div() -> OpCase {
    let terms = log_shares(X).into_iter().zip(T);
    let loss: f64 = terms.map(|(x, t)| f64::from(t) * (f64::from(t).ln() - x)).sum();
    entry(
        vec![
            good(&["f32"], vec![vec![loss]], |g, _| vec![g.input(&X).log_softmax().kl_div(g.input(&T))]),
            // A target of 0 adds nothing. The target is a constant, because its gradient at 0 is not finite.
            good(&["f32"], vec![vec![0.0 - log_shares(X)[0]]], |g, _| {
                vec![g.input(&X).log_softmax().kl_div(g.one_hot(0u32, 3))]
            }),
        ],
        TRUE,
        "expected a vector, found f32[1,3]",
        |g, _| {
            let x = g.input_shaped([1, 3], &X);
            vec![x.log_softmax().kl_div(x)]
        },
    )
}

pub(super) fn mse() -> OpCase {
    entry(
        vec![
            good(&["f32"], vec![vec![(1.0 + 25.0 + 2.25) / 3.0]], |g, _| vec![g.input(&X).mse(g.input(&Y))]),
            good(&["f32"], vec![vec![6.25]], |g, _| {
                vec![g.input_shaped([], &[1.5]).mse(g.input_shaped([], &[-1.0]))]
            }),
        ],
        TRUE,
        "operand 1 must be f32[3] like the first, found f32[2]",
        |g, _| vec![g.input(&X).mse(g.input(&Y[..2]))],
    )
}

pub(super) fn bce() -> OpCase {
    let term =
        |x: f64, t: f64| -t * (1.0 / (1.0 + (-x).exp())).ln() - (1.0 - t) * (1.0 / (1.0 + x.exp())).ln();
    let loss = X.iter().zip(T).map(|(&x, t)| term(f64::from(x), f64::from(t))).sum::<f64>() / 3.0;
    entry(
        vec![
            good(&["f32"], vec![vec![loss]], |g, _| vec![g.input(&X).bce(g.input(&T))]),
            // Large logits must not overflow: the loss is the logit itself.
            good(&["f32"], vec![vec![500.0]], |g, _| vec![g.input(&[500.0]).bce(g.zeros([1]))]),
        ],
        TRUE,
        "operand 1 must be f32[3] like the first, found f32",
        |g, _| vec![g.input(&X).bce(g.constant(0.5))],
    )
}

pub(super) fn hinge() -> OpCase {
    entry(
        vec![
            // Class 2 is the label: max(0, 0.75 + 1 - 0.5) + max(0, 0.75 - 2 - 0.5).
            good(&["f32"], vec![vec![1.25]], |g, _| vec![g.input(&X).hinge(2u32, 0.75)]),
            // Rows with labels 0 and 2: 0 + 0.25, and 1.75 + 4.75.
            good(&["f32[2]"], vec![vec![0.25, 6.5]], |g, _| {
                let rows = g.stack([g.input(&X), g.input(&Y)]);
                vec![rows.hinge(g.indices(&[0, 2]), 0.75)]
            }),
        ],
        TRUE,
        "labels must be u32, one per row of f32[3], found f32",
        |g, _| vec![g.input(&X).hinge(g.constant(1.0), 0.75)],
    )
}
