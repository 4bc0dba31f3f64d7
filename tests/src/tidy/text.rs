//! Rules for lines of text.

use super::{Source, complain};

/// Returns a complaint for each Rust file whose first line is not a module doc.
#[must_use]
pub fn without_module_doc(sources: &[Source]) -> Vec<String> {
    sources
        .iter()
        .filter(|source| source.is_rust() && !source.text.starts_with("//!"))
        .map(|source| complain(source, 1, "begin the file with a `//!` doc: its contract and reason"))
        .collect()
}

/// Returns the part of a line before a line comment. `//` inside a string also ends it, so an address can hide
/// a violation but never cause one.
fn code(line: &str) -> &str {
    line.find("//").map_or(line, |comment| &line[..comment])
}

/// Returns whether a file may print: programs, examples, benchmarks, tests and build scripts may.
fn may_print(path: &str) -> bool {
    let folders = ["cli", "examples", "bench", "benches", "tests", "testing", "bin"];
    let files = ["main.rs", "build.rs", "tests.rs"];
    path.split('/').any(|part| folders.contains(&part) || files.contains(&part))
}

/// Returns the modules that exist in tests only, as paths without the file extension.
fn test_modules(sources: &[Source]) -> Vec<String> {
    let mut modules = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let (folder, file) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
        let folder = match file {
            "lib.rs" | "mod.rs" | "main.rs" => folder.to_owned(),
            _ => format!("{folder}/{}", file.trim_end_matches(".rs")),
        };
        let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
        for pair in lines.windows(2).filter(|pair| pair[0] == "#[cfg(test)]") {
            let name = pair[1].trim_start_matches("pub(crate) ").strip_prefix("mod ");
            if let Some(name) = name.and_then(|name| name.strip_suffix(';')) {
                modules.push(format!("{folder}/{name}"));
            }
        }
    }
    modules
}

/// Returns the first line of a file's own test module, which extends to the end of the file.
fn tests_begin(source: &Source) -> usize {
    let lines: Vec<&str> = source.text.lines().collect();
    let head = lines.windows(2).position(|pair| pair[0] == "#[cfg(test)]" && pair[1].ends_with('{'));
    head.map_or(usize::MAX, |at| at + 1)
}

/// Returns a complaint for each print in a library, and for each debugging macro or unfinished code anywhere.
#[must_use]
pub fn stray_prints(sources: &[Source]) -> Vec<String> {
    let call = |name: &str| format!("{name}!(");
    let prints = ["println", "eprintln", "print", "eprint"].map(call);
    let unfinished = ["dbg", "todo", "unimplemented"].map(call);
    let test_modules = test_modules(sources);
    let mut complaints = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let for_tests = test_modules.iter().any(|module| {
            let rest = source.path.strip_prefix(module.as_str());
            rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        });
        let prints_until = if for_tests || may_print(&source.path) { 0 } else { tests_begin(source) };
        for (number, line) in source.lines() {
            let code = code(line);
            let has = |needle: &String| {
                code.match_indices(needle.as_str()).any(|(at, _)| !ends_in_word(&code[..at]))
            };
            if number < prints_until && prints.iter().any(has) {
                complaints.push(complain(source, number, "a library must not print; return the text"));
            }
            if unfinished.iter().any(has) {
                complaints.push(complain(source, number, "finish or remove it"));
            }
        }
    }
    complaints
}

fn ends_in_word(text: &str) -> bool {
    text.chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_')
}

/// Returns a complaint for each ignored test and for each test that passes on any panic.
#[must_use]
pub fn forbidden_attributes(sources: &[Source]) -> Vec<String> {
    let rules = [
        (["#", "[ignore"].concat(), "every test must run; bound its time instead"),
        (["#", "[should_panic"].concat(), "catch the panic and look at its message instead"),
    ];
    let mut complaints = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        for (number, line) in source.lines() {
            let found = rules.iter().filter(|(needle, _)| code(line).contains(needle.as_str()));
            complaints.extend(found.map(|(_, remedy)| complain(source, number, remedy)));
        }
    }
    complaints
}

