//! Limits of bound words: an index must lie below the number of rows, a truth value must be 0 or 1.
//!
//! All executors check bound words here before they execute, so all refuse the same words. Computed words need no check: an
//! index is clamped to the last row, and every op with a truth value gives 0 or 1.

use super::{BindError, Kernel, Stage, View};
use crate::graph::Op;
use crate::types::DType;
use std::collections::HashMap;

/// Words of a port that are indices or truth values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordLimit {
    /// The words.
    pub view: View,
    /// The words must be below this.
    pub below: u32,
    /// The meaning of the words.
    pub of: LimitOf,
}

/// The meaning of limited words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitOf {
    /// Indices of rows of the table at this parameter port.
    Table(u32),
    /// Labels of scores.
    Scores,
    /// Truth values.
    Truth,
}

impl WordLimit {
    /// The error of a bound word that is not below the limit.
    #[must_use]
    pub fn misfit(&self, word: usize, step: usize, kernel: &Kernel, found: u32) -> BindError {
        let (kernel, limit) = (kernel.name.clone(), self.below);
        match self.of {
            LimitOf::Table(_) | LimitOf::Scores => BindError::Index { word, step, kernel, found, limit },
            LimitOf::Truth => BindError::Truth { word, step, kernel, found },
        }
    }
}

impl Kernel {
    /// The limits of bound words at its ports: the least limit of each view.
    #[must_use]
    pub fn word_limits(&self) -> Vec<WordLimit> {
        let mut limits: Vec<WordLimit> = Vec::new();
        let mut places: HashMap<View, usize> = HashMap::new();
        let mut limit = |view: View, below: u32, of: LimitOf| {
            let place = *places.entry(view).or_insert(limits.len());
            match limits.get_mut(place) {
                Some(known) if known.below <= below => {}
                Some(known) => *known = WordLimit { view, below, of },
                None => limits.push(WordLimit { view, below, of }),
            }
        };
        for (port, reg) in (0..self.ports).zip(&self.regs) {
            if reg.ty.dtype == DType::Bool && !reg.ty.is_list {
                limit(self.whole(port), 2, LimitOf::Truth);
            }
        }
        for stage in &self.stages {
            let (view, below, of) = match stage {
                Stage::Lookup { param, index, .. } => {
                    (*index, self.params[*param as usize].shape.dims()[0], LimitOf::Table(*param))
                }
                // The language clamps indices of `pick` and `one_hot`.
                Stage::Row { op: Op::PickNegLogSoftmax | Op::Hinge { .. }, sources, .. } => {
                    (sources[1].0, sources[0].1.shape.width() as u32, LimitOf::Scores)
                }
                _ => continue,
            };
            if view.reg < self.ports {
                limit(view, below, of);
            }
        }
        limits
    }
}
