//! Every model of the catalogue, small: outputs and gradients.

use crate::common::{executor, training, weights};
use crate::gradients::same_as_naive;
use autobatch_ir::graph::{Graph, GraphData};
use autobatch_ir::id::ValueId;
use autobatch_models::catalogue::{ENTRIES, Entry, Options, open};

/// Two instances of a model, with their losses.
pub(crate) fn graph(entry: &Entry) -> (GraphData, Vec<(ValueId, f32)>) {
    sized(entry, 6)
}

/// A model of the catalogue of this width, with slightly narrower embeddings.
pub(crate) fn sized(entry: &Entry, hidden: usize) -> (GraphData, Vec<(ValueId, f32)>) {
    let options = Options {
        seed: 1,
        count: Some(2),
        batch: Some(2),
        hidden: Some(hidden),
        embedding: (entry.embedding > 0).then_some(hidden - 1),
        ..Options::default()
    };
    let problem = open(entry.name, &options).expect("opens");
    let g = Graph::new(&problem.module);
    let mut losses = Vec::new();
    for instance in 0..problem.workload.instances() {
        g.instance(instance as u64);
        losses.extend(problem.workload.loss(&g, instance).id().map(|id| (id, 1.0)));
    }
    (g.finish().expect("sound"), losses)
}

#[test]
fn every_model_agrees_with_the_naive_executor() {
    let Some(mut executor) = executor(autobatch_runtime_wgpu::Options::default()) else { return };
    for entry in &ENTRIES {
        let (graph, losses) = graph(entry);
        let plan = training(&graph, &losses);
        let weights = weights(&graph);
        if let Err(error) = same_as_naive(&mut executor, &plan, &graph, &weights) {
            panic!("{}: {error}", entry.name);
        }
    }
}
