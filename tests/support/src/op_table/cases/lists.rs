//! Lists and folds over them.

use super::rows::NO_PLACE;
use super::{OpCase, TRUE, entry, good};
use autobatch_ir::{Graph, Value, f32};

const A: [f32; 2] = [1.0, -2.0];
const B: [f32; 2] = [0.5, 3.0];
const C: [f32; 2] = [-1.5, 0.25];

/// Three vectors.
fn three(g: &Graph) -> [Value<'_>; 3] {
    [g.input(&A), g.input(&B), g.input(&C)]
}

/// A list of three vectors.
fn values(g: &Graph) -> Value<'_> {
    g.list(three(g))
}

/// A list of three scalars: 0.5, -1, 2.
fn scores(g: &Graph) -> Value<'_> {
    g.list([0.5, -1.0, 2.0].map(|score| g.input_shaped([], &[score])))
}

pub(super) fn list() -> OpCase {
    entry(
        vec![
            // A list cannot be an output, so the example reads it by index. A list may contain one value twice.
            good(&["f32[2]"], vec![vec![1.5, 4.0]], |g, _| {
                let [a, b, _] = three(g);
                vec![g.list([b, a, b]).sum() - g.input(&[0.5, 0.0])]
            }),
            good(&["f32[2]"], vec![vec![0.0, 0.0]], |g, _| vec![g.empty_list(f32([2])).sum()]),
        ],
        TRUE,
        "element 1 must be f32[2] like the first, found f32[3]",
        |g, _| vec![g.list([g.input(&A), g.input(&[1.0; 3])])],
    )
}

pub(super) fn append() -> OpCase {
    entry(
        vec![
            // The list itself stays as it is, and two lists grow from it.
            good(
                &["f32[2]", "f32[2]", "f32[2]"],
                vec![vec![1.5, 1.0], vec![0.0, 1.25], vec![3.0, -1.0]],
                |g, _| {
                    let [a, b, c] = three(g);
                    let both = g.list([a, b]);
                    let (three, four) = (both.append(c), both.append(a).append(g.zeros([2])));
                    vec![both.sum(), three.sum(), four.sum() + g.input(&[0.5, 0.0])]
                },
            ),
            good(&["f32[2]"], vec![vec![1.0, -2.0]], |g, _| {
                vec![g.empty_list(f32([2])).append(g.input(&A)).sum()]
            }),
        ],
        TRUE,
        "the item must be f32[2] like the others, found f32[3]",
        |g, _| vec![g.list([g.input(&A)]).append(g.input(&[1.0; 3]))],
    )
}

macro_rules! fold {
    ($($name:ident = $three:expr;)*) => {$(
        pub(super) fn $name() -> OpCase {
            entry(
                vec![
                    good(&["f32[2]"], vec![$three.to_vec()], |g, _| vec![values(g).$name()]),
                    good(&["f32[2]"], vec![vec![1.0, -2.0]], |g, _| vec![g.list([g.input(&A)]).$name()]),
                    good(&["f32[2]"], vec![vec![0.0, 0.0]], |g, _| vec![g.empty_list(f32([2])).$name()]),
                ],
                TRUE,
                "expected f32 elements, found u32",
                |g, _| vec![g.list([g.index(1), g.index(2)]).$name()],
            )
        }
    )*};
}

fold! {
    sum = [0.0, 1.25];
    mean = [0.0, 1.25 / 3.0];
    max = [1.0, 3.0];
    logsumexp = [0, 1].map(|at| [A, B, C].iter().map(|x| f64::from(x[at]).exp()).sum::<f64>().ln());
}

pub(super) fn argmax() -> OpCase {
    entry(
        vec![
            good(&["u32[2]"], vec![vec![0.0, 1.0]], |g, _| vec![values(g).argmax()]),
            // The first of equal elements wins. Zeros of both signs are equal.
            good(&["u32[2]"], vec![vec![1.0, 0.0]], |g, _| {
                vec![g.list([[1.0, -0.0], [2.0, 0.0], [2.0, 0.0]].map(|x| g.input(&x))).argmax()]
            }),
            good(&["u32[2]"], vec![vec![0.0, 0.0]], |g, _| vec![g.empty_list(f32([2])).argmax()]),
        ],
        NO_PLACE,
        "expected f32 elements, found u32",
        |g, _| vec![g.list([g.index(1), g.index(2)]).argmax()],
    )
}

pub(super) fn pick() -> OpCase {
    entry(
        vec![
            good(&["f32[2]"], vec![vec![0.5, 3.0]], |g, _| vec![values(g).pick(1u32)]),
            good(&["f32[2]"], vec![vec![-1.5, 0.25]], |g, _| vec![values(g).pick(scores(g).argmax())]),
            good(&["u32"], vec![vec![8.0]], |g, _| vec![g.list([g.index(7), g.index(8)]).pick(1u32)]),
        ],
        TRUE,
        "the index must be u32, found f32",
        |g, _| vec![values(g).pick(g.input_shaped([], &[1.0]))],
    )
}

fn mixed(weights: [f64; 3]) -> Vec<f64> {
    (0..2).map(|at| [A, B, C].iter().zip(weights).map(|(x, w)| w * f64::from(x[at])).sum()).collect()
}

