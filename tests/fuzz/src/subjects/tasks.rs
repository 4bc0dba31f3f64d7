//! Tasks that await values and branch on their bits. Together they have the values of the reference, and alone the same.

use super::boxed;
use super::random::{bytes, generator};
use crate::counts::{Counts, Tally};
use crate::target::Subject;
use autobatch::prelude::*;
use autobatch_planner::RowOrder;
use autobatch_testing::cases::POLICIES;
use autobatch_testing::growing::{Known, Model, model};
use autobatch_testing::hostile::SplitMix64;
use autobatch_testing::random::Rng;
use std::sync::Arc;

/// An awaited value with its words.
type Seen = (ValueKey, Vec<u32>);

struct Tasks {
    module: Arc<Module>,
    model: Model,
    weights: Arc<Weights>,
    seeds: Vec<Vec<u8>>,
}

pub(super) fn open() -> Box<dyn Subject> {
    let (module, model) = model();
    let weights = Arc::new(Weights::init(&module, 3));
    let mut random = SplitMix64(5);
    let seeds = (0..32).map(|number| bytes(&mut random, 8 * (2 + number))).collect();
    boxed(Tasks { module, model, weights, seeds })
}

/// Awaits random values and branches on their bits. Returns the awaited values.
async fn wander(model: &Model, g: &Graph, seed: u64) -> Result<Vec<Seen>> {
    let mut rng = Rng::new(seed);
    let (mut known, mut seen) = (Known::default(), Vec::new());
    for _ in 0..rng.below(6) {
        for _ in 0..=rng.below(5) {
            model.act(g, &mut known, &mut |end| rng.below(end as u32) as usize);
        }
        let asked: Vec<Value<'_>> =
            (0..=rng.below(2)).map(|_| known[rng.below(known.len() as u32) as usize]).collect();
        let mut mixed = rng.word();
        for (value, row) in asked.iter().zip(g.get_all(&asked).await?) {
            let row: Vec<u32> = row.into_iter().map(f32::to_bits).collect();
            mixed = row.iter().fold(mixed, |mixed, &bits| mixed.rotate_left(5) ^ u64::from(bits));
            seen.extend(value.key().map(|key| (key, row)));
        }
        rng = Rng::new(mixed);
    }
    Ok(seen)
}

fn rows(seen: &[Seen]) -> Vec<&[u32]> {
    seen.iter().map(|(_, row)| &row[..]).collect()
}

impl Subject for Tasks {
    fn seeds(&self) -> &[Vec<u8>] {
        &self.seeds
    }

    fn draw(&self, random: &mut SplitMix64) -> Vec<u8> {
        bytes(random, 8)
    }

    fn check(&mut self, input: &[u8], counts: &mut Counts) {
        let Some(mut rng) = generator(input, counts) else { return };
        let outcome = self.execute(&mut rng, counts);
        outcome.unwrap_or_else(|error| panic!("{error}"));
    }
}

impl Tasks {
    fn execute(&self, rng: &mut Rng, counts: &mut Counts) -> Result<()> {
        let policy: Policy = rng.pick(&POLICIES).parse().expect("the list holds policies");
        let rows_in = rng.pick(&[RowOrder::Batch, RowOrder::Propagated]);
        let threads = rng.between(1, 2) as usize;
        let options =
            SessionOptions { policy: Some(policy), threads, rows: rows_in, ..SessionOptions::default() };
        let mut session = Session::with_options(&self.module, Arc::clone(&self.weights), options)?;
        let seeds: Vec<u64> = (0..rng.between(1, 7)).map(|_| rng.word()).collect();
        let g = session.graph();
        let together = session.tasks(&g, seeds.iter().map(|&seed| wander(&self.model, &g, seed)))?;
        let eager = session.eager(&g)?;
        for (&seed, seen) in seeds.iter().zip(&together) {
            for (key, row) in seen {
                let value = g.value(*key).and_then(|value| eager.value(value));
                let expected = value.map(|row| row.words());
                assert!(
                    expected.as_deref() == Some(row),
                    "task {seed}: {row:x?}, the reference has {expected:x?}"
                );
                counts.add(Tally::Values);
            }
        }
        for (&seed, seen) in seeds.iter().zip(&together) {
            let g = session.graph();
            let alone = session.tasks(&g, [wander(&self.model, &g, seed)])?;
            assert!(rows(&alone[0]) == rows(seen), "task {seed} alone has other values");
            counts.add(Tally::Executed);
        }
        Ok(())
    }
}
