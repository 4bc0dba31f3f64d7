//! JSON documents: round trips, readability, and rejection of damaged or edited documents.

use super::*;
use crate::graph::Graph;
use crate::module::{Init, ModuleBuilder};
use crate::types::{INDEX, f32, list};

fn sample() -> GraphData {
    let mut m = ModuleBuilder::new("sample");
    let embed = m.table("embed", [3, 2], Init::Values(vec![0.1, -0.0, 1e-40, 3.0, 4.0, 1e30].into()));
    let w = m.param("w", [2, 2], Init::He);
    let leaf = m.cell("leaf", [INDEX], |_, [word]| [embed.row(word).dropout(0.1)]);
    let mix = m.cell("mix", [list(f32([2]))], |_, [v]| [v.sum().affine(w, None).clamp(-1.0, f32::INFINITY)]);
    let g = Graph::new(&m.build().unwrap());
    let common = g.input(&[f32::INFINITY, -0.0]).shared();
    for key in [u64::MAX, 7] {
        g.instance(key);
        let [x] = g.call(leaf, 2);
        let [z] = g.call(mix, g.list([x, common]));
        g.loss(&format!("loss{key}"), z.alone().cross_entropy(1));
    }
    g.finish().unwrap()
}

#[test]
fn documents_round_trip() {
    let data = sample();
    for pretty in [false, true] {
        let read = GraphData::from_json(&data.to_json(pretty).unwrap()).unwrap();
        assert_eq!(read, data);
        assert_eq!(read.structure(), data.structure());
    }
}

#[test]
fn documents_are_readable() {
    let mut m = ModuleBuilder::new("small");
    let cell = m.cell("half", [f32([2])], |_, [x]| [x.dropout(0.5)]);
    let g = Graph::new(&m.build().unwrap());
    g.instance(1);
    let [y] = g.call(cell, g.input(&[0.5, f32::NAN]));
    g.output("y", y);
    let document: serde_json::Value =
        serde_json::from_str(&g.finish().unwrap().to_json(false).unwrap()).unwrap();
    assert_eq!(document["module"]["tables"]["types"][1], "f32[2]");
    assert_eq!(document["nodes"][1]["name"], "@half");
    assert_eq!(document["nodes"][1]["operands"][0]["value"], 0);
    assert_eq!(document["floats"], serde_json::json!([0.5, "nan(0x7fc00000)"]));
    assert_eq!(document["outputs"][0], serde_json::json!({"name": "y", "value": 1, "kind": "value"}));
}

#[test]
fn all_floats_round_trip() {
    let mut state = 1u32;
    for _ in 0..20_000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let float = Float::new(f32::from_bits(state));
        let text = serde_json::to_string(&float).unwrap();
        assert_eq!(serde_json::from_str::<Float>(&text).unwrap(), float, "{text}");
    }
}

#[test]
fn damaged_documents_do_not_panic() {
    let text = sample().to_json(false).unwrap();
    let digits: Vec<usize> =
        text.bytes().enumerate().filter(|(_, b)| b.is_ascii_digit()).map(|(at, _)| at).collect();
    let (mut passed, mut state) = (0, 3u32);
    for _ in 0..3000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let at = digits[(state >> 8) as usize % digits.len()];
        let digit =
            ["0", "1", "7", "99", "-1", "4294967295", "18446744073709551615", ""][(state >> 5) as usize % 8];
        let edited = [&text[..at], digit, &text[at + 1..]].concat();
        if let Ok(data) = GraphData::from_json(&edited) {
            passed += usize::from(data.depths().len() == data.arena.len());
        }
    }
    assert!((1..3000).contains(&passed), "{passed} documents passed");
}

#[test]
fn invalid_edits_are_rejected() {
    let text = sample().to_json(false).unwrap();
    let refusal = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        GraphData::from_json(&text.replacen(from, to, 1)).expect_err("the edit is invalid").to_string()
    };
    assert!(refusal("autobatch graph", "a poem").contains("the field format must be"));
    assert!(refusal("\"version\":2", "\"version\":1").contains("format version 1"));
    assert!(refusal("\"f32[3,2]\"", "\"f32[3,0]\"").contains("extent 1 of a shape is zero"));
    assert!(refusal("\"f32[3,2]\"", "\"f32[2]\"").contains("appears twice"));
    assert!(refusal("{\"words\":0}", "{\"words\":1000}").contains("G14"));
    assert!(refusal("{\"words\":0}", "{\"words\":4000000000}").contains("not a slot of a pool"));
    assert!(GraphData::from_json("{").is_err());
}
