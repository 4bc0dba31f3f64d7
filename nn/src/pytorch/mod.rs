//! Conversion of PyTorch weights to the layouts of this crate.
//!
//! [`import`] reads a whole state dict by the names of its modules; the functions convert single layers.
//!
//! PyTorch stores a linear weight as `[outputs, inputs]`, this crate as `[inputs, outputs]`, so every
//! weight is transposed. PyTorch's recurrent layers add two biases; here there is one, the sum. The
//! sum rounds once less, so results agree closely but not bit for bit. The order of gates is the same:
//! i, f, g, o for an LSTM, r, z, n for a GRU.
//!
//! | PyTorch | here |
//! |---|---|
//! | `Linear.weight [o, i]`, `.bias` | `name.w [i, o]` by [`from_pytorch_linear`], `name.b` unchanged |
//! | `Embedding.weight [rows, width]` | `name` unchanged, checked by [`from_pytorch_embedding`] |
//! | `LSTM.weight_ih_lk`, `weight_hh_lk`, `bias_ih_lk`, `bias_hh_lk` | `name.w`, `name.b` by [`from_pytorch_lstm`]; hoisted: the first `inputs` rows are `name.wx`, the rest `name.wh` |
//! | `weight_hr_lk` of an `LSTM` with `proj_size` | `name.wr` by [`from_pytorch_linear`]; the others by [`from_pytorch_projected_lstm`] |
//! | `RNN` likewise | the same by [`from_pytorch_rnn`] |
//! | `GRU` likewise | `name.wx`, `name.wh`, `name.b`, `name.bn` by [`from_pytorch_gru`] |
//! | `LayerNorm.weight`, `.bias`; `RMSNorm.weight` | `name.gain`, `name.bias` unchanged |
//! | `MultiheadAttention.in_proj_weight [3 e, e]`, `.in_proj_bias`, `.out_proj.weight`, `.out_proj.bias` | `name.in_proj.w` by [`from_pytorch_linear`], `name.in_proj.b`, `name.out_proj` likewise |
//! | with `kdim` or `vdim`: `q_proj_weight`, `k_proj_weight`, `v_proj_weight` | `name.q_proj.w`, `name.k_proj.w`, `name.v_proj.w`; the thirds of `in_proj_bias` are their biases |
//! | `TransformerEncoderLayer.self_attn`, `linear1`, `linear2`, `norm1`, `norm2` | the same names, each as above |
//! | `TransformerDecoderLayer.self_attn`, `multihead_attn`, `linear1`, `linear2`, `norm1`, `norm2`, `norm3` | the same names after `name.layers.k`; the thirds of `multihead_attn.in_proj_weight` are `q_proj`, `k_proj` and `v_proj` |
//! | `TransformerEncoder.layers.k`, `TransformerDecoder.layers.k`, `.norm` | `name.layers.k`, `name.norm` |
//! | several `Linear`s with added results | one joint weight by [`from_pytorch_sum`] |
//!
//! The suffix `_reverse` of PyTorch's names denotes the backward layer, `name.bw`. All arrays are
//! row-major, as in safetensors files.
//!
//! # Training after an import
//! Where one bias here is the sum of two biases of PyTorch, PyTorch's sum moves twice as far in a step, because both of its
//! biases receive the same gradient. [`Imported::joint_biases`] names these biases, and twice the learning rate for them
//! trains as PyTorch does. No rate reproduces a GRU: in its `name.b` the gates r and z are sums and the gate n is not.

mod import;
mod import_error;
mod names;

use autobatch_ir::Init;
pub use import::{Imported, StateArray, import};
pub use import_error::ImportError;
use std::fmt;

/// PyTorch's default initialiser of weights and biases: uniform in `-1 / sqrt(fan)` to
/// `1 / sqrt(fan)`. `fan` is the number of inputs of a linear layer, or the width of a recurrent one.
#[must_use]
pub fn init(fan: usize) -> Init {
    Init::Uniform(1.0 / (fan.max(1) as f32).sqrt())
}

