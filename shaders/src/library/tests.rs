//! Tests of modules.

use super::*;
use crate::{ROW, TEMPLATES};

/// The holes that the GPU runtime fills.
const HOLES: [&str; 8] = ["body", "shape", "epilogue", "call", "starts", "loads", "chains", "stores"];

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
