//! The commands of the pages.

use crate::mask::masked;
use crate::page::{Step, blocks, steps};
use crate::shell::Scratch;
use crate::{files, root};
use clap::Parser as _;
use std::path::{Path, PathBuf};

/// All pages with commands.
fn pages() -> Vec<PathBuf> {
    let mut pages = files(&root().join("docs/src"), "md");
    pages.extend(["README.md", "CONTRIBUTING.md", "bench/README.md"].map(|page| root().join(page)));
    pages
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Runs the commands of a page. Returns the page with the new output, and the commands whose output differs.
fn rerun(path: &Path, page: &str) -> (String, Vec<String>) {
    let scratch =
        Scratch::new(path.file_stem().and_then(|stem| stem.to_str()).expect("names of pages are UTF-8"));
    let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
    let mut different = Vec::new();
    let mut edits: Vec<(std::ops::Range<usize>, String)> = Vec::new();
    for Step { command, expected, output } in steps(page) {
        let printed = scratch.run(&["-o", "pipefail", "-c"], command);
        let expected = expected.join("\n");
        if masked(&printed) != masked(&expected) {
            let line = output.start;
            different.push(format!(
                "{}:{line}: $ {command}\nexpected\n{expected}\nfound\n{printed}",
                path.display()
            ));
            edits.push((output, printed));
        }
    }
    for (range, printed) in edits.into_iter().rev() {
        lines.splice(range, printed.trim_end().lines().map(str::to_owned));
    }
    (lines.join("\n") + "\n", different)
}

#[test]
fn console_blocks_show_what_the_commands_print() {
    let update = std::env::var("INSTA_UPDATE").is_ok_and(|value| value == "always");
    let mut complaints = Vec::new();
    let mut commands = 0;
    for path in pages() {
        let page = read(&path);
        commands += steps(&page).len();
        if steps(&page).is_empty() {
            continue;
        }
        let (new, different) = rerun(&path, &page);
        if update && !different.is_empty() {
            std::fs::write(&path, new).expect("pages are writable");
        } else {
            complaints.extend(different);
        }
    }
    assert!(commands >= 20, "the pages have {commands} commands");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn the_comparison_finds_a_changed_output() {
    let page = "```console\n$ echo one\none\n$ false\n[exit 1]\n```\n";
    let path = Path::new("sample.md");
    assert_eq!(rerun(path, page).1, Vec::<String>::new());
    let (new, different) = rerun(path, &page.replace("\none\n", "\ntwo\n"));
    assert_eq!((new.as_str(), different.len()), (page, 1));
}

/// The arguments of a command of the command line, if the line calls it directly or through cargo.
fn own_arguments(line: &str) -> Option<Vec<&str>> {
    let words: Vec<&str> = line.split_whitespace().skip_while(|word| word.contains('=')).collect();
    let own = match words.first() {
        // The words behind the program that a launcher of processes starts.
        Some(&("mpirun" | "srun")) => words.iter().position(|word| *word == "autobatch").unwrap_or(0),
        _ => 0,
    };
    match &words[own..] {
        ["autobatch", rest @ ..] => Some(rest.to_vec()),
        ["cargo", "run", rest @ ..] if rest.windows(2).any(|pair| pair == ["-p", "autobatch-cli"]) => {
            let own = rest.iter().position(|word| *word == "--")?;
            Some(rest[own + 1..].to_vec())
        }
        _ => None,
    }
}

/// The commands of the `sh` blocks of all pages, and the calls of cargo in their text, with their places. Comments end at
/// the end of the line.
fn commands() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for path in pages() {
        let page = read(&path);
        let mut add = |number: usize, command: &str| {
            let place = format!("{}:{}", path.display(), number + 1);
            found.push((place, command.trim().to_owned()));
        };
        for block in blocks(&page).into_iter().filter(|block| block.kind == "sh") {
            for (at, line) in block.lines.iter().enumerate() {
                let command = line.split(" # ").next().unwrap_or_default();
                if !command.trim().is_empty() && !command.starts_with('#') {
                    add(block.start + at, command);
                }
            }
        }
        for (number, line) in page.lines().enumerate() {
            let spans = line.split('`').skip(1).step_by(2);
            spans.filter(|span| span.starts_with("cargo ")).for_each(|span| add(number, span));
        }
    }
    found
}

#[test]
fn commands_without_output_have_valid_options() {
    let mut checked = 0;
    for (place, line) in commands() {
        let Some(arguments) = own_arguments(&line) else { continue };
        if arguments.is_empty() {
            // The text names the command itself, without a verb.
            continue;
        }
        let arguments = std::iter::once("autobatch").chain(arguments);
        if let Err(error) = autobatch_cli::Cli::try_parse_from(arguments) {
            // This build may lack the feature that a command with a GPU names.
            let lacks_gpu = line.contains("--features gpu") && error.to_string().contains("--device");
            assert!(lacks_gpu, "{place}: {line}\n{error}");
        }
        checked += 1;
    }
    assert!(checked >= 5, "the pages have {checked} such commands");
}

/// Makes the files that commands of the guide name: graphs and plans, the dumps of a program, and a corpus.
const PREPARE: &str = r#"
autobatch emit treelstm --instances 4 -o trees.abg
autobatch plan trees.abg -o trees.plan
autobatch emit lattice --instances 4 -o lattice.abg
autobatch show bad.graph -o bad.abg
AUTOBATCH_DUMP=dump autobatch train treelstm --hidden 8 --count 16 --epochs 1 --save dumped.safetensors
AUTOBATCH_DUMP=dumps autobatch eval treelstm --weights dumped.safetensors
mkdir trees
printf '9\t( ( ( [MAX 2 ) ( ( ( [FIRST 9 ) 6 ) ] ) ) ] )\n' > trees/one.tsv
"#;

/// A graph whose cell makes an infinity of a finite number.
const BAD: &str = r#"autobatch graph 2
module "bad"
site !0 "src/bad.rs" 3:9

graph
site !1 "src/bad.rs" 10:5
%0 = fill f32[2] {value=0.0} !1
%1 = log(%0) !1
output "x" %1
"#;

/// The command of the guide that a test runs for a line: without a launcher of processes, because one process gives the same
/// results. `None` for commands that build, install or measure, which take minutes.
fn run_line(line: &str) -> Option<String> {
    let own = own_arguments(line)?;
    let builds = line.contains("cargo ");
    let measures = own.first().is_some_and(|verb| ["bench", "sweep"].contains(verb));
    let quick = match own.as_slice() {
        ["train", ..] => &["--hidden", "8", "--count", "16"][..],
        _ => &[],
    };
    let variables = line.split_whitespace().take_while(|word| word.contains('='));
    let words = variables.chain(["autobatch"]).chain(own.iter().copied()).chain(quick.iter().copied());
    (!builds && !measures).then(|| words.collect::<Vec<_>>().join(" "))
}

#[test]
fn shell_blocks_of_the_guide_run() {
    let scratch = Scratch::new("shell-blocks");
    scratch.write("bad.graph", BAD);
    let prepared = scratch.run(&["-e", "-c"], PREPARE);
    assert!(!prepared.contains("error"), "{prepared}");
    let (mut ran, mut complaints) = (0, Vec::new());
    for (place, line) in commands().into_iter().filter(|(place, _)| place.contains("docs/src")) {
        let Some(command) = run_line(&line) else { continue };
        let printed = scratch.run(&["-c"], &command);
        // Its purpose is the error that it ends with.
        let fails = command.contains("--watch") && !command.contains(" -- ");
        if printed.contains("[exit ") != fails || fails && !printed.contains("infinity") {
            complaints.push(format!("{place}: {command}\n{printed}"));
        }
        ran += 1;
    }
    assert!(ran >= 12, "{ran} commands ran");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// The names after an option of cargo, such as `-p` or `--example`.
fn values<'a>(line: &'a str, option: &str) -> Vec<&'a str> {
    let words: Vec<&str> = line.split_whitespace().take_while(|word| *word != "--").collect();
    words.windows(2).filter(|pair| pair[0] == option).map(|pair| pair[1]).collect()
}

