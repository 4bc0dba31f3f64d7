//! The repository follows its own rules, and bad samples violate each rule.

use autobatch_tests::tidy::{self, Manifest, Source};

/// The allowed dependencies of each crate. Dependencies of tests are free.
const ARROWS: &[(&str, &[&str])] = &[
    ("autobatch-ir", &[]),
    ("autobatch-distributed", &["autobatch-ir"]),
    ("autobatch-shaders", &[]),
    ("autobatch-oracle", &["autobatch-ir"]),
    ("autobatch-testing", &["autobatch-ir"]),
    ("autobatch-planner", &["autobatch-ir"]),
    ("autobatch-runtime-cpu", &["autobatch-ir"]),
    ("autobatch-runtime-wgpu", &["autobatch-ir", "autobatch-shaders", "autobatch-oracle"]),
    ("autobatch-nn", &["autobatch-ir"]),
    ("autobatch-inspector", &["autobatch-ir", "autobatch-planner"]),
    (
        "autobatch",
        &[
            "autobatch-distributed",
            "autobatch-ir",
            "autobatch-oracle",
            "autobatch-planner",
            "autobatch-runtime-cpu",
            "autobatch-runtime-wgpu",
            "autobatch-nn",
        ],
    ),
    ("autobatch-models", &["autobatch", "autobatch-nn", "autobatch-ir"]),
    (
        "autobatch-cli",
        &[
            "autobatch",
            "autobatch-bench",
            "autobatch-inspector",
            "autobatch-models",
            "autobatch-ir",
            "autobatch-oracle",
            "autobatch-planner",
        ],
    ),
    ("autobatch-bench", &["*"]),
    ("autobatch-fuzz", &["*"]),
    ("autobatch-guide", &[]),
    ("autobatch-tests", &["*"]),
];

const LONGEST: usize = 450;

/// The page that lists the files with unsafe code and their tests.
const UNSAFE_PAGE: &str = "runtime-cpu/UNSAFE.md";

/// Retired terms, each with the one that took its place.
const RETIRED: &[tidy::Retired] = &[
    ("player", "executor"),
    ("players", "executors"),
    ("played", "executed"),
    ("playing", "executing"),
    ("plays", "executes"),
    ("tabled", "gathered"),
    ("finals", "parameter-gradient reductions"),
    ("application", "node"),
    ("applications", "nodes"),
    ("touched rows", "sparse rows"),
    ("bound number", "binding or input"),
    ("bound numbers", "bindings or inputs"),
    ("deed", "the operation's name"),
    ("homes", "locations, or copies"),
];

/// Openings of headless clauses. A comment begins with the thing or its action.
const OPENINGS: &[&str] =
    &["What", "Whoever", "Whatever", "Who", "Nobody", "Somebody", "Those", "So many", "Of what", "Of those"];

/// Files that may exceed the length limit, each with its reason. There are none.
const LONG: &[(&str, &str)] = &[];

/// Tests that wait or read a clock, each with its reason.
const TIMED: &[(&str, &str)] = &[
    ("cli/tests/mpirun/main.rs", "processes that never end must not hang the tests"),
    ("cli/tests/mpirun/failures.rs", "processes are killed and stopped at many moments"),
    ("cli/tests/verbs/faults.rs", "processes are killed at many moments"),
    ("tests/suites/training/killed.rs", "a process is killed at many moments"),
    ("tests/support/src/hostile/budget.rs", "the time of a thread counts no waiting"),
    ("runtime-cpu/src/executor/tests/clock.rs", "a clock is the subject"),
];

/// Emitting files of the `ir` crate.
const EMITTING: &[&str] = &[
    "ir/src/graph/emit.rs",
    "ir/src/graph/value/build.rs",
    "ir/src/graph/value/elementwise.rs",
    "ir/src/graph/value/methods.rs",
    "ir/src/graph/value/mod.rs",
    "ir/src/graph/value/operators.rs",
];
/// Folders whose functions stand between users and the emitter.
const FACES: &[&str] = &["nn/src/", "src/"];
/// Functions that emit nothing, so no error can refer to their caller's line.
const EMIT_NOTHING: &[&str] = &["shared", "alone", "value", "graph", "key"];

