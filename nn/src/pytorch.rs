//! Weights made by PyTorch, in the layout of this crate's layers.
//!
//! PyTorch stores a linear weight as `[outputs, inputs]`, here it is `[inputs, outputs]`: every
//! weight is transposed. Its recurrent layers have two biases that are added, here there is one
//! (they round once less in the sum: numbers agree closely, not to the bit). The order of gates is
//! the same: i, f, g, o for an LSTM, r, z, n for a GRU.
//!
//! | PyTorch | here |
//! |---|---|
//! | `Linear.weight [o, i]`, `.bias` | `name.w [i, o]` by [`from_pytorch_linear`], `name.b` as it is |
//! | `Embedding.weight [rows, width]` | `name` as it is, checked by [`from_pytorch_embedding`] |
//! | `LSTM.weight_ih_lk`, `weight_hh_lk`, `bias_ih_lk`, `bias_hh_lk` | `name.w`, `name.b` by [`from_pytorch_lstm`]; hoisted: the first `inputs` rows are `name.wx`, the rest `name.wh` |
//! | `weight_hr_lk` of an `LSTM` with `proj_size` | `name.wr` by [`from_pytorch_linear`]; the others by [`from_pytorch_projected_lstm`] |
//! | `RNN` likewise | the same by [`from_pytorch_rnn`] |
//! | `GRU` likewise | `name.wx`, `name.wh`, `name.b`, `name.bn` by [`from_pytorch_gru`] |
//! | `LayerNorm.weight`, `.bias`; `RMSNorm.weight` | `name.gain`, `name.bias` as they are |
//! | `MultiheadAttention.in_proj_weight [3 e, e]`, `.in_proj_bias`, `.out_proj.weight`, `.out_proj.bias` | `name.in_proj.w` by [`from_pytorch_linear`], `name.in_proj.b`, `name.out_proj` likewise |
//! | with `kdim` or `vdim`: `q_proj_weight`, `k_proj_weight`, `v_proj_weight` | `name.q_proj.w`, `name.k_proj.w`, `name.v_proj.w`; the thirds of `in_proj_bias` are their biases |
//! | `TransformerEncoderLayer.self_attn`, `linear1`, `linear2`, `norm1`, `norm2` | the same names, each as above |
//! | `TransformerDecoderLayer.self_attn`, `multihead_attn`, `linear1`, `linear2`, `norm1`, `norm2`, `norm3` | the same names behind `name.layers.k` |
//! | `TransformerEncoder.layers.k`, `TransformerDecoder.layers.k`, `.norm` | `name.layers.k`, `name.norm` |
//! | several `Linear`s whose results are added | one joint weight by [`from_pytorch_sum`] |
//!
//! The suffix `_reverse` of PyTorch's names is the backward layer, `name.bw`. All arrays are
//! row-major, as safetensors stores them.

use autobatch_ir::Init;
use std::fmt;

/// How PyTorch draws the first values of a linear layer (`fan` is its inputs) and of a recurrent
/// layer (`fan` is its width), weights and biases alike: uniform in `-1 / sqrt(fan)` to `1 /
/// sqrt(fan)`.
#[must_use]
pub fn init(fan: usize) -> Init {
    Init::Uniform(1.0 / (fan.max(1) as f32).sqrt())
}

/// An array that is not as long as its layer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutError {
    /// The array, by PyTorch's name for it.
    pub array: &'static str,
    /// How many numbers it should have.
    pub expected: usize,
    /// How many it has.
    pub found: usize,
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { array, expected, found } = self;
        write!(f, "{array}: expected {expected} numbers, found {found}; check the layer's sizes")
    }
}

impl std::error::Error for LayoutError {}

fn checked(array: &'static str, numbers: &[f32], expected: usize) -> Result<(), LayoutError> {
    if numbers.len() == expected {
        return Ok(());
    }
    Err(LayoutError { array, expected, found: numbers.len() })
}

/// `[rows, columns]` to `[columns, rows]`, appended.
fn push_transposed(to: &mut Vec<f32>, matrix: &[f32], rows: usize, columns: usize) {
    for column in 0..columns {
        to.extend((0..rows).map(|row| matrix[row * columns + column]));
    }
}

/// A linear layer's weight `[outputs, inputs]` as `name.w: [inputs, outputs]`.
///
/// # Errors
/// If the weight is not that long.
pub fn from_pytorch_linear(weight: &[f32], inputs: usize, outputs: usize) -> Result<Vec<f32>, LayoutError> {
    checked("weight", weight, inputs.saturating_mul(outputs))?;
    let mut transposed = Vec::with_capacity(weight.len());
    push_transposed(&mut transposed, weight, outputs, inputs);
    Ok(transposed)
}

/// An embedding's weight `[rows, width]`: the table itself.
///
/// # Errors
/// If the weight is not that long.
pub fn from_pytorch_embedding(weight: &[f32], rows: usize, width: usize) -> Result<Vec<f32>, LayoutError> {
    checked("weight", weight, rows.saturating_mul(width))?;
    Ok(weight.to_vec())
}

/// Linear layers `(weight [outputs, inputs], inputs)` whose results are added, as one weight over
/// their inputs side by side, and the sum of their biases: a binary tree LSTM's `left` and `right`
/// as the `name.w` and `name.b` of a [`TreeLstm`](crate::TreeLstm), say.
///
/// # Errors
/// If an array is not as long as it should be.
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

/// The sizes `(inputs, hidden)` that the arrays of a recurrent layer with so many gates have; hidden values have another width
/// than the gates where they are projected.
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

