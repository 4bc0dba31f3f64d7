//! The reverse of cells as text: the values that the forward half saves, the values that the reverse
//! recomputes, and the sums over rows that follow. Each snapshot shows a kernel of the forward step, its
//! derivative, and the reductions that read its results.

use autobatch_ir::graph::{Graph, GraphData};
use autobatch_ir::id::ValueId;
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_ir::plan::{Mode, Plan, ReductionSum};
use autobatch_ir::types::f32;
use autobatch_models::catalogue::{self, Options};
use autobatch_nn::DotAttention;
use autobatch_planner::{Gradients, Planner, Request};
use std::fmt::Write as _;

/// Plans all losses of a graph with the gradients of all parameters.
fn trained(graph: &GraphData, losses: &[ValueId]) -> Plan {
    let losses: Vec<(ValueId, f32)> = losses.iter().map(|&loss| (loss, 1.0)).collect();
    let gradients = Some(Gradients { losses: &losses, params: None, values: &[] });
    let request = Request { mode: Mode::Train, training: true, gradients, ..Request::default() };
    Planner::default().plan(graph, &request).expect("differentiable").verify().expect("sound").into_inner()
}

/// Plans two generated instances of a model of the catalogue with vectors of width 4.
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

/// Returns the lines of the plan's text for the kernels with these names and the reductions of their reverse.
fn kernels(plan: &Plan, names: &[&str]) -> String {
    let text = plan.to_text();
    let mut shown = String::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("kernel ") {
            let name = line.split_whitespace().nth(2).unwrap_or_default();
            let name = name.trim_matches('"').trim_start_matches('@').trim_end_matches('\'');
            inside = names.contains(&name);
        } else if !line.starts_with(' ') && !line.starts_with('}') {
            inside = false;
        }
        if inside {
            shown.push_str(line);
            shown.push('\n');
        }
    }
    for sum in &plan.reductions {
        let name = &plan.stores[sum.store.index()].name;
        let what = match sum.sum {
            ReductionSum::Wgrad { row, col, k, n } => {
                format!("wgrad [{row}..{}, {col}..{}]", row + k, col + n)
            }
            ReductionSum::Colsum => "colsum".to_owned(),
            ReductionSum::Tgrad => "tgrad".to_owned(),
            ReductionSum::Lgrad => "lgrad".to_owned(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(shown, "{what} @{name} <- {} parts", sum.parts.len());
    }
    shown
}

#[test]
fn a_node_of_a_tree_lstm_keeps_its_gates_and_makes_their_gradients_side_by_side() {
    insta::assert_snapshot!(kernels(&model("treelstm", None), &["node", "leaf"]));
}

#[test]
fn an_lstm_cell_keeps_its_gates_and_computes_the_tanh_of_its_memory_again() {
    insta::assert_snapshot!(kernels(&model("acceptor", Some(6)), &["lstm", "lookup"]));
}

#[test]
fn a_child_sum_tree_keeps_its_gates_its_sums_and_the_vectors_of_its_words() {
    insta::assert_snapshot!(kernels(
        &model("similarity", Some(6)),
        &["node", "node.edge", "node.leaf", "node.project", "compare"]
    ));
}

#[test]
fn a_projection_read_in_ranges_adds_them_without_zeros_around_them() {
    let mut m = ModuleBuilder::new("ranges");
    let w = m.param("w", [6, 16], Init::Glorot(1.0));
    let project = m.cell("project", [f32(6)], |_, [x]| {
        let all = x.affine(w, None);
        [all.slice(0..12), all.slice(12..16)]
    });
    let g = Graph::new(&m.build().expect("sound"));
    g.instance(0);
    let [wide, narrow] = g.call(project, g.input(&[0.5; 6]));
    let both = [wide.sum(), wide.tanh().sum(), narrow.sum()];
    let losses: Vec<ValueId> = both.iter().filter_map(|loss| loss.id()).collect();
    let plan = trained(&g.finish().expect("sound"), &losses);
    insta::assert_snapshot!(kernels(&plan, &["project"]));
}

#[test]
fn the_merge_of_a_lattice_hands_a_row_back_to_every_word() {
    insta::assert_snapshot!(kernels(&model("lattice", Some(6)), &["lattice.merge"]));
}

#[test]
fn the_loss_of_a_tagger_goes_back_through_its_head() {
    insta::assert_snapshot!(kernels(
        &model("tagger", Some(6)),
        &["head", "pick_neg_log_softmax", "list_sum"]
    ));
}

#[test]
fn attention_hands_rows_back_to_keys_and_values_and_one_to_the_query() {
    let mut m = ModuleBuilder::new("attention");
    let w = m.param("w", [4, 4], Init::Glorot(1.0));
    let project = m.cell("project", [f32(4)], |g, [x]| [g.affine([x], w, None)]);
    let g = Graph::new(&m.build().expect("sound"));
    g.instance(0);
    let mut keys = Vec::new();
    for number in 0..3u8 {
        let [key] = g.call(project, g.input(&[f32::from(number), 1.0, 0.5, -1.0]));
        keys.push(key);
    }
    let read = DotAttention::scaled(4).read(&g, keys[0], &keys, &keys);
    let losses: Vec<ValueId> = read.sum().id().into_iter().collect();
    let plan = trained(&g.finish().expect("sound"), &losses);
    insta::assert_snapshot!(kernels(&plan, &["attend", "project"]));
}
