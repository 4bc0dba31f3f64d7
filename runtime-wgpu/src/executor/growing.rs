//! Growing plans: rows stay in place, and a run compiles, uploads and executes only the steps that the plan gained.
//!
//! The layout reserves up to twice the rows and inputs ([`Capacity::Growable`]). While the reservation suffices,
//! addresses and earlier results stay. When it is used up, or the memory was replaced, one run executes everything with
//! a doubled reservation. So all runs together cost a small multiple of one run of the final plan. A device without
//! memory for the reservation executes the whole plan each time.

use super::plans::{Extension, Loaded};
use super::run::{Finished, Request};
use super::{DeviceState, Executor, Resident};
use crate::compile::{BufferLayout, Capacity, Target, compile_from};
use crate::counters::Counters;
use crate::error::GpuError;
use autobatch_ir::plan::{Plan, Verified};
use std::task::Poll;
use std::time::Instant;

/// A plan that was executed and may grow.
pub(super) struct Growing {
    loaded: Loaded,
    waves: usize,
    /// The generation of the memory that holds the rows.
    generation: u64,
}

impl Growing {
    /// Returns whether a plan with this layout starts with the executed steps, and their rows are still valid.
    fn is_prefix_of(
        &self,
        plan: &Verified<Plan>,
        target: Target,
        layout: &BufferLayout,
        generation: u64,
    ) -> bool {
        plan.grew_from(self.loaded.identity())
            && self.generation == generation
            && self.loaded.is_for(target)
            && layout.extends(&self.loaded.compiled.layout)
    }
}

impl Executor {
    /// Executes the new steps of a growing plan, or all of it without a reservation if memory does not suffice.
    pub(super) fn run_growing(&mut self, request: &Request<'_>) -> Result<Finished, GpuError> {
        match self.run_growable(request) {
            // A second attempt cannot accumulate: the gradients of the last run are no longer where it looks.
            Err(GpuError::TooLarge { .. } | GpuError::Memory { .. }) if !request.accumulate => {
                self.run_exact(request, &mut || Poll::Ready(None))
            }
            finished => finished,
        }
    }

    fn run_growable(&mut self, request: &Request<'_>) -> Result<Finished, GpuError> {
        let plan = request.plan;
        let target = self.target()?;
        let (mut counters, started) = (Counters::default(), Instant::now());
        let Resident { device, plans, growing } = self.open()?;
        let DeviceState { gpu, memory, pipelines, training, .. } = &mut *device;
        let generation = memory.generation();
        let layout = || BufferLayout::new(plan, target.packing, Capacity::Growable);
        let own = layout()?;
        let mut before =
            growing.take().filter(|growing| growing.is_prefix_of(plan, target, &own, generation));
        let waves = before.as_ref().map_or(0, |before| before.waves);
        let mut compiled = compile_from(plan, target, own, waves, &mut plans.lowering)?;
        training.before(gpu, memory, plan, request.accumulate, pipelines.cache())?;
        if !memory.has_room(gpu, target, &compiled) {
            plans.release_memory();
            before.iter_mut().for_each(|before| before.loaded.release_memory());
        }
        memory.fit(gpu, target, &compiled)?;
        if before.is_some() && memory.generation() != generation {
            before = None;
            compiled = compile_from(plan, target, layout()?, 0, &mut plans.lowering)?;
            memory.fit(gpu, target, &compiled)?;
        }

        let before = before.map(|before| before.loaded);
        let uploaded = before.as_ref().map_or([0; 2], |before| before.compiled.layout.bound());
        let extension = Extension { plan, target, compiled, before };
        let mut loaded = plans.extend(gpu, extension, &mut counters)?;
        loaded.word_limits.check(plan, request.inputs.words)?;
        let request = Request { uploaded, ..*request };
        let run = device.start(&request, &mut loaded, counters, started)?;
        let finished = device.finish(&request, run)?;
        let (waves, generation) = (plan.waves.len(), device.memory.generation());
        *growing = Some(Growing { loaded, waves, generation });
        Ok(finished)
    }
}
