//! The verbs `train` and `run`: every model goes, and results do not depend on threads or breaks.

use super::{says, scratch};

/// A small run of training.
fn trains(model: &str, epochs: u32, more: &[&str]) -> String {
    let epochs = epochs.to_string();
    let mut words = vec!["train", model, "--count", "24", "--hidden", "8", "--epochs", &epochs];
    words.extend(more);
    says(&words)
}

#[test]
fn training_says_every_epoch_and_writes_curves() {
    let [svg, csv, json] = ["curve.svg", "curve.csv", "curve.json"].map(scratch);
    let said = trains("names", 3, &["--curve", &svg, "--curve", &csv, "--curve", &json]);
    assert!(said.contains("24 names to learn from, 4 held out (generated, seed 1)"), "{said}");
    for words in
        ["epoch   1   loss ", "epoch   3   loss ", "accuracy", "top 3", "(bound ", "best        epoch "]
    {
        assert!(said.contains(words), "{words:?} is not in:\n{said}");
    }
    assert!(!said.contains("[exit"), "{said}");
    let read = |path: &str| std::fs::read_to_string(path).expect("the curve was written");
    assert!(read(&svg).starts_with("<svg") && read(&svg).contains("held-out loss"));
    assert_eq!(read(&csv).lines().count(), 4);
    assert!(read(&csv).starts_with("epoch,training loss,held-out loss,accuracy,top 3\n"));
    let json: serde_json::Value = serde_json::from_str(&read(&json)).expect("the curve is JSON");
    assert_eq!(json["epochs"].as_array().map(Vec::len), Some(3));
}

#[test]
fn threads_change_nothing_that_training_says() {
    let once = trains("treelstm", 3, &["--threads", "1"]);
    assert_eq!(once, trains("treelstm", 3, &["--threads", "2"]));
    assert_ne!(once, trains("treelstm", 3, &["--seed", "2"]));
}

/// The lines of epochs.
fn epochs(said: &str) -> Vec<&str> {
    said.lines().filter(|line| line.starts_with("epoch")).collect()
}

#[test]
fn a_resumed_run_says_what_the_uninterrupted_one_says() {
    let path = scratch("resume.safetensors");
    let whole = trains("tagger", 3, &["--bucket"]);
    let first = trains("tagger", 1, &["--bucket", "--save", &path]);
    let rest = trains("tagger", 3, &["--bucket", "--resume", &path]);
    assert!(rest.contains("epoch 2, 0 minibatches into it"), "{rest}");
    let parts: Vec<&str> = epochs(&first).into_iter().chain(epochs(&rest)).collect();
    assert_eq!(parts, epochs(&whole));
    let other = trains("names", 3, &["--resume", &path]);
    assert!(other.contains("it is of another model") && other.contains("[exit 3]"), "{other}");
}

#[test]
fn a_resumed_run_remembers_which_epoch_was_the_best() {
    let path = scratch("best.safetensors");
    let best = scratch("best.best.safetensors");
    // So fast that it gets worse.
    let fast = ["--lr", "3", "--patience", "2", "--save", &path];
    let whole = trains("names", 9, &fast);
    let stopped = whole.lines().position(|line| line.starts_with("no better")).expect("it gets worse");
    let (made, kept) = (epochs(&whole).len(), std::fs::read(&best).expect("the best is saved"));
    assert!(made > 2 && stopped > 0, "{whole}");
    // The first run makes all epochs but the last.
    trains("names", made as u32 - 1, &fast);
    let resumed = [&fast[..], &["--resume", &path]].concat();
    let rest = trains("names", 9, &resumed);
    assert_eq!(epochs(&rest), epochs(&whole)[made - 1..]);
    assert!(rest.contains("no better for 2 epochs") && rest.contains("before it was resumed"), "{rest}");
    assert_eq!(std::fs::read(&best).expect("it is there"), kept, "the best is not replaced by a worse one");
}