#[track_caller]
fn clean(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

#[track_caller]
fn finds(complaints: Vec<String>, place: &str) {
    let starts = complaints.first().is_some_and(|complaint| complaint.starts_with(place));
    assert!(complaints.len() == 1 && starts, "expected one complaint at {place}, found {complaints:#?}");
}

fn sample(path: &str, text: &str) -> Vec<Source> {
    vec![Source::sample(path, text)]
}

#[test]
fn the_repository_contains_sources() {
    let sources = tidy::sources();
    for path in ["Cargo.toml", "ir/src/lib.rs", "tests/suites/tidy.rs"] {
        assert!(sources.iter().any(|source| source.path == path), "{path} is missing");
    }
}

#[test]
fn crates_depend_only_on_lower_crates() {
    clean(tidy::forbidden_arrows(&tidy::manifests(), ARROWS));
}

#[test]
fn the_rule_for_dependencies_finds_an_upward_dependency_and_an_unknown_crate() {
    let crates = |list: &[(&str, &str)]| -> Vec<Manifest> {
        let manifest = |(name, uses): &(&str, &str)| Manifest {
            name: (*name).to_owned(),
            dependencies: vec![(*uses).to_owned()],
        };
        list.iter().map(manifest).collect()
    };
    let upward = crates(&[("autobatch-ir", "autobatch-planner"), ("autobatch-planner", "autobatch-ir")]);
    finds(tidy::forbidden_arrows(&upward, ARROWS), "autobatch-ir/Cargo.toml: autobatch-ir must not use");
    let sideways = crates(&[("autobatch-runtime-cpu", "autobatch-planner"), ("autobatch-planner", "serde")]);
    finds(tidy::forbidden_arrows(&sideways, ARROWS), "autobatch-runtime-cpu/Cargo.toml");
    finds(tidy::forbidden_arrows(&crates(&[("autobatch-new", "serde")]), ARROWS), "autobatch-new/Cargo.toml");
}

#[test]
fn every_rust_file_begins_with_a_module_doc() {
    clean(tidy::without_module_doc(&tidy::sources()));
}

#[test]
fn the_rule_for_docs_finds_a_file_without_a_module_doc() {
    finds(tidy::without_module_doc(&sample("ir/src/a.rs", "use std::fmt;\n//! late\n")), "ir/src/a.rs:1");
}

#[test]
fn libraries_do_not_print_and_no_code_is_unfinished() {
    clean(tidy::stray_prints(&tidy::sources()));
}

#[test]
fn the_rule_for_prints_distinguishes_libraries_from_programs() {
    let print = ["//! doc\n", "print", "ln!(\"x\");\n"].concat();
    finds(tidy::stray_prints(&sample("planner/src/a.rs", &print)), "planner/src/a.rs:2");
    clean(tidy::stray_prints(&sample("cli/src/main.rs", &print)));
    clean(tidy::stray_prints(&sample("ir/examples/speed.rs", &print)));
    let unfinished = ["fn f() { ", "to", "do!() }"].concat();
    finds(tidy::stray_prints(&sample("cli/src/main.rs", &unfinished)), "cli/src/main.rs:1");
    let comment = ["// print", "ln!(1)\nmy_print!(2)\n"].concat();
    clean(tidy::stray_prints(&sample("ir/src/a.rs", &comment)));
    let own_tests = ["//! doc\n#[cfg(test)]\nmod tests {\n    print", "ln!(1);\n}\n"].concat();
    clean(tidy::stray_prints(&sample("ir/src/a.rs", &own_tests)));
    let parent = Source::sample("ir/src/mod.rs", "//! doc\n#[cfg(test)]\nmod support;\n");
    clean(tidy::stray_prints(&[parent, Source::sample("ir/src/support.rs", &print)]));
}

#[test]
fn the_sources_use_the_terms_of_the_field() {
    let sources = tidy::sources();
    clean(tidy::retired_words(&sources, RETIRED, &["tests/suites/tidy.rs"]));
    clean(tidy::retired_openings(&sources, OPENINGS));
}

#[test]
fn the_rule_for_language_checks_names_comments_and_pages() {
    let words = |text: &str| tidy::retired_words(&sample("ir/src/a.rs", text), RETIRED, &[]);
    for text in ["struct AnyPlayer;", "fn two_players() {}", "// It plays.", "let x = \"touched rows\";"] {
        finds(words(text), "ir/src/a.rs:1: ");
    }
    clean(words("display, replayed, (bound, number)"));
    clean(tidy::retired_words(&sample("ir/src/a.rs", "player"), RETIRED, &["ir/src/a.rs"]));
    let openings = |path: &str, text: &str| tidy::retired_openings(&sample(path, text), OPENINGS);
    finds(openings("ir/src/a.rs", "fn f() {}\n/// What it does.\n"), "ir/src/a.rs:2: ");
    finds(openings("README.md", "One.\n\nWhoever reads.\n"), "README.md:3: ");
    clean(openings("ir/src/a.rs", "/// Returns\n/// What follows.\nlet what = 1;\n"));
}

/// The maximum length of the architecture page, in lines.
const LONGEST_ARCHITECTURE: usize = 200;

#[test]
fn the_paths_in_pages_exist() {
    let exists = |path: &str| tidy::root().join(path).exists();
    for source in tidy::sources().iter().filter(|source| source.path.ends_with(".md")) {
        clean(tidy::missing_paths(source, exists));
        let lines = source.text.lines().count();
        assert!(source.path != "ARCHITECTURE.md" || lines <= LONGEST_ARCHITECTURE, "{lines} lines");
    }
}

#[test]
fn the_rule_for_paths_in_pages_finds_a_missing_file() {
    let page = |text: &str| Source::sample("README.md", text);
    let exists = |path: &str| ["ir", "ir/src"].contains(&path);
    finds(tidy::missing_paths(&page("fine `ir/src/`\nsee `ir/old.rs`"), exists), "README.md:2");
    clean(tidy::missing_paths(&page("`a/b` and `f32/u32` and `ir/src`"), exists));
}

#[test]
fn every_test_runs_and_checks_its_panics() {
    clean(tidy::forbidden_attributes(&tidy::sources()));
}

#[test]
fn the_rule_for_tests_finds_both_attributes() {
    for attribute in ["ignore]", "ignore = \"slow\"]", "should_panic]", "should_panic(expected = \"x\")]"] {
        let text = ["#[test]\n    #", "[", attribute, "\nfn f() {}\n"].concat();
        finds(tidy::forbidden_attributes(&sample("ir/src/tests.rs", &text)), "ir/src/tests.rs:2");
    }
}

#[test]
fn no_file_contains_an_absolute_path() {
    clean(tidy::machine_paths(&tidy::sources()));
}

#[test]
fn the_rule_for_machine_paths_finds_only_absolute_paths() {
    for folder in ["home", "root", "tmp", "work", "Users"] {
        let text = format!("fine\nread \"/{folder}/somebody/file\"\n");
        finds(tidy::machine_paths(&sample("README.md", &text)), "README.md:2");
        clean(tidy::machine_paths(&sample("README.md", &format!("target/{folder}/file, a/{folder}/b"))));
    }
}

#[test]
fn every_function_on_values_tracks_its_caller() {
    let sources = tidy::sources();
    for path in EMITTING {
        assert!(
            sources.iter().any(|source| source.path == *path),
            "{path} does not exist: list the files that emit"
        );
    }
    clean(tidy::missing_track_caller(&sources, FACES, EMITTING, EMIT_NOTHING));
}

#[test]
fn the_rule_for_callers_parses_signatures() {
    let check =
        |text: &str| tidy::missing_track_caller(&sample("nn/src/a.rs", text), FACES, EMITTING, EMIT_NOTHING);
    finds(check("impl A {\n    pub fn on(self, x: Value<'_>) {}\n}\n"), "nn/src/a.rs:2");
    finds(check("pub fn run<'g>(\n    g: &'g Graph,\n    n: usize,\n) -> usize {\n"), "nn/src/a.rs:1");
    clean(check("/// Doc.\n#[track_caller]\n#[must_use]\npub fn on(x: Value<'_>) {}\n"));
    clean(check("fn private(x: Value<'_>) {}\npub(crate) fn ours(x: Value<'_>) {}\n"));
    clean(check("pub fn step(f: impl Fn(&Graph, [Value<'_>; 2]) -> Value<'_>, n: usize) {}\n"));
    clean(check("pub fn last(&self) -> Value<'g> {}\n"));
    let emitting = sample("ir/src/graph/value/methods.rs", "pub fn tanh(self) -> Self { x }\n");
    let found = tidy::missing_track_caller(&emitting, FACES, EMITTING, EMIT_NOTHING);
    finds(found, "ir/src/graph/value/methods.rs:1");
}

#[test]
fn long_files_have_a_reason() {
    clean(tidy::long_files(&tidy::sources(), LONGEST, LONG));
}

#[test]
fn the_rule_for_length_finds_long_files_and_stale_reasons() {
    let long = "//! x\n".repeat(LONGEST + 1);
    let reasons = [("ir/src/table.rs", "one table")];
    let check = |path: &str, text: &str| tidy::long_files(&sample(path, text), LONGEST, &reasons);
    clean(check("ir/src/table.rs", &long));
    finds(check("ir/src/table.rs", "//! x\n"), "ir/src/table.rs:1");
    finds(tidy::long_files(&sample("ir/src/a.rs", &long), LONGEST, &[]), "ir/src/a.rs:451");
    finds(check("ir/src/a.rs", "//! x\n"), "ir/src/table.rs: ");
}

#[test]
fn every_file_with_unsafe_code_is_listed_with_its_tests() {
    let sources = tidy::sources();
    let page = sources.iter().find(|source| source.path == UNSAFE_PAGE);
    clean(tidy::unlisted_unsafe(&sources, page.expect("the page exists")));
}

#[test]
fn the_rule_for_unsafe_code_finds_missing_and_stale_entries() {
    let page = Source::sample(
        UNSAFE_PAGE,
        "# Unsafe code\n\n| file | tests |\n|---|---|\n| `ir/src/a.rs` | all |\n",
    );
    let block = ["fn f() { un", "safe { g() } }\n"].concat();
    clean(tidy::unlisted_unsafe(&sample("ir/src/a.rs", &block), &page));
    let both = [Source::sample("ir/src/a.rs", &block), Source::sample("ir/src/b.rs", &block)];
    finds(tidy::unlisted_unsafe(&both, &page), "ir/src/b.rs:1");
    let lint = ["#![forbid(un", "safe_code)]\n// un", "safe once\n"].concat();
    finds(tidy::unlisted_unsafe(&sample("ir/src/a.rs", &lint), &page), "runtime-cpu/UNSAFE.md:5");
}

#[test]
fn no_test_sleeps_or_reads_a_clock() {
    clean(tidy::timed_tests(&tidy::sources(), TIMED));
}

#[test]
fn the_rule_for_clocks_finds_waiting_tests_and_stale_exceptions() {
    let text = ["fn f() { std::thread::sl", "eep(DAY); }\n"].concat();
    finds(tidy::timed_tests(&sample("nn/tests/a.rs", &text), &[]), "nn/tests/a.rs:1");
    clean(tidy::timed_tests(&sample("nn/tests/a.rs", &text), &[("nn/tests/a.rs", "it must")]));
    clean(tidy::timed_tests(&sample("nn/src/a.rs", &text), &[]));
    let within = format!("fn g() {{}}\n#[cfg(test)]\nmod tests {{\n{text}}}\n");
    finds(tidy::timed_tests(&sample("nn/src/a.rs", &within), &[]), "nn/src/a.rs:4");
    let stale = [("nn/tests/a.rs", "it must")];
    finds(tidy::timed_tests(&sample("nn/tests/a.rs", "fn f() {}\n"), &stale), "nn/tests/a.rs:1");
}

#[test]
fn every_dependency_is_described() {
    let read = |name: &str| std::fs::read_to_string(tidy::root().join(name));
    let manifest = read("Cargo.toml").expect("the root has a manifest");
    assert!(manifest.contains("[workspace.dependencies]"), "the workspace shares dependencies");
    // The rule applies as soon as the file exists.
    if let Ok(architecture) = read("ARCHITECTURE.md") {
        clean(tidy::undescribed_dependencies(&manifest, &architecture));
    }
}

#[test]
fn the_rule_for_descriptions_finds_an_undescribed_dependency() {
    let manifest =
        "[workspace.dependencies]\nown = { path = \"own\" }\nserde = \"1\"\nclap = \"4\"\n\n[lints]\nx = 1\n";
    let found = tidy::undescribed_dependencies(manifest, "`serde` turns plans into bytes; clap is nice");
    finds(found, "Cargo.toml:4");
}

#[test]
fn every_error_prints_its_message_from_main() {
    clean(tidy::unreadable_errors(&tidy::sources()));
}

#[test]
fn the_rule_for_errors_finds_a_derived_debug() {
    let derived =
        ["//! doc\n#[derive(Debug)]\npub struct E;\n", "impl std::error::Error for E {}\n"].concat();
    finds(tidy::unreadable_errors(&sample("ir/src/a.rs", &derived)), "ir/src/a.rs:4");
    let ours = derived.replace("#[derive(Debug)]\n", "") + "debug_as_display!(E);\n";
    clean(tidy::unreadable_errors(&sample("ir/src/a.rs", &ours)));
    let of_macro = "//! doc\n#[derive(Debug, thiserror::Error)]\n#[error(\"no\")]\npub enum E {}\n";
    finds(tidy::unreadable_errors(&sample("ir/src/a.rs", of_macro)), "ir/src/a.rs:2");
    let ours = of_macro.replace("Debug, ", "") + "debug_as_display!(E);\n";
    clean(tidy::unreadable_errors(&sample("ir/src/a.rs", &ours)));
}

#[test]
fn parameters_of_the_planner_and_the_verifier_have_typed_ids() {
    clean(tidy::bare_ids(&tidy::sources()));
}

#[test]
fn the_rule_for_ids_finds_plain_numbers() {
    let check = |text: &str| tidy::bare_ids(&sample("planner/src/order/a.rs", text));
    finds(check("//! A.\n\nfn first(node: u32) {}\n"), "planner/src/order/a.rs:3");
    finds(
        check(
            "//! A.\n\nimpl A {\n    fn f<F: Fn(u32) -> u32>(\n        of: F,\n        mut slot: Option<usize>,\n    ) {}\n}\n",
        ),
        "planner/src/order/a.rs:4",
    );
    clean(check(
        "//! A.\n\nfn f(node: NodeId, rows: u32) {\n    let node: u32 = 1;\n}\n\nstruct A {\n    node: u32,\n}\n",
    ));
    clean(tidy::bare_ids(&sample("runtime-cpu/src/a.rs", "fn f(node: u32) {}\n")));
}

#[test]
fn no_parameter_takes_a_tuple_apart() {
    clean(tidy::tuple_parameters(&tidy::sources()));
}

#[test]
fn the_rule_for_parameters_finds_tuples_of_names() {
    let check = |text: &str| tidy::tuple_parameters(&sample("ir/src/a.rs", text));
    finds(check("fn f(\n    x: u32,\n    (rows, mut width): (u32, u32),\n) {}\n"), "ir/src/a.rs:3");
    for before in ["", "x: u8, "] {
        finds(check(&format!("fn f({before}{}(u32, u32)) {{}}\n", "(rows, width): ")), "ir/src/a.rs:1");
    }
    clean(check(
        "let (rows, width): (u32, u32) = f();\nmap(|(a, b): (u32, u32)| a + b);\nfn f(at: (u32, u32)) {}\n",
    ));
}
