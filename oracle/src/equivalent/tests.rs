//! Accepted graphs, and rejections of small differences.

use super::{Unproved, equivalent};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;

const HEAD: &str = "autobatch graph 2\nmodule \"m\"\n\nparam @w f32[6,4] = glorot(1.0) !0\n\
                    param @b f32[4] = constant(0.0) !0\n";

fn graph(cells: &str, body: &str) -> GraphData {
    let head = HEAD.replace("param @w", "site !0 \"m.rs\" 1:1\nparam @w").replace("\n\nsite", "\nsite");
    let lines: Vec<String> = body.lines().map(|line| format!("  {}", line.trim())).collect();
    let text = format!("{head}\n{cells}\ngraph\ninstance 0:\n{}\n", lines.join("\n").replace(" !!", " !0"));
    GraphData::from_text(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The proof that the last values of two graphs are equal.
#[track_caller]
fn last(left: &GraphData, right: &GraphData) -> Result<super::Proof, Unproved> {
    let end = |graph: &GraphData| ValueId::new(graph.arena.values() - 1);
    equivalent(left, right, &[(end(left), end(right))])
}

#[track_caller]
fn same(left: &str, right: &str) {
    let (left, right) = (graph("", left), graph("", right));
    last(&left, &right).unwrap_or_else(|error| panic!("{error}"));
}

#[track_caller]
fn different(left: &str, right: &str, complaint: &str) {
    let (left, right) = (graph("", left), graph("", right));
    let error = last(&left, &right).expect_err("the graphs must differ").to_string();
    assert!(error.contains(complaint), "{error}");
}

const XY: &str =
    "%0 = input f32[4] (#[1.0, 2.0, 3.0, 4.0]) !!\n%1 = input f32[4] (#[5.0, 6.0, 7.0, 8.0]) !!\n";

fn xy(rest: &str) -> String {
    format!("{XY}{rest}")
}

#[test]
fn a_graph_equals_itself_and_duplicates_are_one_term() {
    let text = xy("%2: f32[4] = sub(%0, %1) !!\n%3: f32[4] = sub(%0, %1) !!\n%4: f32[4] = mul(%2, %3) !!");
    let merged = xy("%2: f32[4] = sub(%0, %1) !!\n%3: f32[4] = mul(%2, %2) !!");
    same(&text, &text);
    same(&text, &merged);
}

#[test]
fn adjacent_ranges_are_joined() {
    let moved = xy("%2: f32[8] = concat{axis=0}(%0, %1) !!\n%3: f32[2,4] = reshape{shape=[2,4]}(%2) !!\n\
         %4: f32[1,4] = slice{axis=0 start=1 len=1}(%3) !!\n%5: f32[4] = reshape{shape=[4]}(%4) !!\n\
         %6: f32[4] = tanh(%5) !!");
    same(&moved, &xy("%2: f32[4] = tanh(%1) !!"));
    different(&moved, &xy("%2: f32[4] = tanh(%0) !!"), "operand 0 of tanh");
}

#[test]
fn inner_axes_interleave_row_by_row() {
    let square = "%2: f32[2,2] = reshape{shape=[2,2]}(%0) !!\n%3: f32[2,2] = reshape{shape=[2,2]}(%1) !!\n\
                  %4: f32[2,4] = concat{axis=1}(%2, %3) !!\n";
    let back = format!("{square}%5: f32[2,2], %6: f32[2,2] = split{{axis=1 parts=2}}(%4) !!\n");
    let left = xy(&format!("{back}%7: f32[4] = reshape{{shape=[4]}}(%6) !!"));
    same(&left, &xy("%2: f32[4] = stop_gradient(%1) !!"));
    different(&left, &xy("%2: f32[4] = stop_gradient(%0) !!"), "bound float");
}

#[test]
fn a_product_is_one_chain_for_any_split_of_its_row() {
    let cut = "%2: f32[2] = slice{axis=0 start=0 len=2}(%1) !!\n";
    let parts = xy(&format!("{cut}%3: f32[4] = affine[@w, @b](%0, %2) !!"));
    let joined =
        xy(&format!("{cut}%3: f32[6] = concat{{axis=0}}(%0, %2) !!\n%4: f32[4] = affine[@w, @b](%3) !!"));
    let turned = xy(&format!("{cut}%3: f32[4] = affine[@w, @b](%2, %0) !!"));
    same(&parts, &joined);
    different(&parts, &turned, "operand 0 of affine");
    different(&parts, &xy(&format!("{cut}%3: f32[4] = affine[@w](%0, %2) !!")), "affine");
}

#[test]
fn swapped_operands_other_attributes_and_other_ops_are_rejected() {
    let sub = xy("%2: f32[4] = sub(%0, %1) !!");
    different(
        &sub,
        &xy("%2: f32[4] = sub(%1, %0) !!"),
        "operand 0 of sub: bound float 0 against bound float 4",
    );
    different(&sub, &xy("%2: f32[4] = add(%0, %1) !!"), "sub(");
    let leaky = |slope: &str| xy(&format!("%2: f32[4] = leaky_relu{{slope={slope}}}(%0) !!"));
    different(&leaky("0.01"), &leaky("0.02"), "0.02");
    // Max is not commutative: of zeros with different signs it returns the first.
    different(&xy("%2: f32[4] = max(%0, %1) !!"), &xy("%2: f32[4] = max(%1, %0) !!"), "max");
}

#[test]
fn equal_numbers_in_two_slots_are_different() {
    let twice = "%0 = input f32[1] (#[2.0]) !!\n%1 = input f32[1] (#[2.0]) !!\n";
    let left = format!("{twice}%2: f32[1] = square(%0) !!");
    different(&left, &format!("{twice}%2: f32[1] = square(%1) !!"), "bound float 0 against bound float 1");
}

#[test]
fn lists_are_ordered() {
    let sum = |items: &str| {
        let list = format!("%2 = list f32[4] {items} !!\n%3: f32[4] = list_sum(%2) !!");
        graph("", &xy(&list))
    };
    let spell = |items: &str| last(&sum("(%0, %1)"), &sum(items)).map_err(|error| error.to_string());
    assert!(spell("(%0, %1)").is_ok());
    assert!(spell("(%1, %0)").is_err_and(|error| error.contains("element 0")));
    assert!(spell("(%0)").is_err_and(|error| error.contains("a list of 2 against a list of 1")));
    assert!(spell("(%0, %0)").is_err_and(|error| error.contains("element 1")));
}

#[test]
fn constants_are_folded_and_neutral_constants_removed() {
    let with =
        |op: &str, number: &str| xy(&format!("%2 = fill f32[4] {{value={number}}} !!\n%3: f32[4] = {op} !!"));
    let plain = xy("%2: f32[4] = stop_gradient(%0) !!");
    for (op, number) in [
        ("mul(%0, %2)", "1.0"),
        ("mul(%2, %0)", "1.0"),
        ("div(%0, %2)", "1.0"),
        ("add(%0, %2)", "-0.0"),
        ("sub(%0, %2)", "0.0"),
    ] {
        same(&with(op, number), &plain);
    }
    for (op, number) in [
        ("add(%0, %2)", "0.0"),
        ("sub(%0, %2)", "-0.0"),
        ("sub(%2, %0)", "0.0"),
        ("div(%2, %0)", "1.0"),
        ("mul(%0, %2)", "0.0"),
    ] {
        different(&with(op, number), &plain, "against bound float 0");
    }
    let folded = "%0 = fill f32[4] {value=2.0} !!\n%1: f32[4] = square(%0) !!\n%2: f32[4] = add(%1, %0) !!";
    same(folded, "%0 = fill f32[4] {value=6.0} !!");
    different(folded, "%0 = fill f32[4] {value=5.0} !!", "4 x 6.0 against 4 x 5.0");
}

const CELL: &str = "cell @node[@0: f32[6,4]](%0: f32[4], %1: f32[2]) !0 {\n  %2: f32[4] = affine[@0](%0, %1) !0\n  \
                    %3: f32[4] = tanh(%2) !0\n  %4: f32[4] = mul(%3, %0) !0\n  return %4\n}\n\
                    export @node = @node[@w]\n";

#[test]
fn calls_of_cells_equal_their_bodies() {
    let cut = "%2: f32[2] = slice{axis=0 start=0 len=2}(%1) !!\n";
    let called = graph(CELL, &xy(&format!("{cut}%3 = call @node[@w](%0, %2) !!")));
    let plain = |gate: &str, port: &str| {
        let body = format!(
            "%3: f32[4] = affine[@w](%0, %2) !!\n%4: f32[4] = {gate}(%3) !!\n%5: f32[4] = mul(%4, {port}) !!"
        );
        graph("", &xy(&format!("{cut}{body}")))
    };
    last(&called, &plain("tanh", "%0")).unwrap_or_else(|error| panic!("{error}"));
    last(&plain("tanh", "%0"), &called).unwrap_or_else(|error| panic!("{error}"));
    last(&called, &plain("sigmoid", "%0")).expect_err("the ops differ");
    last(&called, &plain("tanh", "%1")).expect_err("the operands differ");
    last(&called, &called).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn pairs_that_cannot_be_compared_are_rejected_with_a_reason() {
    let graph = graph("", &xy("%2: f32[2] = slice{axis=0 start=0 len=2}(%0) !!"));
    let pair = |a: usize, b: usize| equivalent(&graph, &graph, &[(ValueId::new(a), ValueId::new(b))]);
    assert!(matches!(pair(0, 9), Err(Unproved::NoSuchValue { side: "right", .. })));
    assert_eq!(pair(0, 2).expect_err("types differ").to_string(), "%0 is f32[4], but %2 is f32[2]");
}
