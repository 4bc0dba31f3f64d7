//! Tests of `train` and `run`: all models run, and results do not depend on threads or interruptions.

use crate::{scratch, transcript};

/// The output of a short training run.
fn train(model: &str, epochs: u32, more: &[&str]) -> String {
    let epochs = epochs.to_string();
    let mut words = vec!["train", model, "--count", "24", "--hidden", "8", "--epochs", &epochs];
    words.extend(more);
    transcript(&words)
}

#[test]
fn training_reports_every_epoch_and_writes_curves() {
    let [svg, csv, json] = ["curve.svg", "curve.csv", "curve.json"].map(scratch);
    let printed = train("names", 3, &["--curve", &svg, "--curve", &csv, "--curve", &json]);
    assert!(
        printed.contains("24 names for training, 4 for development, 4 for the test (generated, seed 1)"),
        "{printed}"
    );
    for words in [
        "epoch   1   loss ",
        "epoch   3   loss ",
        "accuracy",
        "top 3",
        "(bound ",
        "best        epoch ",
        "test        epoch ",
        "4 instances: loss ",
    ] {
        assert!(printed.contains(words), "{words:?} is missing in:\n{printed}");
    }
    assert!(!printed.contains("[exit"), "{printed}");
    let read = |path: &str| std::fs::read_to_string(path).expect("the curve was written");
    assert!(read(&svg).starts_with("<svg") && read(&svg).contains("development loss"));
    assert_eq!(read(&csv).lines().count(), 4);
    assert!(read(&csv).starts_with("epoch,training loss,development loss,accuracy,top 3\n"));
    let json: serde_json::Value = serde_json::from_str(&read(&json)).expect("the curve is JSON");
    assert_eq!(json["epochs"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_trace_has_the_phases_of_each_step() {
    let path = scratch("steps.json");
    let printed = train("names", 2, &["--batch", "8", "--trace", &path]);
    assert!(printed.contains(&format!("wrote {path}: 6 steps of 1 process;")), "{printed}");
    let text = std::fs::read_to_string(&path).expect("the trace was written");
    let trace: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("a list");
    let named = |name: &str| -> Vec<_> { events.iter().filter(|event| event["name"] == name).collect() };
    assert_eq!((named("execute").len(), named("update").len()), (6, 6), "{text}");
    let span = |event: &serde_json::Value| {
        let of = |name: &str| event[name].as_f64().expect("a time");
        (of("ts"), of("ts") + of("dur"))
    };
    for step in 0..6 {
        let (start, end) = span(named(&format!("step {step}"))[0]);
        let is_within = |(from, to): (f64, f64)| start <= from && to <= end + 1e-6;
        assert!(named("execute").into_iter().map(span).any(is_within), "{text}");
    }
    let refused = train("names", 1, &["--trace", "-"]);
    assert!(refused.contains("expected a file, found standard output"), "{refused}");
}

#[test]
fn the_number_of_threads_does_not_change_results() {
    let single = train("treelstm", 3, &["--threads", "1"]);
    assert_eq!(single, train("treelstm", 3, &["--threads", "2"]));
    assert_ne!(single, train("treelstm", 3, &["--seed", "2"]));
}

/// The lines of the epochs.
fn epochs(printed: &str) -> Vec<&str> {
    printed.lines().filter(|line| line.starts_with("epoch")).collect()
}

#[test]
fn a_resumed_run_equals_an_uninterrupted_run() {
    let path = scratch("resume.safetensors");
    let whole = train("tagger", 3, &["--bucket"]);
    let first = train("tagger", 1, &["--bucket", "--save", &path]);
    let rest = train("tagger", 3, &["--bucket", "--resume", &path]);
    assert!(rest.contains("epoch 2, after 0 of its minibatches"), "{rest}");
    let parts: Vec<&str> = epochs(&first).into_iter().chain(epochs(&rest)).collect();
    assert_eq!(parts, epochs(&whole));
    let other = train("names", 3, &["--resume", &path]);
    assert!(other.contains("belongs to another model") && other.contains("[exit 3]"), "{other}");
}

#[test]
fn a_resumed_run_knows_the_best_epoch() {
    let path = scratch("best.safetensors");
    let best = scratch("best.best.safetensors");
    // The learning rate is so high that the scores get worse.
    let fast = ["--lr", "3", "--patience", "2", "--save", &path];
    let whole = train("names", 9, &fast);
    let stopped =
        whole.lines().position(|line| line.starts_with("no improvement")).expect("the scores get worse");
    let (completed, saved) = (epochs(&whole).len(), std::fs::read(&best).expect("the best epoch is saved"));
    assert!(completed > 2 && stopped > 0, "{whole}");
    // The first run completes all epochs but the last.
    train("names", completed as u32 - 1, &fast);
    let resumed = [&fast[..], &["--resume", &path]].concat();
    let rest = train("names", 9, &resumed);
    assert_eq!(epochs(&rest), epochs(&whole)[completed - 1..]);
    assert!(rest.contains("no improvement for 2 epochs"), "{rest}");
    let end = |printed: &str| -> Vec<String> {
        let is_end = |line: &&str| line.starts_with("best ") || line.starts_with("test ");
        printed.lines().filter(is_end).map(str::to_owned).collect()
    };
    assert_eq!(end(&rest), end(&whole), "the resumed run tests the parameters of the best epoch");
    assert_eq!(
        std::fs::read(&best).expect("the file exists"),
        saved,
        "a worse epoch does not replace the best"
    );
}

#[test]
fn a_run_that_is_out_of_time_can_be_resumed() {
    let path = scratch("late.safetensors");
    let late = train("names", 3, &["--max-minutes", "0", "--save", &path]);
    assert!(
        late.contains(
            "time ran out in epoch 1, after 0 of its minibatches\ncontinue    autobatch train names"
        ),
        "{late}"
    );
    let resumed = train("names", 3, &["--resume", &path]);
    assert_eq!(epochs(&resumed), epochs(&train("names", 3, &[])));
}

#[test]
fn only_written_files_are_reported() {
    let [path, curve] = ["unwritten.safetensors", "unwritten.svg"].map(scratch);
    let printed = train("names", 0, &["--save", &path, "--curve", &curve]);
    assert!(printed.contains("up to 0 epochs") && !printed.contains("wrote"), "{printed}");
    assert!(![&path, &curve].iter().any(|path| std::path::Path::new(path).exists()));
    let path = scratch("over.safetensors");
    train("names", 1, &["--save", &path]);
    let printed = train("names", 1, &["--resume", &path, "--save", &scratch("unwritten.safetensors")]);
    assert!(
        printed.contains("after 1 epoch: training is complete") && !printed.contains("wrote"),
        "{printed}"
    );
}

#[test]
fn the_folder_of_a_checkpoint_is_created() {
    let path = scratch("made/for/it.safetensors");
    let printed = train("names", 1, &["--save", &path]);
    assert!(printed.contains("wrote") && std::path::Path::new(&path).exists(), "{printed}");
}

#[test]
fn a_resumed_run_must_keep_its_instances_and_their_order() {
    let [early, late] = ["early.safetensors", "ended.safetensors"].map(scratch);
    train("treelstm", 2, &["--max-minutes", "0", "--save", &early]);
    train("treelstm", 1, &["--save", &late]);
    let refused = train("treelstm", 2, &["--seed", "2", "--resume", &late]);
    assert!(refused.contains("was made with --seed 1, found 2") && refused.contains("[exit 2]"), "{refused}");
    // Between epochs, the size of minibatches may change.
    let printed = train("treelstm", 2, &["--batch", "5", "--resume", &late]);
    assert_eq!(epochs(&printed).len(), 1, "{printed}");
    assert_eq!(epochs(&train("treelstm", 2, &["--batch", "5", "--resume", &early])).len(), 2);
}

#[test]
fn only_the_parser_decodes() {
    let printed = train("parser", 1, &["--decode"]);
    assert!(printed.contains("decoded     greedily: "), "{printed}");
    let printed = train("names", 1, &["--decode"]);
    assert!(printed.contains("model names has no decoder"), "{printed}");
}

#[test]
fn invalid_options_are_rejected() {
    for (more, words) in [
        (&["--lr", "0"][..], "--lr must be above 0 and below 3.4e38, found 0"),
        (&["--curve", "x.png"], "expected .svg, .csv or .json"),
        (&["--data", "nowhere"], "nowhere"),
        (&["--embedding", "3"], "has none of its own"),
    ] {
        let printed = train("names", 3, more);
        assert!(printed.contains(words) && printed.contains("[exit "), "{more:?}: {printed}");
    }
}

#[test]
fn every_model_has_the_same_bits_batched_and_unbatched() {
    let folder = scratch("runs");
    for entry in &autobatch_models::catalogue::ENTRIES {
        let words =
            ["run", entry.name, "--batch", "4", "--hidden", "6", "--rounds", "1", "--output", &folder];
        let printed = transcript(&words);
        for words in ["same bits         yes, ", "check             proven: ", "unbatched", ".. x faster"] {
            assert!(printed.contains(words), "{}: {words:?} is missing in:\n{printed}", entry.name);
        }
        assert!(!printed.contains("[exit"), "{printed}");
    }
    let plan = format!("{folder}/treelstm.plan");
    let printed = transcript(&["explain", &plan]);
    assert!(!printed.contains("[exit"), "{printed}");
    assert!(
        std::fs::read_to_string(format!("{folder}/treelstm.svg")).expect("a picture").starts_with("<svg")
    );
}

#[test]
fn every_model_trains_with_the_same_bits_batched_and_unbatched() {
    for entry in &autobatch_models::catalogue::ENTRIES {
        let words = ["run", entry.name, "--mode", "train", "--batch", "4", "--hidden", "6", "--rounds", "3"];
        let printed = transcript(&words);
        for words in
            ["same bits         yes, ", " losses, and ", " weights and moments after the last minibatch"]
        {
            assert!(printed.contains(words), "{}: {words:?} is missing in:\n{printed}", entry.name);
        }
        assert!(!printed.contains("[exit"), "{printed}");
    }
    let words =
        ["run", "names", "--mode", "train", "--batch", "4", "--hidden", "6", "--rounds", "3", "--json"];
    let document: serde_json::Value = serde_json::from_str(&transcript(&words)).expect("JSON");
    assert_eq!((&document["same_bits"], &document["losses"]), (&true.into(), &12.into()), "{document:#}");
    let refused = transcript(&["run", "names", "--mode", "train", "--output", "out"]);
    assert!(refused.contains("writes no files") && refused.contains("[exit 2]"), "{refused}");
}

#[test]
fn a_run_writes_files_only_into_the_named_folder() {
    let words = ["run", "names", "--batch", "4", "--hidden", "6", "--rounds", "1"];
    let printed = transcript(&words);
    assert!(printed.contains("Next: autobatch run names -o out/") && !printed.contains("wrote"), "{printed}");
    let document: serde_json::Value =
        serde_json::from_str(&transcript(&[&words[..], &["--json"]].concat())).expect("JSON");
    assert_eq!((&document["same_bits"], &document["proven"]), (&true.into(), &true.into()), "{document:#}");
    for (fact, shown) in [("nodes", " nodes -> "), ("bound", "bound "), ("parameters", " parameters")] {
        let number = document[fact].as_u64().expect("a number").to_string();
        let plain = printed.replace(',', "");
        assert!(plain.contains(&number) && printed.contains(shown), "{fact} {number}: {printed}");
    }
}

#[test]
fn json_lines_hold_the_facts_of_the_text() {
    let printed = train("names", 2, &[]);
    let lines = train("names", 2, &["--json"]);
    let events: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect();
    let names: Vec<&str> = events.iter().filter_map(|event| event["event"].as_str()).collect();
    assert_eq!(names, ["start", "epoch", "epoch", "end"], "{lines}");
    assert!(printed.contains(&format!("{} for development", events[0]["development"])), "{printed}");
    for event in &events[1..3] {
        let loss = event["development_loss"].as_f64().expect("a number");
        let accuracy = event["scores"]["accuracy"].as_f64().expect("a number");
        for fact in [format!("development loss {loss:.4}"), format!("accuracy {:.2} %", 100.0 * accuracy)] {
            assert!(printed.contains(&fact), "{fact} is missing in:\n{printed}");
        }
    }
    let tested = events[3]["tested"]["loss"].as_f64().expect("a number");
    assert!(printed.contains(&format!("4 instances: loss {tested:.4}")), "{printed}");
}

#[test]
fn a_resumed_curve_has_all_epochs_and_changed_options_are_reported() {
    let [path, csv, whole] = ["grown.safetensors", "grown.csv", "grown_whole.csv"].map(scratch);
    train("names", 3, &["--curve", &whole]);
    train("names", 1, &["--save", &path]);
    let printed = train("names", 3, &["--resume", &path, "--curve", &csv]);
    assert!(!printed.contains("changed"), "{printed}");
    let read = |path: &str| std::fs::read_to_string(path).expect("the curve was written");
    assert_eq!(read(&csv), read(&whole), "the epochs before the resumption are in the curve");
    let printed = train("names", 3, &["--resume", &path, "--lr", "0.5", "--clip", "1"]);
    assert!(printed.contains("changed     --clip 1, before 5; --lr 0.5, before 0.004"), "{printed}");
}

#[test]
fn a_development_part_that_is_published_is_used() {
    let folder = scratch("published_names");
    std::fs::create_dir_all(&folder).expect("the scratch folder exists");
    let sentences = |count: usize| "Ada|I-PER lives|O in|O Rome|I-LOC\n".repeat(count);
    for (file, count) in [("train.txt", 20), ("valid.txt", 3), ("test.txt", 5)] {
        std::fs::write(format!("{folder}/{file}"), sentences(count)).expect("the folder was just made");
    }
    let words = ["train", "tagger", "--data", &folder, "--hidden", "4", "--epochs", "1"];
    let printed = transcript(&words);
    assert!(printed.contains("20 sentences for training, 3 for development, 5 for the test"), "{printed}");
    std::fs::remove_file(format!("{folder}/test.txt")).expect("the file was just made");
    let printed = transcript(&words);
    assert!(printed.contains("18 sentences for training, 2 for development, 3 for the test"), "{printed}");
}
