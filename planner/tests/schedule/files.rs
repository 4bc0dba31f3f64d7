//! `tests/files/schedule/<behaviour>.graph`: for each directive `! policy NAME`, a snapshot beside the file shows the batches of the
//! policy, the bound, and why the policy stopped.

use autobatch_ir::GraphData;
use autobatch_planner::Jobs;
use autobatch_planner::schedule::{CostTable, Policy, Scratch, check, path_sum_bound};
use autobatch_testing::files::{GraphFile, assert_snapshot_beside};
use std::fmt::Write as _;

/// The batches of a policy, one line each: the callee and the nodes.
fn batches(graph: &GraphData, policy: &str) -> String {
    let mut jobs = Jobs::new(graph, &[]);
    jobs.set_costs(graph, false, &CostTable::default());
    let problem = jobs.problem();
    let loaded = policy.parse::<Policy>().expect("a policy").load().expect("needs no file");
    let mut scratch = Scratch::default();
    let bound = path_sum_bound(&problem, &mut scratch).total;
    let batches = loaded.schedule(&problem, &mut scratch);
    check(&problem, &batches).unwrap_or_else(|error| panic!("{policy}: {error}"));
    let mut text = format!("policy {policy}: {} batches, bound {bound}; {}\n", batches.len(), batches.why);
    for batch in batches.iter() {
        let nodes: Vec<_> = batch.iter().map(|&job| jobs.node(job)).collect();
        let callee = graph.module.callee_name(graph.signature(nodes[0]).callee);
        let values = nodes.iter().map(|&node| format!("%{}", graph.arena.results(node).start));
        writeln!(text, "  {callee}: {}", values.collect::<Vec<_>>().join(" ")).expect("writing to a string");
    }
    text
}

#[test]
fn every_file_is_scheduled_as_its_snapshot_says() {
    insta::glob!("../../../tests/files/schedule", "*.graph", |path| {
        let file = GraphFile::read(path, &["policy"]);
        let shown: Vec<String> = file.all("policy").map(|words| batches(&file.graph, &words[0])).collect();
        assert!(!shown.is_empty(), "the file has no directive `! policy NAME`");
        assert_snapshot_beside(path, &shown.join("\n"));
    });
}
