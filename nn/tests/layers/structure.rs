//! Declarations and emitted structure of layers: cells, signatures, nodes.

use crate::lab::{Lab, inputs, row, rows};
use autobatch_ir::graph::Callee;
use autobatch_ir::{Graph, Module, ModuleBuilder};
use autobatch_nn::*;
use std::collections::BTreeSet;
use std::sync::Arc;

fn module<L>(declare: impl FnOnce(&mut ModuleBuilder) -> L) -> (Arc<Module>, L) {
    let mut m = ModuleBuilder::new("m");
    let layer = declare(&mut m);
    (m.build().unwrap(), layer)
}

/// The number of distinct signatures of cell calls in a graph.
fn called(g: Graph) -> usize {
    let data = g.finish().unwrap();
    let nodes = data.arena.nodes().iter().map(|node| node.sig);
    let cells = nodes.filter(|&sig| matches!(data.sigs.get(sig).callee, Callee::Cell(_)));
    cells.collect::<BTreeSet<_>>().len()
}

#[test]
fn both_directions_and_equal_layers_share_one_cell() {
    let (module, _) = module(|m| {
        (Lstm::new(m, "alone", 4, 4), BiLstm::new(m, "both", 4, 4), Stacked::<Lstm, 3>::new(m, "high", 4, 4))
    });
    assert_eq!(module.cells.len(), 1);
    let parts = &module.cells[0].body.arena;
    assert_eq!(module.cells[0].body.ports, 3);
    let products = parts.ids().filter(|&id| {
        matches!(module.sigs.get(parts.node(id).sig).callee, Callee::Op(autobatch_ir::Op::Affine { .. }))
    });
    let operands: Vec<usize> = products.map(|id| parts.operands(id).len()).collect();
    assert_eq!(operands, [2], "x and h must be parts of one product");
}

#[test]
fn hoisted_layers_of_any_input_share_their_step() {
    let options = LstmOptions { hoist: Hoist::Yes, ..LstmOptions::default() };
    let (module, _) = module(|m| Stacked::<Lstm, 3>::with_options(m, "high", 7, 4, &options, 0.0));
    let names: Vec<&str> = module.cells.iter().map(|cell| cell.name.as_str()).collect();
    assert_eq!(names, ["high.0.project", "high.0", "high.1.project"]);
}

#[test]
fn layers_declare_the_documented_parameters() {
    let (module, _) = module(|m| {
        let peepholes = LstmOptions { peepholes: true, layer_norm: true, ..LstmOptions::default() };
        let _ =
            (Rnn::new(m, "r", 3, 4), Lstm::with_options(m, "l", 3, 4, &peepholes), Gru::new(m, "g", 3, 4));
        let _ = (TreeLstm::<2>::new(m, "t", 4), TreeGru::<2>::new(m, "tg", 4), TreeRnn::<2>::new(m, "tr", 4));
        let _ = (ChildSumTreeLstm::new(m, "cs", 3, 4), MvRnn::new(m, "mv", 4));
        let _ = LatticeLstm::new(m, "la", 3, 2, 4);
        AdditiveAttention::new(m, "at", 3, 2, 4)
    });
    let declared: Vec<String> =
        module.params.iter().map(|decl| format!("{} {}", decl.name, decl.ty.shape)).collect();
    let expected = "r.w [7,4], r.b [4], l.wx [3,16], l.wh [4,16], l.gx [16], l.gh [16], l.b [16], \
        l.pi [4], l.pf [4], l.po [4], l.c.gain [4], l.c.bias [4], \
        g.wx [3,12], g.wh [4,12], g.b [12], g.bn [4], t.w [8,20], t.b [20], \
        tg.w [8,12], tg.b [12], tg.u [8,4], tg.bn [4], tr.w [8,4], \
        cs.w [7,12], cs.b [12], cs.wf [7,4], cs.bf [4], mv.w [8,4], mv.b [4], mv.wm [8,4], \
        la.char.w [7,12], la.char.b [12], la.word.w [6,12], la.word.b [12], la.link.w [7,4], la.link.b [4], \
        at.wq [3,4], at.b [4], at.wk [2,4], at.v [4,1]";
    assert_eq!(declared.join(", "), expected);
}

#[test]
fn nodes_with_any_number_of_children_share_batches() {
    for (hoist, cells) in [(Hoist::No, 2), (Hoist::Yes, 4)] {
        let (module, layer) =
            module(|m| ChildSumTreeLstm::with_options(m, "t", 3, 4, hoist, &autobatch_ir::Init::ZEROS));
        let g = Graph::new(&module);
        g.instance(0);
        let x = g.input(&row(1, 3));
        let leaf = layer.node(&g, x, &[]);
        let one = layer.node(&g, x, &[leaf]);
        let _ = layer.node(&g, x, &[leaf, one, leaf]);
        assert_eq!(called(g), cells);
    }
}

#[test]
fn a_lattice_with_any_words_has_four_signatures() {
    let (module, layer) = module(|m| LatticeLstm::new(m, "l", 3, 2, 4));
    let g = Graph::new(&module);
    g.instance(0);
    let chars = inputs(&g, &rows(1, 6, 3));
    let x = g.input(&row(1, 2));
    let words = [(0, 2), (1, 2), (0, 5), (3, 5), (2, 4)].map(|(first, last)| LatticeWord { first, last, x });
    let _ = layer.run(&g, &chars, &words);
    assert_eq!(called(g), 4);
}

#[test]
fn a_step_is_one_node() {
    let (module, layer) = module(|m| Lstm::new(m, "l", 3, 4));
    let g = Graph::new(&module);
    g.instance(0);
    let xs = inputs(&g, &rows(1, 10, 3));
    let _ = layer.run(&g, &xs);
    assert_eq!(g.data().arena.len(), 10 + 1 + 10, "inputs, the zeros of the initial state, and steps");
}

#[test]
fn an_mlp_is_one_node_and_words_of_all_lengths_share_a_batch() {
    let (lab, (mlp, cnn)) = Lab::with(|m| {
        (Mlp::new(m, "f", &[3, 4, 2], Activation::Tanh), CharCnn::new(m, "c", 3, 3, 4, Activation::Relu))
    });
    let g = Graph::new(&lab.module);
    g.instance(0);
    let xs = inputs(&g, &rows(1, 5, 3));
    let before = g.data().arena.len();
    let _ = mlp.on(xs[0]);
    assert_eq!(g.data().arena.len(), before + 1);
    let _ = (cnn.on(&g, &xs[..2]), cnn.on(&g, &xs));
    assert_eq!(called(g), 2);
}

#[test]
fn handles_are_copy_and_cross_threads() {
    fn check<T: Copy + Send + Sync + 'static>() {}
    fn check_stack<T: Clone + Send + Sync + 'static>() {}
    check_stack::<TransformerEncoder>();
    check_stack::<TransformerDecoder>();
    check::<Linear>();
    check::<Embedding>();
    check::<Mlp>();
    check::<LayerNorm>();
    check::<Rnn>();
    check::<Gru>();
    check::<Stacked<BiLstm, 2>>();
    check::<TreeLstm<2>>();
    check::<ChildSumTreeLstm>();
    check::<TreeGru<2>>();
    check::<TreeRnn<2>>();
    check::<MvRnn>();
    check::<LatticeLstm>();
    check::<AdditiveAttention>();
    check::<CharCnn>();
    check::<MultiHeadAttention>();
    check::<Positions>();
    check::<RmsNorm>();
}
