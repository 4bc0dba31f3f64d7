//! Derivatives of folds over lists.

use super::{Addend, Link, Partial, Partials, none};
use crate::reference::error::Checked;
use crate::reference::frame::Call;
use crate::reference::ops::{PICKED, at, place_of};
use autobatch_ir::graph::ListFold;
use autobatch_ir::numeric::{Real, graph_attention, list, row};
use std::sync::Arc;

/// The rule of a fold of the values of a list.
pub(super) fn fold<T: Real>(fold: ListFold, call: &Call<'_, T>, dy: &[T]) -> Checked<Partials<T>> {
    let values = call.rows(0)?;
    let share: Vec<Vec<T>> = match fold {
        ListFold::Sum => values.iter().map(|_| dy.to_vec()).collect(),
        ListFold::Mean => {
            let count = T::from_f64(values.len() as f64);
            values.iter().map(|_| dy.iter().map(|dy| dy.div(count)).collect()).collect()
        }
        ListFold::Max => {
            let mut winners = vec![0; dy.len()];
            list::argmax(&values, &mut winners);
            let taken = |i: usize, e: usize| if winners[e] as usize == i { dy[e] } else { T::ZERO };
            (0..values.len()).map(|i| (0..dy.len()).map(|e| taken(i, e)).collect()).collect()
        }
        ListFold::LogSumExp => {
            let (mut tops, mut weights) = (vec![T::ZERO; dy.len()], vec![T::ZERO; values.len() * dy.len()]);
            list::max(&values, &mut tops);
            list::softmax(&values, &mut weights);
            list::logsumexp_gradient(&tops, dy, &mut weights);
            weights.chunks_exact(dy.len()).map(<[T]>::to_vec).collect()
        }
        ListFold::ArgMax => return none(call),
    };
    Ok(vec![Partial::many(share)].into())
}

/// The rule of a pick: `dy` to the value at the index, zeros to the others.
pub(super) fn pick<T: Real>(call: &Call<'_, T>, dy: &[T]) -> Checked<Partials<T>> {
    let length = call.items(PICKED)?.len();
    let mut rows = vec![vec![T::ZERO; dy.len()]; length];
    if length > 0 || !call.clamps {
        rows[place_of(call, 0, 0, length)?] = dy.to_vec();
    }
    Ok(vec![Partial::None, Partial::many(rows)].into())
}

/// `dc_i = dot(dy, v_i)` for a coefficient of one element, else `dy * v_i`.
fn to_coefficients<T: Real>(width: usize, values: &[&[T]], dy: &[T]) -> Vec<Vec<T>> {
    let of = |value: &&[T]| -> Vec<T> {
        if width == 1 {
            return vec![row::dot(dy, value)];
        }
        dy.iter().zip(*value).map(|(dy, &v)| dy.mul(v)).collect()
    };
    values.iter().map(of).collect()
}

/// `dv_i = c_i * dy`.
fn to_values<T: Real>(coefficients: &[&[T]], dy: &[T]) -> Vec<Vec<T>> {
    let of = |c: &&[T]| -> Vec<T> { dy.iter().enumerate().map(|(e, &dy)| at(c, e).mul(dy)).collect() };
    coefficients.iter().map(of).collect()
}

/// The softmax of scores over a list, one row per score.
fn weights_of<T: Real>(scores: &[&[T]], width: usize) -> Vec<Vec<T>> {
    let mut weights = vec![T::ZERO; scores.len() * width];
    list::softmax(scores, &mut weights);
    weights.chunks_exact(width).map(<[T]>::to_vec).collect()
}

/// `ds_i = w_i * (dw_i - t)` with `t = chain over i from +0 of w_i * dw_i`, element by element.
fn through_softmax<T: Real>(weights: &[Vec<T>], dw: &[Vec<T>]) -> Vec<Vec<T>> {
    let width = weights.first().map_or(0, Vec::len);
    let mut common = vec![T::ZERO; width];
    for (w, dw) in weights.iter().zip(dw) {
        for (t, (w, &dw)) in common.iter_mut().zip(w.iter().zip(dw)) {
            *t = w.fma(dw, *t);
        }
    }
    let of = |(w, dw): (&Vec<T>, &Vec<T>)| -> Vec<T> {
        (0..width).map(|e| w[e].mul(dw[e].sub(common[e]))).collect()
    };
    weights.iter().zip(dw).map(of).collect()
}

fn slices<T>(rows: &[Vec<T>]) -> Vec<&[T]> {
    rows.iter().map(Vec::as_slice).collect()
}

/// The rule of a weighted sum, with or without a softmax of its scores.
pub(super) fn weighted_sum<T: Real>(softmax: bool, call: &Call<'_, T>, dy: &[T]) -> Checked<Partials<T>> {
    let (scores, values) = (call.rows(0)?, call.rows(1)?);
    let width = call.types[0].shape.elements();
    let dc = to_coefficients(width, &values, dy);
    let partials = if softmax {
        let weights = weights_of(&scores, width);
        [through_softmax(&weights, &dc), to_values(&slices(&weights), dy)]
    } else {
        [dc, to_values(&scores, dy)]
    };
    Ok(partials.map(Partial::many).into_iter().collect::<Vec<_>>().into())
}

/// The operands of an attention that are lists.
const KEYS: usize = 1;
const VALUES: usize = 2;

pub(super) fn attend<T: Real>(scale: T, call: &Call<'_, T>, dy: &Arc<[T]>) -> Checked<Partials<T>> {
    let (query, keys, values) = (call.floats(0)?, call.rows(KEYS)?, call.rows(VALUES)?);
    let (mut weights, mut slopes) = (Vec::new(), Vec::new());
    list::attention_slopes(query, [&keys, &values], dy, scale, [&mut weights, &mut slopes]);
    let mut dq = vec![T::ZERO; query.len()];
    let columns: Vec<&[T]> = slopes.chunks(1).collect();
    list::weighted_sum(&columns, &keys, &mut dq);
    let links = |factors: &[T], row: &Arc<[T]>, partner: usize| {
        let link = |&factor: &T| link([factor].into(), row, partner);
        Partial::Many(factors.iter().map(link).collect())
    };
    Ok(vec![Partial::one(dq), links(&slopes, query, VALUES), links(&weights, dy, KEYS)].into())
}

fn link<T>(factors: Arc<[T]>, row: &Arc<[T]>, partner: usize) -> Vec<Addend<T>> {
    vec![Addend::Link(Link { factors, row: Arc::clone(row), partner })]
}

pub(super) fn graph_attend<T: Real>(slope: T, call: &Call<'_, T>, dy: &Arc<[T]>) -> Checked<Partials<T>> {
    let (query, keys, values) = (call.floats(0)?, call.rows(KEYS)?, call.rows(VALUES)?);
    let (mut weights, mut slopes) = (Vec::new(), Vec::new());
    graph_attention::slopes(query, [&keys, &values], dy, slope, [&mut weights, &mut slopes]);
    let mut dq = vec![T::ZERO; query.len()];
    graph_attention::query_gradient(&slopes, &mut dq);
    let heads = query.len();
    let one: Arc<[T]> = [T::ONE].into();
    let of_key = |slopes: &[T]| link(Arc::clone(&one), &slopes.into(), VALUES);
    let of_value = |weights: &[T]| link(weights.into(), dy, KEYS);
    let of_keys = Partial::Many(slopes.chunks_exact(heads).map(of_key).collect());
    let of_values = Partial::Many(weights.chunks_exact(heads).map(of_value).collect());
    Ok(vec![Partial::one(dq), of_keys, of_values].into())
}
