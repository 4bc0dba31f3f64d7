//! Models of plain ops need as few batches as the same models with cells.

use autobatch_ir::graph::Graph;
use autobatch_ir::hash::avalanche;
use autobatch_ir::id::ValueId;
use autobatch_ir::module::{Cell, Init, Module, ModuleBuilder, Param, Table};
use autobatch_ir::plan::{Mode, Plan};
use autobatch_ir::{INDEX, Value, f32};
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Planner, Request, Selection};
use autobatch_testing::random::Rng;
use std::sync::Arc;

const WIDTH: usize = 8;

#[derive(Clone, Copy)]
struct Params {
    embed: Table,
    gates: Param,
    bias: Param,
    out: Param,
}

struct Model {
    params: Params,
    leaf: Cell<1, 2>,
    node: Cell<4, 2>,
    step: Cell<3, 2>,
    score: Cell<2, 1>,
}

/// The state of a node from the states of its children.
fn node<'g>(g: &'g Graph, p: Params, [lh, lc, rh, rc]: [Value<'g>; 4]) -> [Value<'g>; 2] {
    let [a, i, l, r, o] = g.affine([lh, rh], p.gates, Some(p.bias)).split();
    let c = a.tanh() * i.sigmoid() + l.sigmoid() * lc + r.sigmoid() * rc;
    [o.sigmoid() * c.tanh(), c]
}

/// The next state of a chain: a node whose left child is the word.
fn step<'g>(g: &'g Graph, p: Params, [x, h, c]: [Value<'g>; 3]) -> [Value<'g>; 2] {
    let [a, i, f, _, o] = g.affine([x, h], p.gates, Some(p.bias)).split();
    let c = a.tanh() * i.sigmoid() + f.sigmoid() * c;
    [o.sigmoid() * c.tanh(), c]
}

fn model() -> (Arc<Module>, Model) {
    let mut m = ModuleBuilder::new("both");
    let params = Params {
        embed: m.table("embed", [50, WIDTH], Init::Uniform(0.1)),
        gates: m.param("gates", [2 * WIDTH, 5 * WIDTH], Init::Glorot(1.0)),
        bias: m.param("bias", [5 * WIDTH], Init::ZEROS),
        out: m.param("out", [WIDTH, 5], Init::Glorot(1.0)),
    };
    let leaf = m.cell("leaf", [INDEX], |g, [word]| [params.embed.row(word), g.zeros([WIDTH])]);
    let node = m.cell("node", [f32([WIDTH]); 4], |g, ports| node(g, params, ports));
    let step = m.cell("step", [f32([WIDTH]); 3], |g, ports| step(g, params, ports));
    let score = m.cell("score", [f32([WIDTH]), INDEX], |_, [h, label]| {
        [h.affine(params.out, None).cross_entropy(label)]
    });
    (m.build().expect("the model is well typed"), Model { params, leaf, node, step, score })
}

fn tree<'g>(g: &'g Graph, model: &Model, cells: bool, leaves: u32, rng: &mut Rng) -> [Value<'g>; 2] {
    if leaves == 1 {
        let word = rng.below(50);
        return if cells {
            g.call(model.leaf, word)
        } else {
            [model.params.embed.lookup(g, word), g.zeros([WIDTH])]
        };
    }
    let left = 1 + rng.below(leaves - 1);
    let [lh, lc] = tree(g, model, cells, left, rng);
    let [rh, rc] = tree(g, model, cells, leaves - left, rng);
    let children = [lh, lc, rh, rc];
    if cells { g.call(model.node, children) } else { node(g, model.params, children) }
}

/// The sum of the losses of every step, or of the last step only.
fn chain<'g>(
    g: &'g Graph,
    model: &Model,
    cells: bool,
    length: u32,
    tagged: bool,
    rng: &mut Rng,
) -> Value<'g> {
    let (mut h, mut c) = (g.zeros([WIDTH]), g.zeros([WIDTH]));
    let mut losses = Vec::new();
    for at in 0..length {
        let word = rng.below(50);
        let x = model.params.embed.lookup(g, word);
        [h, c] = if cells { g.call(model.step, [x, h, c]) } else { step(g, model.params, [x, h, c]) };
        if tagged || at + 1 == length {
            losses.push(score(g, model, cells, h, word % 5));
        }
    }
    g.list(&losses).sum()
}

