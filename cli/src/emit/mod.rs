//! Sample graphs for experiments with the planner, emitted by small models over a corpus or generated
//! data.
//!
//! Each model has the data flow of the full model, so batches, bounds and tables are those of the real
//! workload. Data comes from a corpus file or from a generator with a similar distribution of sizes.

mod bilstm;
mod lattice;
mod random;
mod trees;

use crate::args::{EmitArgs, EmitModel};
use crate::failure::Failure;
use autobatch_ir::graph::GraphData;
use std::collections::HashMap;

/// Emits the graph that the options describe.
pub fn emit(args: &EmitArgs) -> Result<GraphData, Failure> {
    reject_unused_options(args)?;
    let graph = match args.model {
        EmitModel::Random => random::emit(args),
        EmitModel::Trees => trees::emit(args),
        EmitModel::Bilstm => bilstm::emit(args),
        EmitModel::Lattice => lattice::emit(args),
    }?;
    graph.verify().map_err(|errors| Failure::input(format!("the emitted graph breaks a rule: {errors}")))?;
    Ok(graph)
}

/// Rejects options that the model does not use.
fn reject_unused_options(args: &EmitArgs) -> Result<(), Failure> {
    use EmitModel::{Bilstm, Lattice, Random, Trees};
    let options: [(&str, bool, &[EmitModel]); 4] = [
        ("--data", args.data.is_some(), &[Trees, Bilstm, Lattice]),
        ("--cells", args.cells.is_some(), &[Trees, Random]),
        ("--nodes", args.nodes.is_some(), &[Random]),
        ("--every-node", args.every_node, &[Trees]),
    ];
    let name = |model: &EmitModel| format!("{model:?}").to_lowercase();
    for (option, given, used_by) in options {
        if given && !used_by.contains(&args.model) {
            let models: Vec<String> = used_by.iter().map(name).collect();
            let message = format!("model {} does not use {option}", name(&args.model));
            return Err(Failure::usage(message)
                .help(format!("remove {option}; it is an option of {}", models.join(", "))));
        }
    }
    Ok(())
}

/// Selects the instances of the requested minibatch.
fn minibatch<T>(args: &EmitArgs, all: Vec<T>) -> Result<Vec<T>, Failure> {
    let (size, first) = (args.instances as usize, args.batch as usize * args.instances as usize);
    let available = all.len();
    let taken: Vec<T> = all.into_iter().skip(first).take(size).collect();
    if taken.len() == size {
        return Ok(taken);
    }
    if let Some(path) = args.data.as_ref().filter(|_| available == 0) {
        return Err(Failure::input(format!("{path}: the file has no instances")).help("check the path"));
    }
    let whole = available / size.max(1);
    let message = format!(
        "the data has {available} instances, too few for minibatch {} of {size} instances",
        args.batch
    );
    Err(Failure::usage(message)
        .help(format!("--batch starts at 0; the number of complete minibatches is {whole}")))
}

/// Maximum number of generated instances. The generator makes all instances up to the requested
/// minibatch, in memory.
const MAX_GENERATED: usize = 1 << 18;

/// The number of instances that the generator must make for the requested minibatch.
fn needed(args: &EmitArgs) -> Result<usize, Failure> {
    let needed = (args.batch as usize + 1).saturating_mul(args.instances as usize);
    if needed <= MAX_GENERATED {
        return Ok(needed);
    }
    let EmitArgs { batch, instances, .. } = args;
    let message = format!(
        "minibatch {batch} of {instances} instances needs {needed} generated instances, the maximum is {MAX_GENERATED}"
    );
    Err(Failure::usage(message).help("reduce --instances or --batch, or give --data"))
}

/// Converts an error of a built-in model. Such an error would be a bug in the model.
fn emitted<T>(result: Result<T, autobatch_ir::EmitError>) -> Result<T, Failure> {
    result.map_err(|error| Failure::usage(error.to_string()))
}

/// Numbers words in order of first occurrence.
#[derive(Default)]
struct Vocabulary {
    numbers: HashMap<String, u32>,
}

impl Vocabulary {
    fn number(&mut self, word: &str) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(word.to_owned()).or_insert(next)
    }

    fn len(&self) -> usize {
        self.numbers.len().max(1)
    }
}
