//! Writes the parameters, outputs and gradients of one step, so that another program can repeat it.
//!
//! All instances form one graph, and the loss is their mean. All parameters are random, including
//! biases, so that a missing parameter changes the results. Arrays are safetensors. Outputs have no
//! names; they are concatenated 32-bit floats.

use crate::error::BenchError;
use autobatch::random::Random;
use autobatch::train::write_weights;
use autobatch_ir::files::write as write_file;
use autobatch_ir::id::{ParamId, ValueId};
use autobatch_ir::plan::Mode;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::{Graph, Value, Weights};
use autobatch_models::catalogue::{self, OpenModel};
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Gradients, Planner, Request};
use autobatch_runtime_cpu::{Executor, Inputs};
use std::path::{Path, PathBuf};

/// Parameters are uniform in `-MAX_WEIGHT..MAX_WEIGHT`, small enough that gates do not saturate.
const MAX_WEIGHT: f32 = 0.2;

/// Writes `weights.safetensors`, `outputs.f32` and `gradients.safetensors` of one step into a folder
/// and returns their paths.
///
/// # Errors
/// If the model is unknown, an option does not fit, the step fails or a file cannot be written.
pub fn dump(name: &str, options: &catalogue::Options, folder: &Path) -> Result<[PathBuf; 3], BenchError> {
    let opened = catalogue::open(name, options)?;
    if opened.workload.instances() == 0 {
        return Err(BenchError::NoInstances);
    }
    let weights = random_weights(&opened);
    let paths = ["weights.safetensors", "outputs.f32", "gradients.safetensors"].map(|file| folder.join(file));
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| BenchError::Step(autobatch::Error::Io { path, error })
    };
    std::fs::create_dir_all(folder).map_err(failed(folder))?;
    write_weights(&paths[0], &weights).map_err(|error| BenchError::Step(error.into()))?;
    let outputs = outputs(&opened, &weights)?;
    let bytes: Vec<u8> = outputs.iter().flat_map(|x| x.to_le_bytes()).collect();
    write_file(&paths[1], &bytes).map_err(failed(&paths[1]))?;
    write_weights(&paths[2], &gradients(&opened, &weights)?)
        .map_err(|error| BenchError::Step(error.into()))?;
    Ok(paths)
}

fn random_weights(opened: &OpenModel) -> Weights {
    let mut weights = Weights::init(&opened.module, 0);
    let mut random = Random::new(1);
    for number in 0..weights.len() {
        let id = ParamId::new(number);
        let values: Vec<f32> =
            weights.get(id).iter().map(|_| (2.0 * random.unit() as f32 - 1.0) * MAX_WEIGHT).collect();
        weights.set(id, &values).expect("the number of values is equal");
    }
    weights
}

fn outputs(opened: &OpenModel, weights: &Weights) -> Result<Vec<f32>, BenchError> {
    let graph = Graph::new(&opened.module);
    let wanted = emit(opened, &graph, |graph, instance, into| opened.workload.emit(graph, instance, into))?;
    let request = Request { wanted: &wanted, ..Request::default() };
    Ok(execute(&graph, &request, weights)?.1)
}

/// The gradients of the mean loss, as weights with the names of the parameters.
fn gradients(opened: &OpenModel, weights: &Weights) -> Result<Weights, BenchError> {
    let graph = Graph::new(&opened.module);
    let wanted =
        emit(opened, &graph, |graph, instance, into| into.push(opened.workload.loss(graph, instance)))?;
    let share = 1.0 / wanted.len() as f32;
    let losses: Vec<(ValueId, f32)> = wanted.iter().map(|&loss| (loss, share)).collect();
    let gradients = Some(Gradients { losses: &losses, params: None, values: &[] });
    let request = Request { wanted: &wanted, mode: Mode::Train, gradients, ..Request::default() };
    let (executor, _) = execute(&graph, &request, weights)?;
    let mut found = Weights::init(&opened.module, 0);
    for number in 0..found.len() {
        let id = ParamId::new(number);
        let zeros = vec![0.0; found.get(id).len()];
        found
            .set(id, executor.gradient_of(id).unwrap_or(&zeros))
            .expect("a gradient has the length of its parameter");
    }
    Ok(found)
}

fn emit(
    opened: &OpenModel,
    graph: &Graph,
    instance: impl for<'g> Fn(&'g Graph, usize, &mut Vec<Value<'g>>),
) -> Result<Vec<ValueId>, BenchError> {
    let mut values = Vec::new();
    for number in 0..opened.workload.instances() {
        graph.instance(number as u64);
        instance(graph, number, &mut values);
    }
    graph.check()?;
    Ok(values.iter().filter_map(|value| value.id()).collect())
}

fn execute(
    graph: &Graph,
    request: &Request<'_>,
    weights: &Weights,
) -> Result<(Executor, Vec<f32>), BenchError> {
    let data = graph.data();
    let mut planner = Planner::new(Policy::default().load()?);
    let plan = planner.plan(&data, request)?.verify()?;
    let mut executor = Executor::new(1)?;
    let bound = Inputs { words: &data.bindings.words, floats: &data.bindings.floats, noise: Noise::Off };
    executor.execute(&plan, weights, bound)?;
    let outputs =
        (0..plan.outputs.len()).flat_map(|number| executor.output(&plan, number)).copied().collect();
    Ok((executor, outputs))
}