fn score<'g>(g: &'g Graph, model: &Model, cells: bool, h: Value<'g>, label: u32) -> Value<'g> {
    if cells {
        let [loss] = g.call(model.score, (h, label));
        return loss;
    }
    h.affine(model.params.out, None).cross_entropy(label)
}

/// Plans 20 random instances, with cells or as ops.
fn plan(
    module: &Arc<Module>,
    selection: &Selection,
    emit: impl for<'g> Fn(&'g Graph, &mut Rng) -> Value<'g>,
) -> (Plan, Vec<String>) {
    let g = Graph::new(module);
    let mut rng = Rng::new(avalanche(5));
    let mut wanted: Vec<ValueId> = Vec::new();
    for key in 0..20 {
        g.instance(key);
        wanted.extend(emit(&g, &mut rng).id());
    }
    let data = g.finish().expect("the model is well typed");
    let policy: Policy = "ratio".parse().expect("a policy");
    let mut planner = Planner::new(policy.load().expect("needs no file"));
    let request = Request { wanted: &wanted, ..Request::default() };
    let planned = planner.optimize_and_plan(&data, &request, selection).expect("a plan");
    (planned.plan, planned.optimized.log)
}

fn tree_loss<'g>(g: &'g Graph, model: &Model, cells: bool, rng: &mut Rng) -> Value<'g> {
    let leaves = 2 + rng.below(12);
    let [h, _] = tree(g, model, cells, leaves, rng);
    score(g, model, cells, h, leaves % 5)
}

#[test]
fn trees_of_ops_need_as_few_batches_as_trees_of_cells() {
    let (module, model) = model();
    let (cells, _) = plan(&module, &Selection::none(), |g, rng| tree_loss(g, &model, true, rng));
    let (ops, _) = plan(&module, &Selection::none(), |g, rng| tree_loss(g, &model, false, rng));
    let default = Selection::of_mode(Mode::Infer);
    let (outlined, log) = plan(&module, &default, |g, rng| tree_loss(g, &model, false, rng));
    let batches = |plan: &Plan| plan.certificate.batches;
    assert_eq!(batches(&outlined), batches(&cells), "{log:?}");
    assert!(batches(&ops) > 5 * batches(&cells), "plain ops: {}", batches(&ops));
    // Words, nodes and scores have one kernel each. The outlined score equals the cell of the model. The ports of the
    // outlined node have another order than those of the cell of the model.
    let names = |plan: &Plan| -> Vec<String> {
        let mut names: Vec<String> =
            plan.kernels.iter().filter(|kernel| !kernel.source).map(|kernel| kernel.name.clone()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&outlined), ["@run.affine", "@score", "lookup"], "{log:?}");
    assert_eq!(names(&cells), ["@leaf", "@node", "@score"]);
}

#[test]
fn chains_of_ops_need_as_few_batches_as_chains_of_cells() {
    let (module, model) = model();
    for tagged in [false, true] {
        let chains = |cells: bool, selection: &Selection| {
            plan(&module, selection, |g, rng| {
                let length = 1 + rng.below(9);
                chain(g, &model, cells, length, tagged, rng)
            })
        };
        let (cells, _) = chains(true, &Selection::none());
        let (outlined, log) = chains(false, &Selection::of_mode(Mode::Infer));
        let (cells, outlined) = (cells.certificate.batches, outlined.certificate.batches);
        // The lookup of a step may move into the cell of the step.
        assert!(
            outlined <= cells && outlined + 1 >= cells,
            "{tagged}: {outlined} batches, {cells} with cells: {log:?}"
        );
    }
}

#[test]
fn equal_graphs_give_equal_plans_after_any_other_plan() {
    let (module, model) = model();
    let default = Selection::of_mode(Mode::Infer);
    let trees = || plan(&module, &default, |g, rng| tree_loss(g, &model, false, rng)).0;
    let first = trees();
    plan(&module, &default, |g, rng| chain(g, &model, false, 4, true, rng));
    assert_eq!(first, trees());
}