#[test]
fn a_run_without_time_stops_at_once_and_can_be_resumed() {
    let path = scratch("late.safetensors");
    let late = trains("names", 3, &["--max-minutes", "0", "--save", &path]);
    assert!(late.contains("time is up in epoch 1, 0 minibatches into it; go on with --resume"), "{late}");
    let resumed = trains("names", 3, &["--resume", &path]);
    assert_eq!(epochs(&resumed), epochs(&trains("names", 3, &[])));
}

#[test]
fn only_what_was_written_is_said_to_be() {
    let [path, curve] = ["unwritten.safetensors", "unwritten.svg"].map(scratch);
    let said = trains("names", 0, &["--save", &path, "--curve", &curve]);
    assert!(said.contains("up to 0 epochs") && !said.contains("wrote"), "{said}");
    assert!(![&path, &curve].iter().any(|path| std::path::Path::new(path).exists()));
    let path = scratch("over.safetensors");
    trains("names", 1, &["--save", &path]);
    let said = trains("names", 1, &["--resume", &path, "--save", &scratch("unwritten.safetensors")]);
    assert!(said.contains("which has 1 epoch: nothing is left to do") && !said.contains("wrote"), "{said}");
}

#[test]
fn a_checkpoint_is_in_a_folder_that_is_made() {
    let path = scratch("made/for/it.safetensors");
    let said = trains("names", 1, &["--save", &path]);
    assert!(said.contains("wrote") && std::path::Path::new(&path).exists(), "{said}");
}

#[test]
fn a_run_goes_on_with_its_own_instances_in_their_order() {
    let [early, late] = ["early.safetensors", "ended.safetensors"].map(scratch);
    trains("treelstm", 2, &["--max-minutes", "0", "--save", &early]);
    trains("treelstm", 1, &["--save", &late]);
    let refused = trains("treelstm", 2, &["--seed", "2", "--resume", &late]);
    assert!(refused.contains("was made with --seed 1, found 2") && refused.contains("[exit 2]"), "{refused}");
    // Between epochs, minibatches may become larger.
    let said = trains("treelstm", 2, &["--batch", "5", "--resume", &late]);
    assert_eq!(epochs(&said).len(), 1, "{said}");
    assert_eq!(epochs(&trains("treelstm", 2, &["--batch", "5", "--resume", &early])).len(), 2);
}

#[test]
fn a_parser_decodes_and_others_do_not() {
    let said = trains("parser", 1, &["--decode"]);
    assert!(said.contains("decoded     4 sentences greedily"), "{said}");
    let said = trains("names", 1, &["--decode"]);
    assert!(said.contains("model names decodes nothing"), "{said}");
}

#[test]
fn options_that_make_no_sense_are_refused() {
    for (more, words) in [
        (&["--lr", "0"][..], "--lr must be above 0, found 0"),
        (&["--curve", "x.png"], "expected .svg, .csv or .json"),
        (&["--data", "nowhere"], "nowhere"),
        (&["--embedding", "3"], "has none of its own"),
    ] {
        let said = trains("names", 3, more);
        assert!(said.contains(words) && said.contains("[exit "), "{more:?}: {said}");
    }
    assert!(says(&["train", "nothing"]).contains("unknown model `nothing`"));
}

#[test]
fn every_model_runs_with_the_same_bits_batched_as_one_by_one() {
    let folder = scratch("runs");
    for entry in &autobatch_models::catalogue::ENTRIES {
        let words =
            ["run", entry.alias, "--batch", "4", "--hidden", "6", "--rounds", "1", "--output", &folder];
        let said = says(&words);
        for words in
            ["same bits         yes, all ", "check             proven: ", "one by one", ".. x faster"]
        {
            assert!(said.contains(words), "{}: {words:?} is not in:\n{said}", entry.alias);
        }
        assert!(!said.contains("[exit"), "{said}");
    }
    let plan = format!("{folder}/treelstm.plan");
    let said = says(&["explain", &plan]);
    assert!(!said.contains("[exit"), "{said}");
    assert!(
        std::fs::read_to_string(format!("{folder}/treelstm.svg")).expect("a picture").starts_with("<svg")
    );
}
