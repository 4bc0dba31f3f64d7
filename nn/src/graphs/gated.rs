//! [`GatedGraph`]: rounds of messages between neighbours, and [`GatedSum`], which reads the nodes into one vector.

use super::{Itself, Neighbours};
use crate::any_cell::vector;
use crate::linear::Linear;
use crate::recurrent::Gru;
use autobatch_ir::{Cell, Graph, ModuleBuilder, Value, list};
use std::panic::Location;

/// The gated graph network (Li et al. 2016). In each round every node sums the states of its neighbours and updates its own:
/// ```text
/// h_i' = GRU((h_j1 + .. + h_jk) · W, h_i)        for the neighbours j1 .. jk of node i
/// ```
/// All nodes of all graphs are one batch per round, whatever their degrees. The message of a node without neighbours is zero.
/// All rounds have the same weights. Parameters: the weight `name.message.w: [width, width]`, and those of a [`Gru`] called
/// `name.update`. The weight multiplies the sum and not each neighbour, which differs in rounding only.
///
/// ```
/// # use autobatch_ir::{EmitError, Graph, ModuleBuilder};
/// # use autobatch_nn::{GatedGraph, GatedSum};
/// # fn main() -> Result<(), EmitError> {
/// let mut m = ModuleBuilder::new("m");
/// let layer = GatedGraph::new(&mut m, "graph", 8);
/// let readout = GatedSum::new(&mut m, "readout", 8, 4);
/// let g = Graph::new(&m.build()?);
/// let path = [vec![1], vec![0, 2], vec![1]]; // 0 - 1 - 2
/// let xs: Vec<_> = (0..3).map(|node| g.input(&[node as f32; 8])).collect();
/// let hs = layer.run(&g, &xs, &path, 4);
/// g.output("y", readout.on(&g, &hs, &xs));
/// # g.finish().map(|_| ())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatedGraph {
    round: Cell<2, 1>,
    width: usize,
}

impl GatedGraph {
    /// A layer for states of this width.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, width: usize) -> Self {
        let message = Linear::no_bias(m, &format!("{name}.message"), width, width);
        let update = Gru::new(m, &format!("{name}.update"), width, width);
        let round = m.cell(name, [list(vector(width)), vector(width)], |_, [near, h]| {
            [update.start_from([h]).push(message.on(near.sum())).h()]
        });
        Self { round, width }
    }

    /// The states after some rounds, from one state per node. `neighbours` has the numbers of the neighbours of every node.
    #[track_caller]
    #[must_use]
    pub fn run<'g>(
        &self,
        g: &'g Graph,
        states: &[Value<'g>],
        neighbours: &[impl AsRef<[u32]>],
        rounds: usize,
    ) -> Vec<Value<'g>> {
        let mut states = states.to_vec();
        let Some(neighbours) = Neighbours::new(g, states.len(), neighbours, Itself::AsGiven) else {
            return states;
        };
        let (mut next, element) = (states.clone(), vector(self.width));
        for _ in 0..rounds {
            for (node, (next, &state)) in next.iter_mut().zip(&states).enumerate() {
                let near = neighbours.list(g, element, node, &states);
                [*next] = g.call(self.round, [near, state]);
            }
            std::mem::swap(&mut states, &mut next);
        }
        states
    }

    /// The width of a state.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.width
    }
}

/// The sum of all nodes of a graph, each times a gate (Li et al. 2016). With the final state `h_i` and the input `x_i`:
/// ```text
/// y = sum over i of sigmoid([h_i x_i] · Wg + bg) * tanh([h_i x_i] · Wv + bv)
/// ```
/// Parameters: the [`Linear`] `name`, `[2 width, 2 outputs]`, with the columns of the gates first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatedSum {
    node: Cell<2, 1>,
    outputs: usize,
}

impl GatedSum {
    /// A layer for states and inputs of one width.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, width: usize, outputs: usize) -> Self {
        let both = Linear::new(m, name, width.saturating_mul(2), outputs.saturating_mul(2));
        let node = m.cell(name, [vector(width), vector(width)], |g, [h, x]| {
            let [gate, value] = both.on_parts(g, [h, x]).split();
            [gate.sigmoid() * value.tanh()]
        });
        Self { node, outputs }
    }

    /// The sum over the nodes of a graph; zeros if it has none.
    #[track_caller]
    #[must_use]
    pub fn on<'g>(&self, g: &'g Graph, states: &[Value<'g>], inputs: &[Value<'g>]) -> Value<'g> {
        if states.len() != inputs.len() {
            let message = format!("{} states need as many inputs, found {}", states.len(), inputs.len());
            return g.refuse("gated sum", &message, "give the input of every node", Location::caller());
        }
        let mut nodes = Vec::with_capacity(states.len());
        for (&state, &input) in states.iter().zip(inputs) {
            let [node] = g.call(self.node, [state, input]);
            nodes.push(node);
        }
        g.list_of(vector(self.outputs), nodes).sum()
    }
}
