//! Limits of words: an index must lie below the number of rows, a truth value must be 0 or 1.
//!
//! All executors check bound words here before they execute, so all refuse the same words. They check computed indices
//! while they execute: such an index fails the execution with [`ComputedIndex`]. Until then an executor clamps it to the
//! last row, to stay within memory. Computed truth values need no check: every op that makes one gives 0 or 1.

use super::{
    BindError, Group, Kernel, ListSource, Origin, Place, Plan, RegId, Stage, Step, StepOperand, View,
};
use crate::graph::Op;
use crate::id::NodeId;
use crate::types::DType;
use std::collections::HashMap;

/// Words of a port that are indices or truth values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordLimit {
    /// The words.
    pub view: View,
    /// The words must be below this. Of places in a list, it is 0.
    pub below: u32,
    /// The list port of places in a list. They must be below the length of the lane's list.
    pub list: Option<RegId>,
    /// The meaning of the words.
    pub of: LimitOf,
}

/// The meaning of limited words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitOf {
    /// Indices of rows of a table, of scores, or of rows or elements of a value.
    Index,
    /// Truth values.
    Truth,
}

impl WordLimit {
    /// The end of the words of a lane: each must be below it. `operands` are those of the step.
    #[must_use]
    pub fn of_lane(&self, tables: &[u32], groups: &[Group], operands: &[StepOperand], lane: u32) -> u32 {
        let Some(port) = self.list else { return self.below };
        let list = operands[port.index()].address.list_of_lane(tables, groups, lane);
        list.map_or(0, |list| list.len() as u32)
    }

    /// The error of a bound word that is not below the limit.
    fn misfit(&self, word: usize, step: usize, kernel: &Kernel, [found, limit]: [u32; 2]) -> BindError {
        let kernel = kernel.name.clone();
        match self.of {
            LimitOf::Index => BindError::Index { word, step, kernel, found, limit },
            LimitOf::Truth => BindError::Truth { word, step, kernel, found },
        }
    }
}

/// A lane computed an index that is not below its limit.
#[expect(missing_docs, reason = "the message names the fields")]
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{kernel} in step f{step}, lane {lane}{}, computed index {found}, but it must be below {limit}; keep the index within the rows of its table or value",
    node.map(|node| format!(" (node {node})")).unwrap_or_default()
)]
pub struct ComputedIndex {
    pub step: usize,
    pub lane: usize,
    pub kernel: String,
    pub node: Option<NodeId>,
    pub found: u32,
    pub limit: u32,
}

crate::debug_as_display!(ComputedIndex);

impl ComputedIndex {
    /// The error of a lane of a plan's step.
    #[must_use]
    pub fn new(plan: &Plan, step: usize, lane: usize, found: u32, limit: u32) -> Self {
        let of = &plan.steps[step];
        let (kernel, node) = (plan.kernel(of).name.clone(), plan.lanes(of).get(lane).copied());
        Self { step, lane, kernel, node, found, limit }
    }
}

impl Kernel {
    /// The limit of the indices that a stage of this kernel reads; `None` if it reads none.
    #[must_use]
    pub fn index_limit(&self, stage: &Stage) -> Option<WordLimit> {
        let mut list = None;
        let (view, below) = match stage {
            Stage::Lookup { param, index, .. } | Stage::LabelLoss { param, label: index, .. } => {
                (*index, self.params[param.index()].shape.dims()[0])
            }
            Stage::Row { op: Op::PickNegLogSoftmax | Op::Hinge { .. }, sources, .. } => {
                (sources[1].0, sources[0].1.shape.width() as u32)
            }
            Stage::Row { op: Op::Pick, sources, .. } => (sources[1].0, sources[0].1.shape.dims()[0]),
            Stage::Row { op: Op::OneHot { width }, sources, .. } => (sources[0].0, *width),
            Stage::Seg { op: Op::ListPick, query: Some(index), lists, .. } => match &lists[..] {
                [ListSource::Views(views)] => (*index, views.len() as u32),
                [ListSource::Port(port)] => {
                    list = Some(*port);
                    (*index, 0)
                }
                _ => return None,
            },
            _ => return None,
        };
        Some(WordLimit { view, below, list, of: LimitOf::Index })
    }

    /// The limits of bound words at its ports: the least limit of each view.
    #[must_use]
    pub fn word_limits(&self) -> Vec<WordLimit> {
        let mut limits: Vec<WordLimit> = Vec::new();
        let mut places: HashMap<(View, Option<RegId>), usize> = HashMap::new();
        let mut add = |limit: WordLimit| {
            let place = *places.entry((limit.view, limit.list)).or_insert(limits.len());
            match limits.get_mut(place) {
                Some(known) if known.below <= limit.below => {}
                Some(known) => *known = limit,
                None => limits.push(limit),
            }
        };
        for (port, reg) in (0..self.ports).map(RegId).zip(&self.regs) {
            if reg.ty.dtype == DType::Bool && !reg.ty.is_list {
                add(WordLimit { view: self.whole(port), below: 2, list: None, of: LimitOf::Truth });
            }
        }
        let indices = self.stages.iter().filter_map(|stage| self.index_limit(stage));
        indices.filter(|limit| limit.view.reg.0 < self.ports).for_each(add);
        limits
    }
}

