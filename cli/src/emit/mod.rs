//! Graphs to try things on: small models at the grain of cells, over corpora or invented data.
//!
//! The models have the shape of the real ones (which cell reads what), so that batches, bounds and
//! tables are those of the real workload; they are as small in source as can be. Data comes from a
//! file of a corpus, or from the generators, whose sizes are like the corpus's.

mod bilstm;
mod lattice;
mod random;
mod trees;

use crate::args::{EmitArgs, EmitModel};
use crate::failure::Failure;
use autobatch_ir::graph::GraphData;
use std::collections::HashMap;

/// The graph that a command line asks for.
pub fn emit(args: &EmitArgs) -> Result<GraphData, Failure> {
    refuse_options_of_others(args)?;
    let graph = match args.model {
        EmitModel::Random => random::emit(args),
        EmitModel::Trees => trees::emit(args),
        EmitModel::Bilstm => bilstm::emit(args),
        EmitModel::Lattice => lattice::emit(args),
    }?;
    graph.verify().map_err(|errors| Failure::input(format!("the emitted graph is not sound: {errors}")))?;
    Ok(graph)
}

/// Refuses options that the model does not heed.
fn refuse_options_of_others(args: &EmitArgs) -> Result<(), Failure> {
    use EmitModel::{Bilstm, Lattice, Random, Trees};
    let options: [(&str, bool, &[EmitModel]); 4] = [
        ("--data", args.data.is_some(), &[Trees, Bilstm, Lattice]),
        ("--cells", args.cells.is_some(), &[Trees, Random]),
        ("--nodes", args.nodes.is_some(), &[Random]),
        ("--every-node", args.every_node, &[Trees]),
    ];
    let name = |model: &EmitModel| format!("{model:?}").to_lowercase();
    for (option, given, heeded_by) in options {
        if given && !heeded_by.contains(&args.model) {
            let others: Vec<String> = heeded_by.iter().map(name).collect();
            let message = format!("{option} is no option of {}", name(&args.model));
            return Err(Failure::usage(message)
                .help(format!("leave {option} out; it is one of {}", others.join(", "))));
        }
    }
    Ok(())
}

/// The instances of the minibatch that is asked for.
fn minibatch<T>(args: &EmitArgs, all: Vec<T>) -> Result<Vec<T>, Failure> {
    let (size, first) = (args.instances as usize, args.batch as usize * args.instances as usize);
    let there = all.len();
    let taken: Vec<T> = all.into_iter().skip(first).take(size).collect();
    if taken.len() == size {
        return Ok(taken);
    }
    if let Some(path) = args.data.as_ref().filter(|_| there == 0) {
        return Err(Failure::input(format!("{path}: the file holds no instances")).help("check the path"));
    }
    let whole = there / size.max(1);
    let message =
        format!("minibatch {} of {size} instances is not there: the data has {there} instances", args.batch);
    Err(Failure::usage(message)
        .help(format!("--batch counts from 0; whole minibatches in the data: {whole}")))
}

/// More instances than this are not invented: all up to those that are asked for must be made, in memory.
const MOST_INVENTED: usize = 1 << 18;

/// How many instances a generator must make for the minibatch that is asked for.
fn needed(args: &EmitArgs) -> Result<usize, Failure> {
    let needed = (args.batch as usize + 1).saturating_mul(args.instances as usize);
    if needed <= MOST_INVENTED {
        return Ok(needed);
    }
    let EmitArgs { batch, instances, .. } = args;
    let message = format!(
        "minibatch {batch} of {instances} instances ends at instance {needed}, {MOST_INVENTED} are invented at most"
    );
    Err(Failure::usage(message).help("ask for fewer --instances or an earlier --batch, or give --data"))
}

/// A fault of a model that is built in would be one of this file.
fn sound<T>(result: Result<T, autobatch_ir::EmitError>) -> Result<T, Failure> {
    result.map_err(|error| Failure::usage(error.to_string()))
}

/// Words by number, in the order of first appearance.
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
