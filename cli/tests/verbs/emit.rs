//! `emit` and `fsm-train`: models have the shape of the workloads they stand for.

use crate::{says, scratch};
use autobatch_cli::files::load_graph;
use serde_json::Value as Json;

fn facts(model: &str, more: &[&str]) -> Json {
    let graph = scratch(&format!("emit_{model}{}.abg", more.concat()));
    let said = says(&[&["emit", model, "--instances", "4", "--hidden", "4", "-o", &graph], more].concat());
    assert!(said.starts_with("wrote "), "{said}");
    serde_json::from_str(&says(&["plan", &graph, "--json"])).expect("plan --json prints JSON")
}

#[test]
fn trees_and_taggers_meet_their_bounds() {
    for (model, cells) in [("trees", 3), ("bilstm", 3)] {
        let facts = facts(model, &[]);
        assert_eq!(facts["batches"], facts["bound"], "{model}");
        assert_eq!(facts["cells"], cells, "{model}: {facts}");
        assert_eq!(facts["copied_rows"], 0, "{model}");
    }
}

#[test]
fn lattices_sum_lists_of_any_length_in_one_signature() {
    let facts = facts("lattice", &[]);
    let steps = facts["steps"].as_array().expect("steps are a list");
    let sums: std::collections::BTreeSet<&str> = steps
        .iter()
        .filter_map(|step| step["kernel"].as_str())
        .filter(|name| name.starts_with("list_sum"))
        .collect();
    assert_eq!(sums.len(), 1, "{sums:?}");
}

#[test]
fn several_cells_make_trees_harder() {
    let (one, three) = (facts("trees", &[]), facts("trees", &["--cells", "3"]));
    assert_eq!(one["nodes"], three["nodes"]);
    assert!(three["bound"].as_u64() > one["bound"].as_u64(), "{} {}", one["bound"], three["bound"]);
}

#[test]
fn equal_seeds_give_equal_graphs_and_batches_differ() {
    let emit = |name: &str, more: &[&str]| {
        let path = scratch(name);
        says(
            &[&["emit", "random", "--instances", "3", "--cells", "2", "--hidden", "2", "-o", &path], more]
                .concat(),
        );
        load_graph(&path).expect("just written")
    };
    let first = emit("seed_a.abg", &[]);
    assert_eq!(first.structure(), emit("seed_b.abg", &[]).structure());
    assert_ne!(first.structure(), emit("seed_c.abg", &["--seed", "2"]).structure());
    assert_ne!(first.structure(), emit("seed_d.abg", &["--batch", "1"]).structure());
}

#[test]
fn a_minibatch_that_the_data_does_not_have_is_refused() {
    let data = scratch("two_trees.txt");
    std::fs::write(&data, "(3 (2 a) (3 b))\n(1 (2 c) (1 d))\n").expect("the scratch folder is there");
    let path = scratch("two.graph");
    let said = says(&["emit", "trees", "--data", &data, "--instances", "2", "--hidden", "2", "-o", &path]);
    assert!(said.contains("2 instances, 8 nodes, of which 8 need a step"), "{said}");
    let said = says(&["emit", "trees", "--data", &data, "--instances", "2", "--batch", "1", "-o", &path]);
    insta::assert_snapshot!(said);
}

#[test]
fn a_corpus_without_instances_is_a_file_that_is_not_what_it_should_be() {
    let data = scratch("no_trees.txt");
    std::fs::write(&data, "").expect("the scratch folder is there");
    for model in ["trees", "bilstm", "lattice"] {
        let said = says(&["emit", model, "--data", &data]);
        assert!(
            said.contains("no_trees.txt: the file holds no instances") && said.contains("[exit 3]"),
            "{said}"
        );
    }
}

#[test]
fn a_table_is_learned_and_used() {
    let (graph, table) = (scratch("fsm.abg"), scratch("fsm.json"));
    says(&["emit", "random", "--instances", "4", "--cells", "3", "--hidden", "2", "-o", &graph]);
    let said = says(&["fsm-train", &graph, "-o", "table.abg"]);
    assert!(said.contains("a table has one form, JSON") && said.contains("[exit 2]"), "{said}");
    let said = says(&["fsm-train", &graph, "-o", &table, "--episodes", "8"]);
    assert!(said.contains("batches on the samples: fsm "), "{said}");
    let policy = format!("fsm:{table}");
    let said = says(&["plan", &graph, "--policy", &policy]);
    assert!(said.contains("policy      fsm:"), "{said}");
}

#[test]
fn a_table_of_some_graphs_is_used_on_others_that_meet_their_types_in_another_order() {
    let table = scratch("lattice.json");
    let random = |seed: &str| {
        let path = scratch(&format!("random{seed}.abg"));
        let sizes = ["--instances", "4", "--cells", "3", "--hidden", "2"];
        says(&[&["emit", "random", "--seed", seed, "-o", &path], &sizes[..]].concat());
        path
    };
    let [first, second, third] = ["1", "2", "3"].map(random);
    let said = says(&["fsm-train", &first, &second, "-o", &table]);
    assert!(said.contains("from 2 graphs") && !said.contains("the table is empty"), "{said}");
    let policy = format!("fsm:{table}");
    let said = says(&["plan", &third, "--policy", &policy]);
    assert!(said.contains("learned table decided") && !said.contains("decided 0 times"), "{said}");
    // Another module's types are strangers.
    let wider = scratch("wider.abg");
    says(&["emit", "random", "--instances", "4", "--cells", "3", "--hidden", "3", "-o", &wider]);
    let said = says(&["plan", &wider, "--policy", &policy]);
    assert!(
        !said.contains("learned table decided") || said.contains("learned table decided 0 times"),
        "{said}"
    );
}
