//! Errors of evaluations are typed and name the user's line.

use super::{emit, no_params};
use autobatch_ir::{GraphData, INDEX, Init, ModuleBuilder, ValueId, Weights, f32, list};
use autobatch_oracle::reference::{Evaluation, Noise, RunError, RunFault, forward};

fn error(graph: &GraphData, weights: &Weights) -> RunError {
    match forward::<f32>(graph, weights, Noise::Off) {
        Err(error) => error,
        Ok(_) => panic!("the graph was evaluated"),
    }
}

#[test]
fn a_bound_index_out_of_range_is_an_error_at_the_line_of_the_lookup() {
    let mut m = ModuleBuilder::new("table");
    let table = m.table("table", [4, 2], Init::Uniform(1.0));
    let inner = m.cell("inner", [INDEX], |_, [word]| [table.row(word)]);
    let outer = m.cell("outer", [INDEX], |g, [word]| g.call(inner, word));
    let module = m.build().unwrap();
    let weights = Weights::init(&module, 0);
    let direct = emit(&module, |g| {
        let _ = table.lookup(g, 4);
    });
    let input = emit(&module, |g| {
        let _ = table.row(g.index(4));
    });
    let through_cells = emit(&module, |g| {
        let _ = [g.call(outer, 0), g.call(outer, 4)];
    });
    for (graph, node) in [(direct, 0), (input, 1), (through_cells, 1)] {
        let error = error(&graph, &weights);
        assert_eq!(error.fault, RunFault::Index { index: 4, bound: 4 });
        let place = error.place.as_ref().unwrap();
        assert_eq!((place.node.index(), place.op.as_str()), (node, "lookup"));
        assert!(place.site.file.ends_with("errors.rs"));
        assert!(error.to_string().contains("expected an index below 4, found 4"), "{error}");
    }
}

#[test]
fn a_computed_index_out_of_range_is_an_error() {
    let mut m = ModuleBuilder::new("table");
    let table = m.table("table", [3, 1], Init::Values([5.0, 6.0, 7.0].into()));
    let module = m.build().unwrap();
    let graph = emit(&module, |g| {
        let _ = table.row(g.index(9) + g.index(1));
    });
    let error = error(&graph, &Weights::init(&module, 0));
    assert_eq!(error.fault, RunFault::Index { index: 10, bound: 3 });
    assert_eq!(error.place.unwrap().op, "lookup");
}

#[test]
fn an_index_beyond_a_value_or_a_one_hot_vector_is_an_error() {
    let module = no_params();
    let picked = emit(&module, |g| {
        let _ = g.input(&[1.0, 2.0]).pick(2);
    });
    let hot = emit(&module, |g| {
        let _ = g.one_hot(9, 3);
    });
    let wrapped = emit(&module, |g| {
        let _ = g.one_hot(g.index(0) - 1.0, 3);
    });
    for (graph, index, bound, op) in
        [(picked, 2, 2, "pick"), (hot, 9, 3, "one_hot"), (wrapped, u32::MAX, 3, "one_hot")]
    {
        let error = error(&graph, &Weights::init(&module, 0));
        assert_eq!(error.fault, RunFault::Index { index, bound });
        assert_eq!(error.place.unwrap().op, op);
    }
}

#[test]
fn a_bound_label_out_of_range_is_an_error() {
    let graph = emit(&no_params(), |g| {
        let _ = g.input(&[1.0, 2.0]).cross_entropy(2);
    });
    assert_eq!(error(&graph, &Weights::init(&graph.module, 0)).fault, RunFault::Index { index: 2, bound: 2 });
}

#[test]
fn errors_name_missing_bindings() {
    let mut graph = emit(&no_params(), |g| {
        let _ = (g.input(&[1.0, 2.0]), g.index(3));
    });
    let weights = Weights::init(&graph.module, 0);
    graph.bindings.words.clear();
    let missing = |pool, expected, found| RunFault::Binding { pool, expected, found };
    assert_eq!(error(&graph, &weights).fault, missing("words", 1, 0));
    graph.bindings.floats.pop();
    assert_eq!(error(&graph, &weights).fault, missing("floats", 2, 1));
}

#[test]
fn weights_of_another_module_are_rejected() {
    let weights = |name: &str| {
        let mut m = ModuleBuilder::new("m");
        let _ = m.param(name, [2], Init::ZEROS);
        let module = m.build().unwrap();
        (Weights::init(&module, 0), emit(&module, |_| ()))
    };
    let fault = error(&weights("a").1, &weights("b").0).fault;
    assert_eq!(fault, RunFault::Weights { expected: "@a: f32[2]".into(), found: "@b: f32[2]".into() });
}

