//! [`TreeGru`]: a gated recursive unit.

use super::{node_ports, node_rows};
use crate::any_cell::AnyCell;
use autobatch_ir::{Graph, Init, ModuleBuilder, Value};

/// A gated recurrent unit over exactly `N` ordered children. Gates in the order
/// **r_1 .. r_N, z**:
/// ```text
/// [r_1 .. r_N z] = sigmoid((x · Wx +) h_1 · W_1 + .. + h_N · W_N + b)
/// n = tanh((x · Ux +) (r_1 * h_1) · U_1 + .. + (r_N * h_N) · U_N + bn)
/// h = z * (h_1 + .. + h_N) + (1 - z) * n
/// ```
/// Each child has its own reset gate, and one update gate weighs the sum of the children. With
/// `N = 1` and an input this is the original unit, which resets *before* the product.
///
/// Parameters: `name.w: [(input +) N width, (N + 1) width]`, `name.b`, `name.u: [(input +) N width,
/// width]`, `name.bn`; rows as in the formulas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeGru<const N: usize = 2> {
    cell: AnyCell<1>,
    width: usize,
}

/// Options of a [`TreeGru`].
#[derive(Clone, Debug, PartialEq)]
pub struct TreeGruOptions {
    /// The width of a node's own input, if nodes have one.
    pub input: Option<usize>,
    /// The initialiser of the weights; biases start at zero.
    pub init: Init,
}

impl Default for TreeGruOptions {
    fn default() -> Self {
        Self { input: None, init: Init::Glorot(1.0) }
    }
}

impl<const N: usize> TreeGru<N> {
    /// A layer whose nodes have no input of their own.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, width: usize) -> Self {
        Self::with_options(m, name, width, &TreeGruOptions::default())
    }

    /// A layer with options.
    #[track_caller]
    pub fn with_options(m: &mut ModuleBuilder, name: &str, width: usize, options: &TreeGruOptions) -> Self {
        const { assert!(N > 0, "a node has at least one child") };
        let input = options.input;
        let (rows, gates) = (node_rows(input, N, width), width.saturating_mul(N + 1));
        let w = m.param(&format!("{name}.w"), [rows, gates], options.init.clone());
        let b = m.param(&format!("{name}.b"), [gates], Init::ZEROS);
        let u = m.param(&format!("{name}.u"), [rows, width], options.init.clone());
        let bn = m.param(&format!("{name}.bn"), [width], Init::ZEROS);
        let cell = AnyCell::trace(m, name, &node_ports(input, N, 1, width), |g, ports| {
            let gates = g.affine(ports, w, Some(b)).sigmoid().chunks(0, N + 1);
            let (inputs, children) = ports.split_at(ports.len() - N);
            let mut parts = inputs.to_vec();
            let mut sum = children[0];
            for (place, (r, h)) in gates.iter().zip(children).enumerate() {
                parts.push(r * h);
                sum = if place == 0 { sum } else { sum + h };
            }
            let n = g.affine(parts, u, Some(bn)).tanh();
            let z = gates[gates.len() - 1];
            [z * sum + (1.0 - z) * n]
        });
        Self { cell, width }
    }
}

nodes_with_a_vector! { TreeGru }
