//! The plan of the self-test: it executes every template. `AUTOBATCH_BLESS=1` writes it.

use crate::common::{executor, skipped, training_with};
use autobatch_ir::graph::{Graph, GraphData, Value};
use autobatch_ir::id::ValueId;
use autobatch_ir::module::{Init, ModuleBuilder, Table};
use autobatch_ir::plan::{Plan, Verified};
use autobatch_ir::types::f32;
use autobatch_runtime_wgpu::compile::{Compiled, Target, compile};
use autobatch_runtime_wgpu::module::{Program, Tile, WgradTile};
use autobatch_runtime_wgpu::{Options, self_test};
use autobatch_shaders::{Access, TEMPLATES};
use std::collections::BTreeSet;
use std::path::Path;

const FILE: &str = "../runtime-wgpu/src/self_test/every_template.plan";

/// Numbers for inputs. The plan does not contain them.
fn numbers(count: usize) -> Vec<f32> {
    vec![0.5; count]
}

/// Products of every tile, load width and number of gates, and every other template, with a loss that reads all of them.
fn graph() -> (GraphData, ValueId, Vec<ValueId>) {
    let mut m = ModuleBuilder::new("every-template");
    let init = || Init::Uniform(0.5);
    let tall = [m.param("tall", [24, 20], init()), m.param("tall_bias", [20], init())];
    let stored = m.param("transposed", [20, 24], init());
    let gates = [m.param("gates", [24, 80], init()), m.param("gate_bias", [80], init())];
    let (few, odd) = (m.param("few", [5, 3], init()), m.param("odd", [9, 18], init()));
    let (wide, block) = (m.param("wide", [4, 8192], init()), m.param("block", [512, 512], init()));
    let words = m.table("words", [7, 12], init());
    let dropped = m.cell("dropped", [f32([5])], |_, [x]| [x.tanh().dropout(0.25)]);
    let cells = [
        m.cell("tall", [f32([24])], |g, [x]| [g.affine([x], tall[0], Some(tall[1])).tanh()]),
        m.cell("transposed", [f32([24])], |g, [x]| [g.affine_transposed([x], stored, None).sigmoid()]),
        m.cell("gates", [f32([24])], |g, [x]| {
            let [a, b, c, d] = g.affine([x], gates[0], Some(gates[1])).split();
            [a.sigmoid() * b.tanh() + c.gelu() * d.exp()]
        }),
        m.cell("few", [f32([5])], |g, [x]| {
            let [y] = g.call(dropped, [x]);
            [g.affine([y], few, None)]
        }),
        m.cell("odd", [f32([9])], |g, [x]| [g.affine([x], odd, None).softmax().square()]),
        m.cell("wide", [f32([4])], |g, [x]| [g.affine([x], wide, None).tanh()]),
        m.cell("block", [f32([512])], |g, [x]| [g.affine([x], block, None).relu()]),
    ];
    let sizes = [(24, 1030), (24, 70), (24, 20), (5, 2), (9, 3), (4, 2), (512, 2)];
    let g = Graph::new(&m.build().expect("sound"));
    let (mut terms, mut wanted) = (Vec::new(), Vec::new());
    for instance in 0..1030 {
        g.instance(instance);
        for (cell, (width, _)) in cells.iter().zip(sizes).filter(|(_, (_, instances))| instance < *instances)
        {
            let [y] = g.call(*cell, [g.input(&numbers(width))]);
            terms.push(y.sum());
        }
        if instance < 2 {
            let table: Vec<Value<'_>> = (0..5).map(|_| words.lookup(&g, 3)).collect();
            terms.extend(others(&g, words, &table, &mut wanted));
        }
    }
    g.common();
    let total = g.list(terms).sum();
    let (total, wanted) =
        (total.id().expect("sound"), wanted.iter().filter_map(|value| value.id()).collect());
    (g.finish().expect("sound"), total, wanted)
}

