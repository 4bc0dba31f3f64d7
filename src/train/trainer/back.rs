//! The position of a trainer, and its return to an earlier state after a device loss.

use super::Trainer;
use crate::error::Result;
use crate::mirror::Trained;
use crate::train::checkpoint::Progress;
use crate::train::error::TrainError;
use std::collections::BTreeMap;

impl Trainer {
    /// Reads parameters and optimiser states back from a GPU after every `steps` steps, so that a device loss
    /// costs at most that many. 0 never reads.
    #[must_use]
    pub fn mirror_every(mut self, steps: u64) -> Self {
        self.mirror_every = steps;
        self
    }

    /// Counts the steps.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps - self.session.lost_updates()
    }

    /// Returns the position in the data, from [`set_progress`](Self::set_progress) or a loaded checkpoint.
    #[must_use]
    pub fn progress(&self) -> Progress {
        if self.session.lost_updates() > 0 { self.mirrored } else { self.progress }
    }

    /// Returns a note, from [`set_note`](Self::set_note) or a loaded checkpoint.
    #[must_use]
    pub fn note(&self, name: &str) -> Option<&str> {
        self.notes.get(name).map(String::as_str)
    }

    /// Sets a note that checkpoints carry, for example the scores so far or the words of a table.
    pub fn set_note(&mut self, name: &str, text: impl Into<String>) {
        self.notes.insert(name.to_owned(), text.into());
    }

    /// Returns all notes.
    pub(in crate::train) fn notes(&self) -> &BTreeMap<String, String> {
        &self.notes
    }

    /// Restores a state and its position.
    pub(in crate::train) fn restore(
        &mut self,
        trained: Trained,
        steps: u64,
        seed: u64,
        progress: Progress,
        notes: BTreeMap<String, String>,
    ) {
        self.session.take_lost_updates();
        self.session.replace(trained);
        (self.steps, self.seed) = (steps, seed);
        (self.progress, self.mirrored) = (progress, progress);
        self.notes = notes;
    }

    /// The settings that shape updates: those of the optimiser, and the number of shards.
    pub(in crate::train) fn settings(&self) -> BTreeMap<String, String> {
        let shards =
            self.sharding.as_ref().map_or_else(|| "None".to_owned(), |_| self.shard_count().to_string());
        let of_optimizer = self.updater.optimizer().settings().into_iter();
        of_optimizer.chain([("shards", shards)]).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Notes the settings that differ from those of a checkpoint.
    pub(in crate::train) fn compare_settings(&mut self, before: &BTreeMap<String, String>) {
        let changed = self.settings().into_iter().filter_map(|(name, value)| {
            let before = before.get(&name).filter(|&before| *before != value)?;
            Some(format!("{name} {value}, before {before}"))
        });
        self.changes = changed.collect();
    }

    /// Returns the settings that differ from those of the checkpoint that [`load`](Self::load) read: of the optimiser, such as
    /// its learning rate, and the number of [shards](Self::shards). With other settings, training continues with other bits than
    /// the interrupted run would have.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let mut m = ModuleBuilder::new("m");
    /// # m.param("w", [1], Init::ZEROS);
    /// # let module = m.build()?;
    /// # let path = std::env::temp_dir().join(format!("changes-{}.safetensors", std::process::id()));
    /// Trainer::new(&module, Sgd::new(0.1))?.save(&path)?;
    /// let mut trainer = Trainer::new(&module, Sgd::new(0.5))?;
    /// trainer.load(&path)?;
    /// assert_eq!(trainer.changes(), ["rule Sgd { learning_rate: 0.5 }, before Sgd { learning_rate: 0.1 }"]);
    /// # std::fs::remove_file(path)?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn changes(&self) -> &[String] {
        &self.changes
    }

    /// Passes a result on. After a device loss with updates, goes back as the session did and reports it.
    pub(super) fn handle_device_loss<T>(&mut self, result: Result<T>) -> Result<T> {
        let lost = self.session.take_lost_updates();
        if lost == 0 {
            return result;
        }
        let from = self.steps;
        self.steps -= lost;
        self.progress = self.mirrored;
        let reason = result.err().map_or_else(|| "the device was lost".to_owned(), |error| error.to_string());
        Err(TrainError::WentBack { from, to: self.steps, reason }.into())
    }
}
