//! Cells over trees: functions of a node's children and, if the layer has one, its own input.
//!
//! A model traverses its tree with plain recursion and calls `node` after the children. `[h, c]` is
//! the state of a node with a memory. Layers over exactly `N` children join the children's parts in
//! one product. Layers over any number of children take lists and do per-child work in an *edge*
//! cell, so nodes with different numbers of children share a batch.

/// Implements the calls of a layer whose nodes have one vector.
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

            /// As [`node`](Self::node) with an input, for layers declared with one.
            #[track_caller]
            #[must_use]
            pub fn node_with<'g>(&self, g: &'g Graph, x: Value<'g>, children: [Value<'g>; N]) -> Value<'g> {
                let args: Vec<Value<'g>> = [x].into_iter().chain(children).collect();
                let [h] = self.cell.call(g, &args);
                h
            }

            /// The width of a node's vector.
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

/// The ports of a node's cell: its input, if any, then `states` vectors per child.
fn node_ports(input: Option<usize>, children: usize, states: usize, width: usize) -> Vec<Type> {
    let count = children.saturating_mul(states).min(crate::any_cell::MAX_PORTS + 1);
    input.map(vector).into_iter().chain(std::iter::repeat_n(vector(width), count)).collect()
}

/// The number of rows of a weight for a node's input and one vector per child.
fn node_rows(input: Option<usize>, children: usize, width: usize) -> usize {
    input.unwrap_or(0).saturating_add(children.saturating_mul(width))
}
