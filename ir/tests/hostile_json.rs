//! Hostile JSON documents give a graph or an error. The reader never panics and takes at most sixteen
//! times the size of the document plus one mebibyte.

#![allow(clippy::unwrap_used, reason = "an unexpected value fails the test")]

use autobatch_ir::codec::LoadError;
use autobatch_ir::types::{INDEX, f32, list};
use autobatch_ir::{Graph, GraphData, Init, ModuleBuilder};
use autobatch_testing::hostile::{Counting, campaign, limit, measured, mutated_json, tokens};
use std::fmt::{Display, Write as _};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Reads within the memory limit and checks that an error is short.
fn read(text: &str, what: &dyn Display) -> Result<GraphData, LoadError> {
    let (result, peak) = measured(|| GraphData::from_json(text));
    let limit = limit(text.len());
    assert!(peak <= limit, "{what}: {} bytes of JSON took {peak} bytes, the limit is {limit}", text.len());
    if let Err(error) = &result {
        assert!(error.to_string().len() < 30_000, "{what}: {} bytes of error", error.to_string().len());
    }
    result
}

fn corpus() -> Vec<String> {
    let mut m = ModuleBuilder::new("hostile");
    let embed = m.table("embed", [10, 4], Init::Uniform(0.1));
    let w = m.param("w", [8, 4], Init::Values(vec![0.5; 32].into()));
    let leaf = m.cell("leaf", [INDEX], |_, [word]| [embed.row(word)]);
    let node = m.cell("node", [f32([4]); 2], |g, [l, r]| [g.affine([l, r], w, None).tanh()]);
    let mix = m.cell("mix", [list(f32([1])), list(f32([4]))], |g, [s, v]| [g.softmax_sum(s, v)]);
    let drop = m.cell("drop", [f32([4])], |_, [x]| [x.dropout(0.5).clamp(-1.0, f32::INFINITY)]);
    let module = m.build().unwrap();
    let rich = |instances: u64, pretty: bool| {
        let g = Graph::new(&module);
        let common = g.input(&[1.0, f32::NAN, f32::NEG_INFINITY, 4.0]).shared();
        for key in 0..instances {
            g.instance(key);
            let [x] = g.call(leaf, 3);
            let [y] = g.call(node, [x, common]);
            let scores = g.list([x.sum_rows().reshape([1]), y.max().reshape([1])]);
            let [z] = g.call(mix, [scores, g.list([x, y])]);
            let [z] = g.call(drop, z);
            let [a, b] = z.alone().split();
            g.loss(&format!("loss{key}"), z.cross_entropy(1) + a.dot(b));
        }
        g.finish().unwrap().to_json(pretty).unwrap()
    };
    let empty = Graph::new(&ModuleBuilder::new("empty").build().unwrap()).finish().unwrap();
    vec![rich(1, false), rich(1, true), rich(6, false), empty.to_json(false).unwrap()]
}

#[test]
fn mutated_documents_are_rejected_or_valid() {
    let (seed, rounds, mut random) = campaign(0x5eed_0004);
    let corpus: Vec<Vec<u8>> = corpus().into_iter().map(String::into_bytes).collect();
    // The outcomes: valid, malformed, a violated rule, another version.
    let mut outcomes = [0usize; 4];
    for round in 0..rounds {
        let bytes = mutated_json(&mut random, &corpus, &tokens::GRAPH_JSON);
        let text = String::from_utf8_lossy(&bytes);
        let what = format_args!("seed {seed:#x}, round {round}");
        outcomes[match read(&text, &what) {
            Ok(graph) => {
                let again = GraphData::from_json(&graph.to_json(false).unwrap());
                assert!(again.is_ok_and(|again| again == graph), "{what}");
                assert!(graph.to_text().len() > 10, "{what}");
                0
            }
            Err(LoadError::Malformed(_)) => 1,
            Err(LoadError::Verify(_)) => 2,
            Err(LoadError::Version { .. }) => 3,
            Err(other) => panic!("{what}: {other}"),
        }] += 1;
    }
    assert!(outcomes.iter().all(|&count| count > 0), "every outcome occurs: {outcomes:?}");
}

#[test]
fn truncated_documents_are_rejected() {
    let text = corpus().swap_remove(0);
    for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
        assert!(read(&text[..end], &end).is_err(), "{end} bytes");
    }
}

const N: usize = 40_000;

/// A document with these pieces of a module and a graph.
fn document(module: [&str; 6], tables: [&str; 3], nodes: &str, rest: [&str; 6]) -> String {
    let [types, sigs, sites, params, cells, exports] = module;
    let [own_types, own_sigs, own_sites] = tables;
    let [cuts, outputs, shared, alone, words, floats] = rest;
    format!(
        r#"{{"format":"autobatch graph","version":2,"module":{{"name":"m","tables":{{"types":["u32"{types}],"signatures":[{sigs}],"sites":[{{"file":"","line":0,"column":0}}{sites}]}},"params":[{params}],"cells":[{cells}],"exports":[{exports}]}},"tables":{{"types":[{own_types}],"signatures":[{own_sigs}],"sites":[{own_sites}]}},"nodes":[{nodes}],"cuts":[{cuts}],"outputs":[{outputs}],"shared":[{shared}],"alone":[{alone}],"words":[{words}],"floats":[{floats}]}}"#
    )
}

/// `count` pieces, separated by commas.
fn many(count: usize, mut piece: impl FnMut(usize) -> String) -> String {
    let mut text = String::new();
    for number in 0..count {
        write!(text, "{}{}", if number > 0 { "," } else { "" }, piece(number)).unwrap();
    }
    text
}

