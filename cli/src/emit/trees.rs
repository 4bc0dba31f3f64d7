//! Binary Tree-LSTMs, with one cell for inner nodes or a random choice among several.

use super::{Vocabulary, emitted, minibatch, needed};
use crate::args::EmitArgs;
use crate::failure::Failure;
use autobatch_ir::graph::{Graph, GraphData, Value};
use autobatch_ir::module::{Cell, Init, ModuleBuilder};
use autobatch_ir::types::{INDEX, f32};
use autobatch_models::data::binary_tree::Node;
use autobatch_models::data::generate::sentiment;
use autobatch_models::data::random::Random;
use autobatch_models::data::sst;

const CLASSES: usize = 5;

pub(super) fn emit(args: &EmitArgs) -> Result<GraphData, Failure> {
    let trees = match &args.data {
        Some(file) => sst::read(file).map_err(|error| Failure::input(error.to_string()))?,
        None => sentiment::trees(args.seed, needed(args)?, sentiment::LENGTHS),
    };
    let trees = minibatch(args, trees)?;
    let mut vocabulary = Vocabulary::default();
    let words: Vec<Vec<u32>> = trees
        .iter()
        .map(|tree| tree.tree.leaves().iter().map(|word| vocabulary.number(word)).collect())
        .collect();

    let h = args.hidden as usize;
    let mut m = ModuleBuilder::new("trees");
    let embed = m.table("embed", [vocabulary.len(), h], Init::Uniform(0.1));
    let wo = m.param("out.w", [h, CLASSES], Init::Glorot(1.0));
    let bo = m.param("out.b", CLASSES, Init::ZEROS);
    let leaf = m.cell("leaf", [INDEX], |g, [word]| [embed.row(word), g.zeros([h])]);
    let nodes: Vec<Cell<4, 2>> = (0..args.cells.unwrap_or(1)).map(|number| node(&mut m, number, h)).collect();
    let out = m.cell("out", [f32(h)], |g, [x]| [g.affine([x], wo, Some(bo))]);

    let g = Graph::new(&emitted(m.build())?);
    let mut random = Random::new(args.seed);
    for (key, (tree, words)) in trees.iter().zip(&words).enumerate() {
        g.instance(key as u64);
        let mut values: Vec<[Value<'_>; 2]> = Vec::new();
        for node in tree.tree.nodes() {
            values.push(match *node {
                Node::Leaf(leaf_number) => g.call(leaf, words[leaf_number as usize]),
                Node::Inner(left, right) => {
                    let ([lh, lc], [rh, rc]) = (values[left as usize], values[right as usize]);
                    g.call(nodes[random.index(nodes.len())], [lh, lc, rh, rc])
                }
            });
        }
        let last = values.len() - 1;
        for (number, [h, _]) in
            values.into_iter().enumerate().filter(|(number, _)| args.every_node || *number == last)
        {
            let [logits] = g.call(out, h);
            g.output(&format!("tree{key}.{number}"), logits);
        }
    }
    emitted(g.finish())
}

fn node(m: &mut ModuleBuilder, number: u32, h: usize) -> Cell<4, 2> {
    let name = if number == 0 { "node".to_owned() } else { format!("node{number}") };
    let w = m.param(&format!("{name}.w"), [2 * h, 5 * h], Init::Glorot(1.0));
    let b = m.param(&format!("{name}.b"), 5 * h, Init::ZEROS);
    m.cell(&name, [f32(h); 4], |g, [lh, lc, rh, rc]| {
        let [i, fl, fr, o, u] = g.affine([lh, rh], w, Some(b)).split();
        let c = i.sigmoid() * u.tanh() + fl.sigmoid() * lc + fr.sigmoid() * rc;
        [o.sigmoid() * c.tanh(), c]
    })
}
