//! `predict`: predicts the instances of a file with a trained model.

use crate::args::PredictArgs;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::progress::Waiting;
use crate::trained::{check_model, malformed, session, specification};
use autobatch_models::lessons::{Chunks, Input, PredictError, Predicted, Predictor, Unknown};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

/// The bytes that are read at once.
const BUFFER: usize = 1 << 18;
/// The instances that are predicted before their answers are printed.
const TOGETHER: usize = 1024;

/// Predicts every instance and prints one answer per instance, as text or as a line of JSON. A file of any size takes the memory of
/// some instances.
pub fn predict(args: &PredictArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    let specification = specification(&args.trained)?;
    let predictor = Predictor::new(&specification).map_err(|error| malformed(&args.trained, error))?;
    check_model(&args.trained, predictor.entry)?;
    let mut session = session(&args.trained, &predictor.module)?;
    let folder = Path::new(&args.input);
    let file = if args.input == "-" { "standard input" } else { &args.input };
    let mut unknown = Unknown::default();
    let mut print = |predicted: Predicted| -> Result<(), Failure> {
        unknown.add(predicted.unknown);
        for answer in predicted.answers {
            match args.trained.json {
                true => writeln!(console, "{}", answer.json)?,
                false => writeln!(console, "{}", answer.text)?,
            }
        }
        Ok(())
    };
    if folder.is_dir() {
        let waiting = Waiting::new("predicting");
        let predicted = predictor.predict(&mut session, Input::Folder(folder));
        drop(waiting);
        print(predicted.map_err(|error| failed(&error, file))?)?;
    } else {
        let unreadable = |error: std::io::Error| Failure::input(format!("{file}: {error}"));
        let mut chunks = Chunks::new(open(&args.input).map_err(unreadable)?, predictor.units, TOGETHER);
        while let Some(chunk) = chunks.next_chunk().map_err(unreadable)? {
            let predicted = predictor.predict_chunk(&mut session, &chunk, file);
            print(predicted.map_err(|error| failed(&error, file))?)?;
        }
    }
    note_unknown(&unknown);
    Ok(Answer::Yes)
}

/// Opens a file, or standard input for `-`.
pub(super) fn open(path: &str) -> io::Result<Box<dyn BufRead>> {
    Ok(match path {
        "-" => Box::new(BufReader::with_capacity(BUFFER, io::stdin())),
        path => Box::new(BufReader::with_capacity(BUFFER, File::open(path)?)),
    })
}

/// The failure of a prediction of this file.
pub(super) fn failed(error: &PredictError, file: &str) -> Failure {
    match error {
        PredictError::Item { .. } => Failure::input(format!("{file}: {error}")),
        _ => Failure::input(error.to_string()),
    }
}

/// Tells on standard error that the model does not know some words. Standard output holds answers alone.
pub(super) fn note_unknown(unknown: &Unknown) {
    if unknown.unknown > 0 {
        // A note that cannot be printed is no reason to lose the answers.
        let _ = writeln!(std::io::stderr(), "note: {unknown}");
    }
}
