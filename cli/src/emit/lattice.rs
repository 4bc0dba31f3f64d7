//! A lattice LSTM: a chain of characters, with dictionary words as shortcuts and sums over any number of
//! shortcuts.

use super::{Vocabulary, emitted, minibatch, needed};
use crate::args::EmitArgs;
use crate::failure::Failure;
use autobatch_ir::graph::{Graph, GraphData, Value};
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_ir::types::{INDEX, f32};
use autobatch_models::data::generate::lattices;
use autobatch_models::data::lattice::{self, Sentence};

const TAGS: usize = 9;

pub(super) fn emit(args: &EmitArgs) -> Result<GraphData, Failure> {
    let sentences = match &args.data {
        Some(file) => lattice::read(file).map_err(|error| Failure::input(error.to_string()))?,
        None => lattices::sentences(args.seed, needed(args)?, lattices::LENGTHS),
    };
    let sentences = minibatch(args, sentences)?;
    let (mut chars, mut words) = (Vocabulary::default(), Vocabulary::default());
    for sentence in &sentences {
        sentence.chars.iter().for_each(|c| _ = chars.number(&c.to_string()));
        sentence.spans.iter().for_each(|&span| _ = words.number(&sentence.text(span)));
    }

    let h = args.hidden as usize;
    let mut m = ModuleBuilder::new("lattice");
    let char_table = m.table("chars", [chars.len(), h], Init::Uniform(0.1));
    let word_table = m.table("words", [words.len(), h], Init::Uniform(0.1));
    let wc = m.param("char.w", [3 * h, 4 * h], Init::Glorot(1.0));
    let bc = m.param("char.b", 4 * h, Init::ZEROS);
    let ww = m.param("word.w", [2 * h, 3 * h], Init::Glorot(1.0));
    let bw = m.param("word.b", 3 * h, Init::ZEROS);
    let wo = m.param("out.w", [h, TAGS], Init::Glorot(1.0));
    let char_cell = m.cell("char", [f32(h); 4], |g, [x, h, c, extra]| {
        let [i, f, o, u] = g.affine([x, h, extra], wc, Some(bc)).split();
        let c = f.sigmoid() * c + i.sigmoid() * u.tanh() + extra;
        [o.sigmoid() * c.tanh(), c]
    });
    let word_cell = m.cell("word", [INDEX, f32(h), f32(h)], |g, [word, h, c]| {
        let [i, f, u] = g.affine([word_table.row(word), h], ww, Some(bw)).split();
        [f.sigmoid() * c + i.sigmoid() * u.tanh()]
    });
    let out = m.cell("out", [f32(h)], |g, [x]| [g.affine([x], wo, None)]);

    let g = Graph::new(&emitted(m.build())?);
    let zero = g.zeros(h);
    for (key, sentence) in sentences.iter().enumerate() {
        g.instance(key as u64);
        let Sentence { chars: letters, .. } = sentence;
        let ending = sentence.ending_at();
        // The state before each character. A word reads the state before its first character.
        let mut states: Vec<[Value<'_>; 2]> = vec![[zero, zero]];
        for (at, letter) in letters.iter().enumerate() {
            let x = char_table.look(&g, chars.number(&letter.to_string()));
            let mut shortcuts = Vec::new();
            for &span in &ending[at] {
                let [h, c] = states[span.start as usize];
                let [word] = g.call(word_cell, (words.number(&sentence.text(span)), h, c));
                shortcuts.push(word);
            }
            let extra = if shortcuts.is_empty() { zero } else { g.list(&shortcuts).sum() };
            let [h, c] = states[at];
            states.push(g.call(char_cell, [x, h, c, extra]));
        }
        for (position, [h, _]) in states.into_iter().skip(1).enumerate() {
            let [scores] = g.call(out, h);
            g.output(&format!("sentence{key}.{position}"), scores);
        }
    }
    emitted(g.finish())
}
