//! [`ChildSumTreeLstm`]: a tree LSTM over any number of unordered children.

use crate::any_cell::vector;
use crate::embedding::Embedding;
use crate::recurrent::Hoist;
use autobatch_ir::{Cell, Graph, INDEX, Init, IntoArg, ModuleBuilder, Param, Type, Value, list};

/// The child-sum tree LSTM (Tai, Socher & Manning 2015) for dependency trees. Each node has an
/// input and any number of children. Gates in the order **i, o, u**, and one **f** per child:
/// ```text
/// [i o u] = x · W + (h_1 + .. + h_k) · U + b
/// f_k = sigmoid(x · Wf + h_k · Uf + bf)
/// c = sigmoid(i) * tanh(u) + (f_1 * c_1 + .. + f_k * c_k)
/// h = sigmoid(o) * tanh(c)
/// ```
/// An edge cell computes `f_k * c_k`, and sums are over lists, so nodes with any number of children
/// share a batch. Parameters with [`Hoist::No`]: `name.w: [input + width, 3 width]`, `name.b`,
/// `name.wf: [input + width, width]`, `name.bf`. Each product is one chain, `x` first. For a leaf the
/// sums are zeros, and are multiplied like any others.
///
/// With [`Hoist::Yes`] the products of all inputs are computed before the first inner node:
/// `name.wx: [input, 3 width]` and `name.b` give `[i o u]`, `name.wf: [input, width]` and `name.bf`
/// give `f`; `name.u: [width, 3 width]` and `name.uf: [width, width]` give the added terms. A leaf has
/// no forget gate, so its cell contains only the first product. Sums of two chains round differently
/// from one chain, so the two forms differ in bits.
///
/// If nodes are words, a layer [of words](Self::of_words) looks them up inside its cells. This saves
/// a graph node per tree node, and no batch writes word vectors for another to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildSumTreeLstm {
    form: Form,
    input: usize,
    width: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Joint { edge: Cell<3, 1>, node: Cell<3, 2> },
    Hoisted { project: Cell<1, 2>, leaf: Cell<1, 2>, edge: Cell<3, 1>, node: Cell<3, 2> },
}

/// The kind of a node's input.
#[derive(Clone, Copy)]
enum Input {
    Vector(usize),
    Word(Embedding),
}

impl Input {
    const fn width(self) -> usize {
        match self {
            Self::Vector(width) => width,
            Self::Word(words) => words.width(),
        }
    }

    /// The type of the input's port.
    fn port(self) -> Type {
        match self {
            Self::Vector(width) => vector(width),
            Self::Word(_) => INDEX,
        }
    }

    /// The vector for a port of this type.
    #[track_caller]
    fn vector(self, port: Value<'_>) -> Value<'_> {
        match self {
            Self::Vector(_) => port,
            Self::Word(words) => words.row(port),
        }
    }
}

impl ChildSumTreeLstm {
    /// A layer with the inputs' product inside the recursion.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, input: usize, width: usize) -> Self {
        Self::with_options(m, name, input, width, Hoist::No, &Init::Glorot(1.0))
    }

    /// A layer with the given hoisting and initialiser.
    #[track_caller]
    pub fn with_options(
        m: &mut ModuleBuilder,
        name: &str,
        input: usize,
        width: usize,
        hoist: Hoist,
        init: &Init,
    ) -> Self {
        Self::over(m, name, Input::Vector(input), width, hoist, init)
    }

    /// The same layer over words of a table. [`node`](Self::node) takes a word's index instead of its
    /// vector and gives the same bits.
    ///
    /// ```
    /// # use autobatch_ir::{EmitError, Graph, Init, ModuleBuilder};
    /// # use autobatch_nn::{ChildSumTreeLstm, Embedding, Hoist};
    /// # fn main() -> Result<(), EmitError> {
    /// let mut m = ModuleBuilder::new("m");
    /// let words = Embedding::new(&mut m, "words", 100, 8);
    /// let layer = ChildSumTreeLstm::of_words(&mut m, "tree", words, 4, Hoist::Yes, &Init::Glorot(1.0));
    /// let g = Graph::new(&m.build()?);
    /// let [the, small] = [3, 71].map(|word| layer.node(&g, word, &[]));
    /// let [h, _] = layer.node(&g, 17, &[the, small]);
    /// # g.output("h", h);
    /// # g.finish().map(|_| ())
    /// # }
    /// ```
    #[track_caller]
    pub fn of_words(
        m: &mut ModuleBuilder,
        name: &str,
        words: Embedding,
        width: usize,
        hoist: Hoist,
        init: &Init,
    ) -> Self {
        Self::over(m, name, Input::Word(words), width, hoist, init)
    }

    #[track_caller]
    fn over(
        m: &mut ModuleBuilder,
        name: &str,
        input: Input,
        width: usize,
        hoist: Hoist,
        init: &Init,
    ) -> Self {
        let form = match hoist {
            Hoist::No => Form::joint(m, name, input, width, init),
            Hoist::Yes => Form::hoisted(m, name, input, width, init),
        };
        Self { form, input: input.width(), width }
    }

