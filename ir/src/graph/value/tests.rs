//! Faults and conveniences of values, through the public interface.

use crate::graph::Graph;
use crate::module::{Init, Module, ModuleBuilder, Param};
use crate::types::{Type, f32};
use crate::{DType, Value, Weights};
use std::sync::Arc;

fn empty() -> Arc<Module> {
    ModuleBuilder::new("m").build().expect("an empty module")
}

/// A module with a weight `[6, 4]` and biases of 4 and 6 elements.
fn weights() -> (Arc<Module>, [Param; 3]) {
    let mut m = ModuleBuilder::new("m");
    let w = m.param("w", [6, 4], Init::Glorot(1.0));
    let [narrow, wide] = [("narrow", 4), ("wide", 6)].map(|(name, n)| m.param(name, [n], Init::ZEROS));
    (m.build().expect("a valid module"), [w, narrow, wide])
}

#[track_caller]
fn fault(graph: &Graph) -> String {
    graph.check().expect_err("the graph stores a fault").to_string()
}

#[test]
fn a_weight_of_the_other_layout_names_the_other_product() {
    let (module, [w, narrow, wide]) = weights();
    for bias in [Some(wide), Some(narrow), None] {
        let g = Graph::new(&module);
        let _ = g.input(&[1.0; 4]).affine(w, bias);
        let error = fault(&g);
        assert!(error.contains("the value has 4 elements, the weight takes 6"), "{error}");
        assert!(error.contains("call affine_transposed"), "{error}");
    }
    let g = Graph::new(&module);
    let _ = g.affine_transposed([g.input(&[1.0; 6])], w, None);
    assert!(fault(&g).contains("stored as [inputs, outputs]: call affine"));
    let g = Graph::new(&module);
    let _ = g.input(&[1.0; 6]).affine(w, Some(wide));
    assert!(fault(&g).contains("the bias must have 4 elements"));
}

#[test]
fn a_transposed_product_takes_parts() {
    let (module, [w, _, wide]) = weights();
    let g = Graph::new(&module);
    let y = g.affine_transposed([g.input(&[1.0]), g.input(&[1.0; 3])], w, Some(wide));
    assert_eq!(y.shape().dims(), [6]);
    g.check().expect("the widths agree");
}

#[test]
fn emitting_while_a_guard_lives_is_a_fault_at_the_line() {
    let g = Graph::new(&empty());
    let x = g.input(&[1.0]);
    let data = g.data();
    g.instance(1);
    g.common();
    g.output("x", x);
    let y = x + x;
    let _ = g.list([x, y]).sum().shared().alone().dropout(0.5);
    drop(data);
    let error = fault(&g);
    assert!(error.contains("the guard that Graph::data() returned lives"), "{error}");
    assert!(error.contains("value/tests.rs:") && error.contains("drop(data)"), "{error}");
    assert_eq!(g.data().arena.len(), 1, "nothing was recorded");
    let whole = Graph::new(&g.data().module);
    let _ = whole.append(&g);
    assert_eq!(fault(&whole), error);
    let mut g = g;
    g.clear();
    g.check().expect("clearing removes the fault");
}

#[test]
fn the_sum_of_no_values_is_a_fault_where_it_is_read() {
    let none: [Value<'_>; 0] = [];
    let module = empty();
    for read in [
        (|g, sum| g.list([sum])) as for<'g> fn(&'g Graph, Value<'g>) -> Value<'g>,
        |g, sum| g.constant(1.0) + sum,
        |g, sum| g.list_of(f32([1]), [sum, sum]),
        |g, sum| sum + g.constant(1.0),
    ] {
        let g = Graph::new(&module);
        g.output("read", read(&g, none.iter().sum()));
        let error = fault(&g);
        assert!(error.contains("the sum of no values has no type"), "{error}");
        assert!(error.contains("value/tests.rs:") && error.contains("g.list_of(type, values)"), "{error}");
    }
}

#[test]
fn a_typed_list_may_be_empty_and_checks_its_type() {
    let g = Graph::new(&empty());
    let scalar = Type::scalar(DType::F32);
    let none: [Value<'_>; 0] = [];
    assert_eq!(g.list_of(scalar, none).sum().ty(), scalar);
    assert_eq!(g.list_of(f32([2]), [g.input(&[1.0, 2.0])]).sum().ty(), f32([2]));
    g.check().expect("both lists are well typed");
    let _ = g.list_of(scalar, [g.input(&[1.0, 2.0])]);
    assert!(fault(&g).contains("the items must be f32, found f32[2]"), "{}", fault(&g));
}

#[test]
fn values_are_set_by_name() {
    let (module, _) = weights();
    let mut weights = Weights::init(&module, 0);
    weights.set_by_name("narrow", &[1.0, 2.0, 3.0, 4.0]).expect("four values");
    assert_eq!(weights.by_name("narrow"), Ok(&[1.0, 2.0, 3.0, 4.0][..]));
    let error = weights.set_by_name("narrow", &[1.0]).expect_err("one value").to_string();
    assert!(error.contains("@narrow: expected 4 values, found 1"), "{error}");
    assert!(weights.set_by_name("other", &[]).is_err());
}
