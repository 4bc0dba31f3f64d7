//! Tests that `--json` prints the same facts and exit code as the text form, as a single document.

use crate::{NAMES, ORDER, planned, scratch};
use serde_json::Value as Json;
use std::process::{Command, Output, Stdio};

fn autobatch(words: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_autobatch");
    Command::new(program).args(words).stdin(Stdio::null()).output().expect("the program was built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("verbs print UTF-8")
}

/// The text form of a fact in the document.
fn fact_text(fact: &Json) -> String {
    match fact {
        Json::String(text) => text.clone(),
        Json::Number(number) => match number.as_f64() {
            Some(whole) if whole.fract() == 0.0 => format!("{whole:.0}"),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// A command line, its exit code, and the pointers to facts that text and document share.
type Case<'a> = (Vec<&'a str>, i32, &'a [&'a str]);

/// All command lines. `plan` is a plan of `ORDER`, `other` is a plan of `NAMES`, `table` is an output path.
fn cases<'a>(plan: &'a str, other: &'a str, table: &'a str) -> Vec<Case<'a>> {
    vec![
        (
            vec!["plan", ORDER],
            0,
            &[
                "/graph",
                "/module",
                "/policy",
                "/batches",
                "/bound",
                "/instances",
                "/nodes",
                "/cells",
                "/signatures",
                "/direct_rows",
                "/gathered_rows",
                "/copied_rows",
                "/slab_bytes",
                "/slab_bytes_without_reuse",
                "/steps/1/kernel",
                "/steps/2/product",
                "/why",
            ],
        ),
        (vec!["plan", NAMES, "--policy", "none"], 0, &["/graph", "/policy", "/batches", "/bound", "/why"]),
        (
            vec!["explain", ORDER],
            0,
            &[
                "/file",
                "/batches",
                "/bound",
                "/kernels/1/kernel",
                "/kernels/6/steps",
                "/missed_batching/0/callee",
                "/missed_batching/0/batches",
                "/missed_batching/0/needed",
            ],
        ),
        (
            vec!["policies", ORDER],
            0,
            &[
                "/graphs/0",
                "/bound/mean",
                "/policies/0/policy",
                "/policies/0/batches/mean",
                "/policies/5/why/0",
            ],
        ),
        (vec!["policies", ORDER, NAMES], 0, &["/policies/1/policy", "/policies/1/batches/mean"]),
        (vec!["diff", ORDER, ORDER], 0, &[]),
        (
            vec!["diff", ORDER, NAMES],
            1,
            &[
                "/a",
                "/b",
                "/differences/0/property",
                "/differences/0/a",
                "/differences/0/b",
                "/differences/3/a",
            ],
        ),
        (vec!["diff", plan, other], 1, &["/a", "/b", "/differences/0/property"]),
        (vec!["check", ORDER, plan], 0, &[]),
        (vec!["check", NAMES, plan], 1, &[]),
        (
            vec!["fsm-train", ORDER, "-o", table, "--episodes", "8"],
            0,
            &["/table", "/states", "/bound", "/batches/ratio"],
        ),
        (vec!["passes"], 0, &[]),
        (vec!["models"], 0, &["/models/0/name", "/models/3/corpus"]),
        (vec!["devices"], 0, &["/cpu/architecture", "/cpu/threads", "/best", "/why"]),
        (vec!["doctor", "--device", "gpu:1000"], 1, &["/findings/0", "/devices/best"]),
        // Both forms print errors on standard error.
        (vec!["plan", "no-such.graph"], 3, &[]),
        (vec!["plan", plan], 3, &[]),
        (vec!["explain", "no-such.graph"], 3, &[]),
        (vec!["policies", "no-such.graph"], 3, &[]),
        (vec!["diff", ORDER, "no-such.graph"], 3, &[]),
        (vec!["check", ORDER, ORDER], 3, &[]),
        (vec!["fsm-train", "no-such.graph", "-o", table], 3, &[]),
        (vec!["plan", ORDER, "--policy", "best"], 2, &[]),
        (vec!["bench", "no-such"], 2, &[]),
        (vec!["sweep", "no-such"], 2, &[]),
    ]
}

#[test]
fn documents_and_texts_contain_the_same_facts() {
    let (plan, table) = (planned(ORDER, "documents.plan", &[]), scratch("documents.json"));
    let other = planned(NAMES, "documents-other.plan", &[]);
    for (words, code, facts) in cases(&plan, &other, &table) {
        let (printed, document) = (autobatch(&words), autobatch(&[&words[..], &["--json"]].concat()));
        for (output, form) in [(&printed, "text"), (&document, "JSON")] {
            assert_eq!(output.status.code(), Some(code), "{words:?} as {form}: {}", text(&output.stderr));
            assert_eq!(code > 1, text(&output.stderr).contains("error: "), "{words:?} as {form}");
        }
        let (printed, document) = (text(&printed.stdout), text(&document.stdout));
        if code > 1 {
            assert_eq!(document, "", "{words:?}");
            continue;
        }
        let document: Json = serde_json::from_str(&document)
            .unwrap_or_else(|error| panic!("{words:?} prints no JSON document: {error} in {document}"));
        for fact in facts {
            let found =
                document.pointer(fact).unwrap_or_else(|| panic!("{words:?}: no {fact} in {document:#}"));
            assert!(
                printed.contains(&fact_text(found)),
                "{words:?}: {fact} is {found}, but the text is\n{printed}"
            );
        }
    }
}

#[test]
fn endless_files_are_rejected() {
    if !std::path::Path::new("/dev/zero").exists() {
        return;
    }
    let zero = "/dev/zero";
    for words in [
        &["show", zero][..],
        &["plan", zero],
        &["plan", ORDER, "--policy", "fsm:/dev/zero"],
        &["check", ORDER, zero],
        &["diff", zero, ORDER],
        &["execute", NAMES, "--weights", zero],
        &["train", "names", "--resume", zero],
    ] {
        let output = autobatch(words);
        let printed = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(2 | 3)), "{words:?}: {printed}");
        let reasons =
            ["bytes are read, and there are more", "neither a graph nor a plan", "its first bytes are not"];
        assert!(reasons.iter().any(|reason| printed.contains(reason)), "{words:?}: {printed}");
    }
    let program = env!("CARGO_BIN_EXE_autobatch");
    let output = Command::new(program).args(["plan", ORDER]).env("AUTOBATCH_COSTS", zero).output();
    let printed = text(&output.expect("the program was built").stderr);
    assert!(printed.contains("only the first 1048576 bytes are read, and there are more"), "{printed}");
}

#[test]
#[cfg(unix)]
fn pipes_are_read_to_the_end() {
    let program = env!("CARGO_BIN_EXE_autobatch");
    let own = text(&autobatch(&["show", ORDER]).stdout);
    for path in ["-", "/dev/stdin"] {
        let mut cat = Command::new("cat").arg(ORDER).stdout(Stdio::piped()).spawn().expect("cat exists");
        let pipe = cat.stdout.take().expect("the output of cat is a pipe");
        let output =
            Command::new(program).args(["show", path]).stdin(pipe).output().expect("the program was built");
        cat.wait().expect("cat exits");
        assert_eq!(text(&output.stdout).lines().nth(1), own.lines().nth(1), "{path}");
        assert_eq!(output.status.code(), Some(0), "{path}: {}", text(&output.stderr));
    }
}
