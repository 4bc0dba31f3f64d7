//! Tests of the size limit.

use super::*;

#[test]
fn the_number_of_bound_floats_is_limited() {
    let text = "autobatch graph 2\ngraph\n%a = input f32[3] (#[1, 2, 3])\n%b = add(%a, %a)\n";
    assert!(graph_within(text.as_bytes(), 3).is_ok());
    let error = graph_within(text.as_bytes(), 2).expect_err("the graph binds three floats");
    assert_eq!(error.message, "the graph is full");
}
