//! Attention.

use super::{Op, one, refuse};
use crate::lazy::call::Call;
use crate::lazy::dims::{Dims, core, elements};
use crate::lazy::tensor::{Operand, Tensor, shaped};
use crate::lazy::{Made, Outcome, Recording};
use autobatch::ir::graph::Value;
use pyo3::prelude::*;

pub(super) const OPS: &[Op] = &[
    Op::new(
        &["scaled_dot_product_attention"],
        &["query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa"],
        |r, call| {
            let [q, k, v] = [0, 1, 2].map(|place| call.need(place).and_then(|any| r.float_tensor(&any)));
            let (q, k, v) = (q?, k?, v?);
            if call.number(4, 0.0)? > 0.0 || call.flag(7, false)? {
                return refuse("dropout of attention, or groups of queries");
            }
            let scale = call.number(6, 1.0 / f64::from(q.dims.last().copied().unwrap_or(1)).sqrt())? as f32;
            let mask = call.get(3)?.map(|mask| r.mask(&mask)).transpose()?;
            one(r.attention(&q, &k, &v, mask.as_ref(), call.flag(5, false)?, scale)?)
        },
    ),
    Op::new(
        &["multi_head_attention_forward"],
        &[
            "query",
            "key",
            "value",
            "embed_dim_to_check",
            "num_heads",
            "in_proj_weight",
            "in_proj_bias",
            "bias_k",
            "bias_v",
            "add_zero_attn",
            "dropout_p",
            "out_proj_weight",
            "out_proj_bias",
            "training",
            "key_padding_mask",
            "need_weights",
            "attn_mask",
            "use_separate_proj_weight",
            "q_proj_weight",
            "k_proj_weight",
            "v_proj_weight",
            "static_k",
            "static_v",
            "average_attn_weights",
            "is_causal",
        ],
        multi_head,
    ),
];

