//! Plans that pause: the forward waves, the caller's turn, the waves of the reverse.

use super::memory::Memory;
use super::{Executor, RunError};
use autobatch_ir::plan::{Inputs, Plan, Stores, Verified};
use std::fmt;

/// The rows of a plan at its pause.
///
/// It owns the slab memory, so the executor can execute other plans during the pause. Dropping it frees the memory.
/// [`Executor::proceed`] takes it, and the executor then reuses the memory.
pub struct Paused {
    memory: Memory,
    /// The identity of the plan.
    plan: u64,
}

impl fmt::Debug for Paused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Paused").field("bytes", &self.memory.bytes()).finish_non_exhaustive()
    }
}

impl Paused {
    /// The elements of an output of the plan, as words (floats by their bits). Gradients are not computed yet.
    #[must_use]
    pub fn output(&self, plan: &Plan, number: usize) -> &[f32] {
        let output = &plan.outputs[number];
        let width = plan.field(output.field).width() as usize;
        self.memory.row(output.field.index(), output.row as usize, width)
    }

    /// Bytes of its slab memory.
    #[must_use]
    pub fn slab_bytes(&self) -> usize {
        self.memory.bytes()
    }
}

impl Executor {
    /// Executes the waves of a plan before its pause. The floats are those of the graph. Each pause has slab memory of its
    /// own, and limits apply to each plan alone.
    ///
    /// # Errors
    /// As [`execute`](Self::execute), and if the plan does not pause.
    pub fn start(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        inputs: Inputs<'_>,
    ) -> Result<Paused, RunError> {
        let Some(pause) = &plan.pause else { return Err(RunError::NoPause) };
        inputs.check_before_pause(plan, stores)?;
        self.check_limits(plan, true)?;
        self.execute_waves(plan, stores, inputs, 0..pause.waves as usize)?;
        Ok(Paused { memory: std::mem::take(&mut self.memory), plan: plan.identity() })
    }

    /// Executes the waves of a plan behind its pause, then the reductions. The floats are those of the graph, then the
    /// gradients that arrive, in the order of the pause. Words, noise and stores must be those of [`start`](Self::start).
    /// Afterwards [`output`](Self::output) reads all results.
    ///
    /// # Errors
    /// As [`execute`](Self::execute), and if another plan paused. Then the memory of the pause is lost.
    pub fn proceed(
        &mut self,
        plan: &Verified<Plan>,
        paused: Paused,
        stores: &dyn Stores,
        inputs: Inputs<'_>,
    ) -> Result<(), RunError> {
        let first = plan.pause.as_ref().map(|pause| pause.waves as usize);
        let first = first.filter(|_| paused.plan == plan.identity()).ok_or(RunError::NoPause)?;
        inputs.check(plan, stores)?;
        self.memory = paused.memory;
        self.executed = None;
        self.execute_waves(plan, stores, inputs, first..plan.waves.len())?;
        self.reduce(plan, stores, inputs.words)
    }
}
