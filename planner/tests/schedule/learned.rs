//! The learned table of `fsm`.

use super::*;
use autobatch_planner::schedule::*;
use autobatch_testing::job_graphs::{JobGraph, Random};

fn samples() -> Vec<JobGraph> {
    (0..4).map(|seed| JobGraph::trees(16, 40, 3, &mut Random(seed))).collect()
}

fn short() -> Training {
    Training { episodes: 30, seed: 7, ..Training::default() }
}

fn learn(graphs: &[JobGraph]) -> Table {
    let problems: Vec<Problem<'_>> = graphs.iter().map(JobGraph::problem).collect();
    train(&problems, &short(), &mut Scratch::default()).table
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
fn training_stops_at_its_limits_with_a_table_that_is_no_worse() {
    let (graphs, mut scratch) = (samples(), Scratch::default());
    let problems: Vec<Problem<'_>> = graphs.iter().map(JobGraph::problem).collect();
    let free = train(&problems, &short(), &mut scratch);
    assert_eq!(free.limit, None);
    let cases = [
        (Training { words: 20, ..short() }, TrainingLimit::Words),
        (Training { visits: 100, ..short() }, TrainingLimit::Visits),
    ];
    for (training, limit) in cases {
        let learned = train(&problems, &training, &mut scratch);
        assert_eq!(learned.limit, Some(limit));
        assert!(learned.episodes >= 1 && learned.episodes < free.episodes, "{}", learned.episodes);
        for problem in &problems {
            let ratio = Ratio.schedule(problem, &mut scratch).len();
            let policy = Fsm { table: learned.table.clone() };
            assert!(policy.schedule(problem, &mut scratch).len() <= ratio + 2);
        }
    }
}

#[test]
fn the_ratio_decides_unknown_states_and_they_are_counted() {
    let (graph, mut scratch) = (JobGraph::lattices(8, 30, &mut Random(1)), Scratch::default());
    let ratio = Ratio.schedule(&graph.problem(), &mut scratch);
    let learned = Fsm::default().schedule(&graph.problem(), &mut scratch);
    assert_eq!(learned.len(), ratio.len());
    assert!(matches!(learned.why, StopReason::EmptyTable), "{:?}", learned.why);
}

#[test]
fn a_table_recognizes_types_by_name_under_any_numbers() {
    let (graphs, mut scratch) = (samples(), Scratch::default());
    let names: Vec<u64> = (0..8).map(|ty| 0xfeed_0000 + 7 * ty).collect();
    let named: Vec<Problem<'_>> = graphs.iter().map(|graph| graph.problem().with_names(&names)).collect();
    let policy = Fsm { table: train(&named, &short(), &mut scratch).table };
    assert!(!policy.table.is_empty() && policy.wants_names());
    for (graph, named) in graphs.iter().zip(&named) {
        let types = graph.problem().types();
        let turned = |ty: u32| types - 1 - ty;
        let mut other = graph.clone();
        other.ty.iter_mut().for_each(|ty| *ty = turned(*ty));
        let turned_names: Vec<u64> = (0..types).map(|ty| names[turned(ty) as usize]).collect();
        for problem in [*named, other.problem().with_names(&turned_names)] {
            let found = policy.schedule(&problem, &mut scratch);
            assert!(matches!(found.why, StopReason::Learned { known: 1.., .. }), "{:?}", found.why);
        }
        // Types with other names are unknown, although their numbers are the same.
        let other_names: Vec<u64> = names.iter().map(|name| name + 1).collect();
        let others = policy.schedule(&graph.problem().with_names(&other_names), &mut scratch);
        assert!(!matches!(others.why, StopReason::Learned { known: 1.., .. }), "{:?}", others.why);
    }
}

#[test]
fn malformed_tables_are_rejected() {
    let types = r#""names": 2, "types": ["01", "02", "03"]"#;
    for text in [
        "",
        "{}",
        "[]",
        r#"{"names": 2, "types": ["02", "01"], "states": []}"#,
        r#"{"names": 2, "types": ["word"], "states": []}"#,
        r#"{"names": 2, "types": [], "states": [], "more": 1}"#,
        &format!(r#"{{{types}, "states": [{{"ready": [1, 2], "values": []}}]}}"#),
        &format!(r#"{{{types}, "states": [{{"ready": [1, 3], "values": [[1, -1]]}}]}}"#),
        &format!(r#"{{{types}, "states": [{{"ready": [1, 2], "values": [[0, -1]]}}]}}"#),
        &format!(r#"{{{types}, "states": [{{"ready": [1, 2], "values": [[2, -1.5]]}}]}}"#),
        &format!(r#"{{{types}, "states": [{{"ready": [1, 2], "values": [[2, -1], [1, -1]]}}]}}"#),
        &format!(
            r#"{{{types}, "states": [{{"ready": [2], "values": [[2, -1]]}}, {{"ready": [1], "values": [[1, -1]]}}]}}"#
        ),
    ] {
        assert!(Table::from_json(text).is_err(), "{text}");
    }
    for older in [r#"{"types": ["01"], "states": []}"#, r#"{"names": 9, "types": ["01"], "states": []}"#] {
        let said = Table::from_json(older).expect_err("another version of names").to_string();
        assert!(said.contains("expected version 2") && said.ends_with("; train it again"), "{said}");
    }
    let empty = format!(r#"{{{types}, "states": []}}"#);
    assert!(Table::from_json(&empty).is_ok_and(|table| table.is_empty()));
}

/// A reader with nested scans of the types would take minutes here.
#[test]
fn a_table_with_many_types_in_one_state_is_read() {
    let many = 100_000;
    let list = |item: fn(u32) -> String| (0..many).map(item).collect::<Vec<_>>().join(",");
    let types = list(|ty| format!("\"{ty:016x}\""));
    let ready = (0..many).rev().map(|ty| ty.to_string()).collect::<Vec<_>>().join(",");
    let values = list(|ty| format!("[{ty},-1]"));
    let states = format!(r#"[{{"ready": [{ready}], "values": [{values}]}}]"#);
    let text = format!(r#"{{"names": 2, "types": [{types}], "states": {states}}}"#);
    assert_eq!(Table::from_json(&text).map(|table| table.len()), Ok(1));
}
