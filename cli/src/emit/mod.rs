//! Graphs of minibatches: a model of the catalogue over its corpus or generated instances, or random cells.

mod random;

use crate::args::EmitArgs;
use crate::args::values::RANDOM;
use crate::failure::Failure;
use autobatch_ir::graph::{Graph, GraphData};
use autobatch_models::catalogue::Options;
use autobatch_models::lessons::{self, Lesson};

/// Emits the graph that the options describe.
pub fn emit(args: &EmitArgs) -> Result<GraphData, Failure> {
    reject_unused_options(args)?;
    let graph = match args.model.as_str() {
        RANDOM => random::emit(args),
        _ => model(args),
    }?;
    graph.verify().map_err(|errors| Failure::input(format!("the emitted graph breaks a rule: {errors}")))?;
    Ok(graph)
}

/// Rejects options that the model does not use.
fn reject_unused_options(args: &EmitArgs) -> Result<(), Failure> {
    let is_random = args.model == RANDOM;
    let options = [
        ("--data", args.data.is_some(), !is_random),
        ("--embedding", args.embedding.is_some(), !is_random),
        ("--loss", args.loss, !is_random),
        ("--cells", args.cells.is_some(), is_random),
        ("--nodes", args.nodes.is_some(), is_random),
    ];
    match options.into_iter().find(|(_, given, used)| *given && !used) {
        Some((option, ..)) => Err(Failure::usage(format!("model {} does not use {option}", args.model))
            .help(format!("remove {option}"))),
        None => Ok(()),
    }
}

/// Emits a minibatch of the training instances. The outputs have the names `INSTANCE.NUMBER` or `INSTANCE.loss`.
fn model(args: &EmitArgs) -> Result<GraphData, Failure> {
    let options = Options {
        corpus: args.data.as_ref().map(Into::into),
        seed: args.seed,
        count: match &args.data {
            Some(_) => None,
            None => Some(needed(args)?),
        },
        hidden: args.hidden.map(|width| width as usize),
        embedding: args.embedding.map(|width| width as usize),
        ..Options::default()
    };
    let lesson = lessons::open(&args.model, &options)?;
    let graph = Graph::new(&lesson.module);
    for (key, instance) in minibatch(args, &lesson)?.enumerate() {
        graph.instance(key as u64);
        if args.loss {
            graph.loss(&format!("{key}.loss"), lesson.workload.loss(&graph, instance));
            continue;
        }
        let mut outputs = Vec::new();
        lesson.workload.emit(&graph, instance, &mut outputs);
        for (number, output) in outputs.into_iter().enumerate() {
            graph.output(&format!("{key}.{number}"), output);
        }
    }
    emitted(graph.finish())
}

/// The numbers of the instances of the requested minibatch.
fn minibatch(args: &EmitArgs, lesson: &Lesson) -> Result<std::ops::Range<usize>, Failure> {
    let (size, available) = (args.instances as usize, lesson.train().len());
    let first = args.batch as usize * size;
    if first + size <= available {
        return Ok(first..first + size);
    }
    let message = format!(
        "{} has {available} training {}, too few for minibatch {} of {size}",
        lesson.source, lesson.entry.unit, args.batch
    );
    let whole = available / size;
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
