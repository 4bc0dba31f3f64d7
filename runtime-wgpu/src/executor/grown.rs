//! Plans that grow: their rows stay where they are, and of a longer one only what it has gained is compiled, brought
//! up and executed.
//!
//! Rows and bound numbers of such a plan have room to become more ([`Space::Roomy`]). While it suffices they lie where
//! they lay, so what was executed is there still; when it is used up, or the memory became another one, all is executed
//! once more with twice the room. So the executes of a plan that grows step by step cost a few times what one run of all
//! of it does. A device without that much room executes the plan like any other, all of it each time.

use super::fetch::submitted;
use super::plans::Loaded;
use super::{Bound, Executor, Resident, Stores, Times, write};
use crate::border::{Origins, limited};
use crate::compile::{Compiled, Layout, Space, Target, compile_from};
use crate::counters::Counters;
use crate::error::GpuError;
use autobatch_ir::plan::{Plan, Verified};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// A plan that was executed and may have grown when it comes again.
pub(super) struct Grown {
    loaded: Loaded,
    steps: usize,
    waves: usize,
    /// What of the memory its rows are in.
    generation: u64,
    origins: Origins,
}

impl Grown {
    /// Whether a plan for this layout begins with what was executed, and that is there.
    fn is_beginning_of(
        &self,
        plan: &Verified<Plan>,
        (target, layout, generation): (Target, &Layout, u64),
    ) -> bool {
        plan.grew_from(self.loaded.identity())
            && self.generation == generation
            && self.loaded.is_for(target)
            && layout.goes_on_from(&self.loaded.compiled.layout)
    }
}

/// Whether a failure may be one of the room that a plan has beside what it takes.
const fn is_of_room(error: &GpuError) -> bool {
    matches!(error, GpuError::TooLarge { .. } | GpuError::Memory { .. })
}

impl Executor {
    /// Executes a plan that grows from where its rows end.
    pub(super) fn on_from_rows(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        bound: Bound<'_>,
    ) -> Result<Arc<Compiled>, GpuError> {
        match self.on_with_room(plan, stores, bound) {
            // Gradients that were kept are no longer where a second try would look for them.
            Err(error) if is_of_room(&error) && !self.keep => {
                self.on_device(plan, stores, bound, &mut || Poll::Ready(None))
            }
            executed => executed,
        }
    }

    fn on_with_room(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        bound: Bound<'_>,
    ) -> Result<Arc<Compiled>, GpuError> {
        let patience = Duration::from_secs(self.options.patience.max(1));
        let (target, keep) = (self.target()?, self.keep);
        let mut counters = Counters::default();
        let started = Instant::now();
        let Resident { gpu, memory, pipelines, training, plans, grown } = self.open()?;
        plans.forget_commands();
        let generation = memory.generation();
        let layout = || Layout::new(plan, target.packing, Space::Roomy);
        let own = layout()?;
        let mut before = grown.take().filter(|grown| grown.is_beginning_of(plan, (target, &own, generation)));
        let waves = before.as_ref().map_or(0, |before| before.waves);
        let mut compiled = compile_from(plan, target, own, waves, &mut plans.known)?;
        training.before(gpu, memory, plan, keep)?;
        memory.fit(gpu, target, &compiled)?;
        if before.is_some() && memory.generation() != generation {
            before = None;
            compiled = compile_from(plan, target, layout()?, 0, &mut plans.known)?;
            memory.fit(gpu, target, &compiled)?;
        }

        let (steps, mut origins, before) = match before {
            Some(Grown { loaded, steps, origins, .. }) => (steps, origins, Some(loaded)),
            None => (0, Origins::default(), None),
        };
        let limited = limited(plan, steps, &mut origins);
        limited.check(plan, bound.words)?;
        let known = before.as_ref().map_or([0; 2], |before| before.compiled.layout.bound());
        let mut loaded = plans.lengthen(gpu, (plan, target), before, (compiled, limited), &mut counters)?;
        let compiled = Arc::clone(&loaded.compiled);
        let made = pipelines.made();
        loaded.prepare(gpu, memory, pipelines)?;
        counters.pipelines = pipelines.made() - made;
        let prepared = Instant::now();

        counters.parameters = memory.bring_parameters(gpu, &plan.stores[..plan.given_stores()], stores)?;
        let again = memory.stands(&compiled);
        counters.uploaded += memory.bring_numbers(gpu, &compiled, bound, known);
        let uploaded = Instant::now();

        let first = if again { compiled.prologue as usize } else { 0 };
        counters.of_steps.clone_from(&compiled.of_steps);
        counters.dispatches = (compiled.dispatches.len() - first) as u32;
        let commands = write(gpu, memory, &loaded, (first, keep.then_some(&*training)), &mut counters)?;
        let submitted = submitted(gpu, commands)?;
        memory.settle(&compiled);
        let encoded = Instant::now();
        let back = compiled.words_back();
        let staging = memory.staging().clone();
        let outputs = memory.wait(gpu, &staging, submitted, back, patience)?;
        training.after(plan, &compiled.layout, loaded.tables(), keep);
        counters.submissions += 1;
        counters.read = back * 4;
        let (steps, waves, generation) = (plan.steps.len(), plan.waves.len(), memory.generation());
        *grown = Some(Grown { loaded, steps, waves, generation, origins });
        self.outputs = outputs;
        self.counters = counters;
        self.times = Times {
            prepare: prepared - started,
            upload: uploaded - prepared,
            encode: encoded - uploaded,
            ahead: Duration::ZERO,
            wait: encoded.elapsed(),
        };
        Ok(compiled)
    }
}
