//! Every function that takes a value, a graph or a builder must be `#[track_caller]`.

use std::fs;
use std::path::Path;

fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The functions of a source that take a value, a graph or a builder and lack the attribute, and the
/// number of functions that have it.
fn untracked(text: &str) -> (Vec<String>, usize) {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let (mut missing, mut tracked) = (Vec::new(), 0);
    for (number, line) in lines.iter().enumerate() {
        let heads = ["pub fn ", "pub(crate) fn ", "pub(super) fn ", "fn "];
        if !heads.iter().any(|head| line.starts_with(head)) {
            continue;
        }
        let signature: Vec<&str> = lines[number..]
            .iter()
            .scan(false, |done, line| {
                let more = !*done;
                *done = line.ends_with('{') || line.ends_with(';');
                more.then_some(*line)
            })
            .collect();
        let signature = signature.join(" ");
        let arguments = signature.split(") ->").next().unwrap_or(&signature);
        let emits = ["Value<", "Graph", "ModuleBuilder"].iter().any(|word| arguments.contains(word));
        let on_state = signature.contains("&self, x: Value");
        if !(emits || on_state) || line.contains("test") || arguments.contains("caller: ") {
            continue;
        }
        let attributes = lines[..number].iter().rev().take_while(|line| line.starts_with("#["));
        if attributes.into_iter().any(|line| *line == "#[track_caller]") {
            tracked += 1;
        } else {
            missing.push((*line).to_owned());
        }
    }
    (missing, tracked)
}

#[test]
fn functions_that_emit_track_their_caller() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let mut all = 0;
    for (path, text) in files {
        let (missing, tracked) = untracked(&text);
        assert!(missing.is_empty(), "{path}: without #[track_caller]: {missing:?}");
        all += tracked;
    }
    assert!(all > 80, "the search must find most functions, found {all}");
}

#[test]
fn an_untracked_function_is_found() {
    let text = "impl X {\n    #[must_use]\n    pub fn on<'g>(\n        &self,\n        x: Value<'g>,\n    ) -> Value<'g> {\n";
    assert_eq!(untracked(text).0, ["pub fn on<'g>("]);
}
