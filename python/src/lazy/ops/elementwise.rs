//! Ops on each element.

use super::{Op, one, refuse};
use crate::lazy::call::Call;
use crate::lazy::dims::{Dims, broadcast};
use crate::lazy::tensor::{Kind, Operand, Tensor};
use crate::lazy::{Lazy, Made, Outcome, Recording};
use autobatch::ir::graph::Value;
use autobatch::ir::types::DType;
use pyo3::prelude::*;

type Function = for<'x> fn(Value<'x>) -> Value<'x>;
type Pair = for<'x> fn(Value<'x>, Value<'x>) -> Value<'x>;

/// An op of one operand without further arguments.
macro_rules! unary {
    ($names:expr, $f:expr) => {
        Op::new(&$names, &["input", "inplace"], |r, call| r.unary(call, $f))
    };
}

/// An op of two operands.
macro_rules! binary {
    ($names:expr, $f:expr) => {
        Op::new(&$names, &["input", "other"], |r, call| r.binary(call, [0, 1], $f))
    };
}

/// A comparison of two operands.
macro_rules! comparison {
    ($names:expr, $f:expr) => {
        Op::new(&$names, &["input", "other"], |r, call| r.comparison(call, $f)).not_of_params()
    };
}

pub(super) const OPS: &[Op] = &[
    unary!(["abs", "absolute", "__abs__"], |x| x.abs()),
    unary!(["exp"], |x| x.exp()).floats(),
    unary!(["log"], |x| x.log()).floats(),
    unary!(["sqrt"], |x| x.sqrt()).floats(),
    unary!(["rsqrt"], |x| x.rsqrt()).floats(),
    unary!(["square"], |x| x.square()),
    unary!(["reciprocal"], |x| x.recip()).floats(),
    unary!(["tanh"], |x| x.tanh()).floats(),
    unary!(["sigmoid", "expit"], |x| x.sigmoid()).floats(),
    unary!(["relu"], |x| x.relu()),
    unary!(["silu"], |x| x.silu()),
    unary!(["sin"], |x| x.sin()).floats(),
    unary!(["cos"], |x| x.cos()).floats(),
    unary!(["erf"], |x| x.erf()).floats(),
    unary!(["sign"], |x| x.sign()),
    unary!(["neg", "negative", "__neg__"], |x| -x),
    unary!(["logsigmoid"], |x| -(-x).softplus()),
    unary!(["relu6"], |x| x.clamp(0.0, 6.0)),
    unary!(["mish"], |x| x * x.softplus().tanh()),
    unary!(["softsign"], |x| x / (x.abs() + 1.0)),
    unary!(["tanhshrink"], |x| x - x.tanh()),
    unary!(["hardsigmoid"], |x| (x / 6.0 + 0.5).clamp(0.0, 1.0)),
    unary!(["hardswish"], |x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0)),
    unary!(["selu"], |x| x.elu(1.673_263_2) * 1.050_701),
    Op::new(&["celu"], &["input", "alpha", "inplace"], |r, call| {
        let alpha = call.number(1, 1.0)? as f32;
        r.mapped(call, |x| (x / alpha).elu(1.0) * alpha)
    }),
    Op::new(&["threshold", "_threshold"], &["input", "threshold", "value", "inplace"], |r, call| {
        let (threshold, value) = (call.number(1, 0.0)? as f32, call.number(2, 0.0)? as f32);
        r.mapped(call, |x| x.greater(threshold).select(x, x.graph().fill(x.shape(), value)))
    }),
    Op::new(&["gelu"], &["input", "approximate"], gelu),
    Op::new(&["softplus"], &["input", "beta", "threshold"], softplus),
    Op::new(&["leaky_relu"], &["input", "negative_slope", "inplace"], |r, call| {
        let slope = call.number(1, 0.01)? as f32;
        r.mapped(call, |x| x.leaky_relu(slope))
    }),
    Op::new(&["elu"], &["input", "alpha", "inplace"], |r, call| {
        let alpha = call.number(1, 1.0)? as f32;
        r.mapped(call, |x| x.elu(alpha))
    }),
    Op::new(&["hardtanh"], &["input", "min_val", "max_val", "inplace"], |r, call| {
        let (low, high) = (call.number(1, -1.0)? as f32, call.number(2, 1.0)? as f32);
        r.mapped(call, |x| x.clamp(low, high))
    }),
    Op::new(&["clamp", "clip"], &["input", "min", "max"], clamp),
    Op::new(&["clamp_min"], &["input", "min"], |r, call| {
        let low = call.number(1, 0.0)? as f32;
        r.mapped(call, |x| x.clamp(low, f32::INFINITY))
    }),
    Op::new(&["clamp_max"], &["input", "max"], |r, call| {
        let high = call.number(1, 0.0)? as f32;
        r.mapped(call, |x| x.clamp(f32::NEG_INFINITY, high))
    }),
    Op::new(&["add", "__add__", "__radd__"], &["input", "other", "alpha"], |r, call| {
        r.sum(call, [0, 1], 1.0)
    }),
    Op::new(&["sub", "subtract", "__sub__"], &["input", "other", "alpha"], |r, call| {
        r.sum(call, [0, 1], -1.0)
    }),
    Op::new(&["rsub", "__rsub__"], &["input", "other", "alpha"], |r, call| r.sum(call, [1, 0], -1.0)),
    binary!(["mul", "multiply", "__mul__", "__rmul__"], |a, b| a * b),
    Op::new(
        &["div", "divide", "true_divide", "__truediv__", "truediv"],
        &["input", "other", "rounding_mode"],
        |r, call| {
            if call.get(2)?.is_some() {
                return refuse("rounding_mode");
            }
            r.binary(call, [0, 1], |a, b| a / b)
        },
    )
    .floats(),
    Op::new(&["__rdiv__", "__rtruediv__"], &["input", "other"], |r, call| {
        r.binary(call, [1, 0], |a, b| a / b)
    })
    .floats(),
    Op::new(&["pow", "__pow__"], &["input", "exponent"], pow),
    Op::new(&["__rpow__"], &["input", "other"], |r, call| r.binary(call, [1, 0], |a, b| a.pow(b))),
    binary!(["maximum"], |a, b| a.maximum(b)),
    binary!(["minimum"], |a, b| a.minimum(b)),
    comparison!(["lt", "less", "__lt__"], |a, b| a.less(b)),
    comparison!(["le", "less_equal", "__le__"], |a, b| a.less_equal(b)),
    comparison!(["gt", "greater", "__gt__"], |a, b| a.greater(b)),
    comparison!(["ge", "greater_equal", "__ge__"], |a, b| a.greater_equal(b)),
    comparison!(["eq", "__eq__"], |a, b| a.equal(b)),
    comparison!(["ne", "not_equal", "__ne__"], |a, b| a.not_equal(b)),
    comparison!(["logical_and", "__and__"], |a, b| (a.abs().minimum(b.abs())).greater(0.0)),
    comparison!(["logical_or", "__or__"], |a, b| (a.abs().maximum(b.abs())).greater(0.0)),
    comparison!(["logical_xor", "__xor__"], |a, b| a
        .not_equal(0.0)
        .cast(DType::F32)
        .not_equal(b.not_equal(0.0).cast(DType::F32))),
    Op::new(&["logical_not", "__invert__", "bitwise_not"], &["input"], |r, call| {
        let x = r.tensor(&call.need(0)?)?;
        r.truth(|r| {
            let x = r.cast(&x, Kind::Float)?;
            r.map(&x, |x| x.equal(0.0))
        })
    })
    .not_of_params(),
    Op::new(&["where"], &["condition", "input", "other"], |r, call| {
        // `x.where(condition, other)` is the same op with other places.
        let (first, second, other) = (call.need(0)?, call.need(1)?, call.need(2)?);
        let (condition, a) = match (r.is_truth(&first)?, r.is_truth(&second)?) {
            (true, true) => return refuse("a condition beside truth values"),
            (true, false) => (first, second),
            (false, true) => (second, first),
            (false, false) => return refuse("a condition that is no tensor of truth values"),
        };
        let (condition, a) = (r.tensor(&condition)?, r.operand(&a)?);
        let b = r.operand(&other)?;
        r.choice(&condition, a, b)
    }),
    Op::new(&["masked_fill"], &["input", "mask", "value"], |r, call| {
        let (x, mask) = (r.operand(&call.need(0)?)?, r.tensor(&call.need(1)?)?);
        let value = r.operand(&call.need(2)?)?;
        r.choice(&mask, value, x)
    }),
    Op::new(&["lerp"], &["input", "end", "weight"], |r, call| {
        let (a, b) = (r.operand(&call.need(0)?)?, r.operand(&call.need(1)?)?);
        let weight = r.operand(&call.need(2)?)?;
        let a_again = a.clone();
        let step = r.pair(b, a, |b, a| b - a)?;
        let step = r.pair(Operand::Tensor(step), weight, |step, weight| step * weight)?;
        one(r.pair(a_again, Operand::Tensor(step), |a, step| a + step)?)
    }),
    Op::new(&["addcmul"], &["input", "tensor1", "tensor2", "value"], |r, call| r.added(call, |a, b| a * b)),
    Op::new(&["addcdiv"], &["input", "tensor1", "tensor2", "value"], |r, call| r.added(call, |a, b| a / b)),
    Op::new(&["detach"], &["input"], |r, call| {
        let x = r.tensor(&call.need(0)?)?;
        let mut made = r.map(&x, |x| x.stop_gradient())?;
        (made.kind, made.grad, made.stopped) = (x.kind, false, false);
        one(made)
    })
    .view()
    .not_of_params(),
    Op::new(&["float"], &["input", "memory_format"], |r, call| match r.tensor(&call.need(0)?)? {
        x if x.kind == Kind::Float => Ok(Outcome::Same),
        x => one(r.cast(&x, Kind::Float)?),
    })
    .floats()
    .not_of_params(),
    Op::new(&["long"], &["input", "memory_format"], |r, call| {
        let x = r.tensor(&call.need(0)?)?;
        as_ints(r, x)
    })
    .not_of_params(),
    Op::new(&["to", "type_as"], &["input", "*other"], to).floats().not_of_params(),
    Op::new(&["clone"], &["input", "memory_format"], |r, call| one(r.tensor(&call.need(0)?)?))
        .not_of_params(),
    Op::new(&["cpu"], &["input", "memory_format"], |_, _| Ok(Outcome::Same)).not_of_params(),
    // Torch copies what lies in another order, and returns everything else itself.
    Op::new(&["contiguous"], &["input", "memory_format"], |r, call| one(r.tensor(&call.need(0)?)?))
        .view()
        .not_of_params(),
];

