//! `eval`: evaluates a trained model on a part of its corpus.

use crate::args::EvalArgs;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::measure::{Measured, measure};
use crate::progress::Waiting;
use crate::trained::{check_model, malformed, session, specification};
use autobatch_inspector::text::count;
use autobatch_models::catalogue::Options;
use autobatch_models::lessons::{self, CorpusPart, Lesson};
use autobatch_models::parser::greedy;
use serde_json::json;
use std::io::Write;

/// Instances per graph.
const TOGETHER: usize = 256;

/// Evaluates a part of the instances. Parsers also parse the test part greedily.
pub fn eval(args: &EvalArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    let options = Options {
        corpus: args.data.as_ref().map(Into::into),
        seed: args.seed,
        count: args.count,
        ..Options::default()
    };
    let specification = specification(&args.trained)?;
    let lesson =
        lessons::open_trained(&specification, &options).map_err(|error| malformed(&args.trained, error))?;
    check_model(&args.trained, lesson.entry)?;
    let mut session = session(&args.trained, &lesson.module)?;
    let part = CorpusPart::from(args.part);
    let waiting = Waiting::new("evaluating");
    let measured = measure(&mut session, &lesson, lesson.part(part), TOGETHER)?;
    let heads = match lesson.parsing.as_ref().filter(|_| part == CorpusPart::Test) {
        Some(parsing) => Some(greedy::measure(&mut session, parsing)?.unlabelled()),
        None => None,
    };
    drop(waiting);
    print(args, &lesson, &measured, heads, console)
}

fn print(
    args: &EvalArgs,
    lesson: &Lesson,
    measured: &Measured,
    heads: Option<f64>,
    console: &mut Console<'_>,
) -> Result<Answer, Failure> {
    let part = CorpusPart::from(args.part);
    let instances = lesson.part(part).len();
    let part = format!("{part:?}").to_lowercase();
    if args.trained.json {
        let answer = json!({
            "model": lesson.entry.name, "weights": args.trained.weights, "source": lesson.source, "part": part,
            "instances": instances, "loss": measured.loss, "scores": measured.scores(), "correct_heads": heads,
        });
        writeln!(console, "{answer:#}")?;
        return Ok(Answer::Yes);
    }
    writeln!(
        console,
        "{}  {}; {} {} of the {part} part ({})",
        lesson.entry.name,
        lesson.entry.about,
        count(instances as u64),
        lesson.entry.unit,
        lesson.source,
    )?;
    writeln!(console, "{part:<11} loss {}", measured.text())?;
    if let Some(heads) = heads {
        writeln!(console, "decoded     greedily: {:.2} % of the words have the correct head", 100.0 * heads)?;
    }
    Ok(Answer::Yes)
}
