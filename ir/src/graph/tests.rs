//! The behaviour of the emitter through its public interface.

use crate::graph::{Callee, Graph, GraphData, Op};
use crate::id::ValueId;
use crate::module::{Cell, Init, Module, ModuleBuilder, Param};
use crate::types::{DType, INDEX, f32, list};
use crate::{EmitError, Value};
use std::sync::Arc;

struct Model {
    leaf: Cell<1, 2>,
    node: Cell<4, 2>,
    out: Param,
}

fn model() -> (Arc<crate::Module>, Model) {
    let mut m = ModuleBuilder::new("tree");
    let embed = m.table("embed", [10, 4], Init::Uniform(0.1));
    let w = m.param("w", [8, 20], Init::Glorot(1.0));
    let b = m.param("b", [20], Init::ZEROS);
    let out = m.param("out", [4, 3], Init::Glorot(1.0));
    let leaf = m.cell("leaf", [INDEX], |g, [word]| [embed.row(word), g.zeros([4])]);
    let node = m.cell("node", [f32([4]); 4], |g, [lh, lc, rh, rc]| {
        let [a, i, l, r, o] = g.affine([lh, rh], w, Some(b)).split();
        let c = a.tanh() * i.sigmoid() + l.sigmoid() * lc + r.sigmoid() * rc;
        [o.sigmoid() * c.tanh(), c]
    });
    (m.build().unwrap(), Model { leaf, node, out })
}

