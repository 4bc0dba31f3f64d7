//! `tests/files/rewrite/<pass>/<behaviour>.graph`: a snapshot shows the graph before and after its
//! pass. A line `; across instances` or `; training` asks for that.

use crate::agrees;
use autobatch_ir::GraphData;
use autobatch_ir::plan::Mode;
use autobatch_planner::Selection;
use autobatch_planner::passes::{PASSES, Verify, all, optimize};

#[test]
fn every_file_is_rewritten_as_its_snapshot_says() {
    insta::glob!("../../files/rewrite", "*/*.graph", |path| {
        let text = std::fs::read_to_string(path).expect("the file is readable");
        let graph = GraphData::from_text(&text).unwrap_or_else(|error| panic!("{}", error.in_file("input")));
        graph.verify().unwrap_or_else(|errors| panic!("{errors}"));
        let pass = path.parent().and_then(|folder| folder.file_name()).and_then(|name| name.to_str());
        let pass = pass.expect("a file lies in the folder of its pass");
        let asks = |words: &str| text.lines().any(|line| line == words);
        let mode = if asks("; training") { Mode::Train } else { Mode::Infer };
        let mut selection = Selection::none().with(pass, true).expect("the folder is named after a pass");
        selection.across_instances = asks("; across instances");
        selection.verify = Verify::Prove;
        let optimized =
            optimize(&graph, &[], mode, &selection, &mut all).unwrap_or_else(|failure| panic!("{failure}"));
        agrees(&graph, &optimized.graph, &optimized.renaming).unwrap_or_else(|error| panic!("{error}"));
        let (before, after) = (graph.to_text(), optimized.graph.to_text());
        let after = if before == after { "the same\n".to_owned() } else { after };
        let shown = format!("{before}\n=== {}\n\n{after}", optimized.log.join("\n"));
        insta::assert_snapshot!(shown);
    });
}

#[test]
fn every_pass_has_files() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/files/rewrite");
    for pass in PASSES {
        let files = std::fs::read_dir(format!("{root}/{}", pass.name));
        let count = files.map_or(0, Iterator::count);
        assert!(count >= 2, "pass {} has {count} files in {root}", pass.name);
    }
}

#[test]
fn an_observer_sees_each_pass_and_may_stop() {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/files/rewrite/fold/neutral_constants_vanish.graph"
    ));
    let graph = GraphData::from_text(text.expect("the file is there")).expect("it is a graph");
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
    let optimized = optimized.expect("passes are sound");
    let names: Vec<&str> = seen.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, ["fold", "cse"]);
    assert_eq!(optimized.log.len(), 2);
    assert_eq!(seen[1].2, optimized.graph.arena.len());
}

#[test]
fn an_unknown_pass_is_named_with_the_known_ones() {
    let error = Selection::none().with("inline", true).expect_err("there is none").to_string();
    assert_eq!(error, "there is no pass \"inline\"; the passes are fold, cse, outline, hoist, dead");
}
