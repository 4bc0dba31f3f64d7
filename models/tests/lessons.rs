//! Every lesson trains on a corpus folder or on generated instances, and its scores are finite.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic like tests")]

use autobatch::prelude::*;
use autobatch_models::catalogue::{ENTRIES, Entry, Options};
use autobatch_models::data::generate::{
    digits, expressions, lattices, molecules, sentiment, similarity, surnames, tagged, translations, treebank,
};
use autobatch_models::data::{conllu, graphs, idx, lattice, listops, names, parallel, sick, sst, wikiner};
use autobatch_models::lessons::{self, CorpusPart, Input, Lesson, Predictor};
use autobatch_models::scores::Scores;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn small(entry: &Entry, data: Option<PathBuf>) -> Lesson {
    let options = Options {
        corpus: data,
        seed: 3,
        count: Some(12),
        hidden: Some(6),
        embedding: (entry.embedding > 0).then_some(8),
        ..Options::default()
    };
    lessons::open(entry.name, &options).unwrap()
}

fn scored(trainer: &mut Trainer, lesson: &Lesson) -> Scores {
    let session = trainer.session();
    let mut scores = Scores::default();
    for instance in lesson.part(CorpusPart::Test) {
        let graph = session.graph();
        let mut outputs = Vec::new();
        lesson.workload.emit(&graph, instance, &mut outputs);
        let run = session.run(&graph, &outputs).unwrap();
        let rows: Vec<&Row> = outputs.iter().map(|&output| &run[output]).collect();
        lesson.workload.score(instance, &rows, &mut scores);
    }
    scores
}

#[test]
fn every_model_learns_from_generated_instances() {
    for entry in &ENTRIES {
        let lesson = small(entry, None);
        assert_eq!(
            (lesson.train().len(), lesson.sizes.len()),
            (12, lesson.workload.instances()),
            "{}",
            entry.name
        );
        let module = Arc::clone(&lesson.module);
        let mut trainer = Trainer::new(module, Adam::new(0.01).clip_norm(5.0)).unwrap();
        let train = lesson.train();
        let mut losses = Vec::new();
        for _ in 0..12 {
            let step = trainer.step(&train, |g, &instance| lesson.workload.loss(g, instance)).unwrap();
            losses.push(step.loss);
        }
        assert!(losses[11] < 0.97 * losses[0], "{}: {losses:?}", entry.name);
        let scores = scored(&mut trainer, &lesson);
        assert!(scores.main().is_some(), "{}", entry.name);
        for (name, number) in scores.numbers() {
            assert!(number.is_finite() && number >= -1.0, "{} {name}: {number}", entry.name);
        }
    }
}

/// Trains from the trainer's current step up to `before`, which is in the first two epochs. Returns the losses' bits.
fn steps(trainer: &mut Trainer, lesson: &Lesson, before: u64) -> Vec<u32> {
    let items = lesson.train();
    let batches = (0..2).flat_map(|epoch| items.batches(5).shuffled(epoch).collect::<Vec<_>>());
    let mut losses = Vec::new();
    for batch in batches.take(before as usize).skip(trainer.steps() as usize) {
        let step = trainer.step(batch, |g, &instance| lesson.workload.loss(g, instance)).unwrap();
        losses.push(step.loss.to_bits());
    }
    losses
}

#[test]
fn every_model_resumes_in_the_middle_of_an_epoch_with_equal_bits() {
    let path = std::env::temp_dir().join(format!("autobatch-lessons-{}.safetensors", std::process::id()));
    for entry in &ENTRIES {
        let lesson = small(entry, None);
        let trainer = |threads, seed| {
            let options = SessionOptions { threads, seed, ..SessionOptions::default() };
            let weights = Arc::new(Weights::init(&lesson.module, seed));
            let optimizer = AdamW::new(0.01).clip_norm(5.0).average(0.9);
            Trainer::with_options(&lesson.module, optimizer, weights, options).unwrap()
        };
        let mut whole = trainer(1, 7);
        let losses = steps(&mut whole, &lesson, 6);
        let mut first = trainer(2, 7);
        assert_eq!(steps(&mut first, &lesson, 4), losses[..4], "{}", entry.name);
        first.save(&path).unwrap();
        let mut second = trainer(1, 8);
        second.load(&path).unwrap();
        assert_eq!(steps(&mut second, &lesson, 6), losses[4..], "{}", entry.name);
        assert_eq!(second.weights(), whole.weights(), "{}", entry.name);
        assert_eq!(second.averages().unwrap(), whole.averages().unwrap(), "{}", entry.name);
    }
    std::fs::remove_file(path).unwrap();
}

