//! The three parts of the instances: for training, for choosing the best epoch, and for the final test.
//!
//! A corpus keeps its published parts. A corpus with two parts tests on the published held-out part, and holds out a
//! tenth of its training instances as the development part. A corpus in one part also holds out its test part. The
//! choices are functions of the number of instances, so every run makes the same ones.

use crate::data::{DataError, sampling};
use std::path::{Path, PathBuf};

/// The share of the training instances that become the development part, in thousandths.
const DEVELOPMENT: u32 = 100;

/// A part of the instances of a lesson.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CorpusPart {
    /// The instances that training steps read.
    Train,
    /// The instances that choose the best epoch.
    Development,
    /// The instances that are evaluated once, after training.
    Test,
}

impl CorpusPart {
    /// All parts, in the order of a lesson's instances.
    pub const ALL: [Self; 3] = [Self::Train, Self::Development, Self::Test];

    /// Returns the purpose of the part, for messages.
    pub(crate) const fn purpose(self) -> &'static str {
        match self {
            Self::Train => "learn from",
            Self::Development => "choose the best epoch",
            Self::Test => "be tested on",
        }
    }
}

/// The parts of a corpus as it is published.
pub(crate) struct Published<T> {
    pub(super) train: Vec<T>,
    pub(super) development: Option<Vec<T>>,
    pub(super) test: Option<Vec<T>>,
}

impl<T> Published<T> {
    /// A corpus in one part, from which `permille` of 1000 instances are held out for the test.
    pub(super) fn whole(items: Vec<T>, permille: u32) -> Self {
        let (train, test) = hold_out(items, permille, 1);
        Self { train, development: None, test: Some(test) }
    }

    /// Reads the files `train`, `valid` or `dev`, and `test` with this ending in a folder. Only the first one is
    /// required. Without the others, `permille` of 1000 training instances are held out for the test.
    pub(super) fn read(
        folder: &Path,
        ending: &str,
        permille: u32,
        read: impl Fn(PathBuf) -> Result<Vec<T>, DataError>,
    ) -> Result<Self, DataError> {
        let path = |name: &str| folder.join(format!("{name}{ending}"));
        let optional = |names: &[&str]| {
            names.iter().map(|name| path(name)).find(|path| path.exists()).map(&read).transpose()
        };
        let (development, test) = (optional(&["valid", "dev"])?, optional(&["test"])?);
        let train = read(path("train"))?;
        Ok(match (&development, &test) {
            (None, None) => Self::whole(train, permille),
            _ => Self { train, development, test },
        })
    }

    /// Removes instances from all parts.
    pub(super) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        let Self { train, development, test } = self;
        [Some(train), development.as_mut(), test.as_mut()]
            .into_iter()
            .flatten()
            .for_each(|items| items.retain(&keep));
    }

    /// Returns the three parts.
    pub(super) fn split(self) -> Parts<T> {
        match (self.development, self.test) {
            (Some(development), Some(test)) => Parts { train: self.train, development, test },
            (held_out, test) => {
                let (train, development) = hold_out(self.train, DEVELOPMENT, 2);
                Parts { train, development, test: test.or(held_out).unwrap_or_default() }
            }
        }
    }
}

/// Separates `permille` of 1000 items, and at least one item.
fn hold_out<T>(items: Vec<T>, permille: u32, seed: u64) -> (Vec<T>, Vec<T>) {
    let one = 1000_usize.div_ceil(items.len().max(1)) as u32;
    sampling::split(items, permille.max(one), seed)
}

/// Three parts of instances.
pub(crate) struct Parts<T> {
    pub(super) train: Vec<T>,
    pub(super) development: Vec<T>,
    pub(super) test: Vec<T>,
}

impl<T> Parts<T> {
    /// Returns all instances: training, development, test.
    pub(super) fn all(&self) -> impl Iterator<Item = &T> {
        self.train.iter().chain(&self.development).chain(&self.test)
    }

    /// Returns the first part without instances.
    pub(super) fn empty(&self) -> Option<CorpusPart> {
        let parts = [&self.train, &self.development, &self.test];
        CorpusPart::ALL.into_iter().zip(parts).find(|(_, items)| items.is_empty()).map(|(part, _)| part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(published: Published<u32>) -> [usize; 3] {
        let Parts { train, development, test } = published.split();
        [train.len(), development.len(), test.len()]
    }

    #[test]
    fn published_parts_are_kept_and_missing_ones_are_held_out() {
        let items = |count: u32| (0..count).collect::<Vec<u32>>();
        let published = |development, test| Published { train: items(100), development, test };
        assert_eq!(sizes(published(Some(items(7)), Some(items(9)))), [100, 7, 9]);
        assert_eq!(sizes(published(Some(items(7)), None)), [90, 10, 7], "the held-out file is the test");
        assert_eq!(sizes(published(None, Some(items(9)))), [90, 10, 9]);
        assert_eq!(sizes(Published::whole(items(100), 200)), [72, 8, 20]);
        assert_eq!(sizes(Published::whole(items(3), 200)), [1, 1, 1], "no part is empty");
    }

    #[test]
    fn every_instance_is_in_one_part() {
        let parts = Published::whole((0..50).collect(), 100).split();
        let mut all: Vec<i32> = parts.all().copied().collect();
        all.sort_unstable();
        assert_eq!(all, (0..50).collect::<Vec<i32>>());
    }
}
