//! Files that ask for more memory or time than they are worth, or whose names would control the terminal.

use crate::{NAMES, scratch, transcript};
use autobatch_ir::printable::is_printable;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::process::{Command, Output, Stdio};

fn autobatch(words: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_autobatch");
    Command::new(program).args(words).stdin(Stdio::null()).output().expect("the program was built")
}

/// The output of a command that has a gigabyte of memory, and its exit code.
fn within_a_gigabyte(words: &[&str]) -> String {
    let script = "ulimit -v 1048576 2>/dev/null; exec \"$0\" \"$@\" 2>&1";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_autobatch")]).args(words).stdin(Stdio::null());
    let output = command.output().expect("every system has a shell");
    let code = output.status.code().map_or_else(|| "[signal]".to_owned(), |code| format!("[exit {code}]"));
    format!("{}{code}\n", String::from_utf8_lossy(&output.stdout))
}

/// A hostile file of the repository.
fn hostile(name: &str) -> String {
    format!("{}/../tests/files/hostile/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_limit_covers_temporaries_and_parameters_before_they_are_allocated() {
    for (file, limit, part) in [
        ("tile.graph", &["--memory-limit", "1000000"][..], "temporaries 1.5 GiB"),
        ("tile.graph", &["--memory-limit", "1GiB", "--threads", "2"], "the limit is 1.0 GiB"),
        ("parameter.graph", &["--memory-limit", "512MiB"], "parameters 976.6 MiB"),
        ("parameter.graph", &["--work-limit", "1e6"], "takes 2.6e8 operations, and the limit is 1.0e6"),
        ("orthogonal.graph", &[], "takes 4.3e11 operations, and the limit is 2.5e11"),
    ] {
        let path = hostile(file);
        let printed = within_a_gigabyte(&[&["execute", &path], limit].concat());
        assert!(printed.contains(part), "{file}: {printed}");
        let remedy = "  = help: if the file is to be trusted, raise the limit: --";
        assert!(printed.contains(remedy), "{file}: {printed}");
        // An option that is too small is a usage error; a default that is too small is an error of the file.
        let code = if limit.is_empty() { "[exit 3]" } else { "[exit 2]" };
        assert!(printed.contains(code), "{file}: {printed}");
    }
}

#[test]
fn the_footprint_of_a_plan_is_known_without_executing_it() {
    let path = hostile("tile.graph");
    for verb in ["plan", "explain"] {
        let printed = transcript(&[verb, &path]);
        assert!(printed.contains("footprint") && printed.contains("GiB on one thread ("), "{printed}");
        let json = transcript(&[verb, &path, "--json"]);
        let json: serde_json::Value = serde_json::from_str(&json).expect("a JSON document");
        assert!(json["footprint"]["per_thread"].as_u64().is_some_and(|bytes| bytes > 1 << 30), "{json}");
    }
}

#[test]
fn names_from_files_cannot_control_the_terminal() {
    let graph = hostile("names.graph");
    let weights = scratch("hostile.safetensors");
    let header = "{\"a\\u001b[31m\\u202eEVIL\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend([0; 4]);
    std::fs::write(&weights, bytes).expect("the scratch folder exists");
    let plan = scratch("hostile.plan");
    for words in [
        &["show", &graph][..],
        &["show", &graph, "--format", "json"],
        &["show", &graph, "--format", "summary"],
        &["show", &graph, "--format", "dot"],
        &["plan", &graph, "-o", &plan],
        &["plan", &graph, "--json"],
        &["explain", &plan],
        &["explain", &graph, "--lanes"],
        &["explain", &graph, "--stages"],
        &["check", &graph, &plan],
        &["check", NAMES, &plan],
        &["diff", &graph, NAMES],
        &["execute", &graph],
        &["execute", &graph, "-o", "-"],
        &["execute", &graph, "--weights", &weights],
        &["execute", "no\u{1b}[2Jsuch.graph"],
        &["show", &graph, "-o", "no\u{9b}31m/such.graph"],
    ] {
        printed_only_text(words);
    }
    // The printed text reads back.
    let shown = transcript(&["show", &graph]);
    let copy = scratch("hostile.graph");
    std::fs::write(&copy, shown).expect("the scratch folder exists");
    assert_eq!(autobatch(&["diff", &graph, &copy]).status.code(), Some(0));
}

/// Checks that a command printed no character that controls a terminal, and that it printed something.
fn printed_only_text(words: &[&str]) -> String {
    let output = autobatch(words);
    for stream in [&output.stdout, &output.stderr] {
        let text = String::from_utf8_lossy(stream);
        let wrong = text.chars().find(|&c| !is_printable(c) && !matches!(c, '\n' | '\t'));
        assert!(wrong.is_none(), "{words:?} prints {wrong:?}: {text:?}");
    }
    assert!(!output.stdout.is_empty() || !output.stderr.is_empty(), "{words:?}");
    [output.stdout, output.stderr].map(|stream| String::from_utf8_lossy(&stream).into_owned()).concat()
}

/// The name of a class, of a file and of a word that would rename the window and turn the text around.
const EVIL: &str = "Ev\u{1b}]0;owned\u{7}il\u{202e}";

#[test]
fn a_corpus_and_its_checkpoint_cannot_control_the_terminal() {
    let folder = scratch("hostile_corpus");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the scratch folder exists");
    for (language, letters) in [(EVIL, "abc"), ("Plain", "xyz")] {
        let names: String = (0..40).map(|number| format!("{letters}{EVIL}{number}\n")).collect();
        std::fs::write(format!("{folder}/{language}.txt"), names).expect("the folder exists");
    }
    let [weights, input, answers, again] =
        ["hostile_names.safetensors", "hostile_names.txt", "hostile_answers", "hostile_again.safetensors"]
            .map(scratch);
    std::fs::write(&input, format!("{EVIL}\nabc\n")).expect("the scratch folder exists");
    let _ = std::fs::remove_dir_all(&answers);
    let train = ["train", "names", "--data", &folder, "--hidden", "8"];
    let shown = printed_only_text(&[&train[..], &["--epochs", "1", "--save", &weights]].concat());
    assert!(shown.contains("epoch   1"), "{shown}");
    let trained = ["--weights", &weights];
    for words in [
        [&train[..], &["--epochs", "2", "--resume", &weights, "--save", &again]].concat(),
        [&["eval", "names", "--data", &folder][..], &trained].concat(),
        [&["predict", "names", &input][..], &trained].concat(),
        [&["predict", "names", "--json", &input][..], &trained].concat(),
        [&["map", "names", "--data", &input, "-o", &answers][..], &trained].concat(),
        [&["map", "names", "--data", EVIL, "-o", &answers][..], &trained].concat(),
        [&["run", "names", "--data", &folder, "--hidden", "4", "--rounds", "1"][..]].concat(),
    ] {
        printed_only_text(&words);
    }
    let shown = printed_only_text(&[&["predict", "names", &input][..], &trained].concat());
    assert!(
        shown.contains("\\u001b") || shown.contains("\\u{1b}"),
        "the name of the class is shown escaped: {shown}"
    );
}

#[test]
fn reductions_and_pages_of_hostile_graphs_cannot_control_the_terminal() {
    let graph = hostile("names.graph");
    let [small, page] = ["hostile_small.graph", "hostile_page.html"].map(scratch);
    printed_only_text(&["reduce", &graph, "-o", &small, "--", "false"]);
    printed_only_text(&["reduce", &graph, "-o", &small, "--message", EVIL, "--", "false"]);
    printed_only_text(&["inspect", &graph, "-o", &page]);
    let page = std::fs::read_to_string(page).expect("the page was written");
    let wrong = page.chars().find(|&c| !is_printable(c) && !matches!(c, '\n' | '\t'));
    assert!(wrong.is_none(), "the page holds {wrong:?}");
}

#[test]
fn documents_beyond_a_share_of_the_memory_are_refused_by_their_length() {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|kib| kib.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    // The limit is a 32nd of it, and 4 GiB.
    let length = kib.map_or(5 << 30, |kib| (kib << 10) / 16).min(5 << 30);
    for (name, first) in
        [("large.json", "{"), ("large.xyz", "{"), ("large.graph", "autobatch graph 2\n"), ("large.plan", "a")]
    {
        let path = scratch(name);
        // A file of letters without a NUL at its start; the rest takes no space on disk.
        let mut file = File::create(&path).expect("the scratch folder exists");
        file.write_all(first.repeat(5000).as_bytes())
            .and_then(|()| file.set_len(length))
            .expect("a sparse file");
        drop(file);
        let printed = within_a_gigabyte(&["show", &path]);
        std::fs::remove_file(&path).expect("it was just written");
        assert!(printed.contains("the file has") && printed.contains("[exit 3]"), "{name}: {printed}");
        assert!(printed.contains("this machine reads graphs and plans of up to"), "{name}: {printed}");
    }
}

#[test]
fn large_files_of_another_kind_are_rejected_by_their_first_bytes() {
    for (name, first, expected) in [
        ("zeros.abg", &b""[..], "this is not a binary file of autobatch"),
        ("zeros.abp", b"", "this is not a binary file of autobatch"),
        ("zeros.graph", b"", "error"),
        ("zeros.plan", b"", "error"),
        ("zeros.json", b"", "error"),
        ("zeros.xyz", b"", "error"),
        ("cut.abg", b"\x89abatch\n", "the file has format version 0"),
    ] {
        let path = scratch(name);
        let mut file = File::create(&path).expect("the scratch folder exists");
        file.write_all(first).expect("a few bytes");
        // A sparse file: it takes no space on disk.
        file.seek(SeekFrom::Start(3 << 30)).and_then(|_| file.write_all(b"end")).expect("a sparse file");
        drop(file);
        let printed = within_a_gigabyte(&["show", &path]);
        std::fs::remove_file(&path).expect("it was just written");
        assert!(printed.contains(expected) && printed.contains("[exit 3]"), "{name}: {printed}");
        assert!(printed.len() < 5000, "{name}: {} bytes", printed.len());
    }
    let path = scratch("zeros.safetensors");
    File::create(&path).and_then(|file| file.set_len(3 << 30)).expect("a sparse file");
    let printed = within_a_gigabyte(&["execute", NAMES, "--weights", &path]);
    std::fs::remove_file(&path).expect("it was just written");
    assert!(printed.contains("its first bytes are not the length of a header"), "{printed}");
}

#[test]
fn plans_that_no_form_can_hold_are_rejected() {
    for (file, expected) in [
        ("stores.json", "P4 store 1: its name must be its own, store 0 is @rows too"),
        ("table.json", "P4 store 2: a table has the shape [rows, width], found f32"),
    ] {
        let printed = transcript(&["show", &hostile(file)]);
        assert!(printed.contains(expected) && printed.contains("[exit 3]"), "{file}: {printed}");
    }
}

#[test]
fn messages_are_short_and_say_what_to_do() {
    let long = scratch("long.json");
    let field = "x".repeat(200_000);
    let head = "{\"format\": \"autobatch graph\", \"version\": 2, ";
    std::fs::write(&long, format!("{head}\"{field}\": 1}}")).expect("the scratch folder exists");
    let printed = transcript(&["show", &long]);
    assert!(printed.len() < 2000, "{} bytes", printed.len());
    let folder = scratch("a_folder");
    std::fs::create_dir_all(&folder).expect("the scratch folder exists");
    let (unknown, marked) = (scratch("unknown.json"), scratch("marked.graph"));
    std::fs::write(&unknown, "{\"format\": \"autobatch song\", \"version\": 2}").expect("the folder exists");
    let text = std::fs::read_to_string(NAMES).expect("a graph of the tests");
    std::fs::write(&marked, format!("\u{feff}{text}")).expect("the folder exists");
    for (words, expected, code) in [
        (&["show", &unknown][..], "expected \"autobatch graph\" or \"autobatch plan\" as \"format\"", 3),
        (&["execute", NAMES, "--weights", &folder], "this is a folder; name a file in it", 3),
        (&["execute", NAMES, "--weights", "none.safetensors"], "check the path", 3),
        (&["execute", NAMES, "--weights", NAMES], "name a file that write_weights or Trainer::save wrote", 3),
        (&["show", &folder], "this is a folder; name a file in it", 3),
        (&["plan", NAMES, "-o", "no/such/folder.plan"], "the folder of this file does not exist", 4),
        (&["plan", NAMES, "-o", "/dev/full"], "", 2),
        (&["train", "names", "--lr", "1e300"], "--lr must be above 0 and below 3.4e38", 2),
        (&["bench", "b", "--memory-limit", "1000"], "the memory limit is 1000", 2),
        (&["reduce", NAMES, "-o", "x.graph", "--runs", "0", "--", "false"], "0 is not in 1..", 2),
        (&["show", &marked], "", 0),
    ] {
        let output = autobatch(words);
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(printed.contains(expected), "{words:?}: {printed}");
        assert_eq!(output.status.code(), Some(code), "{words:?}: {printed}");
    }
}