/// Writes a corpus in its published form.
fn publish(folder: &Path, alias: &str) {
    std::fs::create_dir_all(folder).unwrap();
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    match alias {
        "mnist" => {
            let digits = digits::digits(1, 30);
            let bytes = [idx::write_images(&digits.images), idx::write_labels(&digits.labels)];
            for (name, bytes) in ["images-idx3-ubyte", "labels-idx1-ubyte"].iter().zip(bytes) {
                std::fs::write(folder.join(name), bytes).unwrap();
            }
        }
        "treelstm" => {
            write("d8.tsv", listops::write(&expressions::expressions(1, 30, expressions::Limits::D8)));
        }
        "similarity" => {
            for part in ["train", "valid"] {
                std::fs::create_dir_all(folder.join(part)).unwrap();
                let contents = sick::write(&similarity::pairs(1, 15, similarity::LENGTHS));
                for (name, content) in sick::FILES.iter().zip(contents) {
                    write(&format!("{part}/{name}"), content);
                }
            }
        }
        "tagger" | "chartagger" | "transformer" | "crf" => {
            for (seed, name) in [(1, "train.txt"), (2, "valid.txt")] {
                write(name, wikiner::write(&tagged::sentences(seed, 15, tagged::LENGTHS)));
            }
        }
        "names" => {
            let all = surnames::names(1, 60, surnames::LENGTHS);
            for (number, language) in all.languages.iter().enumerate() {
                write(&format!("{language}.txt"), names::write(&all, number as u32));
            }
        }
        "parser" => {
            for (seed, name) in [(1, "train.conllu"), (2, "valid.conllu")] {
                write(name, conllu::write(&treebank::sentences(seed, 15, treebank::LENGTHS)));
            }
        }
        "ggnn" | "gat" => {
            let contents = graphs::write(&molecules::molecules(1, 30, molecules::ATOMS));
            let files = [Some(contents.edges), Some(contents.indicator), contents.classes, contents.labels];
            for (ending, content) in graphs::ENDINGS.iter().zip(files) {
                write(&format!("SET{ending}"), content.unwrap());
            }
        }
        "lm" => {
            let sentences = translations::pairs(1, 30).into_iter().map(|pair| pair.source + "\n");
            write("train.txt", sentences.collect());
        }
        "translate" => write("train.txt", parallel::write(&translations::pairs(1, 30))),
        "lattice" => write("train.txt", lattice::write(&lattices::sentences(1, 30, lattices::LENGTHS))),
        _ => {
            for (seed, name) in [(1, "train.txt"), (2, "valid.txt")] {
                write(name, sst::write(&sentiment::trees(seed, 15, sentiment::LENGTHS)));
            }
        }
    }
}

#[test]
fn a_lesson_reads_a_corpus_in_its_published_form() {
    let root = std::env::temp_dir().join(format!("autobatch-lessons-{}", std::process::id()));
    for entry in &ENTRIES {
        let folder = root.join(entry.name);
        publish(&folder, entry.name);
        let lesson = small(entry, Some(folder));
        let [train, development, test] = CorpusPart::ALL.map(|part| lesson.part(part).len());
        assert!((1..=12).contains(&train) && development > 0 && test > 0, "{}: {lesson:?}", entry.name);
        let session = Session::new(&lesson.module, Device::Cpu).unwrap();
        let graph = session.graph();
        for instance in 0..lesson.workload.instances() {
            graph.instance(instance as u64);
            let _ = lesson.workload.loss(&graph, instance);
        }
        graph.check().unwrap();
        assert_eq!(
            lesson.parsing.as_ref().map(|parsing| parsing.sentences.len()),
            (entry.name == "parser").then_some(test)
        );
    }
    let folder = root.join("sentiment");
    for (file, to) in [("valid.txt", "be tested on"), ("train.txt", "learn from")] {
        std::fs::write(folder.join(file), "").unwrap();
        let options = Options { corpus: Some(folder.clone()), ..Options::default() };
        let said = lessons::open("sentiment", &options).unwrap_err().to_string();
        assert!(
            said.contains(&format!("sentiment: expected at least one instance to {to}, found none")),
            "{said}"
        );
    }
    let missing = Options { corpus: Some(root.join("missing")), ..Options::default() };
    assert!(lessons::open("names", &missing).unwrap_err().to_string().contains("missing"));
    std::fs::remove_dir_all(root).unwrap();
}

