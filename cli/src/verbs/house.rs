//! Small verbs: `passes`, `emit`, `devices`, `completions`.

use crate::args::{Cli, EmitArgs};
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::files::{Form, bytes_in_words, form_to_keep, write};
use crate::places::apart;
use crate::words::{count, plural, table};
use autobatch::runtime_cpu::resolve_threads;
use autobatch_planner::Jobs;
use autobatch_planner::passes::{PASSES, Pass};
use autobatch_planner::stages::{STAGES, Stage};
use clap::CommandFactory;
use serde_json::json;
use std::io::Write;

/// Lists the passes and stages of planning in their order.
pub fn passes(json: bool, console: &mut Console<'_>) -> Result<Answer, Failure> {
    if json {
        let pass = |pass: &Pass| {
            json!({
                "pass": pass.name, "inference": pass.on_in_inference, "training": pass.on_in_training,
                "keeps_forward_bits": pass.keeps_forward_bits,
                "keeps_gradient_bits": pass.keeps_gradient_bits, "what": pass.what,
            })
        };
        let stage = |stage: &Stage| {
            json!({
                "stage": stage.name, "turns": stage.turns, "keeps_forward_bits": stage.keeps_forward_bits,
                "keeps_gradient_bits": stage.keeps_gradient_bits, "what": stage.what,
            })
        };
        let passes: Vec<serde_json::Value> = PASSES.iter().map(pass).collect();
        let stages: Vec<serde_json::Value> = STAGES.iter().map(stage).collect();
        writeln!(console, "{:#}", json!({"passes": passes, "stages": stages}))?;
        return Ok(Answer::Yes);
    }
    let mut rows = vec![["pass", "on for", "bits", "what it does"].map(str::to_owned).to_vec()];
    for pass in PASSES {
        let on = match (pass.on_in_inference, pass.on_in_training) {
            (true, true) => "all",
            (true, false) => "inference",
            (false, true) => "training",
            (false, false) => "request",
        };
        let bits = bits_kept(pass.keeps_forward_bits, pass.keeps_gradient_bits);
        rows.push([pass.name, on, bits, pass.what].map(str::to_owned).to_vec());
    }
    console.write_all(table(&rows, &[0, 1, 2, 3]).as_bytes())?;
    let mut rows = vec![["stage", "turns", "bits", "what it does"].map(str::to_owned).to_vec()];
    for stage in &STAGES {
        let bits = bits_kept(stage.keeps_forward_bits, stage.keeps_gradient_bits);
        rows.push([stage.name, stage.turns, bits, stage.what].map(str::to_owned).to_vec());
    }
    writeln!(console)?;
    console.write_all(table(&rows, &[0, 1, 2, 3]).as_bytes())?;
    Ok(Answer::Yes)
}

fn bits_kept(forward: bool, gradient: bool) -> &'static str {
    match (forward, gradient) {
        (true, true) => "kept",
        (true, false) => "forward kept",
        (false, _) => "may change",
    }
}

/// Emits a graph.
pub fn emit(args: &EmitArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    let form = form_to_keep(&args.output, true)?;
    apart(&[&args.output], args.data.as_deref().as_slice())?;
    let graph = crate::emit::emit(args)?;
    let bytes = match form {
        Form::Binary => graph.to_bytes(),
        Form::Json => super::show::graph_json(&graph)?,
        Form::Text | Form::Dot | Form::Svg => graph.to_text().into_bytes(),
    };
    write(&args.output, &bytes, console)?;
    if args.output != "-" {
        let size = bytes_in_words(bytes.len() as u64);
        writeln!(
            console,
            "wrote {} ({size}): {}, {}, of which {} need a step",
            args.output,
            plural(graph.instances() as u64, "instance"),
            plural(graph.arena.len() as u64, "node"),
            count(Jobs::new(&graph, &[]).nodes().len() as u64),
        )?;
        writeln!(console, "Next: autobatch plan {0}   |   autobatch policies {0}", args.output)?;
    }
    Ok(Answer::Yes)
}

/// Says what this machine has for executing plans.
pub fn devices(console: &mut Console<'_>) -> Result<Answer, Failure> {
    let threads = resolve_threads(0);
    let features = cpu_features();
    let features = if features.is_empty() { "scalar".to_owned() } else { features.join(" ") };
    writeln!(console, "cpu  {}, {threads} threads, {features}", std::env::consts::ARCH)?;
    super::gpu::list(console)?;
    Ok(Answer::Yes)
}

/// The instruction sets that kernels are written for, as far as this processor has them.
fn cpu_features() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        let known = [
            ("avx2", std::arch::is_x86_feature_detected!("avx2")),
            ("fma", std::arch::is_x86_feature_detected!("fma")),
            ("avx512f", std::arch::is_x86_feature_detected!("avx512f")),
        ];
        known.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
    }
    #[cfg(target_arch = "aarch64")]
    {
        vec!["neon"]
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        Vec::new()
    }
}

/// Prints a completion script.
pub fn completions(shell: clap_complete::Shell, console: &mut Console<'_>) -> Result<Answer, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "autobatch", &mut script);
    console.write_all(&script)?;
    Ok(Answer::Yes)
}
