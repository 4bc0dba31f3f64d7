//! Mutations of committed plans, and texts of the highest cost.

use crate::{corpus, executed};
use autobatch_ir::plan::Plan;
use autobatch_testing::hostile::{campaign, limit, measured, mutated_text, tokens};
use std::fmt::{Display, Write as _};

/// Parses within the memory limit. Returns the plan if the text is one.
fn parse(text: &[u8], what: &dyn Display) -> Option<Plan> {
    let (result, peak) = measured(|| Plan::from_text(text));
    let limit = limit(text.len());
    assert!(peak <= limit, "{what}: {} bytes of text took {peak} bytes, the limit is {limit}", text.len());
    match result {
        Ok(plan) => Some(plan),
        Err(error) => {
            let rendered = error.to_string();
            assert!(rendered.len() < 2000 && rendered.lines().count() <= 6, "{what}: {rendered}");
            None
        }
    }
}

#[test]
fn mutated_texts_parse_or_are_rejected_within_bounds() {
    let (seed, rounds, mut random) = campaign(0x5eed_0002);
    let corpus: Vec<Vec<u8>> = corpus().into_iter().map(String::into_bytes).collect();
    let (mut parsed, mut sound, mut reverse) = (0, 0, 0);
    for round in 0..rounds {
        let text = mutated_text(&mut random, &corpus, &tokens::PLAN);
        let Some(plan) = parse(&text, &format_args!("seed {seed:#x}, round {round}")) else { continue };
        parsed += 1;
        let printed = plan.to_text();
        let back = Plan::from_text(&printed)
            .unwrap_or_else(|error| panic!("seed {seed:#x}, round {round}: {error}\n{printed}"));
        assert!(back == plan && back.to_text() == printed, "seed {seed:#x}, round {round}:\n{printed}");
        if let Ok(plan) = plan.verify() {
            sound += 1;
            reverse += usize::from(executed(&plan).is_some() && !plan.reductions.is_empty());
        }
    }
    assert!(reverse > 0, "no valid plan has reductions");
    assert!(parsed > rounds / 50 && parsed < rounds / 2, "{parsed} of {rounds} texts were plans");
    assert!(sound > 0 && sound < parsed, "{sound} of {parsed} were valid");
}

const HEAD: &str = "autobatch plan 5 module\"\"structure 0x0 mode infer ";
const BIND: &str = "bind words 0 floats 0 ";
const SLAB: &str = "slab s0 value{a:f32}x9 ";
const KERNEL: &str = "kernel k0 f(){return}";
const TAIL: &str = "certificate batches 0 bound 0|rows copied 0 gathered 0 direct 0|slabs 0 bytes";

/// A text of many small fragments.
fn repeated(head: &[&str], count: usize, mut piece: impl FnMut(&mut String, usize), tail: &str) -> String {
    let mut text = format!("{HEAD}{}", head.concat());
    (0..count).for_each(|n| piece(&mut text, n));
    text + tail + TAIL
}

macro_rules! put {
    ($text:ident, $($part:tt)*) => { write!($text, $($part)*).unwrap() };
}

