//! A tagger with two layers of bidirectional LSTMs.

use super::{Vocabulary, emitted, minibatch, needed};
use crate::args::EmitArgs;
use crate::failure::Failure;
use autobatch_ir::graph::{Graph, GraphData, Value};
use autobatch_ir::module::{Cell, Init, ModuleBuilder};
use autobatch_ir::types::f32;
use autobatch_models::data::generate::tagged;
use autobatch_models::data::wikiner;

pub(super) fn emit(args: &EmitArgs) -> Result<GraphData, Failure> {
    let sentences = match &args.data {
        Some(file) => wikiner::read(file).map_err(|error| Failure::input(error.to_string()))?,
        None => tagged::sentences(args.seed, needed(args)?, tagged::LENGTHS),
    };
    let sentences = minibatch(args, sentences)?;
    let mut vocabulary = Vocabulary::default();
    let words: Vec<Vec<u32>> = sentences
        .iter()
        .map(|sentence| sentence.tokens.iter().map(|token| vocabulary.number(&token.word)).collect())
        .collect();

    let (h, tags) = (args.hidden as usize, wikiner::Tag::COUNT as usize);
    let mut m = ModuleBuilder::new("bilstm");
    let embed = m.table("embed", [vocabulary.len(), h], Init::Uniform(0.1));
    let wo = m.param("out.w", [2 * h, tags], Init::Glorot(1.0));
    let bo = m.param("out.b", tags, Init::ZEROS);
    let first = ["forward", "backward"].map(|name| lstm(&mut m, name, h));
    let second = ["forward2", "backward2"].map(|name| second_lstm(&mut m, name, h));
    let out = m.cell("out", [f32(h), f32(h)], |g, [f, b]| [g.affine([f, b], wo, Some(bo))]);

    let g = Graph::new(&emitted(m.build())?);
    let zero = g.zeros(h);
    for (key, words) in words.iter().enumerate() {
        g.instance(key as u64);
        let xs: Vec<Value<'_>> = words.iter().map(|&word| embed.look(&g, word)).collect();
        let first_layer =
            both_directions(&xs, [zero, zero], |direction, &x, [h, c]| g.call(first[direction], [x, h, c]));
        let second_layer = both_directions(&first_layer, [zero, zero], |direction, &[f, b], [h, c]| {
            g.call(second[direction], [f, b, h, c])
        });
        for (position, states) in second_layer.into_iter().enumerate() {
            let [scores] = g.call(out, states);
            g.output(&format!("sentence{key}.{position}"), scores);
        }
    }
    emitted(g.finish())
}

/// Runs a forward and a backward chain over `xs` and returns both outputs at each position.
fn both_directions<'g, X>(
    xs: &[X],
    start: [Value<'g>; 2],
    mut cell: impl FnMut(usize, &X, [Value<'g>; 2]) -> [Value<'g>; 2],
) -> Vec<[Value<'g>; 2]> {
    let mut outputs = vec![start; xs.len()];
    let mut state = start;
    for (at, x) in xs.iter().enumerate() {
        state = cell(0, x, state);
        outputs[at][0] = state[0];
    }
    state = start;
    for (at, x) in xs.iter().enumerate().rev() {
        state = cell(1, x, state);
        outputs[at][1] = state[0];
    }
    outputs
}

/// An LSTM cell of the first layer, over one input.
fn lstm(m: &mut ModuleBuilder, name: &str, h: usize) -> Cell<3, 2> {
    let w = m.param(&format!("{name}.w"), [2 * h, 4 * h], Init::Glorot(1.0));
    let bias = m.param(&format!("{name}.b"), 4 * h, Init::ZEROS);
    m.cell(name, [f32(h); 3], |g, [x, h, c]| step(g.affine([x, h], w, Some(bias)), c))
}

/// An LSTM cell of the second layer, over the outputs of both directions of the first.
fn second_lstm(m: &mut ModuleBuilder, name: &str, h: usize) -> Cell<4, 2> {
    let w = m.param(&format!("{name}.w"), [3 * h, 4 * h], Init::Glorot(1.0));
    let bias = m.param(&format!("{name}.b"), 4 * h, Init::ZEROS);
    m.cell(name, [f32(h); 4], |g, [f, b, h, c]| step(g.affine([f, b, h], w, Some(bias)), c))
}

fn step<'g>(gates: Value<'g>, c: Value<'g>) -> [Value<'g>; 2] {
    let [i, f, o, u] = gates.split();
    let c = f.sigmoid() * c + i.sigmoid() * u.tanh();
    [o.sigmoid() * c.tanh(), c]
}
