//! [`TransformerState`]: the state of a causal encoder or a decoder after some positions.

use super::LastNorm;
use crate::multi_head::append_to_each;
use crate::values::Values;
use autobatch_ir::graph::ValueKey;
use autobatch_ir::{CellOfAny, Graph, Value};
use std::borrow::Borrow;

/// The keys and values of every layer for all positions so far. A clone is a branch of a search.
#[derive(Clone, Debug)]
pub struct TransformerState<'g> {
    graph: &'g Graph,
    layers: Vec<LayerState<Value<'g>>>,
    norm: LastNorm,
    length: usize,
}

/// A [`TransformerState`] without the lifetime of its graph, for programs that cannot hold a `Value`.
#[derive(Clone, Debug)]
pub struct DetachedState {
    layers: Vec<LayerState<Option<ValueKey>>>,
    norm: LastNorm,
    length: usize,
}

impl DetachedState {
    /// The state in its graph; `None` after a fault, and in another graph.
    #[track_caller]
    #[must_use]
    pub fn attach<'g>(&self, graph: &'g Graph) -> Option<TransformerState<'g>> {
        let layers = self.layers.iter().map(|layer| layer.map(|key| graph.value(key?)));
        let layers = layers.collect::<Option<_>>()?;
        Some(TransformerState { graph, layers, norm: self.norm, length: self.length })
    }

    /// The number of positions so far.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no positions yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl<'g> TransformerState<'g> {
    #[track_caller]
    pub(super) fn new(
        graph: &'g Graph,
        layers: impl IntoIterator<Item = LayerState<Value<'g>>>,
        norm: LastNorm,
    ) -> Self {
        Self { graph, layers: layers.into_iter().collect(), norm, length: 0 }
    }

    /// The output at one more position, given itself, earlier positions, and a decoder's memory.
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
    pub(super) fn push_all(mut self, xs: impl Values<'g>) -> Vec<Value<'g>> {
        let mut read = Vec::new();
        for x in xs {
            read.push(self.push(*x.borrow()));
        }
        read
    }

    /// The state without the lifetime of its graph.
    #[must_use]
    pub fn detach(&self) -> DetachedState {
        let layers = self.layers.iter().filter_map(|layer| layer.map(|value| Some(value.key())));
        DetachedState { layers: layers.collect(), norm: self.norm, length: self.length }
    }

    /// The number of positions so far, which is the index of the next one.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no positions yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// The state of one layer.
#[derive(Clone, Debug)]
pub(super) struct LayerState<V> {
    /// `x -> q k_1 .. k_H v_1 .. v_H`
    enter: CellOfAny,
    /// `x q, lists of k_1 .. k_H v_1 .. v_H, memory -> y`
    leave: CellOfAny,
    lists: Vec<V>,
    memory: Vec<V>,
}

impl<V: Copy> LayerState<V> {
    /// The state with other values in place of its own.
    fn map<W>(&self, mut other: impl FnMut(V) -> Option<W>) -> Option<LayerState<W>> {
        let mut all = |values: &[V]| values.iter().map(|&value| other(value)).collect::<Option<_>>();
        let (lists, memory) = (all(&self.lists)?, all(&self.memory)?);
        Some(LayerState { enter: self.enter, leave: self.leave, lists, memory })
    }
}

impl<'g> LayerState<Value<'g>> {
    #[track_caller]
    pub(super) const fn new(enter: CellOfAny, leave: CellOfAny, memory: Vec<Value<'g>>) -> Self {
        Self { enter, leave, lists: Vec::new(), memory }
    }

    #[track_caller]
    fn push(&mut self, g: &'g Graph, x: Value<'g>) -> Value<'g> {
        let projected = g.call_any(self.enter, [x]);
        append_to_each(g, &mut self.lists, projected[1..].iter());
        g.call_any(self.leave, [&x, &projected[0]].into_iter().chain(&self.lists).chain(&self.memory))[0]
    }
}