#[test]
fn a_value_takes_sixteen_bytes() {
    assert_eq!(size_of::<Value<'_>>(), 16);
}

#[test]
fn a_tree_is_recorded_in_order() {
    let (module, model) = model();
    let g = Graph::new(&module);
    g.instance(7);
    let [ah, ac] = g.call(model.leaf, 3);
    let [bh, bc] = g.call(model.leaf, 4);
    let [h, _] = g.call(model.node, [ah, ac, bh, bc]);
    let loss = h.affine(model.out, None).cross_entropy(2);
    g.loss("loss", loss);
    let data = g.finish().unwrap();
    assert_eq!((data.arena.len(), data.arena.values(), data.instances()), (5, 8, 1));
    assert_eq!(data.bindings.words, [3, 4, 2]);
    assert_eq!(data.outputs[0].value.to_string(), "%7");
    assert!(data.site(data.arena.nodes()[2].site).file.ends_with("tests.rs"));
}

#[test]
fn equal_bodies_share_a_cell() {
    let mut m = ModuleBuilder::new("two");
    let params = ["a", "b"].map(|name| m.param(name, [4, 4], Init::ZEROS));
    let [first, second] = params.map(|w| m.cell("rnn", [f32([4])], |_, [x]| [x.affine(w, None).tanh()]));
    let module = m.build().unwrap();
    assert_eq!(module.cells.len(), 1);
    assert_ne!(first.sig(), second.sig());
    assert_eq!(module.exports[1].name, "rnn.2");
}

#[test]
fn cells_call_cells_and_noise_is_forked() {
    let mut m = ModuleBuilder::new("nested");
    let drop = m.cell("drop", [f32([4])], |_, [x]| [x.dropout(0.5)]);
    let twice = m.cell("twice", [f32([4])], |g, [x]| {
        let [x] = g.call(drop, x);
        let [x] = g.call(drop, x);
        [x]
    });
    let module = m.build().unwrap();
    let body = &module.cells[1].body;
    assert_eq!((body.ports, body.noise), (3, true));
    let g = Graph::new(&module);
    g.instance(1);
    let x = g.input(&[1.0; 4]);
    let _ = g.call(twice, x);
    let data = g.finish().unwrap();
    assert_eq!(data.bindings.words.len(), 2);
    let forks = body.arena.ids().filter(|&id| {
        matches!(data.sigs.get(body.arena.node(id).sig).callee, Callee::Op(Op::ForkNoise { .. }))
    });
    assert_eq!(forks.count(), 2);
}

#[test]
fn the_structure_excludes_bindings() {
    let (module, model) = model();
    let structure = |words: &[u32], nested: bool| {
        let g = Graph::new(&module);
        g.instance(0);
        let leaves: Vec<_> = words.iter().map(|&word| g.call(model.leaf, word)).collect();
        let [[ah, ac], [bh, bc]] = [leaves[0], leaves[1]];
        let [h, c] = g.call(model.node, [ah, ac, bh, bc]);
        if nested {
            let _ = g.call(model.node, [h, c, bh, bc]);
        }
        g.finish().unwrap().structure()
    };
    assert_eq!(structure(&[1, 2], false), structure(&[3, 4], false));
    assert_ne!(structure(&[1, 2], false), structure(&[1, 2], true));
}

#[test]
fn a_cleared_graph_records_the_same_graph() {
    let (module, model) = model();
    let mut g = Graph::new(&module);
    let emit = |g: &Graph| {
        g.instance(0);
        let [h, _] = g.call(model.leaf, 1);
        let _ = (h * 2.0 + 1.0).sum();
    };
    emit(&g);
    let first = g.data().clone();
    g.clear();
    emit(&g);
    assert_eq!(*g.data(), first);
    assert_eq!(g.data().structure(), first.structure());
}

fn fault(emit: impl FnOnce(&Graph, &Model)) -> EmitError {
    let (module, model) = model();
    let g = Graph::new(&module);
    g.instance(5);
    emit(&g, &model);
    g.check().expect_err("the graph stores the fault")
}

#[test]
fn the_first_fault_names_its_line() {
    let error = fault(|g, model| {
        let x = g.input(&[1.0; 5]);
        let y = x.affine(model.out, None);
        let _ = (y + x).dot(y);
    });
    assert_eq!(error.message, "the value has 5 elements, the weight takes 4");
    let text = error.to_string();
    assert!(text.contains("let y = x.affine(model.out, None);"), "{text}");
    assert!(
        text.contains("@out: f32[4,3] was declared at") || text.contains("the weight is f32[4,3]"),
        "{text}"
    );
    assert!(text.contains("instance 0 (key 5)"), "{text}");
}

#[test]
fn operators_report_the_line_of_the_caller() {
    let line = line!() + 2;
    let error = fault(|g, _| {
        let _ = g.input(&[1.0; 2]) + g.input(&[1.0; 3]);
    });
    assert_eq!(error.site.line, line);
}

#[test]
fn a_wrong_port_type_is_rejected() {
    let error = fault(|g, model| {
        let x = g.input(&[1.0; 5]);
        let _ = g.call(model.node, [x; 4]);
    });
    assert_eq!(error.message, "port 0 of @node takes f32[4], found f32[5]");
}

#[test]
fn numbers_cannot_be_bound_inside_a_cell() {
    let mut m = ModuleBuilder::new("bound");
    let table = m.table("embed", [3, 2], Init::ZEROS);
    let _: Cell<0, 1> = m.cell("fixed", [], |g, []| [table.lookup(g, 1)]);
    assert_eq!(
        m.build().expect_err("the index is a binding").message,
        "numbers cannot be bound inside a cell"
    );
}

#[test]
fn cells_reject_instances_outputs_and_marks() {
    let message = |body: fn(&Graph, Value<'_>)| {
        let mut m = ModuleBuilder::new("m");
        let _ = m.cell("c", [f32([2])], |g, [x]| {
            body(g, x);
            [x.tanh()]
        });
        m.build().expect_err("a cell cannot contain this").message.clone()
    };
    assert_eq!(message(|g, _| g.instance(1)), "instance is not allowed inside a cell");
    assert_eq!(message(|g, x| g.output("x", x)), "output is not allowed inside a cell");
    assert_eq!(message(|_, x| _ = x.shared()), "shared is not allowed inside a cell");
    assert_eq!(message(|_, x| _ = x.alone()), "alone is not allowed inside a cell");
}

/// Three lists that grew from one, read by an op that compares their lengths.
#[test]
fn lists_that_grow_know_their_items_and_lengths() {
    let mut m = ModuleBuilder::new("grow");
    let pair = m.cell("pair", [f32([2]); 2], |g, [x, y]| [g.list([x]).append(y).append(x).sum()]);
    let g = Graph::new(&m.build().unwrap());
    let [a, b, c] = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]].map(|x| g.input(&x));
    let one = g.empty_list(f32([2])).append(a);
    let (two, other) = (one.append(b), one.append(c).append(b));
    let _ = (g.attend(a, two, one.append(c), 1.0), g.call(pair, [a, b]));
    let data = g.data();
    let items = |list: Value<'_>| -> Vec<ValueId> {
        let items = data.arena.items(list.id().unwrap(), &data.sigs);
        items.iter().filter_map(|item| item.as_value()).collect()
    };
    let ids = |values: &[Value<'_>]| values.iter().map(|value| value.id().unwrap()).collect::<Vec<_>>();
    assert_eq!(items(one), ids(&[a]));
    assert_eq!(items(two), ids(&[a, b]));
    assert_eq!(items(other), ids(&[a, c, b]));
    data.verify().unwrap();
    let text = data.to_text();
    assert!(text.contains("append("), "{text}");
    let (_, cell) = text.split_once("cell @pair").unwrap();
    assert!(cell.split_once('}').unwrap().0.contains("list(%0, %1, %0)"), "a cell gets a whole list: {text}");
    let again = GraphData::from_text(&text).unwrap();
    assert_eq!(again.arena, data.arena);
    drop(data);
    let _ = g.attend(a, two, other, 1.0);
    let error = g.check().expect_err("the lists differ in length");
    assert_eq!(error.message, "the lists must have equal lengths, found 2 and 3 values");
}