#[test]
fn large_dense_texts_stay_within_bounds() {
    const N: usize = 70_000;
    let step = [BIND, SLAB, KERNEL, "wave 0 f0 k0 x1->"].concat();
    let read = [BIND, SLAB, KERNEL, "wave 0 f0 k0 x1<-"].concat();
    let body = [BIND, "kernel k0 f(%0:f32)[@0:f32]{temp%1:f32 "].concat();
    let end = " return}";
    let texts = [
        ("stores", repeated(&[], N, |t, n| put!(t, "store@{n:x} param f32 "), BIND)),
        ("slabs", repeated(&[BIND], N, |t, n| put!(t, "slab s{n} node{{}}x1 "), "")),
        ("fields", repeated(&[BIND, "slab s0 node{z:f32"], N, |t, n| put!(t, ",{}:f32", name(n)), "}x1 ")),
        ("slabs of a field", repeated(&[BIND], N, |t, n| put!(t, "slab s{n} node{{a:f32}}x1 "), "")),
        ("kernels", repeated(&[BIND], N, |t, n| put!(t, "kernel k{n} f(){{return}}"), "")),
        ("ports", repeated(&[BIND, "kernel k0 f(%0:f32"], N, |t, n| put!(t, ",%{}:f32", n + 1), "){return}")),
        (
            "parameter ports",
            repeated(&[BIND, "kernel k0 f()[@0:f32"], N, |t, n| put!(t, ",@{}:f32", n + 1), "]{return}"),
        ),
        ("products", repeated(&[&body], N, |t, _| t.push_str("prod%1=0 "), end)),
        ("parts", repeated(&[&body, "prod%1=0"], N, |t, _| t.push_str("+%0 .@0[0..1]"), end)),
        ("maps", repeated(&[&body], N, |t, _| t.push_str("map 1{t0=exp%0}"), end)),
        (
            "instructions",
            repeated(&[&body, "map 1{"], N, |t, n| put!(t, "t{n}=exp%0 "), &["}", end].concat()),
        ),
        ("rows", repeated(&[&body], N, |t, _| t.push_str("row%1=exp "), end)),
        ("sources", repeated(&[&body, "row%1=exp%0"], N, |t, _| t.push_str(",%0"), end)),
        ("folds", repeated(&[&body], N, |t, _| t.push_str("seg%1=exp over[]:f32 "), end)),
        (
            "views of a list",
            repeated(&[&body, "seg%1=exp over[%0"], N, |t, _| t.push_str(",%0"), &["]", end].concat()),
        ),
        ("lookups", repeated(&[&body], N, |t, _| t.push_str("lookup%1=@0[%0]"), end)),
        ("waves", repeated(&[BIND], N, |t, n| put!(t, "wave {n} "), "")),
        ("steps", repeated(&[BIND, KERNEL, "wave 0 "], N, |t, n| put!(t, "f{n} k0 x1 "), "")),
        ("places", repeated(&[&step], N, |t, _| t.push_str("s0.a[0]"), " ")),
        ("place tables", repeated(&[&step], N, |t, _| t.push_str("s0.a{0}"), " ")),
        ("words", repeated(&[&read], N, |t, _| t.push_str("u[0]"), " ")),
        ("word tables", repeated(&[&read], N, |t, _| t.push_str("u{0}"), " ")),
        ("lists of rows", repeated(&[&read], N, |t, _| t.push_str("seg s0.a[]"), " ")),
        (
            "empty lists",
            repeated(
                &[BIND, SLAB, KERNEL, "wave 0 f0 k0 x400000<-seg s0.a["],
                399_999,
                |t, _| t.push('|'),
                "] ",
            ),
        ),
        ("items", repeated(&[&read, "seg s0.a["], 400_000, |t, _| t.push_str("1 "), "] ")),
        ("lanes", repeated(&[BIND, KERNEL, "wave 0 f0 k0 x1="], 200_000, |t, _| t.push_str("n1 "), "")),
        ("runs of lanes", repeated(&[BIND, KERNEL, "wave 0 f0 k0 x1="], N, |t, _| t.push_str("n0..n2 "), "")),
        ("a run of lanes", repeated(&[BIND, KERNEL, "wave 0 f0 k0 x1=n0..n60000 "], 0, |_, _| (), "")),
        ("outputs", repeated(&[BIND, SLAB], N, |t, _| t.push_str("output\"\"s0.a[0]"), "")),
        ("a name", repeated(&[BIND, "kernel k0\""], 300_000, |t, _| t.push_str("\\n"), "\"(){return}")),
    ];
    for (what, text) in texts {
        assert!(parse(text.as_bytes(), &what).is_some(), "{what}: {}", Plan::from_text(&text).unwrap_err());
    }
}

/// Short, distinct names.
fn name(mut number: usize) -> String {
    let mut name = String::new();
    loop {
        name.push(char::from(b'a' + (number % 25) as u8));
        number /= 25;
        if number == 0 {
            return name;
        }
    }
}

#[test]
fn large_invalid_texts_are_rejected_within_bounds() {
    let many = |head: &str, piece: &str| repeated(&[BIND, SLAB, head], 100_000, |t, _| t.push_str(piece), "");
    let wave = "kernel k0 f(){return} wave 0 ";
    let texts = [
        many("", "slab "),
        many("slab s1 value{", ":"),
        many("slab s1 value{", "a:f32,"),
        many("kernel k0 f(", "%0:"),
        many("kernel k0 f(){", "lookup "),
        many("kernel k0 f(){", "map 1{"),
        many("kernel k0 f(){map 1{", "="),
        many("kernel k0 f(){temp %0:f32 row %0=split{axis=0 ", "axis=0 "),
        many(&format!("{wave}f0 k0 x4000000000<-u{{"), "0..4000000000 "),
        many(&format!("{wave}f0 k0 x4000000000<-u{{"), "7 x4000000000 "),
        many(&format!("{wave}f0 k0 x1="), "n0..n1000000000 "),
        many(&format!("{wave}f0 k0 x4000000000<-seg s0.a["), "|"),
        many(&format!("{wave}f0 k0 x100001<-seg s0.a["), "|"),
        many(&format!("{wave}f0 k0 x1<-"), "seg "),
        many("", "\u{2603}"),
        many("", "\""),
    ];
    for (number, text) in texts.iter().enumerate() {
        assert!(parse(text.as_bytes(), &number).is_none(), "text {number}");
    }
}