#[test]
fn large_dense_documents_stay_within_bounds() {
    const EMPTY: [&str; 6] = [""; 6];
    let no = |_: usize| "0".to_owned();
    let with = |place: usize, text: &str| document(replaced(EMPTY, place, text), [""; 3], "", EMPTY);
    let rest = |place: usize, text: &str| document(EMPTY, [""; 3], "", replaced(EMPTY, place, text));
    let after = |text: String| format!(",{text}");
    let sig = |n: usize| {
        format!(
            r#"{{"callee":{{"Op":{{"Fill":{{"ty":"u32","bits":{n}}}}}}},"operands":[],"params":[],"param_types":[],"results":[0]}}"#
        )
    };
    let node = |n: usize| format!(r#"{{"signature":0,"operands":[],"results":[{n}],"site":0}}"#);
    let list_sig = r#"{"callee":{"Op":"Dot"},"operands":["#;
    let texts = [
        ("types of a module", with(0, &after(many(N, |n| format!("\"f32[{}]\"", n + 1)))), true),
        ("types", document(EMPTY, [&many(N, |n| format!("\"f32[{}]\"", n + 1)), "", ""], "", EMPTY), true),
        ("one type", with(0, &after(many(N, |_| "\"f32\"".to_owned()))), false),
        ("signatures of a module", with(1, &many(N, sig)), true),
        ("signatures", document(EMPTY, ["", &many(N, sig), ""], "", EMPTY), true),
        (
            "operands of a signature",
            with(1, &format!("{list_sig}{}],\"params\":[],\"param_types\":[],\"results\":[]}}", many(N, no))),
            false,
        ),
        ("sites", with(2, &after(many(N, |_| r#"{"file":"","line":0,"column":0}"#.to_owned()))), true),
        (
            "parameters",
            with(
                3,
                &many(N, |n| {
                    format!(r#"{{"name":"p{n}","kind":"param","type":"u32","init":"he","site":0}}"#)
                }),
            ),
            false,
        ),
        (
            "cells",
            with(
                4,
                &many(N, |n| {
                    format!(
                        r#"{{"name":"c{n}","ports":0,"noise":false,"param_types":[],"nodes":[],"results":[],"site":0}}"#
                    )
                }),
            ),
            true,
        ),
        ("exports", with(5, &many(N, |n| format!(r#"{{"name":"e{n}","signature":0}}"#))), false),
        ("nodes", document(EMPTY, ["", &sig(1), ""], &many(N, node), EMPTY), true),
        (
            "operands",
            document(
                EMPTY,
                ["", &sig(1), ""],
                &format!(
                    r#"{{"signature":0,"operands":[{}],"results":[0],"site":0}}"#,
                    many(N, |_| r#"{"words":0}"#.to_owned())
                ),
                EMPTY,
            ),
            false,
        ),
        ("cuts", rest(0, &many(N, |_| r#"{"first":0}"#.to_owned())), true),
        ("outputs", rest(1, &many(N, |n| format!(r#"{{"name":"{n}","value":0,"kind":"value"}}"#))), false),
        ("shared values", rest(2, &many(N, no)), false),
        ("nodes alone", rest(3, &many(N, no)), false),
        ("words", rest(4, &many(N, no)), true),
        ("floats", rest(5, &many(N, no)), true),
        ("spelled floats", rest(5, &many(N, |_| "\"inf\"".to_owned())), true),
        ("a long word", rest(5, &format!("{:?}", "x".repeat(10 * N))), false),
        ("an unknown field", rest(5, "0").replacen('{', &format!("{{\"x\":[{}],", many(N, no)), 1), true),
    ];
    for (what, text, sound) in texts {
        let result = read(&text, &what);
        assert_eq!(result.is_ok(), sound, "{what}: {:?}", result.err().map(|error| error.to_string()));
    }
}

fn replaced<'t>(mut pieces: [&'t str; 6], place: usize, text: &'t str) -> [&'t str; 6] {
    pieces[place] = text;
    pieces
}

/// Many nodes can share a signature with many results, so each node must list its results.
#[test]
fn short_documents_cannot_request_many_results() {
    let results = many(N, |_| "0".to_owned());
    let sig = format!(
        r#"{{"callee":{{"Op":{{"Split":{{"axis":0,"parts":{N}}}}}}},"operands":[0],"params":[],"param_types":[],"results":[{results}]}}"#
    );
    let node = r#"{"signature":0,"operands":[{"words":0}],"results":[],"site":0}"#;
    let text = document([""; 6], ["", &sig, ""], &many(N, |_| node.to_owned()), [""; 6]);
    let error = read(&text, &"many results").expect_err("the node lists no results").to_string();
    assert!(error.contains("node 0 has 40000 results from %0, found 0"), "{error}");
}

#[test]
fn deep_nesting_is_rejected() {
    for piece in ["[", "{\"a\":", "[{\"a\":"] {
        let text = format!("{{\"format\":{}", piece.repeat(200_000));
        let error = read(&text, &piece).expect_err("the nesting is too deep").to_string();
        assert!(error.contains("recursion limit exceeded") || error.contains("invalid type"), "{error}");
        // The reader skips unknown fields without recursion.
        let hidden = format!("{{\"unknown\":{}", piece.repeat(200_000));
        let error = read(&hidden, &piece).expect_err("the document is truncated").to_string();
        assert!(error.contains("EOF") || error.contains("recursion limit exceeded"), "{error}");
    }
}

#[test]
fn results_have_consecutive_numbers() {
    let text = corpus().swap_remove(0);
    for (from, to) in [("\"results\":[1]", "\"results\":[2]"), ("\"results\":[1]", "\"results\":[1,3]")] {
        assert!(text.contains(from));
        let error =
            read(&text.replacen(from, to, 1), &to).expect_err("the numbers are not consecutive").to_string();
        assert!(error.contains("result"), "{error}");
    }
}