#[test]
fn a_cell_appends_to_no_list_of_its_caller() {
    let mut m = ModuleBuilder::new("m");
    m.cell("longer", [list(f32([2])), f32([2])], |_, [xs, x]| [xs.append(x).sum()]);
    let error = m.build().expect_err("the graph knows the list, the cell does not");
    assert_eq!(error.message, "a cell appends only to its own lists, found list f32[2]");
    assert_eq!(error.help.as_deref(), Some("append in the graph, where it calls the cell"));
}

#[test]
fn values_of_another_graph_are_rejected() {
    let (module, model) = model();
    let (a, b) = (Graph::new(&module), Graph::new(&module));
    let [x, c] = a.call(model.leaf, 1);
    let _ = b.call(model.node, [x, c, x, c]);
    let error = b.check().expect_err("the value belongs to another graph");
    assert_eq!(
        error.message,
        format!("the value belongs to graph {}, it is used in graph {}", a.number(), b.number())
    );
}

#[test]
fn sums_and_list_ports_take_any_number_of_values() {
    let mut m = ModuleBuilder::new("lists");
    let total = m.cell("total", [list(f32([2]))], |_, [xs]| [xs.sum()]);
    let module = m.build().unwrap();
    let g = Graph::new(&module);
    let xs = [g.input(&[1.0, 2.0]), g.input(&[3.0, 4.0])];
    let s: Value<'_> = xs.iter().sum();
    let l = g.list(xs);
    let [t] = g.call(total, l);
    let _ = (s + t).dot(g.zeros([2]));
    let [u] = g.call(total, g.empty_list(f32([2])));
    assert_eq!(u.ty(), f32([2]));
    g.check().unwrap();
}

#[test]
fn operators_broadcast_shapes() {
    let (module, _) = model();
    let g = Graph::new(&module);
    let row = g.input(&[1.0, 2.0]);
    let matrix = g.input_shaped([3, 2], &[0.0; 6]);
    assert_eq!((matrix + row).ty(), f32([3, 2]));
    assert_eq!((2.0 - row).ty(), f32([2]));
    g.check().unwrap();
}

#[test]
fn a_key_is_valid_until_its_graph_is_cleared() {
    let (module, _) = model();
    let mut g = Graph::new(&module);
    let key = g.input(&[1.0]).key().expect("there is no fault");
    assert!(g.value(key).is_some());
    g.clear();
    assert!(g.value(key).is_none());
    let _ = g.input(&[2.0]);
    assert!(g.value(key).is_none(), "a new value with the same id has another key");
}

#[test]
fn operators_reject_numbers_outside_the_element_type() {
    type Emit = fn(&Graph);
    let refused: [(Emit, &str); 7] = [
        (|g| _ = g.index(7) * 0.5, "the number 0.5 is not of type u32"),
        (|g| _ = g.index(7) + -1.0, "the number -1.0 is not of type u32"),
        (|g| _ = 4_294_967_296.0 + g.index(7), "the number 4294967300.0 is not of type u32"),
        (|g| _ = g.index(1).equal(f32::NAN), "the number NaN is not of type u32"),
        (|g| _ = g.index(7).cast(DType::I32) - 2_147_483_648.0, "the number 2147483600.0 is not of type i32"),
        (|g| _ = g.index(1).equal(1.0).equal(2.0), "the number 2.0 is not of type bool"),
        (|g| _ = g.indices(&[1, 2]).mask(&[true, false]), "the number -inf is not of type u32"),
    ];
    for (emit, wanted) in refused {
        let found = fault(|g, _| emit(g));
        assert!(found.message.starts_with(wanted), "{found}");
        assert!(found.site.file.ends_with("tests.rs") && found.help.is_some(), "{found}");
    }
    let (module, _) = model();
    let g = Graph::new(&module);
    let x = g.index(7).cast(DType::I32) - -2_147_483_648.0;
    let _ = (x.equal(-3.0), g.index(1) + 4_294_967_040.0);
    g.check().unwrap();
}

