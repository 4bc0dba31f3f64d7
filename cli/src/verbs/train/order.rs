//! What decides which instances a step sees: a run that is resumed must say the same, or it is another run.

use crate::failure::Failure;
use autobatch::Trainer;
use serde::{Deserialize, Serialize};

/// The options that instances and their order follow from; checkpoints carry them along.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) seed: u64,
    pub(super) batch: usize,
    pub(super) bucket: bool,
    /// How many instances there are to learn from.
    pub(super) count: usize,
}

impl Order {
    const NOTE: &'static str = "order";

    /// Notes them for the next checkpoint.
    pub(super) fn note(&self, trainer: &mut Trainer) {
        trainer.set_note(Self::NOTE, serde_json::json!(self).to_string());
    }

    /// Refuses to go on from a checkpoint that was made with others: with another seed there are other instances and other ones
    /// are held out, and in the middle of an epoch the minibatches behind would not be those that were stepped.
    pub(super) fn check_against(&self, path: &str, trainer: &Trainer) -> Result<(), Failure> {
        let Some(noted) = trainer.note(Self::NOTE).and_then(|note| serde_json::from_str::<Self>(note).ok())
        else {
            return Ok(());
        };
        let stepped = trainer.progress().batches > 0;
        let spelled = |bucket: bool| if bucket { "on" } else { "off" }.to_owned();
        let options = [
            ("--seed", noted.seed.to_string(), self.seed.to_string(), true),
            ("--batch", noted.batch.to_string(), self.batch.to_string(), stepped),
            ("--bucket", spelled(noted.bucket), spelled(self.bucket), stepped),
            ("--count", noted.count.to_string(), self.count.to_string(), stepped),
        ];
        match options.into_iter().find(|(_, noted, given, matters)| *matters && noted != given) {
            Some((option, noted, given, _)) => {
                let message = format!("{path} was made with {option} {noted}, found {given}");
                Err(Failure::usage(message)
                    .help(format!("go on with {option} {noted}, or begin anew without --resume")))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use autobatch::prelude::*;

    #[test]
    fn minibatches_may_change_between_epochs_and_not_within_one() {
        let mut m = ModuleBuilder::new("m");
        m.param("w", [1], Init::ZEROS);
        let module = m.build().expect("it has one parameter");
        let mut trainer = Trainer::new(module, Sgd::new(0.1)).expect("there is something to train");
        let order = Order { seed: 1, batch: 8, bucket: false, count: 40 };
        order.check_against("x", &trainer).expect("nothing was noted");
        order.note(&mut trainer);
        let others = [
            Order { batch: 9, ..order.clone() },
            Order { bucket: true, ..order.clone() },
            Order { count: 41, ..order.clone() },
        ];
        for (stepped, refused) in [(0, false), (3, true)] {
            trainer.set_progress(Progress { epoch: 2, batches: stepped });
            order.check_against("x", &trainer).expect("it is the same");
            assert!(others.iter().all(|other| other.check_against("x", &trainer).is_err() == refused));
            let seed = Order { seed: 2, ..order.clone() };
            let failure = seed.check_against("x", &trainer).expect_err("other instances are held out");
            assert_eq!(failure.message, "x was made with --seed 1, found 2");
        }
    }
}
