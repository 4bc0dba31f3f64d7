//! Attention of one query over a list of any length.

use crate::any_cell::vector;
use crate::values::Values;
use autobatch_ir::{Cell, Graph, Init, ModuleBuilder, Value};
use std::borrow::Borrow;
use std::panic::Location;

/// Additive attention (Bahdanau et al. 2015):
/// ```text
/// score_k = tanh(q · Wq + b + key_k · Wk) · v        y = sum_k softmax(score)_k * value_k
/// ```
/// The product of the keys does not depend on the query, so [`keys`](Self::keys) computes it once. Each
/// query needs one product and one edge cell per key. Lists of any length share a batch.
/// Parameters: `name.wq: [query, width]`, `name.b: [width]`, `name.wk: [key, width]`,
/// `name.v: [width, 1]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdditiveAttention {
    query: Cell<1, 1>,
    key: Cell<1, 1>,
    edge: Cell<2, 1>,
}

impl AdditiveAttention {
    /// A layer for queries and keys of these widths; scores are computed in a space of `width`.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, query: usize, key: usize, width: usize) -> Self {
        let init = Init::Glorot(1.0);
        let wq = m.param(&format!("{name}.wq"), [query, width], init.clone());
        let b = m.param(&format!("{name}.b"), [width], Init::ZEROS);
        let wk = m.param(&format!("{name}.wk"), [key, width], init.clone());
        let v = m.param(&format!("{name}.v"), [width, 1], init);
        let query = m.cell(&format!("{name}.query"), [vector(query)], |_, [q]| [q.affine(wq, Some(b))]);
        let key = m.cell(&format!("{name}.key"), [vector(key)], |_, [k]| [k.affine(wk, None)]);
        let ports = [vector(width), vector(width)];
        let edge = m.cell(&format!("{name}.edge"), ports, |_, [q, k]| [(q + k).tanh().affine(v, None)]);
        Self { query, key, edge }
    }

    /// The projected keys, for any number of queries.
    #[track_caller]
    #[must_use]
    pub fn keys<'g>(&self, g: &'g Graph, keys: impl Values<'g>) -> Vec<Value<'g>> {
        let mut projected = Vec::new();
        for key in keys {
            let [key] = g.call(self.key, *key.borrow());
            projected.push(key);
        }
        projected
    }

    /// The score of each key, `f32[1]`, before the softmax.
    #[track_caller]
    #[must_use]
    pub fn scores<'g>(&self, g: &'g Graph, query: Value<'g>, keys: &[Value<'g>]) -> Vec<Value<'g>> {
        let [query] = g.call(self.query, query);
        let mut scores = Vec::with_capacity(keys.len());
        for &key in keys {
            let [score] = g.call(self.edge, [query, key]);
            scores.push(score);
        }
        scores
    }

    /// The attention of the query over values, one per projected key and at least one.
    #[track_caller]
    #[must_use]
    pub fn read<'g>(
        &self,
        g: &'g Graph,
        query: Value<'g>,
        keys: &[Value<'g>],
        values: impl Values<'g>,
    ) -> Value<'g> {
        let Some(values) = list(g, values) else { return no_values(g) };
        let scores = self.scores(g, query, keys);
        g.softmax_sum(g.list(scores), values)
    }
}

/// Scaled dot-product attention: `y = sum_k softmax(scale * q · key_k)_k * value_k`. It has no
/// parameters; project queries, keys and values with a [`Linear`](crate::Linear) each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DotAttention {
    /// The factor of the scores.
    pub scale: f32,
}

impl DotAttention {
    /// The layer with factor `1 / sqrt(width)`, for queries and keys of this width.
    #[must_use]
    pub fn scaled(width: usize) -> Self {
        Self { scale: 1.0 / (width.max(1) as f32).sqrt() }
    }

    /// The attention of the query over values, one per key and at least one.
    #[track_caller]
    #[must_use]
    pub fn read<'g>(
        &self,
        g: &'g Graph,
        query: Value<'g>,
        keys: impl Values<'g>,
        values: impl Values<'g>,
    ) -> Value<'g> {
        let Some(values) = list(g, values) else { return no_values(g) };
        g.attend(query, g.list(keys), values, self.scale)
    }
}

/// The list of the values; `None` if there are none, because their type is then unknown.
#[track_caller]
fn list<'g>(g: &'g Graph, values: impl Values<'g>) -> Option<Value<'g>> {
    let mut values = values.into_iter().peekable();
    values.peek()?;
    Some(g.list(values))
}

#[track_caller]
pub(crate) fn no_values(g: &Graph) -> Value<'_> {
    let help = "if a list may be empty, use zeros instead of the attention over it";
    g.refuse("attention", "there are no values to attend to", help, Location::caller())
}
