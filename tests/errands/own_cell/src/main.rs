//! A crate that declares its own cell, trains a model with it and writes the model as one file.
//!
//! The cell merges two neighbours with a gate. The model merges a sentence from left to right, and predicts whether the
//! sentence holds more large words than small ones.

use autobatch::prelude::*;

const WORDS: u32 = 20;
const WIDTH: usize = 8;

struct Model {
    words: Table,
    merge: Cell<2, 1>,
    score: Cell<1, 1>,
}

impl Model {
    fn new(m: &mut ModuleBuilder) -> Self {
        let words = m.table("words", [WORDS as usize, WIDTH], Init::Uniform(0.3));
        let gate = m.param("gate", [2 * WIDTH, WIDTH], Init::Glorot(1.0));
        let mix = m.param("mix", [2 * WIDTH, WIDTH], Init::Glorot(1.0));
        let out = m.param("out", [WIDTH, 2], Init::Glorot(1.0));
        let merge = m.cell("merge", [f32([WIDTH]); 2], |g, [l, r]| {
            let open = g.affine([l, r], gate, None).sigmoid();
            let mixed = g.affine([l, r], mix, None).tanh();
            [open * mixed + (1.0 - open) * l]
        });
        let score = m.cell("score", [f32([WIDTH])], |g, [h]| [g.affine([h], out, None)]);
        Model { words, merge, score }
    }

    fn scores<'g>(&self, g: &'g Graph, sentence: &[u32]) -> Value<'g> {
        let mut words = sentence.iter().map(|&word| self.words.lookup(g, word));
        let first = words.next().expect("a sentence has a word");
        let merged = words.fold(first, |h, word| {
            let [h] = g.call(self.merge, [h, word]);
            h
        });
        let [scores] = g.call(self.score, [merged]);
        scores
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut m = ModuleBuilder::new("merging");
    let model = Model::new(&mut m);
    let mut trainer = Trainer::new(m.build()?, Adam::new(0.02))?;

    let mut random = autobatch::random::Random::new(1);
    let data: Vec<(Vec<u32>, u32)> = (0..256)
        .map(|_| {
            let length = 3 + 2 * random.index(3);
            let sentence: Vec<u32> = (0..length).map(|_| random.index(WORDS as usize) as u32).collect();
            let large = sentence.iter().filter(|&&word| word >= WORDS / 2).count();
            (sentence, u32::from(2 * large > length))
        })
        .collect();
    let (train, valid) = data.split_at(192);
    for epoch in 0..20 {
        for batch in train.batches(32).shuffled(epoch) {
            trainer.step(batch, |g, (sentence, class)| model.scores(g, sentence).cross_entropy(*class))?;
        }
    }
    let right = trainer.evaluate(
        valid,
        |g, (sentence, _)| model.scores(g, sentence),
        |(_, class), scores| scores.argmax() == *class as usize,
    )?;
    println!("more than 80 % of {} held-out sentences are right: {}", right.count(), right.mean() > 0.8);
    trainer.session().bundle().save("merging.abm")?;

    // Another program needs the file and the names of the cells only.
    let module = Module::load("merging.abm")?;
    let score = module.cell::<1, 1>("score").ok_or("no cell `score`")?;
    let mut session = Session::new(&module, Device::Cpu)?;
    let rows = session.predict([0.0, 1.0], |g, x| g.call(score, [g.input(&[x; WIDTH])])[0])?;
    println!("the loaded module gives {} rows of {} scores", rows.len(), rows[0].len());
    Ok(())
}
