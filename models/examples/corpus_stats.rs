//! Prints the statistics of every corpus in a data folder and checks that nothing was left out.
//!
//! `cargo run -p autobatch-models --example corpus_stats -- FOLDER`
//!
//! The folder holds `sst`, `wikiner`, `ud_ewt`, `sick`, `names`, `mnist`, `snli`, `listops` and
//! `zh_lattice`; a missing one is reported as an error and the exit status is 1. "Written
//! back" says that writing what was read gives the file's bytes again: everything was read. The
//! treebanks keep less than the file holds, so for them the lines are accounted for instead.
//! Sizes are mean/median/90th percentile/99th percentile/maximum.
#![expect(clippy::print_stdout, reason = "printing is what this example is for")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use autobatch_models::data::binary_tree::{BinaryTree, Node};
use autobatch_models::data::vocab::Vocab;
use autobatch_models::data::{
    DataError, Summary, conllu, idx, lattice, listops, names, sick, snli, sst, wikiner,
};

type Report = Result<Vec<String>, DataError>;
type Stats = fn(&Path) -> Report;

/// Says whether writing what was read gives the bytes of the file.
fn complete(path: &Path, written: impl AsRef<[u8]>) -> String {
    match std::fs::read(path) {
        Ok(bytes) if bytes == written.as_ref() => format!("{} bytes written back", bytes.len()),
        Ok(_) => "NOT WRITTEN BACK AS IT WAS".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn types<'a>(words: impl Iterator<Item = &'a str>) -> usize {
    Vocab::build(words, 1).size() - 1
}

fn shapes<W>(trees: impl Iterator<Item = BinaryTree<W>>) -> usize {
    let leaf = |node: &Node| matches!(node, Node::Leaf(_));
    let shape = |tree: BinaryTree<W>| tree.nodes().iter().map(leaf).collect::<Vec<bool>>();
    trees.map(shape).collect::<BTreeSet<_>>().len()
}

fn sst_stats(path: &Path) -> Report {
    let trees = sst::read(path)?;
    let words = Summary::of(trees.iter().map(|t| t.tree.leaves().len()));
    let nodes = Summary::of(trees.iter().map(|t| t.tree.nodes().len()));
    let depth = Summary::of(trees.iter().map(|t| t.tree.depth() as usize));
    let kinds = types(trees.iter().flat_map(|t| t.tree.leaves()).map(String::as_str));
    let shapes = shapes(trees.iter().map(|t| t.tree.clone()));
    Ok(vec![
        format!("{} trees, {} words, {} nodes", trees.len(), words.total, nodes.total),
        format!("words {words}; nodes {nodes}; depth {depth}"),
        format!("{shapes} shapes, {kinds} word types; {}", complete(path, sst::write(&trees))),
    ])
}

fn wikiner_stats(path: &Path) -> Report {
    let sentences = wikiner::read(path)?;
    let tokens = || sentences.iter().flat_map(|s| &s.tokens);
    let length = Summary::of(sentences.iter().map(|s| s.tokens.len()));
    let chars = Summary::of(tokens().map(|t| t.word.chars().count()));
    let named = tokens().filter(|t| t.tag != wikiner::Tag::Outside).count();
    let percent = 100.0 * named as f64 / length.total as f64;
    let kinds = types(tokens().map(|t| t.word.as_str()));
    Ok(vec![
        format!("{} sentences, {} tokens {length}", sentences.len(), length.total),
        format!("characters/word {chars}; {kinds} word types; {percent:.1} % in entities"),
        complete(path, wikiner::write(&sentences)),
    ])
}

fn conllu_stats(path: &Path) -> Report {
    let sentences = conllu::read(path)?;
    let words = Summary::of(sentences.iter().map(|s| s.words.len()));
    let depth = Summary::of(sentences.iter().map(|s| s.heads.depth() as usize + 1));
    let crossing = sentences.iter().filter(|s| !s.heads.is_projective()).count();
    let all = || sentences.iter().flat_map(|s| &s.words);
    let kinds = types(all().map(|w| w.form.as_str()));
    let relations = types(all().map(|w| w.relation.as_str()));
    let upos = types(all().map(|w| w.upos.as_str()));
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let comments: usize = sentences.iter().map(|s| s.comments.len()).sum();
    let id = |line: &str| line.split('\t').next().is_some_and(|id| id.contains(['-', '.']));
    let skipped = text.lines().filter(|line| !line.starts_with('#') && id(line)).count();
    let read = words.total as usize + comments + skipped + sentences.len();
    let again = conllu::parse(conllu::write(&sentences), "written")?;
    Ok(vec![
        format!("{} sentences, {} words {words}; depth in nodes {depth}", sentences.len(), words.total),
        format!("{crossing} non-projective; {relations} relations, {upos} UPOS, {kinds} word types"),
        format!(
            "{read} of {} lines accounted for ({skipped} skipped); {}",
            text.lines().count(),
            if again == sentences { "reads back equal" } else { "READS BACK DIFFERENT" },
        ),
    ])
}

fn sick_stats(path: &Path) -> Report {
    let pairs = sick::read(path)?;
    let sentences = || pairs.iter().flat_map(|p| [&p.a, &p.b]);
    let tokens = Summary::of(sentences().map(|s| s.tokens.len()));
    let depth = Summary::of(sentences().map(|s| s.heads.depth() as usize + 1));
    let kinds = types(sentences().flat_map(|s| &s.tokens).map(String::as_str));
    let relations = types(sentences().flat_map(|s| &s.relations).map(String::as_str));
    let written = sick::write(&pairs);
    let files: Vec<String> = sick::FILES
        .iter()
        .zip(&written)
        .map(|(file, content)| format!("{file} {}", complete(&path.join(file), content)))
        .collect();
    Ok(vec![
        format!("{} pairs; tokens {tokens}; depth in nodes {depth}", pairs.len()),
        format!("{relations} relations, {kinds} word types"),
        files.join(", "),
    ])
}

fn names_stats(path: &Path) -> Report {
    let names = names::read(path)?;
    let chars = Summary::of(names.names.iter().map(|n| n.text.chars().count()));
    let alphabet = Vocab::build_chars(names.names.iter().map(|n| n.text.as_str()), 1).size() - 1;
    let classes: Vec<String> =
        names.languages.iter().zip(names.counts()).map(|(name, count)| format!("{name} {count}")).collect();
    let file = |language: usize| path.join(format!("{}.txt", names.languages[language]));
    let whole = (0..names.languages.len())
        .filter(|&language| {
            std::fs::read(file(language))
                .is_ok_and(|bytes| bytes == names::write(&names, language as u32).as_bytes())
        })
        .count();
    Ok(vec![
        format!("{} names; characters {chars}; {alphabet} distinct characters", names.names.len()),
        classes.join(", "),
        format!("{whole} of {} files written back", names.languages.len()),
    ])
}

fn mnist_stats(path: &Path) -> Report {
    let digits = idx::read(path)?;
    let mut classes = [0; 10];
    digits.labels.iter().for_each(|&label| classes[label as usize] += 1);
    let idx::Images { rows, columns, count, .. } = digits.images;
    Ok(vec![
        format!("{count} images of {rows} × {columns}; per class {classes:?}"),
        complete(&path.join("images-idx3-ubyte"), idx::write_images(&digits.images)),
        complete(&path.join("labels-idx1-ubyte"), idx::write_labels(&digits.labels)),
    ])
}

fn snli_stats(path: &Path) -> Report {
    let pairs = snli::read(path)?;
    let trees = || pairs.iter().flat_map(|p| [&p.premise, &p.hypothesis]);
    let tokens = Summary::of(trees().map(|t| t.leaves().len()));
    let depth = Summary::of(trees().map(|t| t.depth() as usize));
    let count = |relation| pairs.iter().filter(|p| p.relation == relation).count();
    let [entailment, neutral, contradiction] = snli::Relation::ALL.map(count);
    Ok(vec![
        format!(
            "{} pairs: neutral {neutral}, entailment {entailment}, contradiction {contradiction}",
            pairs.len()
        ),
        format!("tokens {tokens}; depth {depth}; {}", complete(path, snli::write(&pairs))),
    ])
}

fn listops_stats(path: &Path) -> Report {
    let expressions = listops::read(path)?;
    let tokens = Summary::of(expressions.iter().map(|e| e.tree.leaves().len()));
    let depth = Summary::of(expressions.iter().map(|e| e.tree.depth() as usize));
    let nesting = Summary::of(expressions.iter().map(|e| listops::nesting(e.tree.leaves()) as usize));
    let right = |e: &&listops::Expression| listops::evaluate(e.tree.leaves()) == Some(e.answer);
    let agree = expressions.iter().filter(right).count();
    Ok(vec![
        format!("{} expressions; tokens {tokens}; depth {depth}; nesting {nesting}", expressions.len()),
        format!("{agree} answers agree with evaluation; {}", complete(path, listops::write(&expressions))),
    ])
}

fn lattice_stats(path: &Path) -> Report {
    let sentences = lattice::read(path)?;
    let chars = Summary::of(sentences.iter().map(|s| s.chars.len()));
    let spans = Summary::of(sentences.iter().map(|s| s.spans.len()));
    let labels: BTreeSet<_> = sentences.iter().flat_map(|s| &s.labels).collect();
    let distinct: BTreeSet<_> = sentences.iter().flat_map(|s| &s.chars).collect();
    Ok(vec![
        format!("{} sentences; characters {chars}; spans {spans}", sentences.len()),
        format!(
            "{} labels, {} distinct characters; {}",
            labels.len(),
            distinct.len(),
            complete(path, lattice::write(&sentences))
        ),
    ])
}

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        println!("usage: corpus_stats FOLDER");
        return ExitCode::FAILURE;
    };
    let corpora: [(&str, Stats); 14] = [
        ("sst/train.txt", sst_stats),
        ("sst/valid.txt", sst_stats),
        ("wikiner/train.txt", wikiner_stats),
        ("wikiner/valid.txt", wikiner_stats),
        ("ud_ewt/train.conllu", conllu_stats),
        ("ud_ewt/valid.conllu", conllu_stats),
        ("sick/train", sick_stats),
        ("sick/valid", sick_stats),
        ("names", names_stats),
        ("mnist", mnist_stats),
        ("snli/train.tsv", snli_stats),
        ("listops/d8.tsv", listops_stats),
        ("listops/d20.tsv", listops_stats),
        ("zh_lattice/train.txt", lattice_stats),
    ];
    let mut status = ExitCode::SUCCESS;
    for (name, stats) in corpora {
        println!("{name}");
        match stats(&folder.join(name)) {
            Ok(lines) => lines.iter().for_each(|line| println!("    {line}")),
            Err(error) => {
                status = ExitCode::FAILURE;
                println!("    {error}");
            }
        }
    }
    status
}
