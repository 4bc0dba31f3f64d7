//! Graphs of typical models: nested cells, lists, trees, attention, lattices.

use super::{Random, check_gradients, emit, losses, mixed};
use autobatch_ir::{Cell, Graph, INDEX, Init, Module, ModuleBuilder, Value, Weights, f32, list};
use autobatch_oracle::reference::{Evaluation, Noise};
use std::sync::Arc;

struct Tree {
    leaf: Cell<1, 2>,
    node: Cell<4, 2>,
}

fn tree_lstm(width: usize) -> (Arc<Module>, Tree) {
    let mut m = ModuleBuilder::new("tree");
    let embed = m.table("embed", [10, width], Init::Uniform(0.8));
    let w = m.param("w", [2 * width, 5 * width], Init::Glorot(1.0));
    let b = m.param("b", [5 * width], Init::Normal(0.1));
    let leaf = m.cell("leaf", [INDEX], |g, [word]| [embed.row(word), g.zeros([width])]);
    let node = m.cell("node", [f32([width]); 4], |g, [lh, lc, rh, rc]| {
        let [a, i, l, r, o] = g.affine([lh, rh], w, Some(b)).split();
        let c = a.tanh() * i.sigmoid() + l.sigmoid() * lc + r.sigmoid() * rc;
        [o.sigmoid() * c.tanh(), c]
    });
    (m.build().unwrap(), Tree { leaf, node })
}

fn grow<'g>(g: &'g Graph, model: &Tree, leaves: usize, random: &mut Random) -> [Value<'g>; 2] {
    if leaves == 1 {
        return g.call(model.leaf, (random.bits() % 10) as u32);
    }
    let left = 1 + random.bits() as usize % (leaves - 1);
    let [lh, lc] = grow(g, model, left, random);
    let [rh, rc] = grow(g, model, leaves - left, random);
    g.call(model.node, [lh, lc, rh, rc])
}

#[test]
fn a_tree_lstm_agrees_with_finite_differences() {
    let (module, model) = tree_lstm(3);
    let weights = Weights::init(&module, 2);
    let mut random = Random(11);
    let graph = emit(&module, |g| {
        for instance in 0..3 {
            g.instance(instance);
            let [h, _] = grow(g, &model, 5, &mut random);
            g.loss(&format!("loss{instance}"), h.cross_entropy(1));
        }
    });
    check_gradients("tree", &graph, &weights, Noise::Off);
}

#[test]
fn lists_ports_attention_and_gates_inside_nested_cells_agree_with_finite_differences() {
    let mut m = ModuleBuilder::new("lattice");
    let w = m.param("w", [4, 4], Init::Glorot(1.0));
    let u = m.param("u", [4, 1], Init::Glorot(1.0));
    let embed = m.table("embed", [5, 4], Init::Normal(0.7));
    let edge = m.cell("edge", [f32([4])], |_, [x]| [x.affine(w, None).tanh()]);
    let score = m.cell("score", [f32([4])], |_, [x]| [x.affine(u, None)]);
    let gather = m.cell("gather", [list(f32([4])), f32([4])], |g, [values, query]| {
        let [query] = g.call(edge, query);
        [values.sum() * 0.5 + values.max() + g.attend(query, values, values, 0.5), values.mean()]
    });
    let gates = m.cell("gates", [list(f32([1])), list(f32([4])), INDEX], |g, [scores, values, word]| {
        let [a, b] = g.call(gather, [values, embed.row(word)]);
        [g.softmax_sum(scores, values) + a.dropout(0.3) * b, g.weighted_sum(scores, values)]
    });
    let module = m.build().unwrap();
    let weights = Weights::init(&module, 5);
    let mut random = Random(12);
    let graph = emit(&module, |g| {
        g.instance(0);
        let mut values: Vec<Value<'_>> = (0..2).map(|_| g.input(&random.row(4, -1.0, 1.0))).collect();
        for word in 0..3 {
            let scores = g.list(values.iter().map(|&value| g.call(score, value)[0]));
            // The first value occurs twice.
            let doubled = g.list(values.iter().chain(&values[..1]));
            let [a, _] = g.call(gather, [doubled, values[0]]);
            let [b, c] = g.call(gates, (scores, g.list(&values), word));
            values.push(((a + b * c) * 0.3).tanh());
        }
        let none = g.empty_list(f32([4]));
        let [empty, _] = g.call(gather, [none, values[0]]);
        g.loss("loss", mixed(values[4], &mut random) + mixed(empty, &mut random));
    });
    check_gradients("lattice", &graph, &weights, Noise::On { seed: 1, step: 2 });
}

#[test]
fn a_cell_equals_its_inlined_body_bit_for_bit() {
    let (module, model) = tree_lstm(8);
    let (w, b) = (module.param("w").unwrap(), module.param("b").unwrap());
    let weights = Weights::init(&module, 3);
    let mut random = Random(4);
    let rows: Vec<Vec<f32>> = (0..4).map(|_| random.row(8, -1.0, 1.0)).collect();
    let graph = |inline: bool| {
        emit(&module, |g| {
            let [lh, lc, rh, rc] = std::array::from_fn(|i| g.input(&rows[i]));
            let [h, _] = if inline {
                let [a, i, l, r, o] = g.affine([lh, rh], w, Some(b)).split();
                let c = a.tanh() * i.sigmoid() + l.sigmoid() * lc + r.sigmoid() * rc;
                [o.sigmoid() * c.tanh(), c]
            } else {
                g.call(model.node, [lh, lc, rh, rc])
            };
            g.loss("loss", h.cross_entropy(1));
        })
    };
    let bits = |graph: autobatch_ir::GraphData| {
        let evaluation = Evaluation::<f32>::new(&graph, &weights, Noise::Off).unwrap();
        let run = evaluation.forward().unwrap();
        let gradients = evaluation.reverse(&run, &losses(&graph)).unwrap();
        let inputs = (0..4).flat_map(|i| gradients.value(autobatch_ir::ValueId::new(i)).unwrap().to_vec());
        let params = [w, b].into_iter().flat_map(|p| gradients.param(p.id().unwrap()).unwrap().to_vec());
        let loss = run.floats(graph.outputs[0].value).unwrap().to_vec();
        loss.into_iter().chain(inputs).chain(params).map(f32::to_bits).collect::<Vec<u32>>()
    };
    assert_eq!(bits(graph(true)), bits(graph(false)));
}
