//! A signal during `train`: the run stops at a minibatch, and the printed command continues with equal bits.
#![cfg(unix)]

use crate::scratch;
use autobatch::train::read_weights;
use autobatch_models::lessons;
use serde_json::Value as Json;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

const OPTIONS: [&str; 13] = [
    "train",
    "treelstm",
    "--count",
    "300",
    "--hidden",
    "24",
    "--epochs",
    "5",
    "--threads",
    "1",
    "--json",
    "--seed",
    "3",
];

fn program(folder: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_autobatch"));
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The lines of JSON without the work of a process: a resumed run does not know that of the run before it.
fn epochs(lines: &[String]) -> Vec<Json> {
    let parsed = lines.iter().map(|line| serde_json::from_str::<Json>(line).expect("every line is JSON"));
    let mut epochs: Vec<Json> = parsed.filter(|event| event["event"] == "epoch").collect();
    for epoch in &mut epochs {
        for work in ["batches", "bound", "seconds_emit_plan_execute_update_wait"] {
            epoch[work] = Json::Null;
        }
    }
    epochs
}

fn lines(output: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(output).lines().map(str::to_owned).collect()
}

#[test]
fn a_signal_writes_a_checkpoint_from_which_the_bits_continue() {
    let folder = scratch("interrupted");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the scratch folder exists");
    let whole = program(&folder).args(OPTIONS).args(["--save", "whole.safetensors"]).output();
    let whole = whole.expect("the program was built");
    assert_eq!(whole.status.code(), Some(0), "{}", String::from_utf8_lossy(&whole.stderr));

    let mut child = program(&folder).args(OPTIONS).spawn().expect("the program was built");
    let mut first = Vec::new();
    let mut output = BufReader::new(child.stdout.take().expect("piped")).lines();
    while first.len() < 2 {
        first.push(output.next().expect("the run goes on").expect("UTF-8"));
    }
    let signal = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(signal.expect("kill exists").success());
    first.extend(output.map(|line| line.expect("UTF-8")));
    assert_eq!(child.wait().expect("the program exits").code(), Some(130), "{first:?}");
    let end: Json = serde_json::from_str(first.last().expect("a line")).expect("JSON");
    assert_eq!((&end["reason"], &end["tested"]), (&"interrupted".into(), &Json::Null), "{end:#}");
    let command = end["continue"].as_str().expect("a command");
    assert!(command.contains("--resume treelstm.interrupted.safetensors"), "{command}");

    let words: Vec<&str> = command.split(' ').skip(1).chain(["--save", "rest.safetensors"]).collect();
    let rest = program(&folder).args(words).output().expect("the program was built");
    assert_eq!(rest.status.code(), Some(0), "{}", String::from_utf8_lossy(&rest.stderr));
    let (mut joined, rest) = (epochs(&first), lines(&rest.stdout));
    assert!(joined.len() < 5, "the signal came too late");
    joined.extend(epochs(&rest));
    assert_eq!(joined, epochs(&lines(&whole.stdout)));
    let options = autobatch_models::catalogue::Options {
        seed: 3,
        count: Some(300),
        hidden: Some(24),
        ..Default::default()
    };
    let module = lessons::open("treelstm", &options).expect("the model opens").module;
    let [whole, rest] = ["whole", "rest"].map(|name| {
        read_weights(format!("{folder}/{name}.safetensors"), &module).expect("the checkpoint was written")
    });
    assert_eq!(whole, rest, "the parameters have equal bits");
}