#[test]
fn lists_of_different_lengths_inside_a_cell_are_an_error() {
    let mut m = ModuleBuilder::new("lists");
    let pair = m.cell("pair", [list(f32([1])), list(f32([1]))], |g, [a, b]| [g.weighted_sum(a, b)]);
    let module = m.build().unwrap();
    let graph = emit(&module, |g| {
        let x = g.input(&[1.0]);
        let _ = g.call(pair, [g.list([x]), g.list([x, x])]);
    });
    let error = error(&graph, &Weights::init(&module, 0));
    assert_eq!(error.fault, RunFault::Lengths { expected: 1, found: 2 });
    assert_eq!(error.place.unwrap().op, "wsum");
}

/// A graph over cells that each call the cell before a number of times. The text is not verified, because verified modules
/// are small.
fn nested(levels: usize, calls: usize) -> GraphData {
    let mut text = "autobatch graph 2\nmodule \"nested\"\n".to_owned();
    text += "cell @c0(%0: f32[8]) {\n  %1: f32[8] = tanh(%0)\n  return %1\n}\n";
    for level in 1..levels {
        text += &format!("cell @c{level}(%0: f32[8]) {{\n");
        for call in 0..calls {
            text += &format!("  %{} = call @c{}(%{call})\n", call + 1, level - 1);
        }
        text += &format!("  return %{calls}\n}}\n");
    }
    text += &format!("graph\n  %0 = fill f32[8] {{value=0.0}}\n  %1 = call @c{}(%0)\n", levels - 1);
    GraphData::from_text(text.as_bytes()).expect("the text is well formed")
}

#[test]
fn exponentially_large_cells_are_rejected_before_evaluation() {
    let graph = nested(60, 2);
    assert!(matches!(error(&graph, &Weights::init(&graph.module, 0)).fault, RunFault::TooLarge { .. }));
}

#[test]
fn deeply_nested_cells_are_rejected_before_evaluation() {
    let graph = nested(1000, 1);
    let fault = error(&graph, &Weights::init(&graph.module, 0)).fault;
    assert!(matches!(fault, RunFault::TooDeep { depth: 1000, limit: 64 }), "{fault:?}");
}

#[test]
fn the_deepest_accepted_nesting_fits_a_small_stack() {
    let mut m = ModuleBuilder::new("deep");
    let mut cell = m.cell("c0", [f32([1])], |_, [x]| [x.tanh()]);
    for level in 1..64 {
        cell = m.cell(&format!("c{level}"), [f32([1])], |g, [x]| g.call(cell, x));
    }
    let module = m.build().unwrap();
    let graph = emit(&module, |g| g.loss("loss", g.call(cell, g.input(&[0.0]))[0].sum()));
    let weights = Weights::init(&module, 0);
    let evaluation = Evaluation::<f32>::new(&graph, &weights, Noise::Off).unwrap();
    let gradients = evaluation.reverse(&evaluation.forward().unwrap(), &super::losses(&graph)).unwrap();
    assert_eq!(gradients.value(ValueId::new(0)), Some(&[1.0][..]));
}

#[test]
fn only_float_values_can_be_differentiated() {
    let graph = emit(&no_params(), |g| {
        let _ = g.index(3);
    });
    let weights = Weights::init(&graph.module, 0);
    let evaluation = Evaluation::<f32>::new(&graph, &weights, Noise::Off).unwrap();
    let run = evaluation.forward().unwrap();
    for (id, found) in [(0, "%0: u32"), (1, "%1, which does not exist")] {
        let fault = evaluation.reverse(&run, &[(ValueId::new(id), 1.0)]).unwrap_err().fault;
        assert_eq!(fault, RunFault::Loss { found: found.to_owned() });
    }
}

#[test]
fn a_graph_with_inconsistent_signatures_is_rejected_without_a_panic() {
    let mut graph = emit(&no_params(), |g| {
        let _ = g.input(&[1.0, 2.0]).tanh();
    });
    let weights = Weights::init(&graph.module, 0);
    let mut signature = graph.sigs.items()[1].clone();
    signature.operands = Box::new([]);
    let _ = graph.sigs.intern(signature, &graph.types);
    assert!(matches!(error(&graph, &weights).fault, RunFault::Malformed(_)));
}
