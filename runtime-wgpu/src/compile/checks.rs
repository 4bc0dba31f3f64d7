//! Computed indices, which the host reads back and checks.
//!
//! Shaders clamp an index to the last row, to stay within memory. The dispatches also copy every computed index to words
//! of the arena of its own, so the host sees the indices that were clamped, and no shader needs atomics. Bound indices are
//! checked before the run and not copied.

use super::step::{Lanes, Move};
use crate::error::GpuError;
use autobatch_ir::plan::{ComputedIndex, Kernel, Origin, Plan, Stage, Step, StepOperand, WordLimit};
use std::ops::Range;
use std::sync::Arc;

/// The computed indices that a stage reads on some lanes of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexCheck {
    /// The step.
    pub step: u32,
    /// The lanes.
    pub lanes: Range<u32>,
    /// The words of a lane.
    pub width: u32,
    /// The limit of every index.
    pub limit: WordLimit,
    /// The first word, among the checked words of the plan.
    pub at: u64,
}

impl IndexCheck {
    /// The first index that is out of range. `words` are the checked words of the plan.
    pub(crate) fn find(&self, plan: &Plan, words: &[u32]) -> Option<ComputedIndex> {
        let count = self.lanes.len() * self.width as usize;
        let words = words.get(self.at as usize..)?.get(..count)?;
        let operands = plan.operands(&plan.steps[self.step as usize]);
        let mut of_lanes = self.lanes.clone().zip(words.chunks_exact(self.width as usize));
        of_lanes.find_map(|(lane, words)| {
            let below = self.limit.of_lane(&plan.tables, &plan.groups, operands, lane);
            let &found = words.iter().find(|&&word| word >= below)?;
            Some(ComputedIndex::new(plan, self.step as usize, lane as usize, found, below))
        })
    }
}

/// Tells computed indices from bound ones.
#[derive(Clone, Debug, Default)]
pub(super) struct ComputedIndices {
    /// By the number of the field: whether some step other than a source of bound words writes it.
    computed: Vec<bool>,
}

impl ComputedIndices {
    pub(super) fn of(plan: &Plan) -> Self {
        let mut computed = vec![false; plan.fields.len()];
        for step in &plan.steps {
            let is_bound = plan.kernel(step).source && plan.operands(step).iter().all(is_word);
            for place in plan.places(step) {
                computed[place.field().index()] |= !is_bound;
            }
        }
        Self { computed }
    }

    /// The limit of the indices that a stage of a step computes; `None` if it reads none or bound ones.
    fn limit(&self, plan: &Plan, step: &Step, stage: &Stage) -> Option<WordLimit> {
        let kernel = plan.kernel(step);
        let limit = kernel.index_limit(stage)?;
        let port = limit.view.reg.index();
        let is_bound = port < kernel.ports as usize
            && match plan.operands(step)[port].origin {
                Origin::Field(field) => !self.computed[field.index()],
                Origin::Words => true,
                Origin::Floats => false,
            };
        (!is_bound).then_some(limit)
    }

    /// The number of computed indices in a plan.
    pub(super) fn words(&self, plan: &Plan) -> u64 {
        let reads_index =
            |kernel: &Arc<Kernel>| kernel.stages.iter().any(|stage| kernel.index_limit(stage).is_some());
        let of_kernels: Vec<bool> = plan.kernels.iter().map(reads_index).collect();
        let of_step = |step: &Step| -> u64 {
            let limits = plan.kernel(step).stages.iter().filter_map(|stage| self.limit(plan, step, stage));
            limits.map(|limit| u64::from(limit.view.width) * u64::from(step.rows)).sum()
        };
        plan.steps.iter().filter(|step| of_kernels[step.kernel.index()]).map(of_step).sum()
    }
}

/// Whether an operand is a bound word.
fn is_word(operand: &StepOperand) -> bool {
    operand.origin == Origin::Words
}

impl Lanes<'_, '_> {
    /// Copies the indices that a stage computes to the checked words.
    pub(super) fn check_indices(&mut self, stage: &Stage) -> Result<(), GpuError> {
        let Some(limit) = self.build.computed.limit(self.build.plan, self.step, stage) else { return Ok(()) };
        let (width, lanes) = (limit.view.width, self.first..self.first + self.count);
        let from = self.address(limit.view);
        let build = &mut *self.build;
        let at = build.checked;
        build.checked += u64::from(width) * u64::from(self.count);
        let step = build.step.unwrap_or_default();
        build.checks.push(IndexCheck { step, lanes, width, limit, at });
        let first = build.layout.checked() + at as u32;
        let to = [first, 0u32.wrapping_sub(self.first), 1, width];
        self.moves(&[Move::straight(width, from, to)])
    }
}
