//! `predict`: predicts the instances of a file with a trained model.

use crate::args::PredictArgs;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::files::read;
use crate::progress::Waiting;
use crate::trained::{check_model, malformed, session, specification};
use autobatch_models::lessons::{Input, PredictError, Predicted, Predictor, Unknown};
use std::io::Write;
use std::path::Path;

/// Predicts every instance and prints one answer per instance, as text or as a line of JSON.
pub fn predict(args: &PredictArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    let specification = specification(&args.trained)?;
    let predictor = Predictor::new(&specification).map_err(|error| malformed(&args.trained, error))?;
    check_model(&args.trained, predictor.entry)?;
    let mut session = session(&args.trained, &predictor.module)?;
    let folder = Path::new(&args.input);
    let bytes = if folder.is_dir() { Vec::new() } else { read(&args.input)? };
    let file = if args.input == "-" { "standard input" } else { &args.input };
    let input = match folder.is_dir() {
        true => Input::Folder(folder),
        false => Input::Content { bytes: &bytes, file },
    };
    let waiting = Waiting::new("predicting");
    let Predicted { answers, unknown } =
        predictor.predict(&mut session, input).map_err(|error| match error {
            PredictError::Item { .. } => Failure::input(format!("{file}: {error}")),
            _ => Failure::input(error.to_string()),
        })?;
    drop(waiting);
    note_unknown(&unknown);
    for answer in answers {
        match args.trained.json {
            true => writeln!(console, "{}", answer.json)?,
            false => writeln!(console, "{}", answer.text)?,
        }
    }
    Ok(Answer::Yes)
}

/// Tells on standard error that the model does not know some words. Standard output holds answers alone.
pub(super) fn note_unknown(unknown: &Unknown) {
    if unknown.unknown > 0 {
        // A note that cannot be printed is no reason to lose the answers.
        let _ = writeln!(std::io::stderr(), "note: {unknown}");
    }
}