/// An array has the wrong length for its layer.
#[derive(Clone, PartialEq, Eq)]
pub struct LayoutError {
    /// The array's name in PyTorch.
    pub array: &'static str,
    /// The expected number of elements.
    pub expected: usize,
    /// The found number of elements.
    pub found: usize,
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { array, expected, found } = self;
        write!(f, "{array}: expected {expected} numbers, found {found}; check the sizes of the layer")
    }
}

impl std::error::Error for LayoutError {}

autobatch_ir::debug_as_display!(LayoutError);

fn checked(array: &'static str, numbers: &[f32], expected: usize) -> Result<(), LayoutError> {
    if numbers.len() == expected {
        return Ok(());
    }
    Err(LayoutError { array, expected, found: numbers.len() })
}

/// Appends the transpose of a matrix `[rows, columns]`.
fn push_transposed(to: &mut Vec<f32>, matrix: &[f32], rows: usize, columns: usize) {
    for column in 0..columns {
        to.extend((0..rows).map(|row| matrix[row * columns + column]));
    }
}

/// Converts a linear layer's weight `[outputs, inputs]` to `name.w: [inputs, outputs]`.
///
/// # Errors
/// If the weight has another length.
pub fn from_pytorch_linear(weight: &[f32], inputs: usize, outputs: usize) -> Result<Vec<f32>, LayoutError> {
    checked("weight", weight, inputs.saturating_mul(outputs))?;
    let mut transposed = Vec::with_capacity(weight.len());
    push_transposed(&mut transposed, weight, outputs, inputs);
    Ok(transposed)
}

/// Checks an embedding's weight `[rows, width]`, which is the table itself.
///
/// # Errors
/// If the weight has another length.
pub fn from_pytorch_embedding(weight: &[f32], rows: usize, width: usize) -> Result<Vec<f32>, LayoutError> {
    checked("weight", weight, rows.saturating_mul(width))?;
    Ok(weight.to_vec())
}

/// Joins linear layers `(weight [outputs, inputs], inputs)` with added results: one weight over their
/// concatenated inputs, and the sum of their biases. For example, it joins a binary tree LSTM's `left`
/// and `right` to the `name.w` and `name.b` of a [`TreeLstm`](crate::TreeLstm).
///
/// # Errors
/// If an array has another length.
pub fn from_pytorch_sum(
    weights: &[(&[f32], usize)],
    biases: &[&[f32]],
    outputs: usize,
) -> Result<(Vec<f32>, Vec<f32>), LayoutError> {
    let mut joint = Vec::new();
    for &(weight, inputs) in weights {
        checked("weight", weight, inputs.saturating_mul(outputs))?;
        push_transposed(&mut joint, weight, outputs, inputs);
    }
    for bias in biases {
        checked("bias", bias, outputs)?;
    }
    let Some((first, others)) = biases.split_first() else { return Ok((joint, Vec::new())) };
    let mut sum = first.to_vec();
    for bias in others {
        for (total, term) in sum.iter_mut().zip(*bias) {
            *total += term;
        }
    }
    Ok((joint, sum))
}

/// The sizes `(inputs, hidden)` of the arrays of a recurrent layer with this number of gates. The width of projected hidden values
/// differs from that of the gates.
fn sizes(
    gates: usize,
    projection: Option<usize>,
    [w_ih, w_hh, b_ih, b_hh]: [&[f32]; 4],
) -> Result<(usize, usize), LayoutError> {
    let gate = b_ih.len() / gates;
    let (width, hidden) = (gates * gate, projection.unwrap_or(gate));
    checked("bias_ih", b_ih, width.max(gates))?;
    checked("bias_hh", b_hh, width)?;
    checked("weight_hh", w_hh, width.saturating_mul(hidden))?;
    let inputs = w_ih.len() / width;
    checked("weight_ih", w_ih, inputs.max(1).saturating_mul(width))?;
    Ok((inputs, hidden))
}