/// Ops without parameters, on five rows of a table. Some results are no floats and are outputs of the plan.
fn others<'g>(g: &'g Graph, words: Table, rows: &[Value<'g>], wanted: &mut Vec<Value<'g>>) -> Vec<Value<'g>> {
    let (x, y) = (rows[0], rows[1] * rows[2]);
    let matrix = g.stack([x, y, rows[3]]);
    let (values, scores) = (g.list(rows.iter().copied()), g.list(rows.iter().map(|row| row.sum())));
    let [largest, places] = matrix.top_k(4);
    let target = y.softmax();
    wanted.extend([places, x.argmax(), g.one_hot(g.index(2), 5), matrix.min_rows(), x.logsumexp()]);
    vec![
        matrix.matmul(matrix.t()).sum(),
        x.outer(y).square().mean(),
        matrix.pick(g.index(1)).norm(),
        largest.sum(),
        g.one_hot(3, 12).dot(x),
        x.dropout(0.5).sum(),
        x.layer_norm(1e-5).square().sum() + x.log_softmax().max() + matrix.max_rows().sum() + x.min(),
        y.label_loss(words.as_param(), 2),
        x.cross_entropy(2) + x.hinge(3, 1.0) + x.cross_entropy_with(target) + x.log_softmax().kl_div(target),
        x.mse(y) + x.bce(target) + matrix.mean_rows().sum() + matrix.sum_rows().softmax().norm(),
        values.sum().sum() + values.mean().square().sum() + values.max().sum(),
        g.weighted_sum(scores, values).sum() + g.softmax_sum(scores, values).square().sum(),
        g.softmax_sum(values, values).sum(),
        g.attend(y, values, values, 0.3).square().sum()
            + g.graph_attend(y, values, values, 0.3).square().sum(),
        matrix.slice_axis(1, 2..7).transpose([1, 0]).square().sum(),
    ]
}

fn plan() -> Verified<Plan> {
    let (graph, total, wanted) = graph();
    training_with(&graph, &[wanted, vec![total]].concat(), &[(total, 1.0)])
}

#[test]
fn the_plan_of_the_self_test_executes_every_template_and_tile() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let text = plan().to_text();
    if std::env::var_os("AUTOBATCH_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, &text).expect("a file to write to");
    }
    let stored = std::fs::read_to_string(&path).expect("the file is part of the runtime");
    assert!(stored == text, "the plan of the self-test changed; AUTOBATCH_BLESS=1 writes it anew");
    let Compiled { programs, .. } = compile(&plan(), Target::MINIMUM).expect("fits");
    let executed: BTreeSet<&str> = programs.iter().map(|program| program.template().name).collect();
    let all = TEMPLATES.iter().filter(|template| template.access == Access::Plan);
    let missing: Vec<&str> =
        all.map(|template| template.name).filter(|name| !executed.contains(name)).collect();
    assert!(missing.is_empty(), "not executed: {missing:?}");
    let tiles: BTreeSet<Tile> = programs
        .iter()
        .filter_map(|program| match &**program {
            Program::Products(products) => Some(products.tile),
            _ => None,
        })
        .collect();
    assert_eq!(tiles.into_iter().collect::<Vec<_>>(), Tile::ALL);
    let tiles: BTreeSet<WgradTile> = programs
        .iter()
        .filter_map(|program| match &**program {
            Program::Wgrad(tile) => Some(*tile),
            _ => None,
        })
        .collect();
    assert_eq!(tiles.into_iter().collect::<Vec<_>>(), WgradTile::ALL);
}

#[test]
fn the_self_test_finds_this_device_healthy() {
    if executor(Options::default()).is_none() {
        return skipped("there is no adapter");
    }
    let found = self_test(Options::default()).expect("executes");
    assert!(found.is_healthy() && found.same_when_repeated, "{found:?}");
    assert!(found.compared > 15 && found.same_bits <= found.compared, "{found:?}");
    assert_eq!(found.same_bits == found.compared, found.max_error == 0.0, "{found:?}");
}
