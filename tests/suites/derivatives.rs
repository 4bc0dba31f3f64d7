//! What the reverse of a cell computes, as text: how much of the forward half is saved, how much is
//! computed again, and which sums over rows follow. Each snapshot is a kernel as the forward step
//! plays it, its derivative, and the finals that it feeds.

use autobatch_ir::graph::{Graph, GraphData};
use autobatch_ir::id::ValueId;
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_ir::plan::{FinalSum, Mode, Plan};
use autobatch_models::catalogue::{self, Options};
use autobatch_nn::DotAttention;
use autobatch_planner::{Gradients, Planner, Request};
use std::fmt::Write as _;

/// The plan of all losses of a graph, with gradients of all parameters.
fn trained(graph: &GraphData, losses: &[ValueId]) -> Plan {
    let losses: Vec<(ValueId, f32)> = losses.iter().map(|&loss| (loss, 1.0)).collect();
    let gradients = Some(Gradients { losses: &losses, params: None, values: &[] });
    let request = Request { mode: Mode::Train, training: true, gradients, ..Request::default() };
    Planner::default().plan(graph, &request).expect("differentiable").verify().expect("sound").into_inner()
}

/// The plan of two generated instances of a model of the catalogue, four wide.
fn model(name: &str, embedding: Option<usize>) -> Plan {
    let options = Options { seed: 3, count: Some(2), hidden: Some(4), embedding, ..Options::default() };
    let problem = catalogue::open(name, &options).expect("a model");
    let graph = Graph::new(&problem.module);
    let mut losses = Vec::new();
    for instance in 0..problem.workload.instances() {
        graph.instance(instance as u64);
        losses.extend(problem.workload.loss(&graph, instance).id());
    }
    trained(&graph.finish().expect("sound"), &losses)
}

/// The lines of the plan's text that are the kernels with these names and what feeds on their reverse.
fn kernels(plan: &Plan, names: &[&str]) -> String {
    let text = plan.to_text();
    let mut shown = String::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("kernel ") {
            let name = line.split_whitespace().nth(2).unwrap_or_default();
            inside = names.iter().any(|known| name == format!("@{known}") || name == format!("@{known}'"));
        } else if !line.starts_with(' ') && !line.starts_with('}') {
            inside = false;
        }
        if inside {
            shown.push_str(line);
            shown.push('\n');
        }
    }
    for sum in &plan.finals {
        let name = &plan.stores[sum.store.index()].name;
        let what = match sum.sum {
            FinalSum::Wgrad { row, col, k, n } => format!("wgrad [{row}..{}, {col}..{}]", row + k, col + n),
            FinalSum::Colsum => "colsum".to_owned(),
            FinalSum::Tgrad => "tgrad".to_owned(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(shown, "{what} @{name} <- {} parts", sum.parts.len());
    }
    shown
}

#[test]
fn tmp() {
    for (name, emb) in [("b", None), ("d", Some(6)), ("lattice", Some(6)), ("f1", Some(6)), ("c", Some(6))] {
        println!("##### {name}\n{}", model(name, emb).to_text());
    }
}
