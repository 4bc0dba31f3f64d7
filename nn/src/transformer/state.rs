//! [`TransformerState`]: where a causal encoder or a decoder stands after some positions.

use super::LastNorm;
use crate::multi_head::whole;
use autobatch_ir::{CellOfAny, Graph, Value};
use std::borrow::Borrow;

/// What the positions so far have left for those to come: keys and values of every layer. A clone is a branch of a search.
#[derive(Clone, Debug)]
pub struct TransformerState<'g> {
    graph: &'g Graph,
    layers: Vec<LayerState<'g>>,
    norm: LastNorm,
    length: usize,
}

impl<'g> TransformerState<'g> {
    #[track_caller]
    pub(super) fn new(
        graph: &'g Graph,
        layers: impl IntoIterator<Item = LayerState<'g>>,
        norm: LastNorm,
    ) -> Self {
        Self { graph, layers: layers.into_iter().collect(), norm, length: 0 }
    }

    /// One more position, having read itself, those before it, and what a decoder remembers.
    #[track_caller]
    #[must_use]
    pub fn push(&mut self, mut x: Value<'g>) -> Value<'g> {
        for layer in &mut self.layers {
            x = layer.push(self.graph, x);
        }
        self.length += 1;
        self.norm.on(self.graph, x)
    }

    #[track_caller]
    pub(super) fn push_all(mut self, xs: impl IntoIterator<Item = impl Borrow<Value<'g>>>) -> Vec<Value<'g>> {
        let mut read = Vec::new();
        for x in xs {
            read.push(self.push(*x.borrow()));
        }
        read
    }

    /// How many positions there are: the place of the next, counted from 0.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether there is none yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// One layer of it.
#[derive(Clone, Debug)]
pub(super) struct LayerState<'g> {
    /// `x -> q k_1 .. k_H v_1 .. v_H`
    enter: CellOfAny,
    /// `x q, lists of k_1 .. k_H v_1 .. v_H, memory -> y`
    leave: CellOfAny,
    columns: Vec<Vec<Value<'g>>>,
    memory: Vec<Value<'g>>,
}

impl<'g> LayerState<'g> {
    #[track_caller]
    pub(super) fn new(enter: CellOfAny, leave: CellOfAny, heads: usize, memory: Vec<Value<'g>>) -> Self {
        Self { enter, leave, columns: vec![Vec::new(); 2 * heads], memory }
    }

    #[track_caller]
    fn push(&mut self, g: &'g Graph, x: Value<'g>) -> Value<'g> {
        let projected = g.call_of_any(self.enter, [x]);
        // A fault gives fewer results, and is kept already.
        self.columns.iter_mut().zip(&projected[1..]).for_each(|(column, &result)| column.push(result));
        let lists = whole(g, &self.columns);
        g.call_of_any(self.leave, [&x, &projected[0]].into_iter().chain(&lists).chain(&self.memory))[0]
    }
}
