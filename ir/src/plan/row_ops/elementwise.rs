//! Elementwise functions of one element.

use crate::graph::{Binary, Compare, Unary};
use crate::numeric::{Real, int, scalar};
use crate::plan::Code;
use crate::types::DType;
use crate::{with_binary, with_unary};

/// An elementwise function of one element. Operands and result are words, and `code` computes in `dtype`. Operands that the
/// code does not take are ignored.
#[inline]
#[must_use]
pub fn map_element(code: Code, dtype: DType, [a, b, c]: [u32; 3]) -> u32 {
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    match code {
        Code::Copy => a,
        Code::Unary(unary) => with_unary!(unary, |f| f(x).to_bits()),
        Code::LeakyRelu(slope) => scalar::leaky_relu(x, slope.get()).to_bits(),
        Code::Elu(alpha) => scalar::elu(x, alpha.get()).to_bits(),
        Code::Clamp(low, high) => scalar::clamp(x, low.get(), high.get()).to_bits(),
        Code::Slope(unary) => slope_element(unary, x).to_bits(),
        Code::Binary(binary) => match dtype {
            DType::F32 => with_binary!(binary, |f| f(x, y).to_bits()),
            _ => integer_binary(binary, dtype, a, b),
        },
        Code::Compare(compare) => match dtype {
            DType::F32 => compared(compare, x.partial_cmp(&y)),
            _ => integer_compare(compare, dtype, a, b),
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

/// A function of two integers. Division and powers have float types only.
#[inline(always)]
#[must_use]
pub fn integer_binary(binary: Binary, dtype: DType, a: u32, b: u32) -> u32 {
    match (binary, dtype) {
        // Sums and products of signed integers have the bits of unsigned ones; comparisons do not.
        (Binary::Min, DType::I32) => (a as i32).min(b as i32) as u32,
        (Binary::Max, DType::I32) => (a as i32).max(b as i32) as u32,
        (Binary::Add, _) => int::add(a, b),
        (Binary::Sub, _) => int::sub(a, b),
        (Binary::Mul, _) => int::mul(a, b),
        (Binary::Min, _) => int::min(a, b),
        (Binary::Max, _) => int::max(a, b),
        (Binary::Div | Binary::Pow, _) => 0,
    }
}

/// A comparison of two integers or truth values: 1 or 0.
#[inline(always)]
#[must_use]
pub fn integer_compare(compare: Compare, dtype: DType, a: u32, b: u32) -> u32 {
    // With the sign bit flipped, signed numbers have the order of unsigned ones.
    let sign = if dtype == DType::I32 { 1 << 31 } else { 0 };
    compared(compare, Some((a ^ sign).cmp(&(b ^ sign))))
}

#[inline(always)]
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

/// Converts a word. Floats are truncated to integers: numbers out of range become the nearest integer, NaN becomes 0. Any
/// number but zero is true.
#[inline(always)]
#[must_use]
pub fn cast_element(from: DType, to: DType, word: u32) -> u32 {
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
