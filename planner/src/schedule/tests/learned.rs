//! The learned table.

use super::generate::{Graph, Random};
use super::*;

fn samples() -> Vec<Graph> {
    (0..4).map(|seed| Graph::trees(16, 40, 3, &mut Random(seed))).collect()
}

fn learn(graphs: &[Graph]) -> Table {
    let problems: Vec<Problem<'_>> = graphs.iter().map(Graph::problem).collect();
    train(&problems, &Training { episodes: 30, seed: 7 }, &mut Scratch::default())
}

#[test]
fn training_is_never_worse_than_the_ratio_on_its_samples() {
    let (graphs, mut scratch) = (samples(), Scratch::default());
    let policy = Fsm { table: learn(&graphs) };
    let total = |policy: &dyn Schedule, scratch: &mut Scratch| -> usize {
        graphs.iter().map(|graph| count(policy, graph, scratch, 0)).sum()
    };
    let (learned, ratio) = (total(&policy, &mut scratch), total(&Ratio, &mut scratch));
    assert!(!policy.table.is_empty());
    assert!(learned <= ratio, "learned {learned}, ratio {ratio}");
}

#[test]
fn training_is_deterministic_and_the_table_survives_json() {
    let graphs = samples();
    let table = learn(&graphs);
    assert_eq!(table, learn(&graphs));
    assert_eq!(Table::from_json(&table.to_json()), Ok(table));
}

#[test]
fn unknown_states_go_to_the_ratio_and_are_counted() {
    let (graph, mut scratch) = (Graph::lattices(8, 30, &mut Random(1)), Scratch::default());
    let ratio = Ratio.schedule(&graph.problem(), &mut scratch);
    let learned = Fsm::default().schedule(&graph.problem(), &mut scratch);
    assert_eq!(learned.len(), ratio.len());
    assert!(matches!(learned.why, Why::Learned { known: 0, unknown: 1.. }), "{:?}", learned.why);
}

#[test]
fn malformed_tables_are_refused() {
    for text in [
        "",
        "{}",
        "[{\"ready\":[1,2],\"values\":[]}]",
        "[{\"ready\":[1,2],\"values\":[[3,-1.0]]}]",
        "[{\"ready\":[1,2],\"values\":[[2,-1.0],[1,-1.0]]}]",
        "[{\"ready\":[2],\"values\":[[2,-1.0]]},{\"ready\":[1],\"values\":[[1,-1.0]]}]",
    ] {
        assert!(Table::from_json(text).is_err(), "{text}");
    }
    assert!(Table::from_json("[]").is_ok_and(|table| table.is_empty()));
}
