//! [`GraphAttention`]: every node attends to its neighbours and to itself.

use super::{Itself, Neighbours};
use crate::activation::Activation;
use crate::any_cell::vector;
use autobatch_ir::{Cell, Graph, Init, ModuleBuilder, Value, list};
use std::panic::Location;

/// Graph attention (Veličković et al. 2018). With `z_i = x_i · W`, and `z_ih` the part of head `h`:
/// ```text
/// s_ij = leaky_relu(query_h · z_ih + key_h · z_jh)        y_ih = activation(sum over j of softmax_j(s_ij) * z_jh + b_h)
/// ```
/// over the neighbours `j` of node `i` and the node itself. The heads stand side by side in `y`. [`GraphAttentionOptions`] choose
/// the activation, none by default, and the slope of negative scores, 0.2. All nodes of all graphs are two
/// batches, whatever their degrees: one projects, the other attends. No row belongs to an edge, forward or in reverse.
///
/// Parameters: `name.w: [inputs, width]`, and `name.query`, `name.key` and `name.b`, each `[width]`, grouped by head.
///
/// ```
/// # use autobatch_ir::{EmitError, Graph, ModuleBuilder};
/// # use autobatch_nn::GraphAttention;
/// # fn main() -> Result<(), EmitError> {
/// let mut m = ModuleBuilder::new("m");
/// let layer = GraphAttention::new(&mut m, "graph", 8, 16, 4);
/// let g = Graph::new(&m.build()?);
/// let path = [vec![1], vec![0, 2], vec![1]]; // 0 - 1 - 2
/// let xs: Vec<_> = (0..3).map(|node| g.input(&[node as f32; 8])).collect();
/// for y in layer.run(&g, &xs, &path) {
///     assert_eq!(y.shape().dims(), [16]);
/// }
/// # g.check()
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphAttention {
    /// `x -> query, key, z`
    project: Cell<1, 3>,
    /// `query, list of keys, list of z -> y`
    read: Cell<3, 1>,
    width: usize,
    heads: usize,
}

/// Options of a [`GraphAttention`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GraphAttentionOptions {
    /// The slope of negative scores.
    pub slope: f32,
    /// The function of the results.
    pub activation: Activation,
}

impl Default for GraphAttentionOptions {
    fn default() -> Self {
        Self { slope: 0.2, activation: Activation::Identity }
    }
}

impl GraphAttention {
    /// A layer for inputs of width `inputs`; `heads` must divide the width of its results.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, inputs: usize, width: usize, heads: usize) -> Self {
        Self::with_options(m, name, [inputs, width], heads, GraphAttentionOptions::default())
    }

    /// A layer with options, for these widths of inputs and results.
    #[track_caller]
    pub fn with_options(
        m: &mut ModuleBuilder,
        name: &str,
        [inputs, width]: [usize; 2],
        heads: usize,
        options: GraphAttentionOptions,
    ) -> Self {
        let heads = match heads > 0 && width.is_multiple_of(heads) {
            true => heads,
            false => {
                let message =
                    format!("expected a number of heads that divides the width {width}, found {heads}");
                m.fail(&format!("layer {name}"), message, None, Location::caller());
                1
            }
        };
        let weight = m.param(&format!("{name}.w"), [inputs, width], Init::Glorot(1.0));
        let scale = (6.0 / (1 + width / heads.max(1)) as f32).sqrt();
        let of_heads = |m: &mut ModuleBuilder, part: &str| {
            m.param(&format!("{name}.{part}"), [width], Init::Uniform(scale))
        };
        let (query, key) = (of_heads(m, "query"), of_heads(m, "key"));
        let bias = m.param(&format!("{name}.b"), [width], Init::ZEROS);
        let part = width / heads.max(1);
        let project = m.cell(&format!("{name}.project"), [vector(inputs)], |g, [x]| {
            let z = x.affine(weight, None);
            let dot = |with| (z * g.param(with)).reshape([heads, part]).sum_rows();
            [dot(query), dot(key), z]
        });
        let ports = [vector(heads), list(vector(heads)), list(vector(width))];
        let read = m.cell(name, ports, |g, [query, keys, values]| {
            let read = g.graph_attend(query, keys, values, options.slope) + g.param(bias);
            [options.activation.on(read)]
        });
        Self { project, read, width, heads }
    }

    /// The result of every node. `neighbours` has the numbers of the neighbours of every node; a node attends to itself whether or
    /// not it is among them.
    #[track_caller]
    #[must_use]
    pub fn run<'g>(
        &self,
        g: &'g Graph,
        nodes: &[Value<'g>],
        neighbours: &[impl AsRef<[u32]>],
    ) -> Vec<Value<'g>> {
        let Some(neighbours) = Neighbours::new(g, nodes.len(), neighbours, Itself::First) else {
            return nodes.to_vec();
        };
        let [mut queries, mut keys, mut values] = [0; 3].map(|_| Vec::with_capacity(nodes.len()));
        for &node in nodes {
            let [query, key, z] = g.call(self.project, node);
            queries.push(query);
            keys.push(key);
            values.push(z);
        }
        let mut read = Vec::with_capacity(nodes.len());
        let [key, value] = [self.heads, self.width].map(vector);
        for (node, query) in queries.into_iter().enumerate() {
            let keys = neighbours.list(g, key, node, &keys);
            let values = neighbours.list(g, value, node, &values);
            let [y] = g.call(self.read, [query, keys, values]);
            read.push(y);
        }
        read
    }

    /// The number of heads.
    #[must_use]
    pub const fn heads(&self) -> usize {
        self.heads
    }

    /// The width of a result.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.width
    }
}
