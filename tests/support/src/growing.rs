//! A model for graphs that grow. All vectors have one width, so any later node can read any earlier value.

use autobatch_ir::graph::{Graph, Value};
use autobatch_ir::module::{Cell, Init, Module, ModuleBuilder, Param, Table};
use autobatch_ir::types::{INDEX, f32};
use std::ops::Deref;
use std::sync::Arc;

/// The width of all vectors. It is not a multiple of a weight panel's width.
pub const H: usize = 9;
const WORDS: usize = 11;

/// The values that later nodes read.
#[derive(Debug, Default)]
pub struct Known<'g> {
    vectors: Vec<Value<'g>>,
    /// Lists of vectors, many of which grew from one another.
    lists: Vec<Value<'g>>,
}

impl<'g> From<Vec<Value<'g>>> for Known<'g> {
    fn from(vectors: Vec<Value<'g>>) -> Self {
        Self { vectors, lists: Vec::new() }
    }
}

/// The vectors.
impl<'g> Deref for Known<'g> {
    type Target = [Value<'g>];

    fn deref(&self) -> &Self::Target {
        &self.vectors
    }
}

/// The handles of the model.
#[derive(Debug)]
pub struct Model {
    /// The table of words.
    pub words: Table,
    weight: Param,
    /// A cell that combines two children.
    pub node: Cell<4, 2>,
    /// A cell that encodes a word.
    pub leaf: Cell<1, 2>,
}

/// Builds the model.
///
/// # Panics
/// Never: the model is well typed.
#[must_use]
pub fn model() -> (Arc<Module>, Model) {
    let mut m = ModuleBuilder::new("growing");
    let words = m.table("words", [WORDS, H], Init::Uniform(1.0));
    let weight = m.param("w", [2 * H, H], Init::Glorot(1.0));
    let node = m.cell("node", [f32([H]); 4], |g, [lh, lc, rh, rc]| {
        let c = g.affine([lh, rh], weight, None).tanh() + lc * rc;
        [c.sigmoid(), c]
    });
    let leaf = m.cell("leaf", [INDEX], |g, [word]| [words.row(word), g.zeros([H])]);
    (m.build().expect("the model is well typed"), Model { words, weight, node, leaf })
}

impl Model {
    /// Appends a random node and adds its results to `known`. The operands are any earlier values.
    /// `below` draws a number smaller than its argument.
    pub fn act<'g>(&self, g: &'g Graph, known: &mut Known<'g>, below: &mut dyn FnMut(usize) -> usize) {
        let Known { vectors: known, lists } = known;
        let any = |below: &mut dyn FnMut(usize) -> usize| match known.get(below(known.len().max(1))) {
            Some(&value) if below(8) > 0 => value,
            _ => g.zeros([H]),
        };
        let made: Vec<Value<'g>> = match below(10) {
            0 => g.call(self.leaf, below(WORDS) as u32).to_vec(),
            // The index is the row of a source, which an earlier wave than the lookup may load.
            1 => vec![self.words.row(g.index(below(WORDS) as u32))],
            2 => vec![self.words.lookup(g, below(WORDS) as u32)],
            3 => vec![g.input(&[(); H].map(|()| below(1 << 24) as f32 / (1 << 23) as f32 - 1.0))],
            4 => vec![g.affine([any(below), any(below)], self.weight, None)],
            5 => match below(4) {
                0 => vec![any(below).tanh()],
                items => vec![g.list((0..items).map(|_| any(below)).collect::<Vec<_>>()).sum()],
            },
            // A list grows at its end or in a branch, and any list is read.
            6 | 7 => {
                let mut grown = match lists.get(below(lists.len() + 1)) {
                    Some(&list) => list,
                    None => g.list([any(below)]),
                };
                (0..1 + below(3)).for_each(|_| grown = grown.append(any(below)));
                lists.push(grown);
                let list = lists[below(lists.len())];
                match below(2) {
                    0 => vec![list.sum()],
                    _ => vec![g.attend(any(below), list, list, 0.5)],
                }
            }
            _ => g.call(self.node, [any(below), any(below), any(below), any(below)]).to_vec(),
        };
        known.extend(made);
    }
}
