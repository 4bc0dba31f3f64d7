//! Random graphs keep their meaning in text and in every other format.

use autobatch_ir::{GraphData, Module};
use autobatch_testing::random::{self, Options, Profile};
use autobatch_testing::written::{self, Numbers};

fn round_trip(graph: &GraphData) -> Result<(), String> {
    let text = graph.to_text();
    let back = GraphData::from_text(&text).map_err(|error| error.to_string())?;
    let same = back.structure() == graph.structure()
        && back.cuts == graph.cuts
        && back.outputs == graph.outputs
        && back.bindings.words == graph.bindings.words
        && back.bindings.floats.iter().map(|x| x.to_bits()).eq(graph
            .bindings
            .floats
            .iter()
            .map(|x| x.to_bits()));
    if !same {
        return Err(format!("the text describes another graph:\n{text}"));
    }
    let printed = back.to_text();
    if printed != text {
        return Err(format!("printed again:\n{printed}\ninstead of\n{text}"));
    }
    let again = GraphData::from_text(&printed).map_err(|error| error.to_string())?;
    if again == back { Ok(()) } else { Err(format!("a graph from text reads back differently:\n{text}")) }
}

#[test]
fn random_graphs_keep_their_meaning_in_text() {
    for profile in Profile::ALL {
        random::check("text keeps the meaning", Options::new(profile), 100, round_trip);
    }
}

/// Writes a graph and its module to every format. Both must read back with the same bytes.
fn every_format(graph: &GraphData) -> Result<(), String> {
    round_trip(graph)?;
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let bytes = graph.to_bytes();
    let back = GraphData::from_bytes(&bytes).map_err(|error| said(&error))?;
    if back.to_bytes() != bytes {
        return Err("the bytes read back as another graph".to_owned());
    }
    for pretty in [false, true] {
        let json = graph.to_json(pretty).map_err(|error| said(&error))?;
        let back = GraphData::from_json(&json).map_err(|error| said(&error))?;
        if back.to_bytes() != bytes {
            return Err(format!("the JSON reads back as another graph:\n{json}"));
        }
    }
    let module = graph.module.to_bytes();
    let from_bytes = Module::from_bytes(&module).map_err(|error| said(&error))?;
    let from_text = Module::from_text(graph.module.to_text()).map_err(|error| said(&error))?;
    if from_bytes.to_bytes() != module || from_text.to_bytes() != module {
        return Err("the module's bytes read back as another module".to_owned());
    }
    Ok(())
}

#[test]
fn written_graphs_read_back_equal_from_every_format() {
    for numbers in [Numbers::Tame, Numbers::Wild] {
        written::check("formats keep the meaning", numbers, 200, every_format);
    }
}
