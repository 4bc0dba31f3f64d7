//! Tests of help pages, examples, suggestions, completions and manual pages.

use crate::scratch;
use autobatch_cli::Cli;
use clap::{CommandFactory, Parser};
use std::process::{Command, Output, Stdio};

fn autobatch(words: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_autobatch"));
    program.args(words).env_remove("COLUMNS").stdin(Stdio::null()).output().expect("the program was built")
}

fn printed(words: &[&str]) -> String {
    String::from_utf8(autobatch(words).stdout).expect("UTF-8")
}

/// All verbs but `help`.
fn verbs() -> Vec<String> {
    let command = Cli::command();
    command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect()
}

#[test]
fn help_pages_keep_their_text() {
    let pages: Vec<String> = verbs()
        .iter()
        .map(|verb| format!("==== autobatch {verb} --help\n{}", printed(&[verb, "--help"])))
        .collect();
    insta::assert_snapshot!(format!("{}\n{}", printed(&["--help"]), pages.join("\n")));
}

/// The example commands of a help page.
fn examples(page: &str) -> Vec<String> {
    let after = page.split("Examples:").nth(1).unwrap_or_default();
    let lines = after.lines().map(str::trim);
    lines.filter(|line| line.starts_with("autobatch ")).map(str::to_owned).collect()
}

/// The words of a command line. Redirections end it.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut quoted: Option<String> = None;
    for word in line.split(' ').take_while(|word| !["<", ">"].contains(word)) {
        let bare = word.trim_matches('\'').to_owned();
        match (&mut quoted, word.starts_with('\''), word.ends_with('\'')) {
            (None, true, false) => quoted = Some(bare),
            (Some(text), _, ends) => {
                *text += &format!(" {bare}");
                if ends {
                    words.extend(quoted.take());
                }
            }
            _ => words.push(bare),
        }
    }
    words
}

#[test]
fn every_example_of_every_help_page_parses() {
    for verb in verbs() {
        let page = printed(&[&verb, "--help"]);
        let found = examples(&page);
        assert!(found.iter().any(|line| line.starts_with(&format!("autobatch {verb}"))), "{verb}: {page}");
        assert!(page.contains("Exit codes: 0 success"), "{verb}");
        for line in found {
            if let Err(error) = Cli::try_parse_from(words(&line)) {
                panic!("{verb}: {line}: {error}");
            }
        }
    }
}

#[test]
fn wrong_words_have_suggestions() {
    for (words, near) in [
        (&["run", "treelsm"][..], "'treelstm'"),
        (&["emit", "tager"], "'tagger'"),
        (&["bench", "sentimen"], "'sentiment'"),
        (&["polices"], "'policies'"),
        (&["plan", "x.abg", "--policy", "dept"], "did you mean depth?"),
        (&["run", "names", "--device", "gpu0"], "did you mean"),
        (&["train", "names", "--epoch", "3"], "'--epochs'"),
    ] {
        let output = autobatch(words);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {message}");
        let is_cpu_only = words.contains(&"--device") && !cfg!(feature = "gpu");
        assert!(message.contains(near) || is_cpu_only, "{words:?}: {message}");
    }
    let graph = scratch("misspelled.graph");
    let text = std::fs::read_to_string(crate::NAMES).expect("the graph exists").replace("tanh(", "tahn(");
    std::fs::write(&graph, text).expect("the scratch folder exists");
    let message = String::from_utf8(autobatch(&["show", &graph]).stderr).expect("UTF-8");
    assert!(message.contains("did you mean 'tanh'?"), "{message}");
}

#[test]
fn letters_name_models_of_bench_alone() {
    let small = ["--hidden", "4", "--count", "2", "--rounds", "1", "--turn", "0"];
    assert!(printed(&[&["bench", "b"][..], &small].concat()).starts_with("treelstm  "));
    for verb in ["run", "train", "emit", "sweep"] {
        let output = autobatch(&[verb, "b"]);
        assert_eq!(output.status.code(), Some(2), "{verb}");
    }
}

#[test]
fn completions_offer_values() {
    for (shell, known) in [
        ("bash", &["treelstm", "fsm:table.json", "beam:8", "policies", "--peer-data"][..]),
        ("zsh", &["treelstm", "beam", "predict"]),
        ("fish", &["agenda", "eval"]),
    ] {
        let script = printed(&["completions", shell]);
        for word in known {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn manual_pages_cover_every_verb() {
    let folder = scratch("man1");
    let shown = printed(&["man", "-o", &folder]);
    assert!(shown.contains(&format!("wrote {} manual pages", 1 + verbs().len())), "{shown}");
    for verb in verbs() {
        let page = std::fs::read_to_string(format!("{folder}/autobatch-{verb}.1")).expect("the page exists");
        assert!(page.contains(".SH SYNOPSIS") && page.contains("Examples"), "{verb}");
    }
    assert!(printed(&["man"]).contains(".TH autobatch 1"));
}

#[test]
fn the_version_names_features_and_instruction_set() {
    let long = printed(&["--version"]);
    assert!(long.starts_with("autobatch ") && long.contains("features: "), "{long}");
    assert!(long.contains("instruction set: "), "{long}");
    assert_eq!(printed(&["-V"]).lines().count(), 1);
}

#[test]
fn every_model_is_listed_with_its_corpus() {
    let (text, document) = (printed(&["models"]), printed(&["models", "--json"]));
    let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
    let models = document["models"].as_array().expect("a list");
    assert_eq!(models.len(), autobatch_models::catalogue::ENTRIES.len());
    for model in models {
        for fact in ["name", "model", "corpus", "files", "scores"] {
            let fact = model[fact].as_str().expect("a text");
            assert!(text.contains(fact), "{fact}: {text}");
        }
    }
}

#[test]
fn file_errors_have_remedies() {
    let folder = scratch("");
    for (words, remedy) in [
        (&["plan", crate::NAMES, "-o", "no-folder/x.plan"][..], "the folder of this file does not exist"),
        (&["plan", crate::NAMES, "-o", "no-folder.plan/x/y.plan"], "does not exist"),
        (&["show", &folder], "this is a folder; name a file in it"),
        (&["train", "names", "--save", &folder], "this is a folder; name a file in it"),
        (&["run", "names", "--data", "no-corpus"], "reads a folder with LANGUAGE.txt"),
        (&["train", "treelstm", "--data", &folder], "reads a folder with d8.tsv (ListOps)"),
    ] {
        let output = autobatch(words);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(message.contains(remedy) && message.starts_with("error: "), "{words:?}: {message}");
        assert!(matches!(output.status.code(), Some(3 | 4)), "{words:?}: {message}");
    }
}
