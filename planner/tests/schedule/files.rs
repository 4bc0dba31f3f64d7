//! `tests/files/schedule/<behaviour>.graph`: for each line `; policy NAME`, a snapshot beside the file shows the batches of the
//! policy, the bound, and why the policy stopped.

use autobatch_ir::GraphData;
use autobatch_planner::Jobs;
use autobatch_planner::schedule::{CostTable, Policy, Scratch, check, path_sum_bound};
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
        let nodes: Vec<_> = batch.iter().map(|&job| jobs.nodes()[job as usize]).collect();
        let callee = graph.module.callee_name(graph.signature(nodes[0]).callee);
        let values = nodes.iter().map(|&node| format!("%{}", graph.arena.results(node).start));
        writeln!(text, "  {callee}: {}", values.collect::<Vec<_>>().join(" ")).expect("writing to a string");
    }
    text
}

#[test]
fn every_file_is_scheduled_as_its_snapshot_says() {
    insta::glob!("../../../tests/files/schedule", "*.graph", |path| {
        let text = std::fs::read_to_string(path).expect("the file is readable");
        let graph = GraphData::from_text(&text).unwrap_or_else(|error| panic!("{}", error.in_file("input")));
        graph.verify().unwrap_or_else(|errors| panic!("{errors}"));
        let policies = text.lines().filter_map(|line| line.strip_prefix("; policy "));
        let shown: Vec<String> = policies.map(|policy| batches(&graph, policy)).collect();
        assert!(!shown.is_empty(), "the file has no line `; policy NAME`");
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(path.parent().expect("a file has a folder"));
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.remove_snapshot_suffix();
        settings.remove_input_file();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("the name is text");
        settings.bind(|| insta::assert_snapshot!(name, shown.join("\n")));
    });
}