/// The truth values as ints.
fn as_ints(r: &Recording<'_, '_>, x: Tensor) -> Made<Outcome> {
    match x.kind {
        Kind::Int => Ok(Outcome::Same),
        Kind::Bool => one(r.cast(&r.cast(&x, Kind::Float)?, Kind::Int)?),
        Kind::Float => refuse("a conversion to ints; use .argmax() for indices"),
    }
}

fn to(r: &mut Recording<'_, '_>, call: &Call<'_, '_>) -> Made<Outcome> {
    let x = r.tensor(&call.need(0)?)?;
    let named = ["dtype", "device", "other"];
    let mut targets: Vec<Bound<'_, PyAny>> = call.args.iter().skip(1).collect();
    for name in named {
        targets.extend(call.kwargs.and_then(|kwargs| kwargs.get_item(name).ok().flatten()));
    }
    for target in targets {
        let target = match target.getattr("dtype") {
            Ok(dtype) => dtype,
            Err(_) => target,
        };
        let word = target.to_string();
        let same = match word.strip_prefix("torch.") {
            Some("float32") if x.kind != Kind::Float => return one(r.cast(&x, Kind::Float)?),
            Some("float32") => true,
            Some("int64") => return as_ints(r, x),
            Some("bool") => x.kind == Kind::Bool,
            Some(_) => false,
            None => word == "cpu" || target.extract::<bool>().is_ok(),
        };
        if !same {
            return refuse(format!("a conversion to {word}; recorded tensors are float32 on the CPU"));
        }
    }
    let copies = call.kwargs.and_then(|kwargs| kwargs.get_item("copy").ok().flatten());
    match copies.map(|copies| copies.is_truthy()).transpose()? {
        Some(true) => one(x),
        _ => Ok(Outcome::Same),
    }
}