    /// The state `[h, c]` of a node. Its input is a vector or the index of a word; its children are
    /// states `[h, c]`, none for a leaf.
    #[track_caller]
    #[must_use]
    pub fn node<'g>(&self, g: &'g Graph, x: impl IntoArg<'g>, children: &[[Value<'g>; 2]]) -> [Value<'g>; 2] {
        let x = x.into_arg();
        let (edge, node, of_node, of_edge) = match self.form {
            Form::Joint { edge, node } => (edge, node, x, x),
            Form::Hoisted { leaf, .. } if children.is_empty() => return g.call(leaf, [x]),
            Form::Hoisted { project, edge, node, .. } => {
                let [iou, f] = g.call(project, [x]);
                (edge, node, iou.into_arg(), f.into_arg())
            }
        };
        let mut hs = Vec::with_capacity(children.len());
        let mut memories = Vec::with_capacity(children.len());
        for &[h, c] in children {
            let [fc] = g.call(edge, [of_edge, h.into_arg(), c.into_arg()]);
            hs.push(h);
            memories.push(fc);
        }
        let [hs, memories] = [listed(g, &hs, self.width), listed(g, &memories, self.width)];
        g.call(node, [of_node, hs.into_arg(), memories.into_arg()])
    }

    /// The width of a node's input.
    #[must_use]
    pub const fn input(&self) -> usize {
        self.input
    }

    /// The width of `h` and `c`.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.width
    }
}

#[track_caller]
fn listed<'g>(g: &'g Graph, values: &[Value<'g>], width: usize) -> Value<'g> {
    if values.is_empty() { g.empty_list(vector(width)) } else { g.list(values) }
}

impl Form {
    #[track_caller]
    fn joint(m: &mut ModuleBuilder, name: &str, input: Input, width: usize, init: &Init) -> Self {
        let (rows, three) = (input.width().saturating_add(width), width.saturating_mul(3));
        let w = m.param(&format!("{name}.w"), [rows, three], init.clone());
        let b = m.param(&format!("{name}.b"), [three], Init::ZEROS);
        let wf = m.param(&format!("{name}.wf"), [rows, width], init.clone());
        let bf = m.param(&format!("{name}.bf"), [width], Init::ZEROS);
        let (x, v) = (input.port(), vector(width));
        let edge = m.cell(&format!("{name}.edge"), [x, v, v], |g, [x, h, c]| {
            [g.affine([input.vector(x), h], wf, Some(bf)).sigmoid() * c]
        });
        let node = m.cell(name, [x, list(v), list(v)], |g, [x, hs, memories]| {
            finish(g.affine([input.vector(x), hs.sum()], w, Some(b)), Some(memories))
        });
        Self::Joint { edge, node }
    }

    #[track_caller]
    fn hoisted(m: &mut ModuleBuilder, name: &str, input: Input, width: usize, init: &Init) -> Self {
        let (rows, three) = (input.width(), width.saturating_mul(3));
        let wx = m.param(&format!("{name}.wx"), [rows, three], init.clone());
        let b = m.param(&format!("{name}.b"), [three], Init::ZEROS);
        let wf = m.param(&format!("{name}.wf"), [rows, width], init.clone());
        let bf = m.param(&format!("{name}.bf"), [width], Init::ZEROS);
        let u: Param = m.param(&format!("{name}.u"), [width, three], init.clone());
        let uf = m.param(&format!("{name}.uf"), [width, width], init.clone());
        let (gates, v) = (vector(three), vector(width));
        let project = m.cell(&format!("{name}.project"), [input.port()], |_, [x]| {
            let x = input.vector(x);
            [x.affine(wx, Some(b)), x.affine(wf, Some(bf))]
        });
        let leaf = m.cell(&format!("{name}.leaf"), [input.port()], |_, [x]| {
            finish(input.vector(x).affine(wx, Some(b)), None)
        });
        let edge = m.cell(&format!("{name}.edge"), [v, v, v], |_, [f, h, c]| {
            [(f + h.affine(uf, None)).sigmoid() * c]
        });
        let node = m.cell(name, [gates, list(v), list(v)], |_, [iou, hs, memories]| {
            finish(iou + hs.sum().affine(u, None), Some(memories))
        });
        Self::Hoisted { project, leaf, edge, node }
    }
}

/// The state, from the gates i, o, u and the list of the children's gated memories.
#[track_caller]
fn finish<'g>(iou: Value<'g>, memories: Option<Value<'g>>) -> [Value<'g>; 2] {
    let [i, o, u] = iou.split();
    let own = i.sigmoid() * u.tanh();
    let c = match memories {
        Some(memories) => own + memories.sum(),
        None => own,
    };
    [o.sigmoid() * c.tanh(), c]
}
