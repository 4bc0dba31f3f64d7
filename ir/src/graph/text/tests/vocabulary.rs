//! Tests of the table of ops.

use super::*;

#[test]
fn spellings_are_unique() {
    let ops = prototypes();
    assert_eq!(ops.len(), BY_SPELLING.len());
    for op in ops {
        assert_eq!(prototype(op.spelling()), Some(op), "{}", op.spelling());
    }
    let words: Vec<&str> = spellings().collect();
    assert!(words.windows(2).all(|pair| pair[0] < pair[1]), "{words:?}");
}

#[test]
fn the_corpus_contains_every_op_except_ports() {
    use crate::graph::{Callee, GraphData};
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/files/graphs");
    let mut missing: std::collections::BTreeSet<&str> = spellings().filter(|&word| word != "port").collect();
    for entry in std::fs::read_dir(folder).unwrap() {
        let graph = GraphData::from_text(std::fs::read(entry.unwrap().path()).unwrap()).unwrap();
        for signature in graph.sigs.items() {
            if let Callee::Op(op) = signature.callee {
                missing.remove(op.spelling());
            }
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}
