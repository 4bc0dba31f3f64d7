//! Tests of `map`: shards of any inputs equal a whole prediction, and a run continues where another one ended.

use crate::{scratch, transcript};
use serde_json::Value as Json;
use std::fs::{create_dir_all, read, read_dir, read_to_string, remove_dir_all, write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A small trained model, whose checkpoint has a name of its own for each test.
fn trained(model: &str, test: &str) -> String {
    let path = scratch(&format!("map_{test}.safetensors"));
    let words = ["train", model, "--count", "20", "--hidden", "6", "--epochs", "1", "--save", &path];
    transcript(&words);
    path
}

/// A line with an expression.
fn expression(number: usize) -> String {
    format!("( ( ( [MAX {} ) {} ) ] )\n", number % 10, number % 7)
}

/// An empty folder.
fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(scratch(name));
    let _ = remove_dir_all(&path);
    create_dir_all(&path).expect("the scratch folder exists");
    path
}

/// The names and the content of the files of a folder, by their names.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<(String, Vec<u8>)> = read_dir(folder)
        .expect("the folder exists")
        .map(|entry| entry.expect("it is listed"))
        .map(|entry| {
            (entry.file_name().to_string_lossy().into_owned(), read(entry.path()).unwrap_or_default())
        })
        .collect();
    all.sort();
    all
}

/// All answers in the order of the manifest.
fn answers(folder: &Path) -> String {
    let manifest: Json =
        serde_json::from_slice(&read(folder.join("manifest.json")).expect("a manifest")).expect("JSON");
    assert_eq!(manifest["complete"], true, "{manifest:#}");
    let shards = manifest["shards"].as_array().expect("a list");
    let named = |shard: &Json| folder.join(shard["shard"].as_str().expect("a name"));
    shards.iter().map(|shard| read_to_string(named(shard)).expect("a shard")).collect()
}

#[test]
fn shards_are_the_whole_prediction_whatever_the_form_and_the_number_of_instances() {
    let cases = [
        ("treelstm", (0..23).map(expression).collect::<String>()),
        ("tagger", "Ada lives in Rome\n\nBob\nYes we can\n".repeat(5)),
        ("parser", "1\tAda\t_\t_\t_\t_\t0\t_\t_\t_\n2\truns\t_\t_\t_\t_\t1\t_\t_\t_\n\n".repeat(9)),
        ("lattice", "南 京\n0:2\n\n大 桥\n-\n".repeat(4)),
    ];
    for (model, text) in cases {
        let weights = trained(model, &format!("forms_{model}"));
        let input = folder(&format!("map_forms_{model}_in")).join("data.x.txt");
        write(&input, text).expect("the folder exists");
        let input = input.to_string_lossy().into_owned();
        let whole = transcript(&["predict", model, "--weights", &weights, "--json", &input]);
        assert!(whole.lines().count() > 6, "{model}: {whole}");
        for shard in ["1", "4", "1000"] {
            let output = folder(&format!("map_forms_{model}_{shard}"));
            let out = output.to_string_lossy().into_owned();
            let words = ["map", model, "--weights", &weights, "--data", &input, "--shard", shard, "-o", &out];
            let said = transcript(&words);
            assert!(said.contains("of which 0 existed before"), "{model}: {said}");
            assert_eq!(answers(&output), whole, "{model} in shards of {shard}");
            assert!(output.join("data.x.00000.jsonl").exists(), "shards are named after inputs");
            assert!(!output.join(".records").exists(), "a complete run leaves no records");
        }
    }
}

