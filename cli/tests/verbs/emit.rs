//! Tests of `emit` and `fsm-train`.

use crate::{scratch, transcript, without_folder};
use autobatch_cli::files::load_graph;
use autobatch_models::catalogue::ENTRIES;
use serde_json::Value as Json;

fn facts(model: &str, more: &[&str]) -> Json {
    let graph = scratch(&format!("emit_{model}{}.abg", more.concat()));
    let printed =
        transcript(&[&["emit", model, "--instances", "4", "--hidden", "4", "-o", &graph], more].concat());
    assert!(printed.starts_with("wrote "), "{printed}");
    serde_json::from_str(&transcript(&["plan", &graph, "--json"])).expect("plan --json prints JSON")
}

#[test]
fn trees_and_taggers_reach_the_lower_bound() {
    for model in ["treelstm", "tagger"] {
        let facts = facts(model, &[]);
        assert_eq!(facts["batches"], facts["bound"], "{model}");
        assert_eq!(facts["module"], *model);
        assert_eq!(facts["copied_rows"], 0, "{model}");
    }
}

#[test]
fn every_model_emits_its_outputs_and_its_loss() {
    for entry in &ENTRIES {
        let [outputs, loss] = [&[][..], &["--loss"]].map(|more| {
            let graph = scratch(&format!("every_{}{}.abg", entry.name, more.concat()));
            let sizes = ["--instances", "2", "--hidden", "4", "-o", &graph];
            let printed = transcript(&[&["emit", entry.name], &sizes[..], more].concat());
            assert!(printed.contains("2 instances"), "{}: {printed}", entry.name);
            load_graph(&graph).expect("the file was just written").outputs.len()
        });
        assert!(outputs >= 2 && loss == 2, "{}: {outputs} outputs, {loss} losses", entry.name);
    }
}

#[test]
fn list_sums_of_different_lengths_share_a_signature() {
    let facts = facts("lattice", &[]);
    let steps = facts["steps"].as_array().expect("steps are a list");
    let sums: std::collections::BTreeSet<&str> = steps
        .iter()
        .filter_map(|step| step["kernel"].as_str())
        .filter(|name| name.starts_with("@lattice.merge"))
        .collect();
    assert_eq!(sums.len(), 1, "{sums:?}");
}

#[test]
fn more_cells_raise_the_bound_of_random_graphs() {
    let (one, three) = (facts("random", &[]), facts("random", &["--cells", "3"]));
    assert_eq!(one["nodes"], three["nodes"]);
    assert!(three["bound"].as_u64() > one["bound"].as_u64(), "{} {}", one["bound"], three["bound"]);
}

#[test]
fn the_seed_and_the_minibatch_determine_the_graph() {
    let emit = |name: &str, more: &[&str]| {
        let path = scratch(name);
        transcript(
            &[&["emit", "random", "--instances", "3", "--cells", "2", "--hidden", "2", "-o", &path], more]
                .concat(),
        );
        load_graph(&path).expect("the file was just written")
    };
    let first = emit("seed_a.abg", &[]);
    assert_eq!(first.structure(), emit("seed_b.abg", &[]).structure());
    assert_ne!(first.structure(), emit("seed_c.abg", &["--seed", "2"]).structure());
    assert_ne!(first.structure(), emit("seed_d.abg", &["--batch", "1"]).structure());
}

/// Writes a corpus of four trees and returns its folder.
fn four_trees(name: &str) -> String {
    let folder = scratch(name);
    std::fs::create_dir_all(&folder).expect("the scratch folder exists");
    let trees = "(3 (2 a) (3 b))\n(1 (2 c) (1 d))\n(2 (2 e) (2 f))\n(3 (4 g) (3 h))\n";
    for file in ["train.txt", "valid.txt", "test.txt"] {
        std::fs::write(format!("{folder}/{file}"), trees).expect("the folder was just made");
    }
    folder
}

#[test]
fn a_minibatch_beyond_the_data_is_rejected() {
    let (data, path) = (four_trees("four_trees"), scratch("two.graph"));
    let emit = |more: &[&str]| {
        let words = ["emit", "treernn", "--data", &data, "--instances", "2", "--hidden", "2", "-o", &path];
        transcript(&[&words[..], more].concat())
    };
    assert!(emit(&["--batch", "1"]).contains("2 instances, "));
    insta::assert_snapshot!(without_folder(&emit(&["--batch", "2"])));
}

#[test]
fn the_data_must_be_a_folder_with_instances() {
    let data = four_trees("no_trees");
    let file = format!("{data}/train.txt");
    let emit = |path: &str| transcript(&["emit", "sentiment", "--data", path]);
    insta::assert_snapshot!(without_folder(&emit(&file)));
    std::fs::write(&file, "").expect("the folder was just made");
    assert!(emit(&data).contains("no_trees: expected at least one instance to learn from, found none"));
    std::fs::remove_file(&file).expect("the file was just made");
    insta::assert_snapshot!(without_folder(&emit(&data)));
}

#[test]
fn a_trained_table_is_used_by_the_policy() {
    let (graph, table) = (scratch("fsm.abg"), scratch("fsm.json"));
    transcript(&["emit", "random", "--instances", "4", "--cells", "3", "--hidden", "2", "-o", &graph]);
    let printed = transcript(&["fsm-train", &graph, "-o", "table.abg"]);
    assert!(printed.contains("the table must be a .json file") && printed.contains("[exit 2]"), "{printed}");
    let printed = transcript(&["fsm-train", &graph, "-o", &table, "--episodes", "8"]);
    assert!(printed.contains("batches on the samples: fsm "), "{printed}");
    let policy = format!("fsm:{table}");
    let printed = transcript(&["plan", &graph, "--policy", &policy]);
    assert!(printed.contains("policy      fsm:"), "{printed}");
}

#[test]
fn a_trained_table_applies_to_other_graphs_of_the_module() {
    let table = scratch("lattice.json");
    let random = |seed: &str| {
        let path = scratch(&format!("random{seed}.abg"));
        let sizes = ["--instances", "4", "--cells", "3", "--hidden", "2"];
        transcript(&[&["emit", "random", "--seed", seed, "-o", &path], &sizes[..]].concat());
        path
    };
    let [first, second, third] = ["1", "2", "3"].map(random);
    let printed = transcript(&["fsm-train", &first, &second, "-o", &table]);
    assert!(printed.contains("on 2 graphs") && !printed.contains("the table is empty"), "{printed}");
    let policy = format!("fsm:{table}");
    let printed = transcript(&["plan", &third, "--policy", &policy]);
    assert!(printed.contains("learned table decided") && !printed.contains("decided 0 times"), "{printed}");
    // The table does not contain the types of another module.
    let wider = scratch("wider.abg");
    transcript(&["emit", "random", "--instances", "4", "--cells", "3", "--hidden", "3", "-o", &wider]);
    let printed = transcript(&["plan", &wider, "--policy", &policy]);
    assert!(
        !printed.contains("learned table decided") || printed.contains("learned table decided 0 times"),
        "{printed}"
    );
}