#[test]
fn commands_of_cargo_name_existing_packages_and_targets() {
    let entries = |folder: PathBuf| {
        let entries = std::fs::read_dir(folder).expect("the repository is readable");
        entries.map(|entry| entry.expect("entries are readable").path())
    };
    let below = entries(root().to_path_buf()).chain(entries(root().join("tests")));
    let folders: Vec<PathBuf> = below.chain([root().to_path_buf()]).collect();
    let manifests: Vec<String> =
        folders.iter().filter_map(|folder| std::fs::read_to_string(folder.join("Cargo.toml")).ok()).collect();
    let mut checked = 0;
    for (place, line) in commands().into_iter().filter(|(_, line)| line.contains("cargo ")) {
        for package in values(&line, "-p") {
            let name = format!("name = \"{package}\"");
            assert!(manifests.iter().any(|text| text.contains(&name)), "{place}: no package {package}");
            checked += 1;
        }
        for example in values(&line, "--example") {
            let exists = |folder: &PathBuf| {
                folder.join("examples").join(format!("{example}.rs")).exists()
                    || folder.join("examples").join(example).join("main.rs").exists()
            };
            assert!(folders.iter().any(exists), "{place}: no example {example}");
            checked += 1;
        }
    }
    assert!(checked >= 8, "the pages name {checked} packages and examples");
}
