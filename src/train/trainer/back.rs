//! Where a trainer stands, and how it goes back when a device is lost with what was on it alone.

use super::Trainer;
use crate::error::Result;
use crate::mirror::Trained;
use crate::train::checkpoint::Progress;
use crate::train::error::TrainError;
use std::collections::BTreeMap;

impl Trainer {
    /// Reads parameters and the optimiser's state back from a GPU after every so many steps, so that the
    /// loss of a device costs that many at most; never, with 0.
    #[must_use]
    pub fn mirror_every(mut self, steps: u64) -> Self {
        self.mirror_every = steps;
        self
    }

    /// How many steps were made.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps - self.session.fallen()
    }

    /// Where the data stands, as [`set_progress`](Self::set_progress) last said or a checkpoint held.
    #[must_use]
    pub fn progress(&self) -> Progress {
        if self.session.fallen() > 0 { self.mirrored } else { self.progress }
    }

    /// What was noted under a name, by [`set_note`](Self::set_note) or in the checkpoint that was loaded.
    #[must_use]
    pub fn note(&self, name: &str) -> Option<&str> {
        self.notes.get(name).map(String::as_str)
    }

    /// Notes something that checkpoints carry along: the scores so far, what the words of a table are.
    pub fn set_note(&mut self, name: &str, text: impl Into<String>) {
        self.notes.insert(name.to_owned(), text.into());
    }

    /// All notes.
    pub(in crate::train) fn notes(&self) -> &BTreeMap<String, String> {
        &self.notes
    }

    /// Takes a state, and where it was made.
    pub(in crate::train) fn restore(
        &mut self,
        trained: Trained,
        (steps, seed): (u64, u64),
        progress: Progress,
        notes: BTreeMap<String, String>,
    ) {
        self.session.take_fallen();
        self.session.replace(trained);
        (self.steps, self.seed) = (steps, seed);
        (self.progress, self.mirrored) = (progress, progress);
        self.notes = notes;
    }

    /// Passes a result on; if a device was lost with updates, goes back as the session did and says so.
    pub(super) fn noticed<T>(&mut self, result: Result<T>) -> Result<T> {
        let lost = self.session.take_fallen();
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
