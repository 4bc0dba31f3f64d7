//! Cells over trees: what a node makes of its children, and of its own input if the layer has one.
//!
//! A model walks its tree with plain recursion and calls `node` on the way up. `[h, c]` is the
//! state of a node with a memory. Layers over exactly `N` children join the children's parts in
//! one product; layers over any number take lists, and do per-child work in an *edge* cell, so
//! that the number of children never splits a batch.

/// How a layer whose nodes have one vector is called.
macro_rules! nodes_with_a_vector {
    ($layer:ident) => {
        impl<const N: usize> $layer<N> {
            /// A node over these children.
            #[track_caller]
            #[must_use]
            pub fn node<'g>(&self, g: &'g Graph, children: [Value<'g>; N]) -> Value<'g> {
                let [h] = self.cell.call(g, &children);
                h
            }

            /// A node with an input of its own, for layers declared with one.
            #[track_caller]
            #[must_use]
            pub fn node_with<'g>(&self, g: &'g Graph, x: Value<'g>, children: [Value<'g>; N]) -> Value<'g> {
                let args: Vec<Value<'g>> = [x].into_iter().chain(children).collect();
                let [h] = self.cell.call(g, &args);
                h
            }

            /// How wide a node's vector is.
            #[must_use]
            pub const fn width(&self) -> usize {
                self.width
            }
        }
    };
}

mod child_sum;
mod gru;
mod lstm;
mod mv_rnn;
mod rnn;

pub use child_sum::ChildSumTreeLstm;
pub use gru::{TreeGru, TreeGruOptions};
pub use lstm::{TreeLstm, TreeLstmOptions};
pub use mv_rnn::MvRnn;
pub use rnn::{TreeRnn, TreeRnnOptions};

use crate::any_cell::vector;
use autobatch_ir::Type;

/// The ports of a node's cell: its input if it has one, then `states` vectors of each child.
fn node_ports(input: Option<usize>, children: usize, states: usize, width: usize) -> Vec<Type> {
    let count = children.saturating_mul(states).min(crate::any_cell::MOST_PORTS + 1);
    input.map(vector).into_iter().chain(std::iter::repeat_n(vector(width), count)).collect()
}

/// The rows of a weight that meets a node's input and one vector of each child.
fn node_rows(input: Option<usize>, children: usize, width: usize) -> usize {
    input.unwrap_or(0).saturating_add(children.saturating_mul(width))
}