/// Returns a complaint for every absolute path of a machine.
#[must_use]
pub fn machine_paths(sources: &[Source]) -> Vec<String> {
    let folder = |name: &str| format!("/{name}/");
    let mut needles: Vec<String> =
        ["home", "root", "tmp", "work", "Users", "mnt", "var/tmp", "opt"].map(folder).to_vec();
    needles.push(["C:", "\\"].concat());
    let mut complaints = Vec::new();
    for source in sources {
        for (number, line) in source.lines() {
            let absolute = |needle: &String| {
                line.match_indices(needle.as_str()).any(|(at, _)| {
                    let before = line[..at].chars().next_back();
                    !before.is_some_and(|c| c.is_alphanumeric() || "._-/}$*<>:~".contains(c))
                })
            };
            if needles.iter().any(absolute) {
                let remedy = "absolute path of a machine; use a path from the root of the repository";
                complaints.push(complain(source, number, remedy));
            }
        }
    }
    complaints
}

/// Returns a complaint for each Rust file longer than `most` lines without a reason in `allowed`, and for each
/// superfluous reason.
#[must_use]
pub fn long_files(sources: &[Source], most: usize, allowed: &[(&str, &str)]) -> Vec<String> {
    let mut complaints = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let lines = source.text.lines().count();
        let listed = allowed.iter().any(|(path, reason)| *path == source.path && !reason.is_empty());
        if lines > most && !listed {
            let what = format!("{lines} lines; split the file, or list it with a reason");
            complaints.push(complain(source, lines, &what));
        }
        if lines <= most && listed {
            complaints.push(complain(source, lines, "no longer long; remove it from the list"));
        }
    }
    let is_gone = |path: &str| sources.iter().all(|source| source.path != path);
    let gone = allowed.iter().filter(|(path, _)| is_gone(path));
    complaints.extend(
        gone.map(|(path, _)| format!("{path}: does not exist; remove it from the list of long files")),
    );
    complaints
}

/// Returns a complaint for each line of a test that sleeps or reads a clock, and for each file in `allowed` that has none. A test
/// that waits fails on a slow machine, and passes on a fast one that is wrong.
#[must_use]
pub fn timed_tests(sources: &[Source], allowed: &[(&str, &str)]) -> Vec<String> {
    let is_timed = |line: &&(usize, &str)| {
        ["sleep", "elapsed", "duration_since"].iter().any(|word| has_word(code(line.1), word))
    };
    let mut complaints = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let is_test = source.path.split('/').any(|part| part == "tests" || part == "tests.rs")
            && !source.path.starts_with("tests/src/");
        let lines: Vec<(usize, &str)> = source.lines().collect();
        let start = match is_test {
            true => 0,
            false => lines.iter().position(|(_, line)| line.trim() == "#[cfg(test)]").unwrap_or(lines.len()),
        };
        let found = lines[start..].iter().find(is_timed);
        let is_allowed = allowed.iter().any(|(path, _)| source.path == *path);
        if let Some((number, _)) = found.filter(|_| !is_allowed) {
            complaints.push(complain(
                source,
                *number,
                "a test that sleeps or reads a clock; count work instead",
            ));
        } else if is_allowed && found.is_none() {
            complaints.push(complain(source, 1, "this file needs no exception to the rule for clocks"));
        }
    }
    complaints
}

/// Returns a complaint for each Rust file with unsafe code that `page` does not list, and for each listed file
/// without unsafe code. The page lists a file by its path in backticks, in a row of a table.
#[must_use]
pub fn unlisted_unsafe(sources: &[Source], page: &Source) -> Vec<String> {
    let listed: Vec<(usize, &str)> = page
        .lines()
        .filter_map(|(number, line)| Some((number, line.strip_prefix("| `")?.split_once('`')?.0)))
        .collect();
    let word = ["un", "safe"].concat();
    let line_of = |source: &Source| {
        source.lines().find(|(_, line)| has_word(code(line), &word)).map(|(number, _)| number)
    };
    let mut complaints = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        if let Some(line) = line_of(source)
            && !listed.iter().any(|(_, path)| *path == source.path)
        {
            let what = format!("{word} code that {} does not list; add the file and its tests", page.path);
            complaints.push(complain(source, line, &what));
        }
    }
    for (number, path) in listed {
        let source = sources.iter().find(|source| source.path == path);
        if source.and_then(line_of).is_none() {
            complaints.push(complain(
                page,
                number,
                &format!("no {word} code in {path}; remove it from the list"),
            ));
        }
    }
    complaints
}

