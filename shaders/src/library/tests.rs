//! Tests of modules.

use super::*;
use crate::{FEW_PRODUCT, ROW, TEMPLATES, TILE_PRODUCT};

/// The holes that the GPU runtime fills.
const HOLES: [&str; 9] = ["body", "shape", "epilogue", "call", "starts", "loads", "puts", "chains", "stores"];

#[test]
fn a_module_contains_exactly_the_functions_that_it_calls() {
    let module = Library::new(false, Joins::Memory).module(ROW, "", &[("body", "    store_softmax(row);\n")]);
    for declaration in
        ["fn store_softmax", "fn row_max", "fn op_max", "fn mad(", "struct Row", "lanes: array"]
    {
        assert!(module.contains(declaration), "{declaration} is missing");
    }
    for other in ["fn op_tanh", "fn store_dot", "places: array", "fn philox"] {
        assert!(!module.contains(other), "{other} is not called");
    }
}

#[test]
fn every_hole_is_filled() {
    let library = Library::new(true, Joins::Memory);
    for &template in TEMPLATES {
        let module = library.module(template, "", &HOLES.map(|hole| (hole, "")));
        assert!(!module.contains("//~"), "{}", template.name);
    }
}

#[test]
fn both_arithmetics_declare_the_same_functions() {
    let native: Vec<&str> = declarations(NATIVE).into_iter().map(|(name, _)| name).collect();
    let exact = Library::new(true, Joins::Memory);
    assert!(native.iter().all(|name| exact.items.contains_key(name)));
    assert!(Library::new(false, Joins::Memory).names().any(|name| name == "op_tanh"));
}

/// Some drivers execute threads in lockstep and lose what a loop computes for threads that left it early. SwiftShader and
/// Mesa's OpenGL replaced a later computation of a loaded value by the one in the condition of a loop before, which is known
/// on every way out of the loop, and stored rows in wrong places.
#[test]
fn conditions_of_loops_compute_nothing_that_is_computed_again() {
    let of_templates = TEMPLATES.iter().flat_map(|template| [template.text, template.access.text()]);
    let files = FUNCTIONS.into_iter().chain([NATIVE, EXACT, FEW_PRODUCT, TILE_PRODUCT]);
    let joins = Joins::ALL.into_iter().flat_map(|joins| joins.files().iter().copied());
    let mut loops = 0;
    for line in of_templates.chain(files).chain(joins).flat_map(str::lines).map(str::trim) {
        let condition = match (line.strip_prefix("for ("), line.strip_prefix("while ")) {
            (Some(head), _) => head.split(';').nth(1).expect("a loop has a condition"),
            (None, Some(head)) => head,
            (None, None) => continue,
        };
        loops += 1;
        assert!(!condition.contains(['(', '[']), "{line}");
    }
    assert!(loops > 60, "{loops} loops were found");
}