impl<'g> Recording<'_, 'g> {
    /// A mask of attention as numbers that are added to the scores.
    fn mask(&mut self, any: &Bound<'_, PyAny>) -> Made<Tensor> {
        let dtype = any.getattr("dtype")?;
        let mask = self.tensor(any)?;
        if !dtype.is(self.torch.bool.bind(self.py)) {
            return self.floats(mask);
        }
        // True means that a query reads a key.
        self.map(&self.cast(&mask, crate::lazy::tensor::Kind::Float)?, |x| x.log())
    }

    /// A mask of `nn.MultiheadAttention` as numbers that are added to the scores: true means that a key is not read.
    fn forbidding(&mut self, any: &Bound<'_, PyAny>) -> Made<Tensor> {
        let is_bool = any.getattr("dtype")?.is(self.torch.bool.bind(self.py));
        let mask = self.tensor(any)?;
        let mask = self.cast(&mask, crate::lazy::tensor::Kind::Float)?;
        if is_bool { self.map(&mask, |x| (-x + 1.0).log()) } else { Ok(mask) }
    }

    /// Attention of queries over keys, along the last two axes.
    fn attention(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        mask: Option<&Tensor>,
        causal: bool,
        scale: f32,
    ) -> Made<Tensor> {
        let rank = q.rank();
        if rank < 2 || k.rank() != rank || v.rank() != rank {
            return refuse("attention over tensors of different ranks");
        }
        if mask.is_some() {
            let mut order: smallvec::SmallVec<[usize; 5]> = (0..rank).collect();
            order.swap(rank - 1, rank - 2);
            let scores = self.product(q, &self.permuted(k, &order)?)?;
            let mut scores = self.map(&scores, |x| x * scale)?;
            if let Some(mask) = mask {
                scores =
                    self.pair(Operand::Tensor(scores), Operand::Tensor(mask.clone()), |x, mask| x + mask)?;
            }
            let weights = self.each_along(&scores, rank - 1, |x| x.softmax())?;
            return self.product(&weights, v);
        }
        let [queries, width] = [q.dims[rank - 2], q.dims[rank - 1]];
        let (keys, values) = (k.dims[rank - 2], v.dims[rank - 1]);
        let outer = Dims::from_slice(&q.dims[..rank - 2]);
        if k.dims[..rank - 2] != outer[..]
            || v.dims[..rank - 2] != outer[..]
            || k.dims[rank - 1] != width
            || v.dims[rank - 2] != keys
        {
            return refuse("attention over tensors whose shapes do not fit");
        }
        let count: u32 = outer.iter().product();
        let heads = |x: &Tensor| -> Made<Vec<Vec<Value<'g>>>> {
            let [rows, width] = [x.dims[rank - 2], x.dims[rank - 1]];
            let flat = self.reshaped(x, Dims::from_slice(&[count, rows, width]))?;
            (0..count)
                .map(|head| {
                    let head = self.range(&flat, 0, head, 1)?;
                    let head = self.reshaped(&head, Dims::from_slice(&[rows, width]))?;
                    (0..rows)
                        .map(|row| {
                            let row = self.range(&head, 0, row, 1)?;
                            self.whole_as(&row, &[width])
                        })
                        .collect()
                })
                .collect()
        };
        let (q, k, v) = (heads(q)?, heads(k)?, heads(v)?);
        let mut rows = Vec::with_capacity((count * queries) as usize);
        for ((q, k), v) in q.iter().zip(&k).zip(&v) {
            rows.extend(self.attended(q, k, v, causal, scale)?);
        }

        let rows = rows.into_iter().map(|row| shaped(row, core(&[values])));
        let made = self.made_of_rows(rows.collect(), Dims::from_slice(&[count * queries, values]))?;
        let dims: Dims = outer.iter().copied().chain([queries, values]).collect();
        self.reshaped(&made, dims)
    }

    /// Attention of one head: each query over all keys, or over those up to its own place.
    fn attended(
        &self,
        q: &[Value<'g>],
        k: &[Value<'g>],
        v: &[Value<'g>],
        causal: bool,
        scale: f32,
    ) -> Made<Vec<Value<'g>>> {
        if !causal {
            let (keys, values) = (self.graph.list(k), self.graph.list(v));
            return Ok(q.iter().map(|&query| self.graph.attend(query, keys, values, scale)).collect());
        }
        let (Some(first), Some(first_value)) = (k.first(), v.first()) else {
            return refuse("attention over no keys");
        };
        let (mut keys, mut values) = (self.graph.list([first]), self.graph.list([first_value]));
        let mut rows = Vec::with_capacity(q.len());
        for (number, &query) in q.iter().enumerate() {
            if number > 0
                && let (Some(&key), Some(&value)) = (k.get(number), v.get(number))
            {
                (keys, values) = (keys.append(key), values.append(value));
            }
            rows.push(self.graph.attend(query, keys, values, scale));
        }
        Ok(rows)
    }
}

fn multi_head(r: &mut Recording<'_, '_>, call: &Call<'_, '_>) -> Made<Outcome> {
    let given = [call.need(0)?, call.need(1)?, call.need(2)?];
    let heads = call.int(4)?.unwrap_or(1).max(1) as u32;
    for place in [7, 8, 21, 22] {
        if call.get(place)?.is_some() {
            return refuse(format!("the argument {}", call.names[place]));
        }
    }
    if call.flag(9, false)? {
        return refuse("add_zero_attn");
    }
    let rate = if call.flag(13, true)? { call.number(10, 0.0)? } else { 0.0 };
    let query = r.float_tensor(&given[0])?;
    let (batch, width) = (query.rank() == 3, *query.dims.last().unwrap_or(&1));
    let projected = projections(r, call, &given, batch, width)?;
    let each = width / heads;
    let split = |r: &Recording<'_, '_>, (len, x): &(u32, Tensor)| {
        let parts = (0..heads).map(|head| {
            let part = r.range(x, 1, head * each, each)?;
            r.reshaped(&part, Dims::from_slice(&[1, *len, each]))
        });
        let parts = parts.collect::<Made<Vec<_>>>()?;
        Made::Ok(parts)
    };
    let (q, k, v) = (split(r, &projected[0])?, split(r, &projected[1])?, split(r, &projected[2])?);
    let scale = 1.0 / (each as f32).sqrt();
    let mask = call.get(16)?.map(|mask| r.forbidding(&mask)).transpose()?;
    let padding = call.get(14)?.map(|padding| r.forbidding(&padding)).transpose()?;
    let need_weights = call.flag(15, true)?;
    let (mut outputs, mut weights) = (Vec::new(), Vec::new());
    for head in 0..heads as usize {
        let (q, k, v) = (&q[head], &k[head], &v[head]);
        if rate > 0.0 || need_weights || mask.is_some() || padding.is_some() {
            let scores = r.product(q, &r.permuted(k, &[0, 2, 1])?)?;
            let mut scores = r.map(&scores, |x| x * scale)?;
            let [n, m] = [scores.dims[1], scores.dims[2]];
            if let Some(mask) = &mask {
                // One mask for all heads, or one for each.
                let own = if elements(&mask.dims) == (n * m) as usize {
                    mask.clone()
                } else {
                    r.range(mask, 0, head as u32, 1)?
                };
                let own = r.reshaped(&own, Dims::from_slice(&[1, n, m]))?;
                scores = r.pair(Operand::Tensor(scores), Operand::Tensor(own), |x, mask| x + mask)?;
            }
            if let Some(padding) = &padding {
                let padding = r.reshaped(padding, Dims::from_slice(&[1, 1, m]))?;
                scores = r.pair(Operand::Tensor(scores), Operand::Tensor(padding), |x, mask| x + mask)?;
            }
            let mut own = r.each_along(&scores, 2, |x| x.softmax())?;
            if rate > 0.0 {
                own = r.dropped(&own, rate)?;
            }
            if rate > 0.0 || mask.is_some() || padding.is_some() {
                outputs.push(r.product(&own, v)?);
                weights.push(own);
                continue;
            }
            weights.push(own);
        }
        outputs.push(r.attention(q, k, v, None, false, scale)?);
    }
    let joined = r.joined(&outputs, 2)?;
    let len = projected[0].0;
    let joined = r.reshaped(&joined, Dims::from_slice(&[len, width]))?;
    let weight = r.float_tensor(&call.need(11)?)?;
    let bias = call.get(12)?.map(|bias| r.float_tensor(&bias)).transpose()?;
    let made = r.linear(&joined, &weight, bias.as_ref())?;
    let made = r.reshaped(&made, query.dims.clone())?;
    if !need_weights {
        return Ok(Outcome::Pair(made, None));
    }
    let all = r.joined(&weights, 0)?;
    let all = if call.flag(23, true)? {
        r.fold(&all, 0, true, super::reductions::Fold::Mean)?
    } else {
        let dims: Dims = [1].into_iter().chain(all.dims.iter().copied()).collect();
        r.reshaped(&all, dims)?
    };
    let all = if batch {
        all
    } else {
        let dims = Dims::from_slice(&all.dims[1..]);
        r.reshaped(&all, dims)?
    };
    Ok(Outcome::Pair(made, Some(all)))
}

/// The products of query, key and value with their weights: the number of rows of each, and the rows.
fn projections(
    r: &mut Recording<'_, '_>,
    call: &Call<'_, '_>,
    given: &[Bound<'_, PyAny>],
    batch: bool,
    width: u32,
) -> Made<Vec<(u32, Tensor)>> {
    let bias = call.get(6)?.map(|bias| r.float_tensor(&bias)).transpose()?;
    let (mut wholes, mut projected): (Vec<Tensor>, Vec<(u32, Tensor)>) = (Vec::new(), Vec::new());
    for (place, any) in given.iter().enumerate() {
        let x = r.float_tensor(any)?;
        let &[len, .., own] = &x.dims[..] else { return refuse("attention over scalars") };
        if batch && x.dims[1] != 1 {
            return refuse(format!("a minibatch of {} sequences; call it for each instance", x.dims[1]));
        }
        let x = r.reshaped(&x, Dims::from_slice(&[len, own]))?;
        let (start, end) = (place as u32 * width, width);
        let own_bias = bias.as_ref().map(|bias| r.range(bias, 0, start, end)).transpose()?;
        let y = match call.get(5)? {
            Some(joint) => {
                // Equal inputs have one product with the joint weight.
                let joint = r.float_tensor(&joint)?;
                let whole = match given[..place].iter().position(|other| other.is(any)) {
                    Some(known) => wholes[known].clone(),
                    None => r.linear(&x, &joint, bias.as_ref())?,
                };
                wholes.push(whole.clone());
                r.range(&whole, 1, start, end)?
            }
            None => {
                let weight = r.float_tensor(&call.need(18 + place)?)?;
                r.linear(&x, &weight, own_bias.as_ref())?
            }
        };
        projected.push((len, y));
    }
    Ok(projected)
}
