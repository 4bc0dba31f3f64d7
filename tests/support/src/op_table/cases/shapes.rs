//! Ops that move elements and compute nothing.

use super::{OpCase, TRUE, entry, good};

const SIX: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

fn counting(places: &[i32]) -> Vec<f64> {
    places.iter().map(|&x| f64::from(x)).collect()
}

pub(super) fn broadcast() -> OpCase {
    entry(
        vec![
            good(&["f32[2,3]"], vec![counting(&[1, 2, 3, 1, 2, 3])], |g, _| {
                vec![g.input(&SIX[..3]).broadcast([2, 3])]
            }),
            good(&["f32[2,3]"], vec![counting(&[1, 1, 1, 2, 2, 2])], |g, _| {
                vec![g.input_shaped([2, 1], &SIX[..2]).broadcast([2, 3])]
            }),
            good(&["f32[1,2,1,2]"], vec![vec![1.5; 4]], |g, _| {
                vec![g.input_shaped([], &[1.5]).broadcast([1, 2, 1, 2])]
            }),
        ],
        TRUE,
        "f32[3] does not broadcast to the shape [3,2]",
        |g, _| vec![g.input(&SIX[..3]).broadcast([3, 2])],
    )
}

pub(super) fn concat() -> OpCase {
    entry(
        vec![
            good(&["f32[4]"], vec![counting(&[1, 2, 3, 1])], |g, _| {
                let a = g.input(&SIX[..1]);
                vec![g.concat([a, g.input(&SIX[1..3]), a])]
            }),
            good(&["f32[2,4]"], vec![counting(&[1, 2, 3, 1, 4, 5, 6, 2])], |g, _| {
                let a = g.input_shaped([2, 3], &SIX);
                vec![g.concat([a, g.input_shaped([2, 1], &SIX[..2])])]
            }),
            good(&["f32[3,2]"], vec![counting(&[1, 2, 3, 4, 5, 6])], |g, _| {
                let a = g.input_shaped([1, 2], &SIX[..2]);
                vec![g.concat_axis(0, [a, g.input_shaped([2, 2], &SIX[2..])])]
            }),
            good(&["u32[3]"], vec![counting(&[4, 5, 6])], |g, _| {
                vec![g.concat([g.indices(&[4]), g.indices(&[5, 6])])]
            }),
        ],
        TRUE,
        "operand 1 must be like f32[2,3] except along axis 1, found f32[3,1]",
        |g, _| {
            let a = g.input_shaped([2, 3], &SIX);
            vec![g.concat([a, g.input_shaped([3, 1], &SIX[..3])])]
        },
    )
}

pub(super) fn split() -> OpCase {
    entry(
        vec![
            good(&["f32[2]"; 3], vec![counting(&[1, 2]), counting(&[3, 4]), counting(&[5, 6])], |g, _| {
                g.input(&SIX).split::<3>().to_vec()
            }),
            good(&["f32[2,1]"; 3], vec![counting(&[1, 4]), counting(&[2, 5]), counting(&[3, 6])], |g, _| {
                g.input_shaped([2, 3], &SIX).split::<3>().to_vec()
            }),
            good(&["f32[1,3]"; 2], vec![counting(&[1, 2, 3]), counting(&[4, 5, 6])], |g, _| {
                g.input_shaped([2, 3], &SIX).chunks(0, 2)
            }),
        ],
        TRUE,
        "6 elements along axis 0 do not split into 4 equal parts",
        |g, _| g.input(&SIX).split::<4>().to_vec(),
    )
}

pub(super) fn slice() -> OpCase {
    entry(
        vec![
            good(&["f32[2]"], vec![counting(&[2, 3])], |g, _| vec![g.input(&SIX).slice(1..3)]),
            good(&["f32[2,1]"], vec![counting(&[3, 6])], |g, _| {
                vec![g.input_shaped([2, 3], &SIX).slice(2..3)]
            }),
            good(&["f32[1,3]"], vec![counting(&[4, 5, 6])], |g, _| {
                vec![g.input_shaped([2, 3], &SIX).slice_axis(0, 1..2)]
            }),
        ],
        TRUE,
        "the range 4..7 exceeds axis 0 of f32[6]",
        |g, _| vec![g.input(&SIX).slice(4..7)],
    )
}

pub(super) fn reshape() -> OpCase {
    entry(
        vec![
            good(&["f32[3,1,2]"], vec![counting(&[1, 2, 3, 4, 5, 6])], |g, _| {
                vec![g.input_shaped([2, 3], &SIX).reshape([3, 1, 2])]
            }),
            good(&["f32"], vec![vec![1.0]], |g, _| vec![g.input(&SIX[..1]).reshape([])]),
        ],
        TRUE,
        "f32[6] has 6 elements, the shape [4] has 4",
        |g, _| vec![g.input(&SIX).reshape([4])],
    )
}

pub(super) fn transpose() -> OpCase {
    entry(
        vec![
            good(&["f32[3,2]"], vec![counting(&[1, 4, 2, 5, 3, 6])], |g, _| {
                vec![g.input_shaped([2, 3], &SIX).t()]
            }),
            // Element [i,j,k] of the result is element [j,k,i] of the operand [1,2,3].
            good(&["f32[3,1,2]"], vec![counting(&[1, 4, 2, 5, 3, 6])], |g, _| {
                vec![g.input_shaped([1, 2, 3], &SIX).transpose([2, 0, 1])]
            }),
        ],
        TRUE,
        "[0, 0] is not an order of the axes of f32[2,3]",
        |g, _| vec![g.input_shaped([2, 3], &SIX).transpose([0, 0])],
    )
}

pub(super) fn pick() -> OpCase {
    entry(
        vec![
            good(&["f32"], vec![vec![3.0]], |g, _| vec![g.input(&SIX).pick(2u32)]),
            good(&["f32[3]"], vec![counting(&[4, 5, 6])], |g, _| {
                let place = g.input(&SIX[..2]).argmax();
                vec![g.input_shaped([2, 3], &SIX).pick(place)]
            }),
        ],
        TRUE,
        "a scalar has no elements to pick from",
        |g, _| vec![g.input_shaped([], &[1.0]).pick(0u32)],
    )
}

pub(super) fn stack() -> OpCase {
    entry(
        vec![
            good(&["f32[3,2]"], vec![counting(&[1, 2, 3, 4, 1, 2])], |g, _| {
                let (a, b) = (g.input(&SIX[..2]), g.input(&SIX[2..4]));
                vec![g.stack([a, b, a])]
            }),
            good(&["u32[2]"], vec![counting(&[8, 9])], |g, _| vec![g.stack([g.index(8), g.index(9)])]),
        ],
        TRUE,
        "operand 1 must be f32[2] like the first, found f32[3]",
        |g, _| vec![g.stack([g.input(&SIX[..2]), g.input(&SIX[..3])])],
    )
}