/// The file or folder of a published corpus that a prediction reads.
fn input_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(match name {
        "mnist" => "images-idx3-ubyte",
        "treelstm" => "d8.tsv",
        "similarity" => "valid",
        "names" => {
            let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
            let size = |file: &PathBuf| std::fs::metadata(file).map_or(0, |facts| facts.len());
            return files.max_by_key(size).expect("every language has a file");
        }
        "parser" => "valid.conllu",
        "ggnn" | "gat" => "",
        _ => "train.txt",
    })
}

/// The input without what a prediction finds out, and with blank lines where the format has lines.
fn without_answers(entry: &str, text: &str) -> String {
    let each = |f: &dyn Fn(&str) -> String| text.lines().map(|line| format!("{}\n\n", f(line))).collect();
    match entry {
        "treelstm" => each(&|line| line.split_once('\t').unwrap().1.to_owned()),
        "acceptor" | "treernn" | "sentiment" => {
            let trees = autobatch_models::data::sst::parse(text, "input").unwrap();
            trees.iter().map(|tree| format!("{}\n\n", tree.tree)).collect()
        }
        "parser" => text
            .lines()
            .map(|line| {
                let mut columns: Vec<&str> = line.split('\t').collect();
                if columns.len() == 10 {
                    columns[6] = "_";
                }
                columns.join("\t") + "\n"
            })
            .collect(),
        "lattice" => {
            let lines: Vec<&str> = text.lines().collect();
            let sentences = lines.chunks(4).map(|lines| format!("{}\n{}\n\n\n", lines[0], lines[2]));
            sentences.collect()
        }
        "translate" => each(&|line| line.split_once('\t').unwrap().0.to_owned()),
        "tagger" | "chartagger" | "transformer" | "crf" => each(&|line| {
            let words = line.split(' ').map(|token| token.rsplit_once('|').unwrap().0);
            words.collect::<Vec<_>>().join(" ")
        }),
        _ => each(&str::to_owned),
    }
}

