//! Plans of models of the catalogue.

use crate::Mode;
use crate::error::BenchError;
use autobatch::runtime_wgpu::Executor;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{self, Inputs, Plan, Verified};
use autobatch_ir::{Graph, Weights};
use autobatch_models::catalogue::{self, OpenModel, entry};
use autobatch_planner::{Gradients, Planner, Request};

/// The number of instances and the width of a model; `None` is that of the catalogue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) instances: Option<usize>,
    pub(super) hidden: Option<usize>,
}

impl Sizes {
    /// For programs.
    pub(super) const SMALL: Self = Self { instances: Some(3), hidden: Some(8) };
    /// For comparisons with the CPU.
    pub(super) const MEDIUM: Self = Self { instances: Some(16), hidden: None };
    /// For times.
    pub(super) const FULL: Self = Self { instances: None, hidden: None };

    /// The options of the catalogue for a model.
    pub(super) fn options(self, model: &str) -> Result<catalogue::Options, BenchError> {
        let has_embedding = entry(model)?.embedding > 0;
        Ok(catalogue::Options {
            count: self.instances,
            batch: self.instances,
            hidden: self.hidden,
            embedding: self.hidden.filter(|_| has_embedding).map(|hidden| hidden.saturating_sub(1).max(1)),
            seed: 1,
            ..catalogue::Options::default()
        })
    }
}

/// A graph with its plan, and weights.
pub(super) struct Planned {
    pub(super) graph: GraphData,
    pub(super) plan: Verified<Plan>,
    pub(super) weights: Weights,
}

/// The bindings of a graph, without noise.
pub(super) fn inputs(graph: &GraphData) -> Inputs<'_> {
    Inputs { words: &graph.bindings.words, floats: &graph.bindings.floats, noise: Noise::Off }
}

/// The first minibatch of a model: outputs in inference, losses and gradients in training.
pub(super) fn planned(model: &str, sizes: &Sizes, mode: Mode) -> Result<Planned, BenchError> {
    let opened = catalogue::open(model, &sizes.options(model)?)?;
    let instances = 0..opened.workload.instances().min(opened.batch.max(1));
    of_instances(&opened, instances, mode)
}

fn of_instances(
    opened: &OpenModel,
    instances: std::ops::Range<usize>,
    mode: Mode,
) -> Result<Planned, BenchError> {
    let graph = Graph::new(&opened.module);
    let (mut values, mut losses) = (Vec::new(), Vec::new());
    for instance in instances {
        graph.instance(instance as u64);
        match mode {
            Mode::Infer => opened.workload.emit(&graph, instance, &mut values),
            Mode::Train => values.push(opened.workload.loss(&graph, instance)),
        }
    }
    let wanted: Vec<ValueId> = values.iter().filter_map(|value| value.id()).collect();
    losses.extend(wanted.iter().map(|&id| (id, 1.0)));
    let graph = graph.finish()?;
    let request = match mode {
        Mode::Infer => Request { wanted: &wanted, ..Request::default() },
        Mode::Train => Request {
            wanted: &wanted,
            mode: plan::Mode::Train,
            training: true,
            gradients: Some(Gradients { losses: &losses, params: None, values: &[] }),
            ..Request::default()
        },
    };
    let plan = Planner::default().plan(&graph, &request)?.verify()?;
    let weights = Weights::init(&graph.module, 1);
    Ok(Planned { graph, plan, weights })
}

/// Whether the first instances of a model have the same bits alone and in a batch.
pub(super) fn alone(model: &str, sizes: &Sizes, executor: &mut Executor) -> Result<bool, BenchError> {
    let opened = catalogue::open(model, &sizes.options(model)?)?;
    let all = opened.workload.instances().min(opened.batch.max(1));
    let mut bits = |instances| -> Result<Vec<u32>, BenchError> {
        let Planned { graph, plan, weights } = of_instances(&opened, instances, Mode::Infer)?;
        executor.execute(&plan, &weights, inputs(&graph))?;
        Ok((0..plan.outputs.len()).flat_map(|number| executor.output(number)).map(|x| x.to_bits()).collect())
    };
    let together = bits(0..all)?;
    let mut same = true;
    let mut at = 0;
    for instance in 0..all.min(3) {
        let own = bits(instance..instance + 1)?;
        same &= together.get(at..at + own.len()) == Some(own.as_slice());
        at += own.len();
    }
    Ok(same)
}
