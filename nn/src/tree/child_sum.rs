//! [`ChildSumTreeLstm`]: a tree LSTM over any number of unordered children.

use crate::any_cell::vector;
use crate::recurrent::Hoist;
use autobatch_ir::{Cell, Graph, Init, ModuleBuilder, Param, Value, list};

/// The child-sum tree LSTM (Tai, Socher & Manning 2015) for dependency trees: each node has an
/// input and any number of children. Gates in the order **i, o, u**, and one **f** for each child:
/// ```text
/// [i o u] = x · W + (h_1 + .. + h_k) · U + b
/// f_k = sigmoid(x · Wf + h_k · Uf + bf)
/// c = sigmoid(i) * tanh(u) + (f_1 * c_1 + .. + f_k * c_k)
/// h = sigmoid(o) * tanh(c)
/// ```
/// `f_k * c_k` is the work of an edge cell and sums are over lists, so nodes with any numbers of
/// children share their batches. Parameters with [`Hoist::No`]: `name.w: [input + width, 3 width]`,
/// `name.b`, `name.wf: [input + width, width]`, `name.bf`; each product is one chain, `x` first. A
/// leaf's sums are zeros, which are multiplied all the same.
///
/// With [`Hoist::Yes`] one product of all nodes' inputs is taken before the first leaf:
/// `name.wx: [input, 4 width]` and `name.b: [4 width]` give `[i o u f]`, `name.u: [width, 3 width]`
/// and `name.uf: [width, width]` what is added. Leaves then need no product at all and have a cell
/// of their own. Since sums of two chains round other than one chain, the two forms differ in bits.
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

impl ChildSumTreeLstm {
    /// With the inputs' product inside the recursion.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, input: usize, width: usize) -> Self {
        Self::with(m, name, input, width, Hoist::No, &Init::Glorot(1.0))
    }

    /// With the inputs' product where asked, and chosen first weights.
    #[track_caller]
    pub fn with(
        m: &mut ModuleBuilder,
        name: &str,
        input: usize,
        width: usize,
        hoist: Hoist,
        init: &Init,
    ) -> Self {
        let form = match hoist {
            Hoist::No => Form::joint(m, name, input, width, init),
            Hoist::Yes => Form::hoisted(m, name, input, width, init),
        };
        Self { form, input, width }
    }

    /// A node with this input over children `[h, c]`, none for a leaf: the state `[h, c]`.
    #[track_caller]
    #[must_use]
    pub fn node<'g>(&self, g: &'g Graph, x: Value<'g>, children: &[[Value<'g>; 2]]) -> [Value<'g>; 2] {
        let (edge, node, of_node, of_edge) = match self.form {
            Form::Joint { edge, node } => (edge, node, x, x),
            Form::Hoisted { project, leaf, edge, node } => {
                let [iou, f] = g.call(project, x);
                if children.is_empty() {
                    return g.call(leaf, iou);
                }
                (edge, node, iou, f)
            }
        };
        let mut hs = Vec::with_capacity(children.len());
        let mut kept = Vec::with_capacity(children.len());
        for &[h, c] in children {
            let [fc] = g.call(edge, [of_edge, h, c]);
            hs.push(h);
            kept.push(fc);
        }
        let [hs, kept] = [listed(g, &hs, self.width), listed(g, &kept, self.width)];
        g.call(node, [of_node, hs, kept])
    }

    /// How wide a node's input is.
    #[must_use]
    pub const fn input(&self) -> usize {
        self.input
    }

    /// How wide `h` and `c` are.
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
    fn joint(m: &mut ModuleBuilder, name: &str, input: usize, width: usize, init: &Init) -> Self {
        let (rows, three) = (input.saturating_add(width), width.saturating_mul(3));
        let w = m.param(&format!("{name}.w"), [rows, three], init.clone());
        let b = m.param(&format!("{name}.b"), [three], Init::ZEROS);
        let wf = m.param(&format!("{name}.wf"), [rows, width], init.clone());
        let bf = m.param(&format!("{name}.bf"), [width], Init::ZEROS);
        let (x, v) = (vector(input), vector(width));
        let edge = m.cell(&format!("{name}.edge"), [x, v, v], |g, [x, h, c]| {
            [g.affine([x, h], wf, Some(bf)).sigmoid() * c]
        });
        let node = m.cell(name, [x, list(v), list(v)], |g, [x, hs, kept]| {
            finish(g.affine([x, hs.sum()], w, Some(b)), Some(kept))
        });
        Self::Joint { edge, node }
    }

    #[track_caller]
    fn hoisted(m: &mut ModuleBuilder, name: &str, input: usize, width: usize, init: &Init) -> Self {
        let [three, four] = [3, 4].map(|gates| width.saturating_mul(gates));
        let wx = m.param(&format!("{name}.wx"), [input, four], init.clone());
        let b = m.param(&format!("{name}.b"), [four], Init::ZEROS);
        let u: Param = m.param(&format!("{name}.u"), [width, three], init.clone());
        let uf = m.param(&format!("{name}.uf"), [width, width], init.clone());
        let (gates, v) = (vector(three), vector(width));
        let project = m.cell(&format!("{name}.project"), [vector(input)], |_, [x]| {
            let all = x.affine(wx, Some(b));
            [all.slice(0..three), all.slice(three..four)]
        });
        let leaf = m.cell(&format!("{name}.leaf"), [gates], |_, [iou]| finish(iou, None));
        let edge = m.cell(&format!("{name}.edge"), [v, v, v], |_, [f, h, c]| {
            [(f + h.affine(uf, None)).sigmoid() * c]
        });
        let node = m.cell(name, [gates, list(v), list(v)], |_, [iou, hs, kept]| {
            finish(iou + hs.sum().affine(u, None), Some(kept))
        });
        Self::Hoisted { project, leaf, edge, node }
    }
}

/// The state from the gates i, o, u and the list of what the children's memories leave.
#[track_caller]
fn finish<'g>(iou: Value<'g>, kept: Option<Value<'g>>) -> [Value<'g>; 2] {
    let [i, o, u] = iou.split();
    let own = i.sigmoid() * u.tanh();
    let c = match kept {
        Some(kept) => own + kept.sum(),
        None => own,
    };
    [o.sigmoid() * c.tanh(), c]
}