fn shares(scores: [f64; 3]) -> [f64; 3] {
    let total: f64 = scores.iter().map(|x| x.exp()).sum();
    scores.map(|x| x.exp() / total)
}

pub(super) fn weighted_sum() -> OpCase {
    entry(
        vec![
            good(&["f32[2]"], vec![mixed([0.5, -1.0, 2.0])], |g, _| {
                vec![g.weighted_sum(scores(g), values(g))]
            }),
            // One score per element: each score weights one vector.
            good(&["f32[2]"], vec![vec![0.5 - 0.75 - 1.5, -6.0 + 0.75 - 0.5]], |g, _| {
                let [a, b, c] = three(g);
                vec![g.weighted_sum(g.list([b, c, a]), g.list([a, b, c]))]
            }),
            good(&["f32[2]"], vec![mixed([0.5, -1.0, 2.0])], |g, _| {
                let scores = [0.5, -1.0, 2.0].map(|score| g.input(&[score]));
                vec![g.weighted_sum(g.list(scores), values(g))]
            }),
            good(&["f32[2]"], vec![vec![0.0, 0.0]], |g, _| {
                vec![g.weighted_sum(g.empty_list(f32([])), g.empty_list(f32([2])))]
            }),
        ],
        TRUE,
        "the lists must have equal lengths, found 3 and 1 values",
        |g, _| vec![g.weighted_sum(scores(g), g.list([g.input(&A)]))],
    )
}

pub(super) fn softmax_sum() -> OpCase {
    let by_element = |at: usize| {
        let weights = shares([B, C, A].map(|x| f64::from(x[at])));
        mixed(weights)[at]
    };
    entry(
        vec![
            good(&["f32[2]"], vec![mixed(shares([0.5, -1.0, 2.0]))], |g, _| {
                vec![g.softmax_sum(scores(g), values(g))]
            }),
            good(&["f32[2]"], vec![vec![by_element(0), by_element(1)]], |g, _| {
                let [a, b, c] = three(g);
                vec![g.softmax_sum(g.list([b, c, a]), g.list([a, b, c]))]
            }),
            good(&["f32[2]"], vec![vec![0.0, 0.0]], |g, _| {
                vec![g.softmax_sum(g.empty_list(f32([])), g.empty_list(f32([2])))]
            }),
        ],
        TRUE,
        "scores must be single numbers or like f32[2], found f32[3]",
        |g, _| vec![g.softmax_sum(g.list([g.input(&[1.0; 3]); 3]), values(g))],
    )
}

pub(super) fn attend() -> OpCase {
    // The query [2 1] against the keys A, B, C, times one half.
    let weights = shares([0.0, 2.0, -1.375]);
    entry(
        vec![
            good(&["f32[2]"], vec![mixed(weights)], |g, _| {
                let list = values(g);
                vec![g.attend(g.input(&[2.0, 1.0]), list, list, 0.5)]
            }),
            good(&["f32"], vec![vec![3.0 * weights[0] + 5.0 * weights[1] + 7.0 * weights[2]]], |g, _| {
                let numbers = [3.0, 5.0, 7.0].map(|x| g.input_shaped([], &[x]));
                vec![g.attend(g.input(&[2.0, 1.0]), values(g), g.list(numbers), 0.5)]
            }),
            good(&["f32[2]"], vec![vec![0.0, 0.0]], |g, _| {
                let none = g.empty_list(f32([2]));
                vec![g.attend(g.input(&[2.0, 1.0]), none, none, 0.5)]
            }),
        ],
        TRUE,
        "keys must be f32[3] like the query, found f32[2]",
        |g, _| vec![g.attend(g.input(&[1.0; 3]), values(g), values(g), 0.5)],
    )
}

pub(super) fn graph_attend() -> OpCase {
    // The query [2 1] and the keys A, B, C: the sums of each of two heads, of which slope 0.5 halves the negative ones.
    let heads = [shares([3.0, 2.5, 0.5]), shares([-0.5, 4.0, 1.25])];
    let by_head = |at: usize| mixed(heads[at])[at];
    entry(
        vec![
            good(&["f32[2]"], vec![vec![by_head(0), by_head(1)]], |g, _| {
                let list = values(g);
                vec![g.graph_attend(g.input(&[2.0, 1.0]), list, list, 0.5)]
            }),
            // Each head weighs two elements of a matrix.
            good(&["f32[2,2]"], vec![[0, 0, 1, 1].map(|head| heads[head][1]).to_vec()], |g, _| {
                let matrices = [0.0, 1.0, 0.0].map(|x| g.input_shaped([2, 2], &[x; 4]));
                vec![g.graph_attend(g.input(&[2.0, 1.0]), values(g), g.list(matrices), 0.5)]
            }),
            good(&["f32[4]"], vec![vec![0.0; 4]], |g, _| {
                let (keys, values) = (g.empty_list(f32([2])), g.empty_list(f32([4])));
                vec![g.graph_attend(g.input(&[2.0, 1.0]), keys, values, 0.5)]
            }),
        ],
        TRUE,
        "values must have equal parts for 2 heads, found f32[3]",
        |g, _| vec![g.graph_attend(g.input(&A), values(g), g.list([g.input(&[1.0; 3]); 3]), 0.5)],
    )
}
