//! Trained models in checkpoints: their specification and their parameters.

use crate::args::TrainedArgs;
use crate::failure::Failure;
use autobatch::prelude::*;
use autobatch::train::{CheckpointError, read_notes, read_weights};
use autobatch_models::catalogue::{Entry, OpenError};
use std::sync::Arc;

/// The note of a checkpoint that holds the specification of its model.
pub(crate) const SPECIFICATION: &str = "model";

/// Reads the specification in the checkpoint of a trained model.
pub(crate) fn specification(args: &TrainedArgs) -> Result<String, Failure> {
    let help = "predictions need a checkpoint that `autobatch train --save` wrote; it holds the vocabulary";
    let notes = read_notes(&args.weights).map_err(|error| match error.fault() {
        CheckpointError::NoCheckpoint => {
            Failure::input(format!("{}: the file holds arrays without a vocabulary", args.weights)).help(help)
        }
        _ => Failure::input(error.to_string()),
    })?;
    notes.get(SPECIFICATION).cloned().ok_or_else(|| {
        Failure::input(format!("{}: the checkpoint has no description of its model", args.weights)).help(help)
    })
}

/// Checks that the checkpoint holds the named model.
pub(crate) fn check_model(args: &TrainedArgs, entry: &Entry) -> Result<(), Failure> {
    if entry.name == args.name {
        return Ok(());
    }
    let TrainedArgs { weights, name, .. } = args;
    let message = format!("{weights} holds a model {}, found {name} on the command line", entry.name);
    Err(Failure::usage(message).help(format!("name the model {}", entry.name)))
}

/// An error of the specification in a checkpoint.
pub(crate) fn malformed(args: &TrainedArgs, error: OpenError) -> Failure {
    match error {
        OpenError::Specification(_) | OpenError::Unknown(_) | OpenError::Size { .. } => {
            Failure::input(format!("{}: {error}", args.weights))
        }
        other => other.into(),
    }
}

/// A session with the parameters of the checkpoint.
pub(crate) fn session(args: &TrainedArgs, module: &Arc<Module>) -> Result<Session, Failure> {
    let weights = read_weights(&args.weights, module).map_err(|error| Failure::input(error.to_string()))?;
    let options = SessionOptions {
        device: args.device.clone(),
        policy: args.policy.clone(),
        threads: args.threads,
        limits: args.limits.of_sessions(),
        ..SessionOptions::default()
    };
    Ok(Session::with_options(module, Arc::new(weights), options)?)
}