/// The limits of all kernels of a plan.
#[derive(Debug)]
pub struct WordLimits {
    of_kernels: Vec<Vec<WordLimit>>,
    least: u32,
}

impl WordLimits {
    /// Collects the limits of a plan.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let of_kernels: Vec<Vec<WordLimit>> =
            plan.kernels.iter().map(|kernel| kernel.word_limits()).collect();
        let least = of_kernels.iter().flatten().map(|limit| limit.below).min().unwrap_or(u32::MAX);
        Self { of_kernels, least }
    }

    /// Checks every bound word of the plan that is an index or a truth value.
    ///
    /// # Errors
    /// The first word that is not below its limit.
    pub fn check(&self, plan: &Plan, words: &[u32]) -> Result<(), BindError> {
        let limits = |step: usize| &self.of_kernels[plan.steps[step].kernel.index()][..];
        WordOrigins::default().check(plan, words, self.least, limits)
    }
}

/// Returns whether any word is at least `least`. Four streams hide the latency of memory.
pub(super) fn any_reaches(words: &[u32], least: u32) -> bool {
    let (half, other) = words.split_at(words.len() / 2);
    let (a, b) = half.split_at(half.len() / 2);
    let (c, d) = other.split_at(half.len() / 2);
    let streams = a.iter().zip(b).zip(c).zip(d);
    let reaches = streams.fold(false, |any, (((&a, &b), &c), &d)| {
        any | (a >= least) | (b >= least) | (c >= least) | (d >= least)
    });
    // The rest of the longer streams: at most three words.
    let rest = b[a.len()..].iter().chain(&d[a.len()..]);
    rest.fold(reaches, |any, &word| any | (word >= least))
}

/// The largest of the bound words that a step reads under a limit, if each lane reads one of a contiguous range or a table.
fn largest(plan: &Plan, step: &Step, limit: &WordLimit, words: &[u32]) -> Option<u32> {
    let rows = step.rows as usize;
    if plan.kernel(step).whole(limit.view.reg).width != 1 {
        return None;
    }
    let StepOperand { origin: Origin::Words, address } = plan.operands(step)[limit.view.reg.index()] else {
        return None;
    };
    match (address.steps(), address.table()) {
        (Some((start, 1)), _) => words[start as usize..][..rows].iter().copied().max(),
        (_, Some(at)) => plan.tables[at as usize..][..rows].iter().map(|&word| words[word as usize]).max(),
        _ => None,
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

    /// The first bound word that a lane reads, directly or from a row; `None` for other operands.
    fn bound_word(&self, plan: &Plan, operand: StepOperand, lane: u32) -> Option<u32> {
        plan.bound_word(operand, lane).or_else(|| {
            let (field, row) = plan.operand_row(operand, lane)?;
            let origin = *self.fields.get(field.index())?.get(row as usize)?;
            (origin != Self::COMPUTED).then_some(origin)
        })
    }

    /// Checks every bound word that is an index or a truth value. `limits` are those of a step's kernel, and `least` is the
    /// least of all.
    ///
    /// # Errors
    /// The first word that is not below its limit.
    pub fn check<'l>(
        &mut self,
        plan: &Plan,
        words: &[u32],
        least: u32,
        limits: impl Fn(usize) -> &'l [WordLimit],
    ) -> Result<(), BindError> {
        if !any_reaches(words, least) {
            return Ok(());
        }
        let max = words.iter().copied().max();
        let is_index = |place: &Place| plan.field(place.field()).ty.dtype == DType::U32;
        let copies_indices =
            plan.steps.iter().any(|step| plan.kernel(step).source && plan.places(step).iter().any(is_index));
        self.fields.iter_mut().for_each(Vec::clear);
        for (number, step) in plan.steps.iter().enumerate() {
            for limit in limits(number) {
                let below = |word: Option<u32>| word.is_some_and(|word| word < limit.below);
                if !below(max) && !below(largest(plan, step, limit, words)) {
                    self.check_lanes(plan, number, limit, words)?;
                }
            }
            if copies_indices {
                self.record(plan, step);
            }
        }
        Ok(())
    }

    /// Checks the bound words that the lanes of a step read, directly or from rows.
    fn check_lanes(
        &self,
        plan: &Plan,
        number: usize,
        limit: &WordLimit,
        words: &[u32],
    ) -> Result<(), BindError> {
        let (step, view) = (&plan.steps[number], limit.view);
        let operands = plan.operands(step);
        for lane in 0..step.rows {
            let Some(first) = self.bound_word(plan, operands[view.reg.index()], lane) else { continue };
            let first = (first + view.start) as usize;
            let found = &words[first..first + view.width as usize];
            let below = limit.of_lane(&plan.tables, &plan.groups, operands, lane);
            if let Some(at) = found.iter().position(|&word| word >= below) {
                return Err(limit.misfit(first + at, number, plan.kernel(step), [found[at], below]));
            }
        }
        Ok(())
    }

    /// Records the origins of the rows that a step writes.
    fn record(&mut self, plan: &Plan, step: &Step) {
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