fn gelu(r: &mut Recording<'_, '_>, call: &Call<'_, '_>) -> Made<Outcome> {
    match &*call.word(1, "none")? {
        "none" => r.mapped(call, |x| x.gelu()),
        _ => r.mapped(call, |x| {
            let cube = x * x * x;
            ((x + cube * 0.044_715) * 0.797_884_6).tanh() * (x * 0.5) + x * 0.5
        }),
    }
}

fn softplus(r: &mut Recording<'_, '_>, call: &Call<'_, '_>) -> Made<Outcome> {
    let (beta, threshold) = (call.number(1, 1.0)? as f32, call.number(2, 20.0)? as f32);
    r.mapped(call, |x| {
        let scaled = if beta == 1.0 { x } else { x * beta };
        let soft = if beta == 1.0 { scaled.softplus() } else { scaled.softplus() / beta };
        // Beyond 20 both forms have the same float32.
        if threshold >= 20.0 { soft } else { scaled.greater(threshold).select(x, soft) }
    })
}

fn clamp(r: &mut Recording<'_, '_>, call: &Call<'_, '_>) -> Made<Outcome> {
    let x = r.float_tensor(&call.need(0)?)?;
    let low = call.get(1)?.map(|low| r.operand(&low)).transpose()?;
    let high = call.get(2)?.map(|high| r.operand(&high)).transpose()?;
    let number = |bound: &Option<Operand>, without: f32| match bound {
        None => Some(without),
        Some(Operand::Number(number)) => Some(*number),
        Some(Operand::Tensor(_)) => None,
    };
    if let (Some(low), Some(high)) = (number(&low, f32::NEG_INFINITY), number(&high, f32::INFINITY)) {
        return one(r.map(&x, |x| x.clamp(low, high))?);
    }
    let mut made = x;
    if let Some(low) = low {
        made = r.pair(Operand::Tensor(made), low, |x, low| x.maximum(low))?;
    }
    if let Some(high) = high {
        made = r.pair(Operand::Tensor(made), high, |x, high| x.minimum(high))?;
    }
    one(made)
}

