//! Models of single ops train like models of cells when passes are on.

use crate::model::{CLASSES, Tree, data};
use autobatch::nn::Linear;
use autobatch::planner::passes::Selection;
use autobatch::prelude::*;
use std::sync::Arc;

/// The computation of [`crate::model::Model`] without a cell, and with a gate.
#[derive(Clone, Copy)]
struct OpByOp {
    words: Table,
    join: Linear,
    gate: Linear,
    out: Linear,
}

impl OpByOp {
    fn new() -> (OpByOp, Arc<Module>) {
        let mut m = ModuleBuilder::new("op by op");
        let words = m.table("words", [12, 10], Init::Uniform(0.5));
        let join = Linear::new(&mut m, "join", 20, 10);
        let gate = Linear::new(&mut m, "gate", 20, 10);
        let out = Linear::new(&mut m, "out", 10, CLASSES as usize);
        (OpByOp { words, join, gate, out }, m.build().unwrap())
    }

    fn encode<'g>(&self, g: &'g Graph, tree: &Tree) -> Value<'g> {
        match tree {
            Tree::Leaf(word) => self.words.lookup(g, *word),
            Tree::Node(kids) => {
                let pair = [&kids[0], &kids[1]].map(|kid| self.encode(g, kid));
                let gate = self.gate.on_parts(g, pair).sigmoid();
                (gate * self.join.on_parts(g, pair).tanh()).dropout(0.1) + pair[0]
            }
        }
    }

    fn loss<'g>(&self, g: &'g Graph, (tree, class): &(Tree, u32)) -> Value<'g> {
        self.out.on(self.encode(g, tree)).cross_entropy(*class)
    }
}

/// Returns the losses of some epochs, and the number of batches of the first step.
fn train(passes: Option<Selection>) -> (Vec<f32>, u32) {
    let (model, module) = OpByOp::new();
    let options = SessionOptions { threads: 1, passes, seed: 7, ..SessionOptions::default() };
    let weights = Arc::new(Weights::init(&module, 7));
    let mut trainer = Trainer::with_options(module, Adam::new(0.02), weights, options).unwrap();
    let (mut losses, mut batches) = (Vec::new(), None);
    for epoch in 0..4 {
        for batch in data(1, 160).batches(16).shuffled(epoch) {
            let step = trainer.step(batch, |g, item| model.loss(g, item)).unwrap();
            batches.get_or_insert(step.batches);
            losses.push(step.loss);
        }
    }
    (losses, batches.unwrap())
}

#[test]
fn outlined_cells_train_in_fewer_batches_to_the_same_losses() {
    let (plain, many) = train(None);
    let passes = Selection::of_mode(autobatch::ir::plan::Mode::Train).with("outline", true).unwrap();
    let (outlined, few) = train(Some(passes));
    assert!(3 * few < 2 * many, "{few} batches and {many}");
    // The passes keep every forward bit, noise included. Gradients and later losses may differ in the last bits.
    assert_eq!(outlined[0].to_bits(), plain[0].to_bits());
    assert_eq!(plain.len(), outlined.len());
    for (step, (a, b)) in plain.iter().zip(&outlined).enumerate() {
        assert!((a - b).abs() <= 1e-3 * (1.0 + a.abs()), "step {step}: {a} and {b}");
    }
    assert!(plain[plain.len() - 1] < plain[0], "{plain:?}");
}
