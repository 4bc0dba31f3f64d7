//! A graph that several threads emit equals the graph that one thread emits.

use crate::model::{CLASSES, Model, data};
use autobatch::prelude::*;
use autobatch_ir::graph::GraphData;

/// Emits every kind of construct: instances, common nodes, bindings, outputs, marks, noise, lists.
fn emit(g: &Graph, model: &Model, items: &[(usize, &(crate::model::Tree, u32))]) {
    for &(number, item) in items {
        g.instance(number as u64);
        let logits = model.logits(g, &item.0);
        let scaled = logits * g.input(&[0.5, 1.0, number as f32]);
        g.output(&format!("scaled {number}"), scaled);
        if number % 3 == 0 {
            let _ = scaled.alone();
        }
        if number % 5 == 0 {
            let width = 2 + number % 2;
            g.output(&format!("mask {number}"), g.fill([width], 1.0).dropout(0.5));
        }
        g.loss(&format!("loss {number}"), scaled.cross_entropy(item.1));
    }
}

fn whole(model: &Model, module: &std::sync::Arc<Module>, cuts: &[usize], count: usize) -> GraphData {
    let data = data(3, count);
    let items: Vec<_> = data.iter().enumerate().collect();
    let mut graphs = Vec::new();
    let ends = cuts.iter().copied().chain([count]);
    let mut first = 0;
    for end in ends {
        let mut graph = Graph::new(module);
        graph.set_instances_before(first);
        emit(&graph, model, &items[first..end]);
        graphs.push(graph);
        first = end;
    }
    let mut graphs = graphs.into_iter();
    let joined = graphs.next().unwrap();
    graphs.for_each(|graph| assert!(joined.append(&graph).is_some()));
    joined.finish().unwrap()
}

#[test]
fn appended_parts_equal_the_graph_emitted_at_once_byte_for_byte() {
    let (model, module) = Model::new();
    let once = whole(&model, &module, &[], 23);
    for cuts in [&[1][..], &[11], &[4, 4, 9], &[0, 23]] {
        let joined = whole(&model, &module, cuts, 23);
        assert_eq!(joined, once, "{cuts:?}");
        assert_eq!(joined.structure(), once.structure(), "{cuts:?}");
        assert_eq!(joined.to_bytes(), once.to_bytes(), "{cuts:?}");
        joined.verify().unwrap();
    }
}

#[test]
fn a_part_of_another_module_or_with_a_duplicate_name_is_rejected() {
    let (_, module) = Model::new();
    let (_, other) = Model::new();
    let graph = Graph::new(&module);
    assert_eq!(graph.append(&Graph::new(&other)), None);
    assert!(graph.check().unwrap_err().to_string().contains("another module"));
    let named = || {
        let graph = Graph::new(&module);
        graph.output("x", graph.constant(1.0));
        graph
    };
    let graph = named();
    graph.append(&named());
    assert!(graph.check().unwrap_err().to_string().contains("the name \"x\" is taken"));
}

#[test]
fn an_error_in_a_part_names_its_instance_in_the_whole_graph() {
    let (model, module) = Model::new();
    let data = data(3, 4);
    let mut part = Graph::new(&module);
    part.set_instances_before(2);
    for (number, item) in data.iter().enumerate().skip(2) {
        part.instance(number as u64);
        let logits = model.logits(&part, &item.0);
        if number == 3 {
            let _ = logits + part.zeros([CLASSES as usize + 1]);
        }
    }
    let graph = Graph::new(&module);
    graph.append(&part);
    let error = graph.check().unwrap_err();
    assert_eq!(error.context, "in instance 3 (key 3)");
}
