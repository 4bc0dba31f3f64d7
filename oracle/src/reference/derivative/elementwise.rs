//! Slopes of elementwise ops.
//!
//! [`Real`] defines the slopes of functions with kinks: `relu'(0) = 0`, `leaky_relu'(0) = slope`, `elu'(0) = alpha`, and 1
//! at both bounds of `clamp`. `abs'(0)` is 0. `log` and `sqrt` have no slope: `dx = dy / x`, and `dx = (dy * 0.5) / y`, which
//! is infinite at 0.

use super::{Partial, Partials};
use crate::reference::datum::Datum;
use crate::reference::error::Checked;
use crate::reference::frame::Call;
use crate::reference::ops::{at, takes_second};
use autobatch_ir::graph::{Binary, Unary};
use autobatch_ir::numeric::{Real, row};
use autobatch_ir::types::DType;

/// `dx = dy * slope(x)`.
pub(super) fn scaled<T: Real>(call: &Call<'_, T>, dy: &[T], slope: impl Fn(T) -> T) -> Checked<Vec<T>> {
    Ok(call.floats(0)?.iter().zip(dy).map(|(&x, dy)| dy.mul(slope(x))).collect())
}

/// The rule of a function of one operand.
pub(super) fn unary<T: Real>(unary: Unary, call: &Call<'_, T>, y: &[T], dy: &[T]) -> Checked<Partials<T>> {
    let half = T::from_f64(0.5);
    let rule = |x: T, y: T, dy: T| match unary {
        Unary::Neg => dy.neg(),
        Unary::Abs => dy.mul(x.sign()),
        Unary::Exp => dy.mul(y),
        Unary::Log => dy.div(x),
        Unary::Sqrt => dy.mul(half).div(y),
        Unary::Rsqrt => dy.mul(half.neg().mul(y.mul(y.mul(y)))),
        Unary::Square => dy.mul(x.add(x)),
        Unary::Recip => dy.mul(y.mul(y).neg()),
        Unary::Tanh => dy.mul(y.tanh_slope_of_result()),
        Unary::Sigmoid => dy.mul(y.sigmoid_slope_of_result()),
        Unary::Relu => dy.mul(x.relu_slope()),
        Unary::Gelu => dy.mul(x.gelu_slope()),
        Unary::Silu => dy.mul(x.silu_slope()),
        Unary::Softplus => dy.mul(x.softplus_slope()),
        Unary::Sin => dy.mul(x.cos()),
        Unary::Cos => dy.mul(x.sin().neg()),
        Unary::Erf => dy.mul(x.erf_slope()),
        Unary::Sign => T::ZERO,
    };
    if unary == Unary::Sign {
        return Ok(vec![Partial::None].into());
    }
    let dx = call.floats(0)?.iter().zip(y).zip(dy).map(|((&x, &y), &dy)| rule(x, y, dy));
    Ok(vec![Partial::one(dx.collect())].into())
}

/// The contribution to an operand; a broadcast scalar gets the sum over all elements.
fn contribution<T: Real>(call: &Call<'_, T>, operand: usize, contributions: Vec<T>) -> Partial<T> {
    if call.types[operand].shape.elements() == contributions.len() {
        Partial::one(contributions)
    } else {
        Partial::one(vec![row::sum(&contributions)])
    }
}

/// The rule of a function of two operands; `made` is its result.
pub(super) fn binary<T: Real>(
    binary: Binary,
    call: &Call<'_, T>,
    made: &[Datum<T>],
    dy: &[T],
) -> Checked<Partials<T>> {
    let (a, b, y) = (call.floats(0)?, call.floats(1)?, super::y(made)?);
    let rule = |a: T, b: T, y: T, dy: T| match binary {
        Binary::Add => (dy, dy),
        Binary::Sub => (dy, dy.neg()),
        Binary::Mul => (dy.mul(b), dy.mul(a)),
        Binary::Div => (dy.div(b), dy.mul(y).div(b).neg()),
        Binary::Pow => {
            let base = dy.mul(b.mul(a.pow(b.sub(T::ONE))));
            let exponent = dy.mul(y.mul(a.log()));
            (if b == T::ZERO { T::ZERO } else { base }, if a == T::ZERO { T::ZERO } else { exponent })
        }
        Binary::Min | Binary::Max => {
            if takes_second(binary == Binary::Max, a, b) {
                (T::ZERO, dy)
            } else {
                (dy, T::ZERO)
            }
        }
    };
    let (da, db) = (0..dy.len()).map(|i| rule(at(a, i), at(b, i), y[i], dy[i])).unzip();
    Ok(vec![contribution(call, 0, da), contribution(call, 1, db)].into())
}

/// The rule of `select`: the gradient flows to the selected operand.
pub(super) fn select<T: Real>(call: &Call<'_, T>, dy: &[T]) -> Checked<Partials<T>> {
    if call.types[1].dtype != DType::F32 {
        return super::none(call);
    }
    let condition = &call.words(0)?;
    let share = |first: bool| -> Vec<T> {
        let selected = |i| (at(condition, i) != 0) == first;
        dy.iter().enumerate().map(|(i, &dy)| if selected(i) { dy } else { T::ZERO }).collect()
    };
    Ok(vec![Partial::None, contribution(call, 1, share(true)), contribution(call, 2, share(false))].into())
}
