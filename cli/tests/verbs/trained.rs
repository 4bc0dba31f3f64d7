//! Tests of `eval` and `predict`: a checkpoint alone restores the model and its vocabulary.

use crate::{scratch, transcript};
use autobatch_models::catalogue::ENTRIES;
use serde_json::Value as Json;
use std::process::{Command, Stdio};

/// Trains a small model and returns its checkpoint and the printed text.
fn trained(model: &str, more: &[&str]) -> (String, String) {
    let path = scratch(&format!("trained_{model}.safetensors"));
    let words = ["train", model, "--count", "20", "--hidden", "6", "--epochs", "2", "--save", &path];
    let printed = transcript(&[&words[..], more].concat());
    assert!(printed.contains("Next: autobatch predict"), "{printed}");
    (path, printed)
}

/// The line that begins with a word.
fn line<'a>(printed: &'a str, start: &str) -> &'a str {
    printed.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("no {start} in {printed}"))
}

#[test]
fn an_evaluation_repeats_the_numbers_of_training() {
    for entry in &ENTRIES {
        let (path, printed) = trained(entry.name, &[]);
        let words = ["eval", entry.name, "--weights", &path, "--count", "20", "--part"];
        let evaluated = |part: &str, more: &[&str]| transcript(&[&words[..], &[part], more].concat());
        let last = line(&printed, "epoch   2");
        let development = evaluated("development", &[]);
        let (_, numbers) = line(&development, "development").split_once("loss ").expect("a loss");
        assert!(
            last.contains(&format!("development loss {numbers}")),
            "{}: {last}\n{development}",
            entry.name
        );
        let document: Json = serde_json::from_str(&evaluated("test", &["--json"])).expect("JSON");
        let text = evaluated("test", &[]);
        let loss = document["loss"].as_f64().expect("a number");
        assert!(text.contains(&format!("loss {loss:.4}")), "{}: {text}", entry.name);
        assert_eq!(document["instances"], 4, "{document:#}");
        assert_eq!(document["correct_heads"].is_f64(), entry.name == "parser", "{document:#}");
    }
}

#[test]
fn predictions_read_files_and_standard_input() {
    let (path, _) = trained("names", &[]);
    let input = scratch("to_predict.txt");
    std::fs::write(&input, "Satoshi\nMüller\n").expect("the scratch folder exists");
    let words = ["predict", "names", "--weights", &path];
    let printed = transcript(&[&words[..], &[&input]].concat());
    assert_eq!(printed.lines().count(), 2, "{printed}");
    assert!(printed.starts_with("Satoshi\t") && printed.contains(" %, "), "{printed}");
    let documents = transcript(&[&words[..], &[&input, "--json"]].concat());
    for (document, text) in documents.lines().zip(printed.lines()) {
        let document: Json = serde_json::from_str(document).expect("every line is JSON");
        let (name, answer) = text.split_once('\t').expect("a name and its answer");
        assert_eq!(document["name"], name);
        assert!(answer.starts_with(document["answer"].as_str().expect("a language")), "{text}: {document}");
        let share: f64 = document["best"][0]["probability"].as_f64().expect("a number");
        assert!(answer.contains(&format!("{:.1} %", 100.0 * share)) && share <= 1.0, "{text}: {document}");
    }
    let mut child = Command::new(env!("CARGO_BIN_EXE_autobatch"))
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program was built");
    let names = std::fs::read(&input).expect("the file was just written");
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), &names).expect("the program reads");
    let output = child.wait_with_output().expect("the program exits");
    assert_eq!(String::from_utf8_lossy(&output.stdout), printed);
}

#[test]
fn words_need_no_tags_and_errors_name_the_place() {
    let (path, _) = trained("tagger", &[]);
    let input = scratch("untagged.txt");
    let words = ["predict", "tagger", "--weights", &path, &input];
    std::fs::write(&input, "Ada lives in Rome\n").expect("the scratch folder exists");
    let printed = transcript(&words);
    assert!(printed.starts_with("Ada|") && printed.matches('|').count() == 4, "{printed}");
    std::fs::write(&input, "Ada lives|X\n").expect("the scratch folder exists");
    let printed = transcript(&words);
    assert!(
        printed.contains("untagged.txt:1:11: expected O, or I-") && printed.contains("[exit 3]"),
        "{printed}"
    );
}

#[test]
fn checkpoints_without_the_model_are_rejected() {
    let (path, _) = trained("treernn", &[]);
    let printed = transcript(&["eval", "names", "--weights", &path]);
    assert!(printed.contains("holds a model treernn, found names on the command line"), "{printed}");
    let printed = transcript(&["predict", "names", "--weights", &path, "x"]);
    assert!(printed.contains("name the model treernn") && printed.contains("[exit 2]"), "{printed}");
    let plain = scratch("plain.safetensors");
    let folder = scratch("plain");
    let words = ["bench", "names", "--hidden", "4", "--count", "2", "--dump", &folder];
    assert!(transcript(&words).contains("wrote"));
    std::fs::copy(format!("{folder}/weights.safetensors"), &plain).expect("the file was just written");
    let printed = transcript(&["eval", "names", "--weights", &plain]);
    assert!(printed.contains("the file holds arrays without a vocabulary"), "{printed}");
    assert!(printed.contains("autobatch train --save") && printed.contains("[exit 3]"), "{printed}");
}
