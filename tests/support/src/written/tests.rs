//! Tests of the random texts: their coverage, their determinism and their shrinking.

use super::*;
use crate::op_table::Kind;
use crate::random::Coverage;
use autobatch_ir::graph::{Callee, Op};
use autobatch_ir::{DType, INDEX, NodeId};
use std::collections::{BTreeSet, HashSet};

fn graphs(count: u64) -> impl Iterator<Item = GraphData> {
    (0..count).map(|seed| GraphData::from_text(text(seed, Numbers::Tame)).expect("texts are valid"))
}

#[test]
fn three_hundred_texts_cover_every_op_but_noise() {
    let mut coverage = Coverage::default();
    graphs(300).for_each(|graph| coverage.add(&graph));
    let missing: Vec<Kind> =
        Kind::ALL.iter().copied().filter(|kind| !coverage.ops.contains_key(kind)).collect();
    assert_eq!(missing, [Kind::Dropout, Kind::ForkNoise]);
}

/// Checks for forms that recipes cannot express.
#[test]
fn three_hundred_texts_cover_forms_that_the_emitter_omits() {
    let mut seen = BTreeSet::new();
    for graph in graphs(300) {
        for decl in &graph.module.params {
            if decl.name == "p5" && decl.ty.dtype != DType::F32 {
                seen.insert("a table in 16 bits");
            }
        }
        let mut callers = HashSet::new();
        for id in graph.arena.ids() {
            let signature = graph.signature(id);
            match signature.callee {
                Callee::Op(Op::Fill { ty, .. }) if ty.dtype != DType::F32 => {
                    seen.insert("a constant of words");
                }
                Callee::Op(Op::Input(ty)) if matches!(ty.dtype, DType::I32 | DType::Bool) => {
                    seen.insert("bound integers or truth values");
                }
                Callee::Cell(cell) => {
                    let params: HashSet<_> = signature.params.iter().collect();
                    if params.len() < signature.params.len() {
                        seen.insert("one parameter in two places of a call");
                    }
                    callers.insert((cell, signature.params.clone()));
                }
                Callee::Op(_) => {}
            }
        }
        let cells: HashSet<_> = callers.iter().map(|caller| caller.0).collect();
        if cells.len() < callers.len() {
            seen.insert("a cell with other parameters");
        }
        for decl in &graph.module.cells {
            let types: Vec<_> = decl.body.port_types().map(|ty| graph.ty(ty)).collect();
            if types.iter().any(|ty| ty.is_list && ty.shape.rank() > 1) {
                seen.insert("a port that takes a list of blocks");
            }
            if types.iter().any(|ty| ty.dtype != DType::F32 && *ty != INDEX && ty.shape.rank() > 2) {
                seen.insert("a port of a block of words");
            }
            if decl.body.arena.len() == decl.body.ports {
                seen.insert("a cell that does nothing");
            }
        }
    }
    let found: Vec<&str> = seen.into_iter().collect();
    let expected = [
        "a cell that does nothing",
        "a cell with other parameters",
        "a constant of words",
        "a port of a block of words",
        "a port that takes a list of blocks",
        "a table in 16 bits",
        "bound integers or truth values",
        "one parameter in two places of a call",
    ];
    assert_eq!(found, expected);
}

#[test]
fn wild_texts_have_non_finite_numbers() {
    let odd = |numbers: Numbers| {
        let mut graphs =
            (0..40).map(|seed| GraphData::from_text(text(seed, numbers)).expect("texts are valid"));
        graphs.any(|graph| graph.bindings.floats.iter().any(|x| !x.is_finite()))
    };
    assert!(!odd(Numbers::Tame));
    assert!(odd(Numbers::Wild));
}

#[test]
fn a_seed_always_gives_the_same_text() {
    assert_eq!(text(3, Numbers::Tame), text(3, Numbers::Tame));
    assert_ne!(text(3, Numbers::Tame), text(4, Numbers::Tame));
}

fn has_a_call(graph: &GraphData) -> bool {
    graph.arena.ids().any(|id: NodeId| matches!(graph.signature(id).callee, Callee::Cell(_)))
}

#[test]
fn a_planted_fault_shrinks_to_a_few_lines() {
    let mut texts = (0..).map(|seed| text(seed, Numbers::Tame));
    let read = |text: &str| GraphData::from_text(text).expect("texts are valid");
    let long = texts
        .find(|text| text.lines().count() > 30 && has_a_call(&read(text)))
        .expect("a long text with a call exists");
    let short = shrink(&long, has_a_call);
    assert!(has_a_call(&read(&short)), "{short}");
    assert!(2 * short.lines().count() < long.lines().count(), "{short}");
}

#[test]
fn a_failing_property_names_its_seed() {
    let refuse = |graph: &GraphData| if has_a_call(graph) { Err("found one".to_owned()) } else { Ok(()) };
    let complaint = complaint_of(|| {
        check("no calls", Numbers::Tame, 50, refuse);
        Ok(())
    });
    let complaint = complaint.expect("a text with a call exists");
    assert!(complaint.contains("replay with AUTOBATCH_SEED="), "{complaint}");
    assert!(complaint.contains("lines: found one"), "{complaint}");
}
