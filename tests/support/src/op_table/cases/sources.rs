//! Ops without value operands, table lookups, noise, and ops that affect gradients only.

use super::{Attempt, Bad, Gradient, OpCase, TRUE, entry, good};
use autobatch_ir::graph::Op;
use autobatch_ir::{DType, INDEX, Shape, Type};

pub(super) fn port() -> OpCase {
    entry(
        vec![good(&["f32[2]"], vec![vec![3.0, -1.0]], |g, h| {
            g.call(h.double, g.input(&[1.5, -0.5])).to_vec()
        })],
        TRUE,
        "port 0 of @double takes f32[2], found f32[3]",
        |g, h| g.call(h.double, g.input(&[1.0, 2.0, 3.0])).to_vec(),
    )
}

pub(super) fn input() -> OpCase {
    entry(
        vec![
            good(&["f32[2]"], vec![vec![1.5, -0.5]], |g, _| vec![g.input(&[1.5, -0.5])]),
            good(&["f32[2,1,2]"], vec![vec![1.0, 2.0, 3.0, 4.0]], |g, _| {
                vec![g.input_shaped([2, 1, 2], &[1.0, 2.0, 3.0, 4.0])]
            }),
            good(&["u32", "u32[2]"], vec![vec![7.0], vec![4.0, 5.0]], |g, _| {
                vec![g.index(7), g.indices(&[4, 5])]
            }),
        ],
        TRUE,
        "the shape [3] needs 3 numbers",
        |g, _| vec![g.input_shaped([3], &[1.0])],
    )
}

pub(super) fn fill() -> OpCase {
    entry(
        vec![good(&["f32[2,2]", "f32[3]", "f32"], vec![vec![0.5; 4], vec![0.0; 3], vec![-1.25]], |g, _| {
            vec![g.fill([2, 2], 0.5), g.zeros([3]), g.constant(-1.25)]
        })],
        Gradient::None("a constant depends on nothing"),
        "extent 1 of a shape is zero; extents start at 1",
        |g, _| vec![g.fill([2, 0], 0.5)],
    )
}

pub(super) fn param() -> OpCase {
    entry(
        vec![
            good(&["f32[3]"], vec![vec![0.125, 0.25, -0.5]], |g, h| vec![g.param(h.bias)]),
            good(&["f32[2,3]"], vec![vec![0.5, -1.0, 2.0, 1.5, 0.25, -0.5]], |g, h| vec![g.param(h.half)]),
            good(&["f32[4,2]"], vec![(0..8).map(f64::from).collect()], |g, h| {
                vec![g.param(h.table.as_param())]
            }),
        ],
        TRUE,
        "the parameter belongs to another module",
        |g, _| vec![g.param(crate::op_table::model().1.bias)],
    )
}

pub(super) fn lookup() -> OpCase {
    entry(
        vec![
            good(&["f32[2]"], vec![vec![4.0, 5.0]], |g, h| vec![h.table.lookup(g, 2u32)]),
            good(&["f32[2]", "f32[2]"], vec![vec![2.0, 3.0]; 2], |g, h| {
                let place = g.input(&[0.5, 2.0, 1.0]).argmax();
                vec![h.table.row(place), h.table.lookup(g, place)]
            }),
        ],
        TRUE,
        "the index must be u32, found f32[2]",
        |g, h| vec![h.table.row(g.input(&[1.0, 2.0]))],
    )
}

pub(super) fn one_hot() -> OpCase {
    entry(
        vec![
            good(&["f32[4]"], vec![vec![0.0, 0.0, 1.0, 0.0]], |g, _| vec![g.one_hot(2u32, 4)]),
            good(&["f32[2]"], vec![vec![0.0, 1.0]], |g, _| vec![g.one_hot(g.input(&[1.0, 2.0]).argmax(), 2)]),
        ],
        Gradient::None("an index has no derivative"),
        "extent 0 of a shape is zero; extents start at 1",
        |g, _| vec![g.one_hot(2u32, 0)],
    )
}

pub(super) fn dropout() -> OpCase {
    entry(
        vec![good(&["f32[2]"], vec![vec![1.5, -0.5]], |g, _| vec![g.input(&[1.5, -0.5]).dropout(0.5)])],
        TRUE,
        "the rate must be at least 0 and below 1, found 1",
        |g, _| vec![g.input(&[1.0]).dropout(1.0)],
    )
}

/// The emitter creates all keys, so only inference can receive an invalid one.
pub(super) fn fork_noise() -> OpCase {
    let float = Type::new(DType::F32, Shape::SCALAR);
    OpCase {
        examples: vec![good(&["f32[2]"], vec![vec![3.0, -1.0]], |g, h| {
            g.call(h.forks, g.input(&[1.5, -0.5])).to_vec()
        })],
        gradient: TRUE,
        bad: Bad {
            attempt: Attempt::Infer(Op::ForkNoise { ordinal: 0 }, vec![INDEX, float]),
            message: "a noise key is two u32 numbers",
        },
    }
}

pub(super) fn stop_gradient() -> OpCase {
    entry(
        vec![good(&["f32[2]"], vec![vec![1.5, -0.5]], |g, _| vec![g.input(&[1.5, -0.5]).stop_gradient()])],
        Gradient::TimesTrue(0.0),
        "expected f32 elements, found u32",
        |g, _| vec![g.index(1).stop_gradient()],
    )
}

pub(super) fn scale_gradient() -> OpCase {
    entry(
        vec![good(&["f32[2]"], vec![vec![1.5, -0.5]], |g, _| {
            vec![g.input(&[1.5, -0.5]).scale_gradient(-0.5)]
        })],
        Gradient::TimesTrue(-0.5),
        "the attribute must be a finite number, found NaN",
        |g, _| vec![g.input(&[1.0]).scale_gradient(f32::NAN)],
    )
}
