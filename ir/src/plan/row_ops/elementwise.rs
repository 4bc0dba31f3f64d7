//! Elementwise functions of one element.

use crate::graph::{Binary, Compare, Unary};
use crate::numeric::{Real, int, scalar};
use crate::plan::Code;
use crate::types::DType;

/// An elementwise function of one element. Operands and result are words, and `code` computes in `dtype`. Operands that the
/// code does not take are ignored.
#[inline]
#[must_use]
pub fn map_element(code: Code, dtype: DType, [a, b, c]: [u32; 3]) -> u32 {
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    match code {
        Code::Copy => a,
        Code::Unary(unary) => unary_element(unary, x).to_bits(),
        Code::LeakyRelu(slope) => scalar::leaky_relu(x, slope.get()).to_bits(),
        Code::Elu(alpha) => scalar::elu(x, alpha.get()).to_bits(),
        Code::Clamp(low, high) => scalar::clamp(x, low.get(), high.get()).to_bits(),
        Code::Slope(unary) => slope_element(unary, x).to_bits(),
        Code::Binary(binary) => match dtype {
            DType::F32 => float_binary(binary, x, y).to_bits(),
            DType::I32 => signed_binary(binary, a, b),
            _ => unsigned_binary(binary, a, b),
        },
        Code::Compare(compare) => match dtype {
            DType::F32 => compared(compare, x.partial_cmp(&y)),
            DType::I32 => compared(compare, Some((a as i32).cmp(&(b as i32)))),
            _ => compared(compare, Some(a.cmp(&b))),
        },
        Code::Select => {
            if a != 0 {
                b
            } else {
                c
            }
        }
        Code::Cast(to) => cast_element(dtype, to, a),
    }
}

/// Whether [`Code::Slope`] defines the slope of a function.
#[must_use]
pub const fn has_slope(unary: Unary) -> bool {
    matches!(
        unary,
        Unary::Tanh | Unary::Sigmoid | Unary::Relu | Unary::Gelu | Unary::Silu | Unary::Softplus | Unary::Erf
    )
}

fn slope_element(unary: Unary, x: f32) -> f32 {
    match unary {
        Unary::Tanh => x.tanh_slope_of_result(),
        Unary::Sigmoid => x.sigmoid_slope_of_result(),
        Unary::Relu => x.relu_slope(),
        Unary::Gelu => x.gelu_slope(),
        Unary::Silu => x.silu_slope(),
        Unary::Softplus => x.softplus_slope(),
        Unary::Erf => x.erf_slope(),
        _ => f32::NAN,
    }
}

/// Calls the function of `numeric` that belongs to a member of a family.
macro_rules! by_member {
    ($family:ident: $member:expr, $module:ident $operands:tt, $($name:ident $function:ident),*) => {
        match $member { $($family::$name => $module::$function $operands,)* }
    };
}

fn unary_element(unary: Unary, x: f32) -> f32 {
    by_member!(
        Unary: unary, scalar(x),
        Neg neg, Abs abs, Exp exp, Log log, Sqrt sqrt, Rsqrt rsqrt, Square square, Recip recip, Tanh tanh,
        Sigmoid sigmoid, Relu relu, Gelu gelu, Silu silu, Softplus softplus, Sin sin, Cos cos, Erf erf, Sign sign
    )
}

fn float_binary(binary: Binary, x: f32, y: f32) -> f32 {
    by_member!(Binary: binary, scalar(x, y), Add add, Sub sub, Mul mul, Div div, Pow pow, Min min, Max max)
}

/// An integer function of two operands. Division and powers have float types only.
fn unsigned_binary(binary: Binary, a: u32, b: u32) -> u32 {
    match binary {
        Binary::Add => int::add(a, b),
        Binary::Sub => int::sub(a, b),
        Binary::Mul => int::mul(a, b),
        Binary::Min => int::min(a, b),
        Binary::Max => int::max(a, b),
        Binary::Div | Binary::Pow => 0,
    }
}

/// A function of two signed integers. Sums and products have the bits of unsigned ones; comparisons do not.
fn signed_binary(binary: Binary, a: u32, b: u32) -> u32 {
    match binary {
        Binary::Min => (a as i32).min(b as i32) as u32,
        Binary::Max => (a as i32).max(b as i32) as u32,
        _ => unsigned_binary(binary, a, b),
    }
}

fn compared(compare: Compare, order: Option<std::cmp::Ordering>) -> u32 {
    u32::from(match compare {
        Compare::Eq => order.is_some_and(|order| order.is_eq()),
        Compare::Ne => order.is_none_or(|order| order.is_ne()),
        Compare::Lt => order.is_some_and(|order| order.is_lt()),
        Compare::Le => order.is_some_and(|order| order.is_le()),
        Compare::Gt => order.is_some_and(|order| order.is_gt()),
        Compare::Ge => order.is_some_and(|order| order.is_ge()),
    })
}

/// Floats are truncated to integers: numbers out of range become the nearest integer, NaN becomes 0. Any number but zero is true.
fn cast_element(from: DType, to: DType, word: u32) -> u32 {
    let float = f32::from_bits(word);
    match (from, to) {
        (DType::F32, DType::I32) => float as i32 as u32,
        (DType::F32, DType::U32) => float as u32,
        (DType::F32, DType::Bool) => u32::from(float != 0.0),
        (DType::I32, DType::F32) => (word as i32 as f32).to_bits(),
        (DType::U32 | DType::Bool, DType::F32) => (word as f32).to_bits(),
        (DType::I32 | DType::U32, DType::Bool) => u32::from(word != 0),
        _ => word,
    }
}