fn has_word(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        let after = code[at + word.len()..].chars().next();
        !ends_in_word(&code[..at]) && !after.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

/// Returns a complaint for every path between backticks of a page that does not exist below the root.
/// A path is a span with a slash whose first part is a folder of the root.
#[must_use]
pub fn missing_paths(page: &Source, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, line) in page.lines() {
        for span in line.split('`').skip(1).step_by(2) {
            let is_path =
                span.contains('/') && span.chars().all(|c| c.is_alphanumeric() || "._-/".contains(c));
            let folder = span.split('/').next().unwrap_or_default();
            if is_path && exists(folder) && !exists(span.trim_end_matches('/')) {
                complaints.push(complain(page, number, &format!("{span} does not exist; correct the path")));
            }
        }
    }
    complaints
}

/// Finds error types whose `Debug` is not their message. `fn main() -> Result<(), E>` prints that form.
#[must_use]
pub fn unreadable_errors(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let last = tests_begin(source);
        let lines: Vec<(usize, &str)> = source.lines().filter(|(number, _)| *number < last).collect();
        for (place, (number, line)) in lines.iter().enumerate() {
            let Some(error) = error_at(line, &lines[place..]) else { continue };
            let own = "fmt::Debug for ";
            let forms =
                [format!("debug_as_display!({error})"), format!("{own}{error} "), format!("{own}{error}<")];
            if !forms.iter().any(|form| source.text.contains(form)) {
                let problem = format!("{error} prints its fields; use debug_as_display!");
                found.push(complain(source, *number, &problem));
            }
        }
    }
    found
}

/// The error type that a line makes one, by an implementation or by `thiserror`, whose derive stands before the type.
fn error_at<'a>(line: &str, from: &[(usize, &'a str)]) -> Option<&'a str> {
    let name = |text: &'a str| text.split(|c: char| !c.is_alphanumeric() && c != '_').next();
    if line.starts_with("impl") {
        return name(from[0].1.split_once("std::error::Error for ")?.1);
    }
    if !line.starts_with("#[derive(") || !line.contains("thiserror::Error") {
        return None;
    }
    from.iter().find_map(|(_, line)| {
        let (kind, rest) = line.strip_prefix("pub ").unwrap_or(line).split_once(' ')?;
        let rest = if kind == "pub(crate)" { rest.split_once(' ')?.1 } else { rest };
        matches!(kind, "enum" | "struct" | "pub(crate)").then(|| name(rest)).flatten()
    })
}

/// Returns a complaint for each parameter of a function that takes a tuple apart. Unrelated things are parameters of their
/// own; related ones have a type with names.
#[must_use]
pub fn tuple_parameters(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        for (number, line) in source.lines() {
            if takes_tuple_apart(code(line)) {
                found.push(complain(
                    source,
                    number,
                    "give each element of the tuple a parameter, or name a type",
                ));
            }
        }
    }
    found
}

/// Whether a line has a parameter `(one, other): (A, B)`.
fn takes_tuple_apart(line: &str) -> bool {
    line.match_indices("): (").any(|(end, _)| {
        let Some(start) = line[..end].rfind('(') else { return false };
        let is_name =
            |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        let mut names = line[start + 1..end].split(',').map(|name| name.trim().trim_start_matches("mut "));
        let before = line[..start].trim_end();
        let is_parameter = before.is_empty() || before.ends_with(['(', ',']) && !before.contains("let ");
        is_parameter && names.clone().count() > 1 && names.all(is_name)
    })
}
