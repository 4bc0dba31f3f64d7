//! Products with parameters and of values.

use super::Results;
use crate::random::act::Act;
use crate::random::kit::WEIGHT;
use crate::random::recipe::Step;
use crate::random::stage::{Bounded, Stage};

pub(super) fn emit<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Results<'g> {
    let (g, kit, width) = (stage.g, stage.kit, stage.width());
    let product = |x: f64| width as f64 * x * WEIGHT + WEIGHT;
    let some_bias = step.size.is_multiple_of(2).then_some(kit.bias);
    let result = match step.act {
        Act::AffineParts => {
            let (x, y) = (stage.vector(step, 0), stage.vector(step, 1));
            let weight = if step.size.is_multiple_of(3) { kit.other } else { kit.tall };
            let sum = if step.size % 5 < 3 {
                g.affine([x.0, y.0], weight, some_bias)
            } else {
                let begun = g.affine_rows([x.0], weight, some_bias, 0);
                g.affine_onto(begun, [y.0], weight, width as u32)
            };
            (sum, product(x.1) + product(y.1))
        }
        Act::AffineRows => {
            let x = stage.matrix(step, 0);
            let fits = |ty| ty == x.0.ty();
            match stage.find(step, 1, fits) {
                Some(y) if step.size % 3 == 1 => {
                    (g.affine([x.0, y.0], kit.tall, some_bias), product(x.1) + product(y.1))
                }
                _ => (x.0.affine(kit.square, some_bias), product(x.1)),
            }
        }
        Act::Stretch => stretch(stage, step),
        Act::Matmul => matmul(stage, step),
        Act::Dot | Act::Outer => {
            let (x, y) = (stage.vector(step, 0), stage.vector(step, 1));
            match step.act {
                Act::Dot => (x.0.dot(y.0), width as f64 * x.1 * y.1),
                _ => (x.0.outer(y.0), x.1 * y.1),
            }
        }
        one_vector => {
            let x = stage.vector(step, 0);
            let y = match one_vector {
                Act::Affine => x.0.affine(if step.size % 3 == 1 { kit.out } else { kit.square }, None),
                Act::AffineBias => x.0.affine(kit.square, Some(kit.bias)),
                Act::AffineTransposed if step.size % 3 == 1 => x.0.affine_transposed(kit.tall, None),
                Act::AffineTransposed => x.0.affine_transposed(kit.square, some_bias),
                Act::AffineHalf => x.0.affine(kit.half, some_bias),
                _ => unreachable!("not a product"),
            };
            (y, product(x.1))
        }
    };
    vec![result]
}

/// Emits the product of one or two parts, each at most as wide as a vector, with any range of a weight's rows.
fn stretch<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Bounded<'g> {
    let (g, kit, width) = (stage.g, stage.kit, stage.width());
    let size = step.size as usize;
    let x = if size.is_multiple_of(2) { stage.vector(step, 0) } else { stage.matrix(step, 0) };
    let chains = stage.like(step, x);
    let cut = 1 + size / 2 % width;
    let first = x.0.slice(0..cut);
    let parts =
        if (size / 64).is_multiple_of(2) { vec![first] } else { vec![first, x.0.slice(width - cut..width)] };
    let taken: usize = parts.iter().map(|part| part.shape().width()).sum();
    let row = (size / 128 % (2 * width - taken + 1)) as u32;
    let sum = match size / 1024 % 3 {
        0 => g.affine_rows(parts, kit.tall, None, row),
        1 => g.affine_rows(parts, kit.tall, Some(kit.bias), row),
        _ => g.affine_onto(chains.0, parts, kit.tall, row),
    };
    (sum, taken as f64 * x.1 * WEIGHT + WEIGHT + chains.1)
}

/// Emits a product: matrix by vector, matrix by matrix, or vector by matrix.
fn matmul<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Bounded<'g> {
    let width = stage.width() as f64;
    let a = stage.matrix(step, 0);
    match step.size / 4 % 3 {
        0 => {
            let x = stage.vector(step, 1);
            (a.0.matmul(x.0), width * a.1 * x.1)
        }
        1 => {
            let b = stage.matrix(step, 1);
            (a.0.matmul(b.0.t()), width * a.1 * b.1)
        }
        _ => {
            let x = stage.vector(step, 1);
            (x.0.matmul(a.0.t()), width * a.1 * x.1)
        }
    }
}
