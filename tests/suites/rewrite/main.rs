//! The graph passes: snapshots of rewritten files, random graphs, and the batches of outlined ops. The tests prove the
//! random graphs and compare them bit for bit with the reference evaluator.

mod batches;
mod between;
mod files;
mod inline;
mod random;

use autobatch_ir::Weights;
use autobatch_ir::graph::GraphData;
use autobatch_ir::graph::rebuild::Renaming;
use autobatch_ir::id::ValueId;
use autobatch_ir::numeric::same_bits;
use autobatch_oracle::equivalent::equivalent;
use autobatch_oracle::reference::{self, Datum};

/// Proves that every remaining value is equal in both graphs, and compares their evaluations bit for bit.
fn agrees(before: &GraphData, after: &GraphData, renaming: &Renaming) -> Result<(), String> {
    let pairs: Vec<(ValueId, ValueId)> = renaming.pairs().collect();
    equivalent(before, after, &pairs).map_err(|error| error.to_string())?;
    let weights = Weights::init(&before.module, 5);
    for noise in [reference::Noise::Off, reference::Noise::On { seed: 3, step: 9 }] {
        let run =
            |graph| reference::forward::<f32>(graph, &weights, noise).map_err(|error| error.to_string());
        let (old, new) = (run(before)?, run(after)?);
        for &(a, b) in &pairs {
            let same = match (old.value(a), new.value(b)) {
                (Some(Datum::Floats(a)), Some(Datum::Floats(b))) => {
                    a.len() == b.len() && a.iter().zip(b.iter()).all(|(&a, &b)| same_bits(a, b))
                }
                (Some(Datum::Words(a)), Some(Datum::Words(b))) => a == b,
                (Some(Datum::List(a)), Some(Datum::List(b))) => a.len() == b.len(),
                _ => false,
            };
            if !same {
                return Err(format!(
                    "{a} and {b} differ in {noise:?}: {:?} {:?}",
                    old.value(a),
                    new.value(b)
                ));
            }
        }
    }
    Ok(())
}
