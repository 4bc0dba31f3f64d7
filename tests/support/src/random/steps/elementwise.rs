//! Elementwise actions. Functions with a domain get operands inside it, unless numbers are wild.

use super::Results;
use crate::random::act::Act;
use crate::random::recipe::Step;
use crate::random::stage::{Bounded, LIMIT, Stage};
use autobatch_ir::graph::{Binary, Compare, Unary};
use autobatch_ir::{DType, Type, Value};

pub(super) fn emit<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Results<'g> {
    let size = step.size as usize;
    let number = 0.25 + (size % 7) as f32 / 4.0;
    let result = match step.act {
        Act::Unary(unary) => {
            let x = stage.float(step, 0);
            unary_of(stage, step, unary, x)
        }
        Act::LeakyRelu => map(stage.float(step, 0), |x| x.leaky_relu([0.125, 0.0, -0.5][size % 3])),
        Act::Elu => {
            let alpha = if stage.options.smooth { 1.0 } else { [1.0, 0.0, -0.5][size % 3] };
            map(stage.float(step, 0), |x| x.elu(alpha))
        }
        Act::Clamp => {
            let low = if size % 3 == 1 { f32::NEG_INFINITY } else { -number };
            let high = if size % 3 == 2 { f32::INFINITY } else { number };
            map(stage.float(step, 0), |x| x.clamp(low, high))
        }
        Act::Binary(binary) => {
            let x = stage.float(step, 0);
            let y = stage.like(step, x);
            binary_of(stage, step, binary, x, y)
        }
        Act::WithNumber(binary) => with_number(stage, step, binary, number),
        Act::WithScalar(binary) => with_scalar(stage, step, binary),
        Act::WithRow => {
            let (a, b) = (stage.matrix(step, 0), stage.vector(step, 1));
            if step.size.is_multiple_of(2) { (a.0 + b.0, a.1 + b.1) } else { (b.0 * a.0, a.1 * b.1) }
        }
        Act::Ints(binary) => ints(stage, step, binary),
        Act::Compare(compare) => {
            let x = numbers(stage, step);
            let y = stage.like_or_scalar(step, x);
            (compared(compare, x.0, y.0), 1.0)
        }
        Act::Select => select(stage, step),
        Act::Mask => mask(stage, step),
        Act::Cast(to) => cast(stage, step, to),
        _ => unreachable!("not an elementwise action"),
    };
    vec![result]
}

fn map<'g>(x: Bounded<'g>, f: impl Fn(Value<'g>) -> Value<'g>) -> Bounded<'g> {
    (f(x.0), x.1 + 1.0)
}

/// Applies a unary function. The match has no wildcard, so a new member needs a method here.
pub(crate) fn apply_unary<'g>(unary: Unary, x: Value<'g>) -> Value<'g> {
    match unary {
        Unary::Neg => -x,
        Unary::Abs => x.abs(),
        Unary::Exp => x.exp(),
        Unary::Log => x.log(),
        Unary::Sqrt => x.sqrt(),
        Unary::Rsqrt => x.rsqrt(),
        Unary::Square => x.square(),
        Unary::Recip => x.recip(),
        Unary::Tanh => x.tanh(),
        Unary::Sigmoid => x.sigmoid(),
        Unary::Relu => x.relu(),
        Unary::Gelu => x.gelu(),
        Unary::Silu => x.silu(),
        Unary::Softplus => x.softplus(),
        Unary::Sin => x.sin(),
        Unary::Cos => x.cos(),
        Unary::Erf => x.erf(),
        Unary::Sign => x.sign(),
    }
}