#[test]
fn axes_out_of_range_are_rejected() {
    let far: [fn(Value<'_>); 5] = [
        |x| _ = x.graph().concat_axis(256, [x, x]),
        |x| _ = x.slice_axis(256, 0..1),
        |x| _ = x.chunks(256, 2),
        |x| _ = x.transpose([1]),
        |x| _ = x.transpose([0, 1, 2, 3, 4]),
    ];
    for emit in far {
        fault(|g, _| emit(g.input_shaped([2, 2], &[0.0; 4])));
    }
    let error = fault(|g, _| _ = g.input_shaped([1, 2, 3], &[0.0; 6]).transpose([1, 0]));
    assert_eq!(error.message, "[1, 0] is not an order of the 3 axes of f32[1,2,3]");
}

#[test]
fn a_failed_split_returns_the_requested_number_of_values() {
    let error = fault(|g, _| {
        let parts = g.input(&[1.0, 2.0]).chunks(0, 3);
        let _ = parts[2].tanh();
        assert!(g.input(&[1.0]).chunks(0, usize::MAX).len() <= 1 << 16);
    });
    assert_eq!(error.message, "2 elements along axis 0 do not split into 3 equal parts");
}

#[test]
fn handles_of_another_module_are_rejected() {
    let ((module, _), (_, foreign)) = (model(), model());
    let message = |emit: &dyn Fn(&Graph)| {
        let g = Graph::new(&module);
        emit(&g);
        g.finish().unwrap_err().to_string()
    };
    let cell = message(&|g| _ = g.call(foreign.leaf, 1));
    let param = message(&|g| _ = g.input(&[1.0; 4]).affine(foreign.out, None));
    for (text, what) in [(cell, "cell"), (param, "parameter")] {
        assert!(text.contains(&format!("the {what} belongs to another module")), "{text}");
        assert!(text.contains("help: the graph uses module tree: use a handle from its builder"), "{text}");
    }
}

#[test]
fn a_summary_counts_nodes_and_signatures() {
    let (module, model) = model();
    let g = Graph::new(&module);
    for word in 0..3 {
        let _ = g.call(model.leaf, word);
    }
    assert_eq!(
        g.summary().lines().next(),
        Some("graph of module tree: 0 instances, 3 nodes of 1 signatures")
    );
}

#[test]
fn a_cell_checks_its_number_of_values() {
    let mut m = ModuleBuilder::new("any");
    let w = m.param("w", [4, 4], Init::ZEROS);
    let sums = m.cell_of_any("sums", &[f32([4]), list(f32([4]))], |_, ports| {
        vec![ports[0].affine(w, None).dropout(0.5), ports[1].sum(), ports[0]]
    });
    let outer = m.cell_of_any("outer", &[f32([4])], |g, ports| {
        let all = g.list([ports[0], ports[0]]);
        g.call_any(sums, [ports[0], all])
    });
    let module = m.build().unwrap();
    let g = Graph::new(&module);
    g.instance(3);
    let x = g.zeros([4]);
    let list = g.list([x]);
    let made = g.call_any(sums, [x, list]);
    assert_eq!(made.len(), 3);
    assert_eq!(g.data().bindings.words.len(), 2, "a noise key");
    assert_eq!(g.call_any(outer, made).len(), 1, "a fault returns one value");
    assert!(g.check().unwrap_err().message.contains("@outer takes 1 values, found 3"));
    let faulty = |emit: &dyn Fn(&Graph)| {
        let g = Graph::new(&module);
        emit(&g);
        g.finish().unwrap_err().message.clone()
    };
    let narrow = |g: &Graph| drop(g.call_any(outer, [g.zeros([3])]));
    assert!(faulty(&narrow).contains("port 0 of @outer takes f32[4], found f32[3]"));
    let elsewhere = Graph::new(&ModuleBuilder::new("other").build().unwrap());
    assert_eq!(elsewhere.call_any(outer, [elsewhere.zeros([4])]).len(), 1);
    assert!(elsewhere.finish().unwrap_err().message.contains("another module"));
    let mut refused = ModuleBuilder::new("refused");
    let cell = refused.cell_of_any("sum", &[f32([4])], |_, ports| vec![ports[0].sum().softmax()]);
    assert_eq!(cell.sig(), None);
    assert!(refused.build().is_err());
}

/// A module of cells that each call the cell before a number of times.
fn nested(levels: usize, calls: usize) -> Result<Arc<Module>, String> {
    let mut m = ModuleBuilder::new("nested");
    let mut cell = m.cell("c0", [f32([4])], |_, [x]| [x.tanh()]);
    for level in 1..levels {
        let name = format!("c{level}");
        cell = m.cell(&name, [f32([4])], |g, [x]| (0..calls).fold([x], |[x], _| g.call(cell, x)));
    }
    m.build().map_err(|error| error.to_string())
}

#[test]
fn cells_that_nest_too_deep_or_grow_too_large_are_rejected_when_they_are_built() {
    let deepest = nested(64, 1).expect("64 cells nest");
    let graph = Graph::new(&deepest).finish().expect("an empty graph");
    assert!(GraphData::from_bytes(&graph.to_bytes()).is_ok(), "what is built is also read");
    let error = nested(8_000, 1).expect_err("65 cells do not nest");
    assert!(error.contains("cell @c64: calls of cells nest at most 64 deep, found 65"), "{error}");
    let error = nested(40, 2).expect_err("2^40 nodes are too many");
    assert!(error.contains("cell @c18: the cells of a module have at most 1048576 nodes"), "{error}");
}
