//! The module of a recipe: its parameters, and the cells that its steps call.

use super::act::{Act, CellName};
use super::own::Own;
use super::recipe::Recipe;
use autobatch_ir::module::ParamKind;
use autobatch_ir::{Cell, DType, INDEX, Init, Module, ModuleBuilder, Param, Table, f32, list};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The number of classes of labelled losses.
pub(super) const CLASSES: usize = 3;
/// The minimum number of table rows. A table has one row per vector element, so element indices are row indices.
pub(super) const ROWS: usize = 9;
/// The largest magnitude of a random parameter.
pub(super) const WEIGHT: f64 = 0.5;

/// Handles of a recipe's module. Cells that no step calls are not declared.
#[derive(Debug)]
pub(super) struct Kit {
    pub(super) width: usize,
    pub(super) table: Table,
    pub(super) square: Param,
    pub(super) tall: Param,
    pub(super) other: Param,
    pub(super) bias: Param,
    pub(super) half: Param,
    pub(super) out: Param,
    pub(super) out_bias: Param,
    pub(super) leaf: Option<Cell<1, 2>>,
    pub(super) node: Option<Cell<4, 2>>,
    pub(super) forward: Option<Cell<2, 1>>,
    pub(super) backward: Option<Cell<2, 1>>,
    pub(super) fold: Option<Cell<2, 1>>,
    pub(super) attend: Option<Cell<2, 1>>,
    pub(super) both: Option<Cell<2, 1>>,
    pub(super) drop: Option<Cell<1, 1>>,
    pub(super) twice: Option<Cell<1, 1>>,
    pub(super) deep: Option<Cell<2, 1>>,
    pub(super) head: Option<Cell<2, 1>>,
    pub(super) free: Vec<Own>,
}

impl Kit {
    pub(super) fn new(recipe: &Recipe) -> (Arc<Module>, Self) {
        let mut m = ModuleBuilder::new("random");
        let h = recipe.width as usize;
        let mut kit = parameters(&mut m, h);
        let called = called(recipe);
        kit.plain_cells(&mut m, &called);
        kit.nested_cells(&mut m, &called);
        for body in &recipe.cells {
            let own = Own::declare(&mut m, &kit, recipe, body);
            kit.free.push(own);
        }
        (m.build().expect("recipes make valid modules"), kit)
    }

    fn plain_cells(&mut self, m: &mut ModuleBuilder, called: &BTreeSet<CellName>) {
        let vector = f32([self.width]);
        let Self { width: h, table, square, tall, other, bias, out, out_bias, .. } = *self;
        let wants = |name| called.contains(&name);
        self.leaf =
            wants(CellName::Leaf).then(|| m.cell("leaf", [INDEX], |g, [w]| [table.row(w), g.zeros([h])]));
        self.node = wants(CellName::Node).then(|| {
            m.cell("node", [vector; 4], |g, [lh, lc, rh, rc]| {
                let i = g.affine([lh, rh], tall, Some(bias)).sigmoid();
                let f = g.affine([lh, rh], other, Some(bias)).sigmoid();
                let c = i * (lc + rc).tanh() + f * lc;
                [(c * i).tanh(), c * 0.5]
            })
        });
        let step = |m: &mut ModuleBuilder, name: &str, weight: Param| {
            m.cell(name, [vector; 2], |g, [x, h]| [g.affine([x, h], weight, Some(bias)).tanh()])
        };
        self.forward = wants(CellName::Forward).then(|| step(m, "forward", tall));
        self.backward = wants(CellName::Backward).then(|| step(m, "backward", other));
        self.fold = wants(CellName::Fold).then(|| {
            m.cell("fold", [vector, list(vector)], |_, [x, xs]| {
                [(xs.sum() + x).affine(square, Some(bias)).tanh()]
            })
        });
        self.attend = wants(CellName::Attend).then(|| {
            m.cell("attend", [vector, list(vector)], |g, [x, xs]| {
                [g.attend(x, xs, xs, 0.5) + g.graph_attend(x, xs, xs, 0.25) * 0.5 + x * 0.5]
            })
        });
        self.both = wants(CellName::Both).then(|| {
            m.cell("both", [list(vector); 2], |g, [xs, ys]| [g.softmax_sum(xs, ys) - xs.mean() * 0.5])
        });
        self.head = wants(CellName::Head).then(|| {
            m.cell("head", [vector, INDEX], |_, [x, label]| {
                [x.affine(out, Some(out_bias)).cross_entropy(label)]
            })
        });
    }

    fn nested_cells(&mut self, m: &mut ModuleBuilder, called: &BTreeSet<CellName>) {
        let vector = f32([self.width]);
        let square = self.square;
        self.drop = called
            .contains(&CellName::Drop)
            .then(|| m.cell("drop", [vector], |_, [x]| [x.dropout(0.25).tanh()]));
        if let (true, Some(drop)) = (called.contains(&CellName::Twice), self.drop) {
            self.twice = Some(m.cell("twice", [vector], |g, [x]| {
                let [y] = g.call(drop, x);
                let [z] = g.call(drop, y.affine(square, None));
                [y + z]
            }));
        }
        if let (true, Some(forward), Some(node)) = (called.contains(&CellName::Deep), self.forward, self.node)
        {
            self.deep = Some(m.cell("deep", [vector; 2], |g, [x, y]| {
                let [z] = g.call(forward, [x, y]);
                let [h, c] = g.call(node, [z, x, z, y]);
                [h + c * 0.25]
            }));
        }
    }
}

fn parameters(m: &mut ModuleBuilder, h: usize) -> Kit {
    let init = || Init::Uniform(WEIGHT as f32);
    let half = if h.is_multiple_of(2) { DType::F16 } else { DType::BF16 };
    Kit {
        width: h,
        table: m.table("table", [ROWS.max(h), h], init()),
        square: m.param("square", [h, h], init()),
        tall: m.param("tall", [2 * h, h], init()),
        other: m.param("other", [2 * h, h], init()),
        bias: m.param("bias", [h], init()),
        half: m.param_stored_as("half", ParamKind::Param, half, [h, h], init()),
        out: m.param("out", [h, CLASSES], init()),
        out_bias: m.param("out_bias", [CLASSES], init()),
        leaf: None,
        node: None,
        forward: None,
        backward: None,
        fold: None,
        attend: None,
        both: None,
        drop: None,
        twice: None,
        deep: None,
        head: None,
        free: Vec::new(),
    }
}

/// Returns the cells that steps call, directly or through other cells.
fn called(recipe: &Recipe) -> BTreeSet<CellName> {
    let direct = recipe.steps().filter_map(|step| match step.act {
        Act::Call(name) => Some(name),
        _ => None,
    });
    let mut called: BTreeSet<CellName> = direct.collect();
    if recipe.instances.iter().any(|instance| instance.loss.is_some_and(|form| form % 8 == 1)) {
        called.insert(CellName::Head);
    }
    if called.contains(&CellName::Twice) {
        called.insert(CellName::Drop);
    }
    if called.contains(&CellName::Deep) {
        called.extend([CellName::Forward, CellName::Node]);
    }
    called
}