fn pow(r: &mut Recording<'_, '_>, call: &Call<'_, '_>) -> Made<Outcome> {
    match r.operand(&call.need(1)?)? {
        Operand::Number(2.0) => r.mapped(call, |x| x.square()),
        Operand::Number(0.5) => r.mapped(call, |x| x.sqrt()),
        Operand::Number(-0.5) => r.mapped(call, |x| x.rsqrt()),
        Operand::Number(-1.0) => r.mapped(call, |x| x.recip()),
        Operand::Number(3.0) => r.mapped(call, |x| x * x * x),
        Operand::Number(by) => r.mapped(call, |x| x.pow(by)),
        by => {
            let x = r.operand(&call.need(0)?)?;
            one(r.pair(x, by, |a, b| a.pow(b))?)
        }
    }
}

impl<'g> Recording<'_, 'g> {
    /// Applies a function to each element.
    pub(in crate::lazy) fn map(&self, x: &Tensor, f: impl Fn(Value<'g>) -> Value<'g>) -> Made<Tensor> {
        match x.as_rows() {
            Some(rows) => {
                self.made_of_rows(rows.iter().map(|&row| f(self.value(row))).collect(), x.dims.clone())
            }
            None => self.made(f(self.whole(x)?), x.dims.clone()),
        }
    }

    /// Records a function of each element of the first argument.
    fn mapped(&mut self, call: &Call<'_, '_>, f: impl Fn(Value<'g>) -> Value<'g>) -> Made<Outcome> {
        let x = self.float_tensor(&call.need(0)?)?;
        one(self.map(&x, f)?)
    }

    fn unary(&mut self, call: &Call<'_, '_>, f: Function) -> Made<Outcome> {
        self.mapped(call, f)
    }

    fn binary(&mut self, call: &Call<'_, '_>, [a, b]: [usize; 2], f: Pair) -> Made<Outcome> {
        let (a, b) = (self.operand(&call.need(a)?)?, self.operand(&call.need(b)?)?);
        one(self.pair(a, b, f)?)
    }

    /// Whether an argument is a tensor of truth values.
    fn is_truth(&self, any: &Bound<'_, PyAny>) -> Made<bool> {
        if let Ok(lazy) = any.cast_exact::<Lazy>()
            && let Some(tensor) = lazy.get().pending()
        {
            return Ok(tensor.kind == Kind::Bool);
        }
        Ok(any.getattr("dtype").is_ok_and(|dtype| dtype.is(self.torch.bool.bind(self.py))))
    }

    /// `x + value * f(a, b)`.
    fn added(&mut self, call: &Call<'_, '_>, f: Pair) -> Made<Outcome> {
        let (a, b) = (self.operand(&call.need(1)?)?, self.operand(&call.need(2)?)?);
        let value = call.number(3, 1.0)? as f32;
        let made = self.pair(a, b, f)?;
        let made = self.map(&made, |x| if value == 1.0 { x } else { x * value })?;
        let x = self.operand(&call.need(0)?)?;
        one(self.pair(x, Operand::Tensor(made), |x, made| x + made)?)
    }

    /// `a + alpha * b`, with the factor of the call and a sign.
    fn sum(&mut self, call: &Call<'_, '_>, [a, b]: [usize; 2], sign: f32) -> Made<Outcome> {
        let alpha = call.number(2, 1.0)? as f32;
        let (a, b) = (self.operand(&call.need(a)?)?, self.operand(&call.need(b)?)?);
        one(match (alpha == 1.0, sign > 0.0) {
            (true, true) => self.pair(a, b, |a, b| a + b)?,
            (true, false) => self.pair(a, b, |a, b| a - b)?,
            (false, _) => self.pair(a, b, |a, b| a + b * (alpha * sign))?,
        })
    }

    /// Applies a function to pairs of elements. The smaller operand is repeated, as torch repeats it.
    pub(in crate::lazy) fn pair(
        &self,
        a: Operand,
        b: Operand,
        f: impl Fn(Value<'g>, Value<'g>) -> Value<'g>,
    ) -> Made<Tensor> {
        let (a, b) = match (a, b) {
            (Operand::Tensor(a), Operand::Tensor(b)) => (self.floats(a)?, self.floats(b)?),
            (Operand::Tensor(a), Operand::Number(b)) => {
                let (a, b) = (self.floats(a)?, self.graph.constant(b));
                return self.map(&a, |a| f(a, b));
            }
            (Operand::Number(a), Operand::Tensor(b)) => {
                let (a, b) = (self.graph.constant(a), self.floats(b)?);
                return self.map(&b, |b| f(a, b));
            }
            (Operand::Number(_), Operand::Number(_)) => return refuse("no operand is a tensor"),
        };
        self.pair_of_tensors(&a, &b, f)
    }

    fn pair_of_tensors(
        &self,
        a: &Tensor,
        b: &Tensor,
        f: impl Fn(Value<'g>, Value<'g>) -> Value<'g>,
    ) -> Made<Tensor> {
        let dims: Dims = broadcast(&a.dims, &b.dims)?;
        let (in_rows, ranks) =
            ([a.as_rows().is_some(), b.as_rows().is_some()], [a.core().len(), b.core().len()]);
        let rows = match (in_rows, ranks[0].cmp(&ranks[1])) {
            ([true, _] | [_, true], std::cmp::Ordering::Equal) => {
                let pairs = self.rows(a)?.into_iter().zip(self.rows(b)?);
                pairs.map(|(a, b)| f(a, b)).collect()
            }
            ([true, _], std::cmp::Ordering::Greater) => {
                let b = self.whole(b)?;
                self.rows(a)?.into_iter().map(|a| f(a, b)).collect()
            }
            ([_, true], std::cmp::Ordering::Less) => {
                let a = self.whole(a)?;
                self.rows(b)?.into_iter().map(|b| f(a, b)).collect()
            }
            _ => return self.made(f(self.whole(a)?, self.whole(b)?), dims),
        };
        self.made_of_rows(rows, dims)
    }

    fn comparison(&mut self, call: &Call<'_, '_>, f: Pair) -> Made<Outcome> {
        let (a, b) = (self.operand(&call.need(0)?)?, self.operand(&call.need(1)?)?);
        self.truth(|r| {
            let numbers = |operand: Operand| match operand {
                Operand::Tensor(tensor) => r.cast(&tensor, Kind::Float).map(Operand::Tensor),
                number => Ok(number),
            };
            r.pair(numbers(a)?, numbers(b)?, f)
        })
    }

    /// A tensor of truth values, which has no gradient.
    fn truth(&mut self, make: impl FnOnce(&mut Self) -> Made<Tensor>) -> Made<Outcome> {
        let made = make(self)?;
        one(Tensor { kind: Kind::Bool, grad: false, stopped: false, ..made })
    }

    /// `a` where the condition is true, `b` elsewhere.
    fn choice(&self, condition: &Tensor, a: Operand, b: Operand) -> Made<Outcome> {
        let tensor = |operand: Operand| match operand {
            Operand::Tensor(tensor) => self.floats(tensor),
            Operand::Number(number) => self.made(self.graph.constant(number), Dims::new()),
        };
        let (a, b) = (tensor(a)?, tensor(b)?);
        let condition = match condition.kind {
            Kind::Bool => condition.clone(),
            Kind::Float | Kind::Int => self.cast(condition, Kind::Bool)?,
        };
        let dims = broadcast(&broadcast(&a.dims, &b.dims)?, &condition.dims)?;
        let shape = crate::lazy::dims::shape_of(&dims)?;
        let repeated = |x: &Tensor| {
            let value = self.whole(x)?;
            Made::Ok(if value.shape() == shape { value } else { value.broadcast(shape) })
        };
        one(self.made(repeated(&condition)?.select(repeated(&a)?, repeated(&b)?), dims)?)
    }
}
