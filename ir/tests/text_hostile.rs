//! Malformed and hostile text: an error or a graph, never a panic, and never more memory than
//! sixteen times the text and a mebibyte (one named exception apart).

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

use autobatch_ir::GraphData;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Write as _;
use std::path::Path;

/// Counts what this thread holds; the tests of this file run beside each other.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // While a thread ends its counters may be gone; what it frees then is not of interest.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: every call is passed on to the system's allocator with the same arguments and its answer
// is returned unchanged; counting touches two thread-local cells, which never allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`, which is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: `block` came from `alloc` above, which is the system allocator's, with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    // Large blocks grow by remapping pages, so a growing block counts once.
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: `block` came from the system allocator with this layout; the caller keeps the rest.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Parses within sixteen times the text and a mebibyte; the graph, if the text was one.
fn parse(text: &[u8], what: &dyn std::fmt::Display) -> Option<GraphData> {
    parse_within(16, text, what)
}

fn parse_within(factor: usize, text: &[u8], what: &dyn std::fmt::Display) -> Option<GraphData> {
    let before = HELD.get();
    PEAK.set(before);
    let result = GraphData::from_text(text);
    let peak = PEAK.get() - before;
    let limit = (factor * text.len() + (1 << 20)) as isize;
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

struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/files/graphs");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.retain(|path| path.extension().is_some_and(|ext| ext == "graph"));
    files.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Tokens that mean something, to be put where they mean something else.
const TOKENS: [&str; 40] = [
    "%0",
    "%1",
    "%x",
    "@0",
    "@w",
    "!0",
    "!99",
    "#",
    "#1",
    "#[",
    "]",
    "(",
    ")",
    "{",
    "}",
    "=",
    ",",
    ":",
    "\"",
    "list",
    "f32",
    "f32[4]",
    "list f32[4]",
    "u32",
    "call",
    "cell",
    "param",
    "graph",
    "instance",
    "common:",
    "return",
    "noise",
    "output",
    "alone %1",
    "inf",
    "0x7fc00001",
    "-1",
    "4294967296",
    "99999999999999999999",
    "1e999",
];

fn mutate(random: &mut SplitMix64, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut text = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(3) {
        let at = random.below(text.len());
        let end = (at + random.below(40)).min(text.len());
        match random.below(9) {
            0 if !text.is_empty() => text[at] ^= 1 << random.below(8),
            1 if !text.is_empty() => text[at] = random.next() as u8,
            2 => text.truncate(at),
            3 => drop(text.drain(at..end)),
            4 => {
                let copy = text[at..end].to_vec();
                let to = random.below(text.len());
                text.splice(to..to, copy);
            }
            5 => {
                let other = &corpus[random.below(corpus.len())];
                let from = random.below(other.len());
                let piece = other[from..(from + random.below(400)).min(other.len())].to_vec();
                text.splice(at..end, piece);
            }
            6 => {
                let token = TOKENS[random.below(TOKENS.len())];
                text.splice(at..at, token.bytes());
            }
            7 => {
                // A number grows: from the first digit behind `at`.
                let digit = text[at..].iter().position(u8::is_ascii_digit).map_or(at, |length| at + length);
                let blown = [&b"9"[..], b"000000", b"4294967295", b"1073741823", b"18446744073709551615"];
                let blown = blown[random.below(blown.len())];
                text.splice(digit..digit, blown.iter().copied());
            }
            _ => {
                let token = TOKENS[random.below(TOKENS.len())];
                text.splice(at..end, token.bytes());
            }
        }
    }
    text
}

#[test]
fn mutated_graphs_parse_or_are_refused_within_bounds() {
    let long = std::env::var("AUTOBATCH_TEST").is_ok_and(|word| word == "long");
    let rounds = if long { 200_000 } else { 20_000 };
    let corpus = corpus();
    let seed = 0x5eed_0001;
    let mut random = SplitMix64(seed);
    let mut parsed = 0;
    for round in 0..rounds {
        let text = mutate(&mut random, &corpus);
        let Some(graph) = parse(&text, &format_args!("seed {seed:#x}, round {round}")) else { continue };
        parsed += 1;
        let printed = graph.to_text();
        let back = GraphData::from_text(&printed)
            .unwrap_or_else(|error| panic!("seed {seed:#x}, round {round}: {error}"));
        assert!(back == graph && back.to_text() == printed, "seed {seed:#x}, round {round}:\n{printed}");
    }
    assert!(parsed > rounds / 50 && parsed < rounds / 2, "{parsed} of {rounds} texts were graphs");
}

const HEAD: &str = "autobatch graph 1\n";

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
fn large_texts_of_the_densest_kind_stay_within_bounds() {
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
fn large_texts_that_are_wrong_are_refused_within_bounds() {
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

/// A graph begins with copies of its module's tables of types and signatures, so a module in which
/// each port has a type of its own costs more than anything a graph can say.
#[test]
fn a_module_of_nothing_but_types_takes_at_most_twice_as_much() {
    let text = repeated("cell@c(%z:f32", 70_000, |t, n| put!(t, ",%{n:x}:f32[{}]", n + 1)) + "){return}";
    assert!(parse_within(32, text.as_bytes(), &"types of a module").is_some());
}