#[test]
fn files_folders_lists_and_streams_are_inputs() {
    let weights = trained("names", "inputs");
    let inputs = folder("map_inputs_in");
    for (name, text) in [("b.txt", "Satoshi\nMüller\n"), ("a.txt", "Ada\n"), (".hidden", "Hidden\n")] {
        write(inputs.join(name), text).expect("the folder exists");
    }
    let other = folder("map_inputs_other").join("a.txt");
    write(&other, "Bob\nEve\nMallory\n").expect("the folder exists");
    let (inputs, other) = (inputs.to_string_lossy().into_owned(), other.to_string_lossy().into_owned());
    let list = scratch("map_inputs.list");
    write(&list, format!("{inputs}/a.txt\n\n{inputs}/b.txt\n  {other}\n"))
        .expect("the scratch folder exists");
    let map = |data: &[&str], name: &str| {
        let output = folder(name);
        let out = output.to_string_lossy().into_owned();
        let words = ["map", "names", "--weights", &weights, "--shard", "2", "-o", &out, "--data"];
        let said = transcript(&[&words[..], data].concat());
        (output, said)
    };
    let (of_folder, said) = map(&[&inputs, &other], "map_inputs_folder");
    assert!(said.starts_with("4 shards of 6 instances in "), "{said}");
    let (of_list, _) = map(&[&format!("@{list}")], "map_inputs_list");
    assert_eq!(answers(&of_folder), answers(&of_list));
    let names: Vec<String> = files(&of_folder).into_iter().map(|(name, _)| name).collect();
    let expected = ["a.00000.jsonl", "a~2.00000.jsonl", "a~2.00001.jsonl", "b.00000.jsonl", "manifest.json"];
    assert_eq!(names, expected);
    let output = folder("map_inputs_stream");
    let mut child = Command::new(env!("CARGO_BIN_EXE_autobatch"))
        .args(["map", "names", "--weights", &weights, "--shard", "2", "--data", "-", "-o"])
        .arg(&output)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program was built");
    let text = b"Ada\nSatoshi\nM\xc3\xbcller\nBob\nEve\nMallory\n";
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), text).expect("the program reads");
    assert!(child.wait().expect("the program exits").success());
    assert_eq!(answers(&output), answers(&of_folder));
    let words = ["map", "names", "--weights", &weights, "-o", &inputs, "--data", &other, &inputs];
    assert!(transcript(&words).contains("is both an input and the output"));
    for (data, expected) in [
        (&["-", "-"][..], "standard input can be read once"),
        (&["/no/such/file"], "/no/such/file: No such file"),
        (&["@/no/such/list"], "/no/such/list: No such file"),
    ] {
        let (_, said) = map(data, "map_inputs_wrong");
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_repeated_run_makes_what_is_missing_or_has_changed() {
    let weights = trained("names", "again");
    let inputs = folder("map_again_in");
    let input = inputs.join("names.txt");
    let names: Vec<String> = (0..10).map(|number| format!("Name{number}\n")).collect();
    write(&input, names.concat()).expect("the folder exists");
    let output = folder("map_again");
    let (data, out) = (input.to_string_lossy().into_owned(), output.to_string_lossy().into_owned());
    let map = |more: &[&str]| {
        let words = ["map", "names", "--weights", &weights, "--data", &data, "--shard", "2", "-o", &out];
        transcript(&[&words[..], more].concat())
    };
    assert!(map(&[]).contains("5 shards of 10 instances"));
    let whole = files(&output);
    let says = |said: &str, existed: usize| {
        assert!(said.contains(&format!("of which {existed} existed before")), "{said}");
        assert_eq!(files(&output), whole);
    };
    says(&map(&[]), 5);
    std::fs::remove_file(output.join("names.00001.jsonl")).expect("it was written");
    says(&map(&[]), 4);
    write(output.join("names.00003.jsonl"), "{\"name\": \"damaged\"}\n").expect("it is writable");
    says(&map(&[]), 4);
    // An input that has changed makes its shards again, and no others.
    write(&input, names.concat().replace("Name5", "Other")).expect("it is writable");
    let said = map(&[]);
    assert!(said.contains("of which 4 existed before"), "{said}");
    assert!(answers(&output).contains("\"Other\"") && !answers(&output).contains("\"Name5\""));
    write(&input, names.concat()).expect("it is writable");
    says(&map(&[]), 4);
    // Other shards, parameters or inputs are another run.
    let other = scratch("map_again_other.safetensors");
    transcript(&[
        "train", "names", "--count", "20", "--hidden", "6", "--epochs", "1", "--seed", "5", "--save", &other,
    ]);
    let folder = inputs.to_string_lossy().into_owned();
    for (weights, data, shard) in [(&weights, &data, "3"), (&other, &data, "2"), (&weights, &folder, "2")] {
        let words = ["map", "names", "--weights", weights, "--data", data, "--shard", shard, "-o", &out];
        let said = transcript(&words);
        if data == &folder {
            // The folder holds the same file.
            assert!(said.contains("of which 5 existed before"), "{said}");
            continue;
        }
        assert!(
            said.contains("belongs to a run with other parameters, inputs, sizes or forms of shards"),
            "{said}"
        );
    }
    write(inputs.join("more.txt"), "Ada\n").expect("the folder exists");
    let said =
        transcript(&["map", "names", "--weights", &weights, "--data", &folder, "--shard", "2", "-o", &out]);
    assert!(
        said.contains("belongs to a run with other parameters, inputs, sizes or forms of shards"),
        "{said}"
    );
    assert_eq!(files(&output), whole);
}

#[test]
fn errors_name_the_line_of_the_file_and_not_of_the_shard() {
    let weights = trained("treelstm", "lines");
    let input = folder("map_lines_in").join("trees.txt");
    let lines: String = (0..13).map(expression).collect();
    write(&input, lines.replace("[MAX 7 )", "[MAX x )")).expect("the folder exists");
    let output = folder("map_lines");
    let (data, out) = (input.to_string_lossy().into_owned(), output.to_string_lossy().into_owned());
    let said =
        transcript(&["map", "treelstm", "--weights", &weights, "--data", &data, "--shard", "3", "-o", &out]);
    assert!(said.contains(&format!("{data}:8:")) && said.contains("expected a digit"), "{said}");
    let predicted = transcript(&["predict", "treelstm", "--weights", &weights, &data]);
    assert!(predicted.contains(&format!("{data}:8:")), "{predicted}");
    // The mended file continues.
    write(&input, lines).expect("the folder exists");
    let said =
        transcript(&["map", "treelstm", "--weights", &weights, "--data", &data, "--shard", "3", "-o", &out]);
    assert!(
        said.contains("5 shards of 13 instances") && said.contains("of which 2 existed before"),
        "{said}"
    );
}

#[test]
#[cfg(not(feature = "parquet"))]
fn a_build_without_parquet_refuses_it_before_any_work() {
    let weights = trained("names", "no_parquet");
    let output = scratch("map_no_parquet");
    let words = ["map", "names", "--weights", &weights, "--data", "-", "--form", "parquet", "-o", &output];
    let said = transcript(&words);
    assert!(said.contains("built without Parquet") && said.ends_with("[exit 2]\n"), "{said}");
    assert!(!Path::new(&output).exists());
}

/// The objects of a Parquet file.
#[cfg(feature = "parquet")]
fn objects(path: &Path) -> Vec<Json> {
    use arrow_json::LineDelimitedWriter;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    let file = std::fs::File::open(path).expect("the shard was written");
    let batches = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet").build().expect("batches");
    let mut lines = LineDelimitedWriter::new(Vec::new());
    for batch in batches {
        lines.write(&batch.expect("whole columns")).expect("JSON");
    }
    lines.finish().expect("the lines end");
    let lines = String::from_utf8(lines.into_inner()).expect("UTF-8");
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
#[cfg(feature = "parquet")]
fn shards_of_parquet_hold_the_answers_of_json_lines() {
    let cases = [
        ("treelstm", (0..23).map(expression).collect::<String>()),
        ("tagger", "Ada lives in Rome\n\nBob\nYes we can\n".repeat(5)),
        ("names", "Satoshi\nMüller\nAda\n".repeat(3)),
    ];
    for (model, text) in cases {
        let weights = trained(model, &format!("parquet_{model}"));
        let input = folder(&format!("map_parquet_{model}_in")).join("data.txt");
        write(&input, text).expect("the folder exists");
        let input = input.to_string_lossy().into_owned();
        let whole = transcript(&["predict", model, "--weights", &weights, "--json", &input]);
        let whole: Vec<Json> = whole.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let output = folder(&format!("map_parquet_{model}"));
        let out = output.to_string_lossy().into_owned();
        let words = ["map", model, "--weights", &weights, "--data", &input, "--shard", "5", "-o", &out];
        let parquet = || transcript(&[&words[..], &["--form", "parquet"]].concat());
        parquet();
        let first = files(&output);
        let shards = first.iter().filter(|(name, _)| name.ends_with(".parquet"));
        let found: Vec<Json> = shards.flat_map(|(name, _)| objects(&output.join(name))).collect();
        assert_eq!(found, whole, "{model}");
        assert!(!parquet().contains("of which 0 existed"), "whole shards are not made again");
        assert_eq!(files(&output), first, "equal answers have equal bytes");
        let refused = transcript(&words);
        assert!(refused.contains("other parameters, inputs, sizes or forms of shards"), "{refused}");
    }
}