fn unary_of<'g>(stage: &Stage<'g, '_>, step: &Step, unary: Unary, x: Bounded<'g>) -> Bounded<'g> {
    let x = match unary {
        Unary::Log | Unary::Sqrt | Unary::Rsqrt | Unary::Recip => positive(stage, step, x),
        _ => x,
    };
    let bound = match unary {
        Unary::Exp => x.1.exp(),
        Unary::Log => x.1.ln().abs().max(0.7),
        Unary::Sqrt => x.1.sqrt(),
        Unary::Rsqrt | Unary::Recip => 2.0,
        Unary::Square => x.1 * x.1,
        Unary::Tanh | Unary::Sigmoid | Unary::Sin | Unary::Cos | Unary::Erf | Unary::Sign => 1.0,
        Unary::Neg | Unary::Abs | Unary::Relu | Unary::Gelu | Unary::Silu | Unary::Softplus => x.1 + 1.0,
    };
    (apply_unary(unary, x.0), bound)
}

/// Maps a value to numbers of at least one half.
fn positive<'g>(stage: &Stage<'g, '_>, step: &Step, x: Bounded<'g>) -> Bounded<'g> {
    if stage.options.wild {
        return x;
    }
    match step.size % 3 {
        0 => (x.0.square() + 0.5, x.1 * x.1 + 0.5),
        1 => (x.0.softplus() + 0.5, x.1 + 1.5),
        _ => (x.0.sigmoid() + 0.5, 1.5),
    }
}

fn binary_of<'g>(
    stage: &Stage<'g, '_>,
    step: &Step,
    binary: Binary,
    x: Bounded<'g>,
    y: Bounded<'g>,
) -> Bounded<'g> {
    match binary {
        Binary::Add => (x.0 + y.0, x.1 + y.1),
        Binary::Sub => (x.0 - y.0, x.1 + y.1),
        Binary::Mul => (x.0 * y.0, x.1 * y.1),
        Binary::Div => (x.0 / positive(stage, step, y).0, 2.0 * x.1),
        Binary::Pow => {
            let base = positive(stage, step, x);
            let exponent = if stage.options.wild { y.0 } else { y.0.tanh() };
            (base.0.pow(exponent), base.1.max(2.0))
        }
        Binary::Min => (x.0.minimum(y.0), x.1.max(y.1)),
        Binary::Max => (x.0.maximum(y.0), x.1.max(y.1)),
    }
}

fn with_number<'g>(stage: &mut Stage<'g, '_>, step: &Step, binary: Binary, number: f32) -> Bounded<'g> {
    let x = stage.float(step, 0);
    let size = f64::from(number);
    let left = step.size.is_multiple_of(2);
    match binary {
        Binary::Add if left => (number + x.0, x.1 + size),
        Binary::Add => (x.0 + number, x.1 + size),
        Binary::Sub if left => (number - x.0, x.1 + size),
        Binary::Sub => (x.0 - number, x.1 + size),
        Binary::Mul if left => (number * x.0, x.1 * size),
        Binary::Mul => (x.0 * number, x.1 * size),
        Binary::Div if left => (number / positive(stage, step, x).0, 2.0 * size),
        Binary::Div => (x.0 / number, x.1 / size),
        Binary::Pow => {
            let base = positive(stage, step, x);
            (base.0.pow(number), base.1.max(1.0).powf(size))
        }
        Binary::Min => (x.0.minimum(number), x.1.max(size)),
        Binary::Max => (x.0.maximum(number), x.1.max(size)),
    }
}

fn with_scalar<'g>(stage: &mut Stage<'g, '_>, step: &Step, binary: Binary) -> Bounded<'g> {
    let x = stage.rows(step, 0);
    let scalar = stage.find(step, 1, |ty| ty == Type::scalar(DType::F32));
    let scalar = scalar.unwrap_or_else(|| (x.0.mean(), x.1));
    let (a, b) = if step.size.is_multiple_of(2) { (x, scalar) } else { (scalar, x) };
    binary_of(stage, step, binary, a, b)
}

