//! Malformed and hostile text gives an error or a graph. The parser never panics and takes at most
//! sixteen times the size of the text plus one mebibyte, with one named exception.

#![allow(clippy::unwrap_used, reason = "a missing value fails the test")]

use autobatch_ir::GraphData;
use autobatch_testing::hostile::{Counting, campaign, limit, measured, mutated_text, tokens};
use std::fmt::Write as _;
use std::path::Path;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Parses within the memory limit; returns the graph if the text is valid.
fn parse(text: &[u8], what: &dyn std::fmt::Display) -> Option<GraphData> {
    parse_within(limit(text.len()), text, what)
}

fn parse_within(limit: usize, text: &[u8], what: &dyn std::fmt::Display) -> Option<GraphData> {
    let (result, peak) = measured(|| GraphData::from_text(text));
    assert!(peak <= limit, "{what}: {} bytes of text took {peak} bytes, the limit is {limit}", text.len());
    match result {
        Ok(graph) => Some(graph),
        Err(error) => {
            let rendered = error.to_string();
            assert!(rendered.len() < 2000 && rendered.lines().count() <= 6, "{what}: {rendered}");
            None
        }
    }
}

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/files/graphs");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.retain(|path| path.extension().is_some_and(|ext| ext == "graph"));
    files.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

#[test]
fn mutated_texts_are_parsed_or_rejected_within_bounds() {
    let (seed, rounds, mut random) = campaign(0x5eed_0001);
    let corpus = corpus();
    let mut parsed = 0;
    for round in 0..rounds {
        let text = mutated_text(&mut random, &corpus, &tokens::GRAPH);
        let Some(graph) = parse(&text, &format_args!("seed {seed:#x}, round {round}")) else { continue };
        parsed += 1;
        let printed = graph.to_text();
        let back = GraphData::from_text(&printed)
            .unwrap_or_else(|error| panic!("seed {seed:#x}, round {round}: {error}"));
        assert!(back == graph && back.to_text() == printed, "seed {seed:#x}, round {round}:\n{printed}");
    }
    assert!(parsed > rounds / 50 && parsed < rounds / 2, "{parsed} of {rounds} texts are valid");
}

const HEAD: &str = "autobatch graph 2\n";

/// A text of many small pieces.
fn repeated(head: &str, count: usize, mut piece: impl FnMut(&mut String, usize)) -> String {
    let mut text = format!("{HEAD}{head}");
    (0..count).for_each(|n| piece(&mut text, n));
    text
}

macro_rules! put {
    ($text:ident, $($part:tt)*) => { write!($text, $($part)*).unwrap() };
}

