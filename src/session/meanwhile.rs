//! What is executed next, emitted and planned on another thread while something is executed.
//!
//! Nobody sees that it was early: an error or a panic of what follows is kept until that is due.

use super::{Planning, Session, bound};
use crate::emit::{Emitter, WORTH_A_THREAD};
use crate::error::Result;
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Plan, Verified};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::task::Poll;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// What can be executed: an emitter holds its graph, and its plan is made.
#[derive(Debug)]
pub(crate) struct Prepared<T> {
    pub(crate) plan: Arc<Verified<Plan>>,
    pub(crate) emit: Duration,
    pub(crate) planning: Duration,
    /// What its results mean.
    pub(crate) of: T,
}

impl<T> Prepared<T> {
    /// Counts of emitting and planning what was waited for alone.
    fn waited_for(&mut self, waited: Duration) {
        let took = (self.emit + self.planning).as_secs_f64().max(1e-9);
        let share = (waited.as_secs_f64() / took).min(1.0);
        (self.emit, self.planning) = (self.emit.mul_f64(share), self.planning.mul_f64(share));
    }
}

/// What is executed next.
#[derive(Debug)]
pub(crate) struct Meanwhile<T> {
    /// Emits what follows, while another one holds what is executed.
    emitter: Emitter,
    /// What follows, why it cannot be executed, or the panic of whoever emitted it.
    made: Option<thread::Result<Result<Prepared<T>>>>,
    /// How long preparing took last.
    pace: Duration,
}

impl<T: Send> Meanwhile<T> {
    pub(crate) fn new(emitter: Emitter) -> Self {
        Self { emitter, made: None, pace: Duration::ZERO }
    }

    /// Whether a thread is at hand, and has something to do, while something is executed.
    pub(crate) fn pays(&self, session: &Session) -> bool {
        self.pace >= WORTH_A_THREAD && (session.threads > 1 || session.executor.is_elsewhere())
    }

    /// Prepares here and now what is due, unless it was prepared already; the emitter holds its graph.
    pub(crate) fn due(
        &mut self,
        emitter: &mut Emitter,
        prepare: impl FnOnce(&mut Emitter) -> Option<Result<Prepared<T>>>,
    ) -> Option<Result<Prepared<T>>> {
        if let Some(made) = self.made.take() {
            std::mem::swap(emitter, &mut self.emitter);
            return Some(made.unwrap_or_else(|panic| resume_unwind(panic)));
        }
        let start = Instant::now();
        let made = prepare(emitter);
        self.pace = start.elapsed();
        made
    }

    /// Executes, and prepares meanwhile what follows. If that is done in time, a GPU makes ready for it.
    pub(crate) fn execute(
        &mut self,
        session: &mut Session,
        plan: &Arc<Verified<Plan>>,
        (graph, noise): (&GraphData, Noise),
        prepare: impl FnOnce(&mut Planning, &mut Emitter) -> Result<Prepared<T>> + Send,
    ) -> Result<Duration> {
        let start = Instant::now();
        let Session { planning, executor, mirror, .. } = session;
        let emitter = &mut self.emitter;
        let (executed, executing, mut made) = thread::scope(|scope| {
            let (mut other, mut made) = (Some(scope.spawn(|| prepare(planning, emitter))), None);
            let weights = &mirror.here().weights;
            let executed = executor.execute_and_prepare(plan, weights, bound(graph, noise), || {
                match other.take_if(|other| other.is_finished()) {
                    Some(done) => made = Some(done.join()),
                    None => return Poll::Pending,
                }
                Poll::Ready(match &made {
                    Some(Ok(Ok(made))) => Some(Arc::clone(&made.plan)),
                    _ => None,
                })
            });
            let executing = start.elapsed();
            (executed, executing, other.map(ScopedJoinHandle::join).or(made))
        });
        if let Some(Ok(Ok(made))) = &mut made {
            self.pace = made.emit + made.planning;
            let waited = if executed.is_ok() { start.elapsed() - executing } else { start.elapsed() };
            made.waited_for(waited);
        }
        self.made = made;
        session.noticed(executed)?;
        session.last = Some(Arc::clone(plan));
        Ok(executing)
    }
}
