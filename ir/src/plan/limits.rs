//! Limits of bound words: an index must lie below the number of rows, a truth value must be 0 or 1.
//!
//! All executors check bound words here before they execute, so all refuse the same words. Computed words need no check: an
//! index is clamped to the last row, and every op with a truth value gives 0 or 1.

use super::{BindError, Kernel, Operand, Plan, Stage, Step, View};
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

/// The bound words that rows hold, because source steps copied them there.
#[derive(Debug, Default)]
pub struct WordOrigins {
    /// For each field of indices the first bound word of each row, or [`Self::COMPUTED`].
    fields: Vec<Vec<u32>>,
}

impl WordOrigins {
    /// The origin of a row that holds no bound word.
    const COMPUTED: u32 = u32::MAX;

    /// Forgets all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.fields.iter_mut().for_each(Vec::clear);
    }

    /// The first bound word that a lane reads, directly or from a row; `None` for other operands.
    #[must_use]
    pub fn bound_word(&self, plan: &Plan, operand: Operand, lane: u32) -> Option<u32> {
        plan.bound_word(operand, lane).or_else(|| {
            let (field, row) = plan.operand_row(operand, lane)?;
            let origin = *self.fields.get(field.index())?.get(row as usize)?;
            (origin != Self::COMPUTED).then_some(origin)
        })
    }

    /// Records the origins of the rows that a step writes.
    pub fn record(&mut self, plan: &Plan, step: &Step) {
        let source = plan.operands(step).first().filter(|_| plan.kernel(step).source);
        for &place in plan.places(step) {
            let (id, field) = (place.field(), plan.field(place.field()));
            let known = self.fields.get(id.index()).is_some_and(|rows| !rows.is_empty());
            if field.ty.dtype != DType::U32 || !(known || source.is_some()) {
                continue;
            }
            self.fields.resize(self.fields.len().max(plan.fields.len()), Vec::new());
            let rows = &mut self.fields[id.index()];
            rows.resize(plan.slabs[field.slab.index()].rows as usize, Self::COMPUTED);
            for lane in 0..step.rows {
                let word = source.and_then(|&operand| plan.bound_word(operand, lane));
                let written = plan.result_rows(place, lane);
                rows[written.start as usize..written.end as usize].fill(word.unwrap_or(Self::COMPUTED));
            }
        }
    }
}
