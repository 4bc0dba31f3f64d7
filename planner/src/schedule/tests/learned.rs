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
fn a_table_knows_types_by_name_whatever_their_numbers_are() {
    let (graphs, mut scratch) = (samples(), Scratch::default());
    let names: Vec<u64> = (0..8).map(|ty| 0xfeed_0000 + 7 * ty).collect();
    let named: Vec<Problem<'_>> = graphs.iter().map(|graph| graph.problem().with_names(&names)).collect();
    let training = Training { episodes: 30, seed: 7 };
    let policy = Fsm { table: train(&named, &training, &mut scratch) };
    assert!(!policy.table.is_empty() && policy.wants_names());
    for (graph, named) in graphs.iter().zip(&named) {
        let types = graph.problem().types();
        let turned = |ty: u32| types - 1 - ty;
        let ty: Vec<u32> = graph.ty.iter().map(|&ty| turned(ty)).collect();
        let turned_names: Vec<u64> = (0..types).map(|ty| names[turned(ty) as usize]).collect();
        let other = Problem::new(types, &ty, &graph.alone, &graph.start, &graph.operands).unwrap();
        for problem in [*named, other.with_names(&turned_names)] {
            let found = policy.schedule(&problem, &mut scratch);
            assert!(matches!(found.why, Why::Learned { known: 1.., .. }), "{:?}", found.why);
        }
        // Types of other names are strangers, though their numbers are the same.
        let strange: Vec<u64> = names.iter().map(|name| name + 1).collect();
        let strangers = policy.schedule(&graph.problem().with_names(&strange), &mut scratch);
        assert!(!matches!(strangers.why, Why::Learned { known: 1.., .. }), "{:?}", strangers.why);
    }
}

#[test]
fn malformed_tables_are_refused() {
    let types = r#""names": 1, "types": ["01", "02", "03"]"#;
    for text in [
        "",
        "{}",
        "[]",
        r#"{"names": 1, "types": ["02", "01"], "states": []}"#,
        r#"{"names": 1, "types": ["word"], "states": []}"#,
        r#"{"names": 1, "types": [], "states": [], "more": 1}"#,
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
        let said = Table::from_json(older).expect_err("its names are others").to_string();
        assert!(
            said.contains("this program by names of version 1") && said.ends_with("; train it again"),
            "{said}"
        );
    }
    let empty = format!(r#"{{{types}, "states": []}}"#);
    assert!(Table::from_json(&empty).is_ok_and(|table| table.is_empty()));
}

#[test]
fn a_table_with_many_types_in_one_state_is_read_in_time() {
    let many = 100_000;
    let (types, all, values): (Vec<_>, Vec<_>, Vec<_>) = (
        (0..many).map(|ty| format!("\"{ty:016x}\"")).collect(),
        (0..many).rev().map(|ty| ty.to_string()).collect(),
        (0..many).map(|ty| format!("[{ty},-1]")).collect(),
    );
    let [types, all, values] = [types, all, values].map(|items| items.join(","));
    let text = format!(
        r#"{{"names": 1, "types": [{types}], "states": [{{"ready": [{all}], "values": [{values}]}}]}}"#
    );
    let start = std::time::Instant::now();
    assert_eq!(Table::from_json(&text).map(|table| table.len()), Ok(1));
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}