/// An LSTM layer's `weight_ih [4 hidden, inputs]`, `weight_hh [4 hidden, hidden]` and biases as
/// `name.w: [inputs + hidden, 4 hidden]` and `name.b` of an [`Lstm`](crate::Lstm).
///
/// # Errors
/// If the lengths do not fit each other.
pub fn from_pytorch_lstm(
    w_ih: &[f32],
    w_hh: &[f32],
    b_ih: &[f32],
    b_hh: &[f32],
) -> Result<(Vec<f32>, Vec<f32>), LayoutError> {
    joint(4, None, [w_ih, w_hh, b_ih, b_hh])
}

/// The same of an LSTM with `proj_size`: `weight_hh` is `[4 hidden, projection]`, and so `name.w: [inputs + projection, 4 hidden]`.
///
/// # Errors
/// If the lengths do not fit each other.
pub fn from_pytorch_projected_lstm(
    w_ih: &[f32],
    w_hh: &[f32],
    b_ih: &[f32],
    b_hh: &[f32],
    projection: usize,
) -> Result<(Vec<f32>, Vec<f32>), LayoutError> {
    joint(4, Some(projection), [w_ih, w_hh, b_ih, b_hh])
}

/// An RNN layer's arrays as `name.w: [inputs + hidden, hidden]` and `name.b` of an
/// [`Rnn`](crate::Rnn).
///
/// # Errors
/// If the lengths do not fit each other.
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
    /// `name.b: [3 hidden]`: both biases of r and z, the input's of n.
    pub b: Vec<f32>,
    /// `name.bn: [hidden]`: the hidden value's bias of n, which the reset gate scales.
    pub bn: Vec<f32>,
}

/// A GRU layer's arrays as those of a [`Gru`](crate::Gru).
///
/// # Errors
/// If the lengths do not fit each other.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(from: u8, count: u8) -> Vec<f32> {
        (from..from + count).map(f32::from).collect()
    }

    #[test]
    fn first_values_are_within_the_root_of_the_fan() {
        assert_eq!(init(16), Init::Uniform(0.25));
        assert_eq!(init(0), Init::Uniform(1.0));
    }

    #[test]
    fn a_linear_weight_is_transposed() {
        let weight = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]; // two outputs of three inputs
        assert_eq!(from_pytorch_linear(&weight, 3, 2), Ok(vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
    }

    #[test]
    fn an_embedding_is_kept() {
        assert_eq!(from_pytorch_embedding(&[1.0, 2.0], 2, 1), Ok(vec![1.0, 2.0]));
        assert!(from_pytorch_embedding(&[1.0, 2.0], 2, 2).is_err());
    }

    #[test]
    fn an_lstm_weight_has_the_inputs_rows_first_and_one_bias() {
        let (w_ih, w_hh) = (counted(0, 8), counted(100, 4)); // two inputs, one hidden
        let (b_ih, b_hh) = (counted(1, 4), counted(10, 4));
        let (w, b) = from_pytorch_lstm(&w_ih, &w_hh, &b_ih, &b_hh).unwrap();
        let rows: Vec<&[f32]> = w.chunks(4).collect();
        assert_eq!(rows, [[0.0, 2.0, 4.0, 6.0], [1.0, 3.0, 5.0, 7.0], [100.0, 101.0, 102.0, 103.0]]);
        assert_eq!(b, [11.0, 13.0, 15.0, 17.0]);
    }

    #[test]
    fn a_projected_lstm_has_as_many_rows_as_its_projection_for_hidden_values() {
        let (w_ih, w_hh, bias) = (counted(0, 8), counted(100, 16), counted(1, 8)); // one input, two hidden, projection to two
        let (w, b) = from_pytorch_projected_lstm(&w_ih, &w_hh, &bias, &bias, 2).unwrap();
        assert_eq!(w[..8], w_ih);
        assert_eq!(w[8..16], [100.0, 102.0, 104.0, 106.0, 108.0, 110.0, 112.0, 114.0]);
        assert_eq!((w.len(), b[7]), (24, 16.0));
        assert!(from_pytorch_projected_lstm(&w_ih, &w_hh, &bias, &bias, 3).is_err());
    }

    #[test]
    fn a_gru_keeps_the_bias_that_its_reset_gate_scales() {
        let arrays =
            from_pytorch_gru(&counted(0, 3), &counted(5, 3), &counted(1, 3), &counted(10, 3)).unwrap();
        let expected =
            GruArrays { wx: counted(0, 3), wh: counted(5, 3), b: vec![11.0, 13.0, 3.0], bn: vec![12.0] };
        assert_eq!(arrays, expected);
    }

    #[test]
    fn added_linear_layers_become_one() {
        let (left, right) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0]); // two outputs; two inputs and one
        let (w, b) = from_pytorch_sum(&[(&left, 2), (&right, 1)], &[&[1.0, 2.0], &[3.0, 4.0]], 2).unwrap();
        assert_eq!(w, [1.0, 3.0, 2.0, 4.0, 5.0, 6.0]);
        assert_eq!(b, [4.0, 6.0]);
    }

    #[test]
    fn lengths_that_do_not_fit_are_named() {
        let error = from_pytorch_lstm(&[0.0; 8], &[0.0; 5], &[0.0; 4], &[0.0; 4]).unwrap_err();
        assert_eq!(error.to_string(), "weight_hh: expected 4 numbers, found 5; check the layer's sizes");
        assert!(from_pytorch_lstm(&[], &[], &[], &[]).is_err());
        assert!(from_pytorch_lstm(&[0.0; 3], &[0.0; 4], &[0.0; 4], &[0.0; 4]).is_err());
        assert!(from_pytorch_gru(&[0.0; 3], &[0.0; 3], &[0.0; 4], &[0.0; 3]).is_err());
    }
}
