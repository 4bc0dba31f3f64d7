//! Random graphs keep their meaning in text.

use autobatch_ir::GraphData;
use autobatch_tests::random::{self, Options, Profile};

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
        return Err(format!("the text means another graph:\n{text}"));
    }
    let printed = back.to_text();
    if printed != text {
        return Err(format!("printed again:\n{printed}\ninstead of\n{text}"));
    }
    let again = GraphData::from_text(&printed).map_err(|error| error.to_string())?;
    if again == back { Ok(()) } else { Err(format!("what came from text reads back another graph:\n{text}")) }
}

#[test]
fn random_graphs_read_back_with_the_same_meaning() {
    for profile in Profile::ALL {
        random::check("text keeps the meaning", Options::new(profile), 100, round_trip);
    }
}
