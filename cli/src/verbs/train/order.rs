//! The options that determine the instances of each training step. A resumed run must not change them.

use crate::failure::Failure;
use autobatch::Trainer;
use serde::{Deserialize, Serialize};

/// The options that determine instances and their order. Checkpoints store them in a note.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) seed: u64,
    pub(super) batch: usize,
    pub(super) bucket: bool,
    /// The number of training instances.
    pub(super) count: usize,
}

impl Order {
    const NOTE: &'static str = "order";

    /// Stores the options for the next checkpoint.
    pub(super) fn note(&self, trainer: &mut Trainer) {
        trainer.set_note(Self::NOTE, serde_json::json!(self).to_string());
    }

    /// Rejects a checkpoint of a run with other options. Another seed changes the instances and the
    /// held-out part. Within an epoch, the other options change which minibatches are already done.
    pub(super) fn check_against(&self, path: &str, trainer: &Trainer) -> Result<(), Failure> {
        let Some(noted) = trainer.note(Self::NOTE).and_then(|note| serde_json::from_str::<Self>(note).ok())
        else {
            return Ok(());
        };
        let within_epoch = trainer.progress().batches > 0;
        let switch = |bucket: bool| if bucket { "on" } else { "off" }.to_owned();
        let options = [
            ("--seed", noted.seed.to_string(), self.seed.to_string(), true),
            ("--batch", noted.batch.to_string(), self.batch.to_string(), within_epoch),
            ("--bucket", switch(noted.bucket), switch(self.bucket), within_epoch),
            ("--count", noted.count.to_string(), self.count.to_string(), within_epoch),
        ];
        match options.into_iter().find(|(_, noted, given, matters)| *matters && noted != given) {
            Some((option, noted, given, _)) => {
                let message = format!("{path} was made with {option} {noted}, found {given}");
                Err(Failure::usage(message)
                    .help(format!("use {option} {noted}, or start a new run without --resume")))
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
    fn minibatch_options_may_change_between_epochs_but_not_within_one() {
        let mut m = ModuleBuilder::new("m");
        m.param("w", [1], Init::ZEROS);
        let module = m.build().expect("the module is valid");
        let mut trainer = Trainer::new(module, Sgd::new(0.1)).expect("the module has a parameter");
        let order = Order { seed: 1, batch: 8, bucket: false, count: 40 };
        order.check_against("x", &trainer).expect("the checkpoint has no note");
        order.note(&mut trainer);
        let others = [
            Order { batch: 9, ..order.clone() },
            Order { bucket: true, ..order.clone() },
            Order { count: 41, ..order.clone() },
        ];
        for (batches, is_error) in [(0, false), (3, true)] {
            trainer.set_progress(Progress { epoch: 2, batches });
            order.check_against("x", &trainer).expect("the options are equal");
            assert!(others.iter().all(|other| other.check_against("x", &trainer).is_err() == is_error));
            let seed = Order { seed: 2, ..order.clone() };
            let failure =
                seed.check_against("x", &trainer).expect_err("another seed holds out other instances");
            assert_eq!(failure.message, "x was made with --seed 1, found 2");
        }
    }
}