#[test]
fn predictions_need_no_answers() {
    let root = std::env::temp_dir().join(format!("autobatch-inputs-{}", std::process::id()));
    for entry in ENTRIES.iter().filter(|entry| entry.name != "mnist") {
        let folder = root.join(entry.name);
        publish(&folder, entry.name);
        let lesson = small(entry, Some(folder.clone()));
        let predictor = Predictor::new(&lesson.specification).unwrap();
        let mut session = Session::new(&predictor.module, Device::Cpu).unwrap();
        let path = input_of(&folder, entry.name);
        let predict = |session: &mut Session, text: &str| match path.is_dir() {
            true => predictor.predict(session, Input::Folder(&path)),
            false => predictor.predict(session, Input::Content { bytes: text.as_bytes(), file: "input" }),
        };
        let text = if path.is_dir() { String::new() } else { std::fs::read_to_string(&path).unwrap() };
        let with = predict(&mut session, &text).unwrap();
        if path.is_dir() {
            let answers: &[&str] =
                if entry.name == "similarity" { &["sim.txt", "id.txt"] } else { &["SET_graph_labels.txt"] };
            answers.iter().for_each(|file| std::fs::remove_file(path.join(file)).unwrap());
        }
        let without = predict(&mut session, &without_answers(entry.name, &text)).unwrap();
        assert_eq!(with.answers, without.answers, "{}", entry.name);
        assert_eq!(with.unknown, without.unknown, "{}", entry.name);
        assert!(entry.name == "treelstm" || with.unknown.read > 0, "{}: {:?}", entry.name, with.unknown);
    }
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn unknown_letters_are_counted_and_plain_sentences_are_read() {
    let options = Options { count: Some(30), ..Options::default() };
    let predicted = |name: &str, text: &str| {
        let lesson = lessons::open(name, &options).unwrap();
        let predictor = Predictor::new(&lesson.specification).unwrap();
        let mut session = Session::new(&predictor.module, Device::Cpu).unwrap();
        predictor.predict(&mut session, Input::Content { bytes: text.as_bytes(), file: "input" }).unwrap()
    };
    let names = predicted("names", "Ω\n\n\u{3042}\u{3042}\n");
    assert_eq!((names.answers.len(), names.unknown.unknown, names.unknown.read), (2, 3, 3));
    assert_eq!(names.unknown.to_string(), "3 of 3 letters are unknown to the model, for example Ω \u{3042}");
    let sentences = predicted("acceptor", "great fun\n\n( great fun )\n");
    assert_eq!(sentences.answers.len(), 2);
    assert_eq!(sentences.answers[0], sentences.answers[1]);
}

#[test]
fn a_specification_restores_the_model_for_predictions_and_other_instances() {
    let root = std::env::temp_dir().join(format!("autobatch-predictors-{}", std::process::id()));
    for entry in &ENTRIES {
        let folder = root.join(entry.name);
        publish(&folder, entry.name);
        let lesson = small(entry, Some(folder.clone()));
        let predictor = Predictor::new(&lesson.specification).unwrap();
        assert_eq!(predictor.module.params, lesson.module.params, "{}", entry.name);
        let mut session = Session::new(&predictor.module, Device::Cpu).unwrap();
        let path = input_of(&folder, entry.name);
        let bytes = if path.is_dir() { Vec::new() } else { std::fs::read(&path).unwrap() };
        let input = match path.is_dir() {
            true => Input::Folder(&path),
            false => Input::Content { bytes: &bytes, file: "input" },
        };
        let answers = predictor.predict(&mut session, input).unwrap().answers;
        assert!(answers.len() > 1, "{}: {answers:?}", entry.name);
        for answer in &answers {
            assert!(!answer.text.is_empty() && answer.json.is_object(), "{}: {answer:?}", entry.name);
        }
        let options = Options { seed: 9, count: Some(6), ..Options::default() };
        let other = lessons::open_trained(&lesson.specification, &options);
        // Generated names have languages that the published corpus may lack.
        match other {
            Ok(other) => assert_eq!(other.module.params, lesson.module.params, "{}", entry.name),
            Err(error) => {
                assert!(entry.name == "names" && error.to_string().contains("no language"), "{error}")
            }
        }
    }
    let wrong = Predictor::new(r#"{"model":"names","hidden":0,"embedding":0,"task":null}"#).unwrap_err();
    assert_eq!(wrong.to_string(), "hidden must be 1 to 16384, found 0");
    assert!(Predictor::new("{}").unwrap_err().to_string().contains("malformed"));
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn a_plan_that_is_used_often_is_searched_longer_and_keeps_its_bits() {
    let options =
        Options { seed: 3, count: Some(12), hidden: Some(6), embedding: Some(8), ..Options::default() };
    let lesson = lessons::open("lattice", &options).unwrap();
    let mut session = Session::new(&lesson.module, Device::Cpu).unwrap();
    let mut runs: Vec<(u32, Vec<u32>)> = Vec::new();
    for _ in 0..70 {
        let graph = session.graph();
        let mut outputs = Vec::new();
        lesson.train().iter().for_each(|&instance| lesson.workload.emit(&graph, instance, &mut outputs));
        let run = session.run(&graph, &outputs).unwrap();
        let bits = outputs.iter().flat_map(|&output| run[output].iter().map(|x| x.to_bits())).collect();
        runs.push((session.last_plan().unwrap().certificate.batches, bits));
    }
    let (first, last) = (&runs[0], &runs[69]);
    assert!(last.0 < first.0, "{} batches, then {}", first.0, last.0);
    assert!(runs.iter().all(|(_, bits)| *bits == first.1), "another plan changed a bit");
    let stats = session.cache_stats();
    assert_eq!((stats.misses, stats.hits), (1, 69));
    assert!((1..=3).contains(&stats.replanned), "{stats:?}");
}
