//! `passes`: lists the passes and stages of planning.

use crate::console::Console;
use crate::failure::{Answer, Failure};
use autobatch_inspector::text::wrapped_table;
use autobatch_planner::passes::{PASSES, Pass};
use autobatch_planner::{Stage, stages};
use serde_json::json;
use std::io::Write;

/// Lists the passes and stages in execution order.
pub fn passes(json: bool, console: &mut Console<'_>) -> Result<Answer, Failure> {
    if json {
        let pass = |pass: &Pass| {
            json!({
                "pass": pass.name, "inference": pass.on_in_inference, "training": pass.on_in_training,
                "keeps_forward_bits": pass.keeps_forward_bits,
                "keeps_gradient_bits": pass.keeps_gradient_bits, "description": pass.what,
            })
        };
        let stage = |stage: &Stage| {
            json!({
                "stage": stage.name, "transforms": stage.turns, "description": stage.what,
            })
        };
        let passes: Vec<serde_json::Value> = PASSES.iter().map(pass).collect();
        let stages: Vec<serde_json::Value> = stages().iter().map(stage).collect();
        writeln!(console, "{:#}", json!({"passes": passes, "stages": stages}))?;
        return Ok(Answer::Yes);
    }
    let mut rows = vec![["pass", "on for", "bits", "description"].map(str::to_owned).to_vec()];
    for pass in PASSES {
        let on = match (pass.on_in_inference, pass.on_in_training) {
            (true, true) => "all",
            (true, false) => "inference",
            (false, true) => "training",
            (false, false) => "request",
        };
        let bits = bits_text(pass.keeps_forward_bits, pass.keeps_gradient_bits);
        rows.push([pass.name, on, bits, pass.what].map(str::to_owned).to_vec());
    }
    let text = wrapped_table(&rows, console.width());
    console.write_all(text.as_bytes())?;
    let mut rows = vec![["stage", "input -> output", "description"].map(str::to_owned).to_vec()];
    for stage in stages() {
        rows.push([stage.name, stage.turns, stage.what].map(str::to_owned).to_vec());
    }
    writeln!(console)?;
    let text = wrapped_table(&rows, console.width());
    console.write_all(text.as_bytes())?;
    Ok(Answer::Yes)
}

fn bits_text(forward: bool, gradient: bool) -> &'static str {
    match (forward, gradient) {
        (true, true) => "unchanged",
        (true, false) => "forward unchanged",
        (false, _) => "may change",
    }
}
