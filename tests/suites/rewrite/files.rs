//! `tests/files/rewrite/<pass>/<behaviour>.graph`: a snapshot beside the file shows the graph before and after the
//! pass. The directives `! across-instances` and `! training` set the context of the pass.

use crate::agrees;
use autobatch_ir::GraphData;
use autobatch_ir::plan::Mode;
use autobatch_oracle::equivalent::prove;
use autobatch_planner::Selection;
use autobatch_planner::passes::{PASSES, Verify, all, optimize};
use autobatch_testing::files::{GraphFile, assert_snapshot_beside};

#[test]
fn every_rewritten_file_matches_its_snapshot() {
    insta::glob!("../../files/rewrite", "*/*.graph", |path| {
        let file = GraphFile::read(path, &["across-instances", "training"]);
        let graph = &file.graph;
        let pass = path.parent().and_then(|folder| folder.file_name()).and_then(|name| name.to_str());
        let pass = pass.expect("the folder has the name of a pass");
        let mode = if file.directive("training").is_some() { Mode::Train } else { Mode::Infer };
        let mut selection = Selection::none().with(pass, true).expect("the folder has the name of a pass");
        selection.across_instances = file.directive("across-instances").is_some();
        selection.verify = Verify::Prove(prove);
        let optimized =
            optimize(graph, &[], mode, &selection, &mut all).unwrap_or_else(|failure| panic!("{failure}"));
        agrees(graph, &optimized.graph, &optimized.renaming).unwrap_or_else(|error| panic!("{error}"));
        let (before, after) = (graph.to_text(), optimized.graph.to_text());
        let after = if before == after { "the same\n".to_owned() } else { after };
        let shown = format!("{before}\n=== {}\n\n{after}", optimized.log.join("\n"));
        assert_snapshot_beside(path, &shown);
    });
}

#[test]
fn every_pass_has_files() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/files/rewrite");
    for pass in PASSES {
        let files = std::fs::read_dir(format!("{root}/{}", pass.name));
        let is_graph = |file: &std::io::Result<std::fs::DirEntry>| {
            file.as_ref().is_ok_and(|file| file.path().extension().is_some_and(|ext| ext == "graph"))
        };
        let count = files.map_or(0, |files| files.filter(is_graph).count());
        assert!(count >= 2, "pass {} has {count} files in {root}", pass.name);
    }
}

#[test]
fn an_observer_sees_each_pass_and_may_stop_the_run() {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/files/rewrite/fold/neutral_constants_vanish.graph"
    ));
    let graph = GraphData::from_text(text.expect("the file exists")).expect("the text is a graph");
    let mut seen = Vec::new();
    let selection = Selection::of_mode(Mode::Infer);
    let optimized = optimize(&graph, &[], Mode::Infer, &selection, &mut |step| {
        seen.push((step.pass.name, step.changed, step.graph.arena.len()));
        if step.pass.name == "cse" {
            std::ops::ControlFlow::Break(())
        } else {
            std::ops::ControlFlow::Continue(())
        }
    });
    let optimized = optimized.expect("no check fails");
    let names: Vec<&str> = seen.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, ["fold", "cse"]);
    assert_eq!(optimized.log.len(), 2);
    assert_eq!(seen[1].2, optimized.graph.arena.len());
}

#[test]
fn the_error_for_an_unknown_pass_lists_all_passes() {
    let error = Selection::none().with("inline", true).expect_err("no such pass").to_string();
    assert_eq!(error, "there is no pass \"inline\"; the passes are fold, cse, outline, hoist, dead");
}
