//! [`TreeLstm`]: a tree LSTM over `N` ordered children.

use super::{node_ports, node_rows};
use crate::any_cell::AnyCell;
use autobatch_ir::{Graph, Init, ModuleBuilder, Value};

/// A tree LSTM over exactly `N` ordered children (Tai, Socher & Manning 2015, with the gates of
/// SPINN). Gates in the order **a, i, f_1 .. f_N, o**:
/// ```text
/// [a i f_1 .. f_N o] = (x · Wx +) h_1 · W_1 + .. + h_N · W_N + b
/// c = tanh(a) * sigmoid(i) + sigmoid(f_1) * c_1 + .. + sigmoid(f_N) * c_N
/// h = sigmoid(o) * tanh(c)
/// ```
/// Parameters: `name.w: [(input +) N width, (3 + N) width]`, whose rows are those of `Wx`, then of
/// each `W_k`, and `name.b`. The sum of products is one chain in this order. States are `[h, c]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeLstm<const N: usize = 2> {
    cell: AnyCell<2>,
    width: usize,
}

/// Options of a [`TreeLstm`].
#[derive(Clone, Debug, PartialEq)]
pub struct TreeLstmOptions {
    /// The width of a node's own input, if nodes have one.
    pub input: Option<usize>,
    /// The initial bias of the forget gates; other biases start at zero.
    pub forget_bias: f32,
    /// The initialiser of the weight.
    pub init: Init,
}

impl Default for TreeLstmOptions {
    fn default() -> Self {
        Self { input: None, forget_bias: 0.0, init: Init::Glorot(1.0) }
    }
}

impl<const N: usize> TreeLstm<N> {
    /// A layer whose nodes have no input of their own.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, width: usize) -> Self {
        Self::with_options(m, name, width, &TreeLstmOptions::default())
    }

    /// A layer with options.
    #[track_caller]
    pub fn with_options(m: &mut ModuleBuilder, name: &str, width: usize, options: &TreeLstmOptions) -> Self {
        const { assert!(N > 0, "a node has at least one child") };
        let &TreeLstmOptions { input, forget_bias, .. } = options;
        let (rows, gates) = (node_rows(input, N, width), width.saturating_mul(3 + N));
        let w = m.param(&format!("{name}.w"), [rows, gates], options.init.clone());
        let bias = if forget_bias == 0.0 || w.id().is_none() {
            Init::ZEROS
        } else {
            let forget = 2 * width..(2 + N) * width;
            Init::Values((0..gates).map(|k| if forget.contains(&k) { forget_bias } else { 0.0 }).collect())
        };
        let b = m.param(&format!("{name}.b"), [gates], bias);
        let cell = AnyCell::trace(m, name, &node_ports(input, N, 2, width), |g, ports| {
            let (inputs, children) = ports.split_at(ports.len() - 2 * N);
            let parts = inputs.iter().chain(children.iter().step_by(2));
            let gates = g.affine(parts, w, Some(b)).chunks(0, 3 + N);
            let &[a, i, .., o] = gates.as_slice() else { return [children[0]; 2] };
            let mut c = a.tanh() * i.sigmoid();
            for (f, child) in gates[2..].iter().zip(children.chunks(2)) {
                c = c + f.sigmoid() * child[1];
            }
            [o.sigmoid() * c.tanh(), c]
        });
        Self { cell, width }
    }

    /// The state `[h, c]` of a node over children `[h, c]`.
    #[track_caller]
    #[must_use]
    pub fn node<'g>(&self, g: &'g Graph, children: [[Value<'g>; 2]; N]) -> [Value<'g>; 2] {
        self.cell.call(g, children.as_flattened())
    }

    /// As [`node`](Self::node) with an input, for layers declared with one.
    #[track_caller]
    #[must_use]
    pub fn node_with<'g>(&self, g: &'g Graph, x: Value<'g>, children: [[Value<'g>; 2]; N]) -> [Value<'g>; 2] {
        let args: Vec<Value<'g>> = [x].into_iter().chain(children.into_iter().flatten()).collect();
        self.cell.call(g, &args)
    }

    /// A leaf with a given vector: `[x, 0]`. With `x` of zeros it represents a missing child.
    #[track_caller]
    #[must_use]
    pub fn leaf<'g>(&self, x: Value<'g>) -> [Value<'g>; 2] {
        [x, x.graph().zeros([self.width])]
    }

    /// The width of `h` and `c`.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.width
    }
}
