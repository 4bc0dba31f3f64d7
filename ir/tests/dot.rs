//! Pictures of graphs in the DOT language.

#![allow(clippy::unwrap_used, reason = "a missing value fails the test")]

use autobatch_ir::{Graph, INDEX, Init, ModuleBuilder, f32};

#[test]
fn a_picture_shows_calls_results_and_instances() {
    let mut m = ModuleBuilder::new("tree");
    let embed = m.table("embed", [10, 4], Init::ZEROS);
    let leaf = m.cell("leaf", [INDEX], |g, [word]| [embed.row(word), g.zeros([4])]);
    let node = m.cell("node", [f32([4]); 2], |_, [l, r]| [l.tanh() * r]);
    let g = Graph::new(&m.build().unwrap());
    for key in 0..2 {
        g.instance(key);
        let [h, c] = g.call(leaf, 17);
        let [root] = g.call(node, [h, c]);
        g.output(&format!("root{key}"), root);
    }
    insta::assert_snapshot!(g.finish().unwrap().to_dot(), @r##"
digraph nodes {
    rankdir=LR; size="40,30"; nodesep=0.12; ranksep=0.35
    node [shape=box, style="filled,rounded", height=0.3, fontname="sans-serif"]
    subgraph cluster_0 { label="instance 0 (key 0)"; 0; 1 }
    subgraph cluster_1 { label="instance 1 (key 1)"; 2; 3 }
    0 [ label="@leaf\n%0, %1", tooltip="n0 @leaf[@embed](#17)\n%0: f32[4]\n%1: f32[4]", fillcolor="#8fb7dc"]
    1 [ label="@node\n%2", tooltip="n1 @node(%0, %1)\n%2: f32[4]", fillcolor="#f9b97c", peripheries=2]
    2 [ label="@leaf\n%3, %4", tooltip="n2 @leaf[@embed](#17)\n%3: f32[4]\n%4: f32[4]", fillcolor="#8fb7dc"]
    3 [ label="@node\n%5", tooltip="n3 @node(%3, %4)\n%5: f32[4]", fillcolor="#f9b97c", peripheries=2]
    0 -> 1 [ label="%0"]
    0 -> 1 [ label="%1"]
    2 -> 3 [ label="%3"]
    2 -> 3 [ label="%4"]
}
"##);
}