fn joint(
    gates: usize,
    projection: Option<usize>,
    arrays: [&[f32]; 4],
) -> Result<(Vec<f32>, Vec<f32>), LayoutError> {
    let (inputs, hidden) = sizes(gates, projection, arrays)?;
    let [w_ih, w_hh, b_ih, b_hh] = arrays;
    from_pytorch_sum(&[(w_ih, inputs), (w_hh, hidden)], &[b_ih, b_hh], b_ih.len())
}

/// Converts an LSTM layer's `weight_ih [4 hidden, inputs]`, `weight_hh [4 hidden, hidden]` and biases to
/// `name.w: [inputs + hidden, 4 hidden]` and `name.b` of an [`Lstm`](crate::Lstm).
///
/// # Errors
/// If the lengths are inconsistent.
pub fn from_pytorch_lstm(
    w_ih: &[f32],
    w_hh: &[f32],
    b_ih: &[f32],
    b_hh: &[f32],
) -> Result<(Vec<f32>, Vec<f32>), LayoutError> {
    joint(4, None, [w_ih, w_hh, b_ih, b_hh])
}

/// As [`from_pytorch_lstm`], with `proj_size`: `weight_hh` is `[4 hidden, projection]`, so `name.w` is
/// `[inputs + projection, 4 hidden]`.
///
/// # Errors
/// If the lengths are inconsistent.
pub fn from_pytorch_projected_lstm(
    w_ih: &[f32],
    w_hh: &[f32],
    b_ih: &[f32],
    b_hh: &[f32],
    projection: usize,
) -> Result<(Vec<f32>, Vec<f32>), LayoutError> {
    joint(4, Some(projection), [w_ih, w_hh, b_ih, b_hh])
}

/// Converts an RNN layer's arrays to `name.w: [inputs + hidden, hidden]` and `name.b` of an
/// [`Rnn`](crate::Rnn).
///
/// # Errors
/// If the lengths are inconsistent.
pub fn from_pytorch_rnn(
    w_ih: &[f32],
    w_hh: &[f32],
    b_ih: &[f32],
    b_hh: &[f32],
) -> Result<(Vec<f32>, Vec<f32>), LayoutError> {
    joint(1, None, [w_ih, w_hh, b_ih, b_hh])
}

/// The arrays of a [`Gru`](crate::Gru).
#[derive(Clone, Debug, PartialEq)]
pub struct GruArrays {
    /// `name.wx: [inputs, 3 hidden]`
    pub wx: Vec<f32>,
    /// `name.wh: [hidden, 3 hidden]`
    pub wh: Vec<f32>,
    /// `name.b: [3 hidden]`: both biases of r and z, the input bias of n.
    pub b: Vec<f32>,
    /// `name.bn: [hidden]`: the hidden bias of n, which the reset gate scales.
    pub bn: Vec<f32>,
}

/// Converts a GRU layer's arrays to those of a [`Gru`](crate::Gru).
///
/// # Errors
/// If the lengths are inconsistent.
pub fn from_pytorch_gru(
    w_ih: &[f32],
    w_hh: &[f32],
    b_ih: &[f32],
    b_hh: &[f32],
) -> Result<GruArrays, LayoutError> {
    let (inputs, hidden) = sizes(3, None, [w_ih, w_hh, b_ih, b_hh])?;
    let wx = from_pytorch_linear(w_ih, inputs, 3 * hidden)?;
    let wh = from_pytorch_linear(w_hh, hidden, 3 * hidden)?;
    let (gates, bn) = b_hh.split_at(2 * hidden);
    let mut b = b_ih.to_vec();
    for (total, term) in b.iter_mut().zip(gates) {
        *total += term;
    }
    Ok(GruArrays { wx, wh, b, bn: bn.to_vec() })
}
