//! [`Prefetch`]: emits and plans the next graph on another thread while the current one executes. On the CPU that is one of the
//! executor's threads, which executes as soon as the next graph is planned.
//!
//! The caller cannot tell that the work was early: an error or a panic waits until its turn comes.

use super::{Planning, Session, inputs_of};
use crate::emit::{Emitter, WORTH_A_THREAD};
use crate::error::Result;
use autobatch_ir::ValueId;
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Plan, Verified};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::task::Poll;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// A graph with its plan, ready to execute.
#[derive(Debug)]
pub(crate) struct Prepared<T> {
    pub(crate) plan: Arc<Verified<Plan>>,
    pub(crate) emit: Duration,
    pub(crate) planning: Duration,
    /// The values that the plan computes for the caller.
    pub(crate) wanted: Vec<ValueId>,
    /// The meaning of the results, for the caller.
    pub(crate) of: T,
}

impl<T> Prepared<T> {
    /// Reports as emitting and planning time only the time that the caller waited.
    fn waited_for(&mut self, waited: Duration) {
        let took = (self.emit + self.planning).as_secs_f64().max(1e-9);
        let share = (waited.as_secs_f64() / took).min(1.0);
        (self.emit, self.planning) = (self.emit.mul_f64(share), self.planning.mul_f64(share));
    }
}

/// The next graph to execute, and the emitter that prepares it.
#[derive(Debug)]
pub(crate) struct Prefetch<T> {
    /// Emits the next graph while another emitter holds the current one.
    emitter: Emitter,
    /// The prepared graph, the error that prevented it, or the panic of the emitting thread.
    made: Option<thread::Result<Result<Prepared<T>>>>,
    /// The duration of the last preparation.
    pace: Duration,
}

impl<T: Send> Prefetch<T> {
    pub(crate) fn new(emitter: Emitter) -> Self {
        Self { emitter, made: None, pace: Duration::ZERO }
    }

    /// Returns whether a second thread is available and preparing takes long enough to use it.
    pub(crate) fn is_worthwhile(&self, session: &Session) -> bool {
        self.pace >= WORTH_A_THREAD && (session.threads > 1 || session.executor.is_elsewhere())
    }

    /// Returns whether a graph, or the error that prevented it, is ready.
    pub(crate) fn is_ready(&self) -> bool {
        self.made.is_some()
    }

    /// Returns the prepared graph, or prepares it now. The emitter then holds the graph.
    pub(crate) fn take_or_prepare(
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

    /// Executes the current graph and prepares the next one. If the preparation ends in time, a GPU also
    /// receives the next plan's tables and commands.
    pub(crate) fn execute(
        &mut self,
        session: &mut Session,
        plan: &Arc<Verified<Plan>>,
        graph: &GraphData,
        noise: Noise,
        prepare: impl FnOnce(&mut Planning, &mut Emitter) -> Result<Prepared<T>> + Send,
    ) -> Result<Duration> {
        let start = Instant::now();
        session.executions += 1;
        let Session { planning, executor, mirror, .. } = session;
        let emitter = &mut self.emitter;
        let (weights, inputs) = (&mirror.host_copy().weights, inputs_of(graph, noise));
        let prepare = || prepare(planning, emitter);
        let (executed, executing, mut made) = match executor.is_elsewhere() {
            false => {
                let (executed, made) = executor.execute_beside(plan, weights, inputs, prepare);
                (executed.0, executed.1, Some(made))
            }
            true => thread::scope(|scope| {
                let (mut other, mut made) = (Some(scope.spawn(prepare)), None);
                let executed = executor.execute_and_prepare(plan, weights, inputs, || {
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
            }),
        };
        if let Some(Ok(Ok(made))) = &mut made {
            self.pace = made.emit + made.planning;
            let waited = if executed.is_ok() { start.elapsed() - executing } else { start.elapsed() };
            made.waited_for(waited);
        }
        self.made = made;
        session.handle_device_loss(executed)?;
        session.last = Some(Arc::clone(plan));
        Ok(executing)
    }
}