#[test]
fn large_dense_texts_stay_within_bounds() {
    let fill = "graph %z=fill f32{value=1}";
    let texts = [
        ("values with names", repeated(fill, 70_000, |t, n| put!(t, "%{n:x}=exp(%z)"))),
        (
            "values by number",
            repeated("graph %0=fill f32{value=1}", 70_000, |t, n| put!(t, "%{}=exp(%0)", n + 1)),
        ),
        ("signatures", repeated(fill, 70_000, |t, n| put!(t, "%{n:x}=elu{{alpha={n}}}(%z)"))),
        (
            "signatures of a body",
            repeated("cell@c(%z:f32){", 70_000, |t, n| put!(t, "%{n:x}=elu{{alpha={n}}}(%z)")) + "return}",
        ),
        ("constants", repeated("graph", 70_000, |t, n| put!(t, "%{n}=fill u32{{value={n}}}"))),
        ("types", repeated("graph", 70_000, |t, n| put!(t, "%{n}=fill u32[{}]{{value=1}}", n + 1))),
        ("parameters", repeated("", 70_000, |t, n| put!(t, "param@p{n:x} f32 "))),
        ("values of one", repeated("param @p f32[100000]=values(0", 99_999, |t, _| t.push_str(",0")) + ")"),
        ("cells", repeated("", 70_000, |t, n| put!(t, "cell@c{n:x}(){{return}}"))),
        ("exports", repeated("cell@c(){return}", 70_000, |t, n| put!(t, "export@e{n:x}=@c "))),
        ("ports", repeated("cell@c(%z:f32", 70_000, |t, n| put!(t, ",%{n:x}:f32")) + "){return}"),
        ("parameter ports", repeated("cell@c[@z:f32", 70_000, |t, n| put!(t, ",@{n:x}:f32")) + "](){return}"),
        ("results of a body", repeated("cell@c(%z:f32){return %z", 200_000, |t, _| t.push_str(",%z")) + "}"),
        ("sites", repeated("", 70_000, |t, n| put!(t, "site!{n}\"\"1:1 "))),
        ("outputs", repeated(fill, 70_000, |t, n| put!(t, "output\"{n:x}\"%z "))),
        ("marks", repeated(fill, 200_000, |t, _| t.push_str("shared%z "))),
        ("cuts", repeated("graph ", 200_000, |t, _| t.push_str("common:"))),
        ("calls of nothing", repeated("cell@c(){return}graph", 200_000, |t, _| t.push_str(" call@c()"))),
        ("a long list", repeated(&format!("{fill} %l=list(%z"), 300_000, |t, _| t.push_str(",%z")) + ")"),
        ("a long stack", repeated(&format!("{fill} %l=stack(%z"), 300_000, |t, _| t.push_str(",%z")) + ")"),
        ("bound floats", repeated("graph %z=input f32[300001](#[1", 300_000, |t, _| t.push_str(",1")) + "])"),
        ("bound words", repeated("graph %z=input bool[300001](#[1", 300_000, |t, _| t.push_str(",1")) + "])"),
        ("parts", {
            let head = "graph %z=fill f32[65536]{value=1}%0";
            repeated(head, 65_535, |t, n| put!(t, ",%{}", n + 1)) + "=split{axis=0 parts=65536}(%z)"
        }),
        ("a comment", repeated("graph ;", 300_000, |t, _| t.push('x'))),
        ("a name", repeated("module\"", 300_000, |t, _| t.push_str("\\n")) + "\""),
    ];
    for (what, text) in texts {
        assert!(
            parse(text.as_bytes(), &what).is_some(),
            "{what}: {}",
            GraphData::from_text(&text).unwrap_err()
        );
    }
}

#[test]
fn large_invalid_texts_are_rejected_within_bounds() {
    let many = |piece: &str| repeated("graph ", 400_000, |t, _| t.push_str(piece));
    let texts = [
        many("("),
        many("%x=list("),
        many("list "),
        many("#["),
        many("\""),
        many("{"),
        many("%z,"),
        many("%z:f32[1,"),
        many("9"),
        many("\u{2603}"),
        format!("{HEAD}graph %z = fill f32[65536] {{value=1}} %b = split{{axis=0 parts=65536}}(%z)"),
        format!("{HEAD}graph %z = input f32[536870912] (#[1])"),
        format!("{HEAD}graph %z = fill f32[536870912] {{value=1}} %b = concat{{axis=0}}(%z, %z)"),
        format!("{HEAD}param @p f32[536870912] = values(1)"),
    ];
    for (number, text) in texts.iter().enumerate() {
        assert!(parse(text.as_bytes(), &number).is_none(), "text {number}");
    }
}

/// A graph copies the tables of types and signatures of its module. So a module whose ports all have
/// different types costs more than any other text.
#[test]
fn a_module_with_many_types_takes_at_most_twice_the_limit() {
    let text = repeated("cell@c(%z:f32", 70_000, |t, n| put!(t, ",%{n:x}:f32[{}]", n + 1)) + "){return}";
    assert!(parse_within(2 * limit(text.len()), text.as_bytes(), &"types of a module").is_some());
}

#[test]
fn every_prefix_of_a_text_is_parsed_or_rejected() {
    for (file, text) in corpus().iter().enumerate() {
        for end in (0..text.len()).step_by(1 + text.len() / 2000) {
            parse(&text[..end], &format_args!("file {file}, {end} bytes"));
        }
    }
}

#[test]
fn nan_attributes_are_rejected() {
    let ops = [
        "leaky_relu{slope=NUMBER}(%x)",
        "elu{alpha=NUMBER}(%x)",
        "clamp{low=NUMBER high=2}(%x)",
        "clamp{low=0 high=NUMBER}(%x)",
        "layer_norm{eps=NUMBER}(%x)",
        "scale_gradient{by=NUMBER}(%x)",
    ];
    for op in ops {
        let with = |number: &str| {
            let op = op.replace("NUMBER", number);
            parse(format!("{HEAD}graph\n%x = fill f32[4] {{value=1}}\n%y = {op}\n").as_bytes(), &op)
        };
        assert!(with("0.5").is_some(), "{op}");
        assert!(with("0x7fc00001").is_none(), "{op}");
    }
}
