//! [`TreeRnn`]: the simple recursive network.

use super::{node_ports, node_rows};
use crate::activation::Activation;
use crate::any_cell::AnyCell;
use autobatch_ir::{Graph, Init, ModuleBuilder, Value};

/// The simple recursive network over exactly `N` ordered children:
/// `h = act((x · Wx +) h_1 · W_1 + .. + h_N · W_N (+ b))`.
///
/// Parameters: `name.w: [(input +) N width, width]`, rows as in the formula, and optionally `name.b`.
/// A leaf is any vector of width `width`. For a node with one child, use the child's vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeRnn<const N: usize = 2> {
    cell: AnyCell<1>,
    width: usize,
}

/// Options of a [`TreeRnn`].
#[derive(Clone, Debug, PartialEq)]
pub struct TreeRnnOptions {
    /// The width of a node's own input, if nodes have one.
    pub input: Option<usize>,
    /// Whether there is a bias; it starts at zero.
    pub bias: bool,
    /// The nonlinearity.
    pub activation: Activation,
    /// The initialiser of the weight.
    pub init: Init,
}

impl Default for TreeRnnOptions {
    fn default() -> Self {
        Self { input: None, bias: false, activation: Activation::Tanh, init: Init::Glorot(1.0) }
    }
}

impl<const N: usize> TreeRnn<N> {
    /// `h = tanh([h_1 .. h_N] · W)`
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, width: usize) -> Self {
        Self::with_options(m, name, width, &TreeRnnOptions::default())
    }

    /// A layer with options.
    #[track_caller]
    pub fn with_options(m: &mut ModuleBuilder, name: &str, width: usize, options: &TreeRnnOptions) -> Self {
        const { assert!(N > 0, "a node has at least one child") };
        let &TreeRnnOptions { input, bias, activation, .. } = options;
        activation.check(m, name);
        let w = m.param(&format!("{name}.w"), [node_rows(input, N, width), width], options.init.clone());
        let b = if bias { Some(m.param(&format!("{name}.b"), [width], Init::ZEROS)) } else { None };
        let cell = AnyCell::trace(m, name, &node_ports(input, N, 1, width), |g, ports| {
            [activation.on(g.affine(ports, w, b))]
        });
        Self { cell, width }
    }
}

nodes_with_a_vector! { TreeRnn }