/// Returns an integer value. Converts floats if none exists.
fn integer<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Bounded<'g> {
    let wanted = if step.size.is_multiple_of(2) { DType::I32 } else { DType::U32 };
    match stage.find(step, 0, |ty| ty.dtype == wanted) {
        Some(found) => found,
        None => {
            let x = stage.vector(step, 0);
            (stage.tame(x.0, x.1).0.cast(wanted), stage.bound_of_words(wanted, LIMIT))
        }
    }
}

/// Emits integer arithmetic. Bounds hold unless the result wraps; a difference of unsigned numbers may wrap.
fn ints<'g>(stage: &mut Stage<'g, '_>, step: &Step, binary: Binary) -> Bounded<'g> {
    let x = integer(stage, step);
    let y = stage.like_or_scalar(step, x);
    let bound = match binary {
        Binary::Add => x.1 + y.1,
        Binary::Mul => x.1 * y.1,
        Binary::Sub if x.0.ty().dtype == DType::U32 => f64::from(u32::MAX),
        Binary::Sub => x.1 + y.1,
        _ => x.1.max(y.1),
    };
    let bound = if bound < 1e9 { bound } else { f64::from(u32::MAX) };
    let value = match binary {
        Binary::Add => x.0 + y.0,
        Binary::Sub => x.0 - y.0,
        Binary::Mul => x.0 * y.0,
        Binary::Min => x.0.minimum(y.0),
        Binary::Max => x.0.maximum(y.0),
        Binary::Div | Binary::Pow => unreachable!("integers have no division"),
    };
    (value, bound)
}

fn numbers<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Bounded<'g> {
    let found = stage.find(step, 0, |ty| ty.dtype.is_number());
    found.unwrap_or_else(|| stage.vector(step, 0))
}

/// Applies a comparison.
pub(crate) fn compared<'g>(compare: Compare, x: Value<'g>, y: Value<'g>) -> Value<'g> {
    match compare {
        Compare::Eq => x.equal(y),
        Compare::Ne => x.not_equal(y),
        Compare::Lt => x.less(y),
        Compare::Le => x.less_equal(y),
        Compare::Gt => x.greater(y),
        Compare::Ge => x.greater_equal(y),
    }
}

/// Emits a select. Branches and the condition have one shape or are scalars. Scalar branches need a scalar condition.
fn select<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Bounded<'g> {
    let a = numbers(stage, step);
    let b = stage.like_or_scalar(step, a);
    let shape = a.0.shape();
    let of_scalars = step.size / 64 % 3 == 1;
    let fits =
        |ty: Type| ty.dtype == DType::Bool && (ty.shape.rank() == 0 || (!of_scalars && ty.shape == shape));
    let condition = stage.find(step, 2, fits).map(|found| found.0);
    let condition = condition.unwrap_or_else(|| {
        let floats = a.0.cast(DType::F32);
        let compared = if of_scalars && shape.rank() > 0 { floats.mean() } else { floats };
        compared.greater(0.25)
    });
    let (first, second) = if step.size.is_multiple_of(2) { (a, b) } else { (b, a) };
    (condition.select(first.0, second.0), a.1.max(b.1))
}

/// Emits a mask and a softmax. The mask produces minus infinity, which the softmax maps to 0.
fn mask<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Bounded<'g> {
    let x = stage.vector(step, 0).0;
    if stage.in_body {
        return (x.softmax(), 1.0);
    }
    let legal = step.size as usize % stage.width();
    let legal: Vec<bool> = (0..stage.width())
        .map(|place| place == legal || step.size.rotate_right(8 + place as u32) & 1 == 1)
        .collect();
    (x.mask(&legal).softmax(), 1.0)
}

fn cast<'g>(stage: &mut Stage<'g, '_>, step: &Step, to: DType) -> Bounded<'g> {
    let found = stage.find(step, 0, |ty| ty.dtype != to);
    let (x, bound) = found.unwrap_or_else(|| stage.vector(step, 0));
    let bound = if to == DType::F32 { bound } else { stage.bound_of_words(to, bound) };
    (x.cast(to), bound)
}
