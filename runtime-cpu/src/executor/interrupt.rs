//! Stops a run between two steps, at the caller's request.

use super::{Executor, RunError};
use std::fmt;
use std::sync::Arc;

/// Floating-point operations between two questions: a few milliseconds of one core.
const ASKING_WORK: usize = 200_000_000;

/// A question that a run asks every few milliseconds: shall it stop?
#[derive(Clone)]
pub struct Interrupt(Arc<dyn Fn() -> bool + Send + Sync>);

impl Interrupt {
    /// The run stops with [`RunError::Stopped`] when `stops` returns true. The thread that started the run asks.
    pub fn new(stops: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(stops))
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupt")
    }
}

impl Executor {
    /// Sets what stops a run early, with [`RunError::Stopped`]. Updates do not ask, and gradients that are added to existing ones
    /// are summed to the end.
    pub fn set_interrupt(&mut self, interrupt: Option<Interrupt>) {
        self.interrupt = interrupt;
    }
}

/// The interrupt of a run, and the work since its last question.
#[derive(Clone, Copy)]
pub(super) struct Interruptible<'a> {
    interrupt: Option<&'a Interrupt>,
    work: usize,
}

impl<'a> Interruptible<'a> {
    pub(super) fn new(interrupt: Option<&'a Interrupt>) -> Self {
        Self { interrupt, work: 0 }
    }

    /// Asks.
    pub(super) fn ask(&self) -> Result<(), RunError> {
        match self.interrupt {
            Some(interrupt) if (interrupt.0)() => Err(RunError::Stopped),
            _ => Ok(()),
        }
    }

    /// Asks if enough was executed since the last question. Steps of this work follow.
    pub(super) fn ask_before(&mut self, work: impl FnOnce() -> usize) -> Result<(), RunError> {
        if self.interrupt.is_none() {
            return Ok(());
        }
        if self.work >= ASKING_WORK {
            self.work = 0;
            self.ask()?;
        }
        self.work = self.work.saturating_add(work());
        Ok(())
    }

    /// The number of steps, given the work of each, until it asks again: all without an interrupt.
    pub(super) fn steps_until_question(&self, work: &[usize]) -> usize {
        if self.interrupt.is_none() {
            return work.len();
        }
        let sums = work.iter().scan(0_usize, |sum, work| {
            *sum = sum.saturating_add(*work);
            Some(*sum)
        });
        sums.take_while(|&sum| sum < ASKING_WORK).count().saturating_add(1).min(work.len())
    }
}
