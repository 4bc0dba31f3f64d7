use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::Mode;
use autobatch_planner::{Gradients, Planner, Request};
fn main() {
    let text = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    let graph = GraphData::from_text(&text).unwrap();
    println!("; structure {:#034x}", graph.structure());
    let losses: Vec<_> = graph.outputs.iter().map(|o| (o.value, 1.0)).collect();
    let gradients = Some(Gradients { losses: &losses, params: None, values: &[] });
    let plan = Planner::default().plan(&graph, &Request { mode: Mode::Train, training: true, gradients, ..Request::default() }).unwrap();
    println!("{}", plan.to_text());
}
