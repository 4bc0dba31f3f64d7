//! [`Growing`]: a graph that goes on being emitted while it is executed.

use super::planning::Growth;
use super::{Run, Session, bound};
use crate::emit::check_own;
use crate::error::Result;
use crate::train::explained;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Plan, Verified};
use autobatch_ir::{Graph, Value};
use autobatch_planner::Request;
use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// A graph that grows while it is executed: of each [`run`](Self::run) only what was not computed
/// before is planned and executed, over the rows that are there.
///
/// The rows of everything that was computed stay until this is dropped. A GPU keeps them where they have room to become
/// more, and executes all of it again when the room is used up and is made twice as large; results are the same.
pub struct Growing<'s, 'g> {
    session: &'s mut Session,
    graph: &'g Graph,
    noise: Noise,
    growth: Growth,
    /// The plan whose rows the executor holds: the one that was executed last, unless that failed.
    plan: Option<Arc<Verified<Plan>>>,
    steps: usize,
}

impl fmt::Debug for Growing<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Growing")
            .field("graph", &self.graph.number())
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Executes a graph bit by bit, while it is emitted.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut session = Session::new(&ModuleBuilder::new("m").build()?, Device::Cpu)?;
    /// let g = session.graph();
    /// let mut growing = session.growing(&g);
    /// let mut x = g.input(&[1000.0]);
    /// let mut halvings = 0;
    /// while growing.value(x)?[0] >= 1.0 {         // executes one multiplication a round
    ///     x = x * 0.5;
    ///     halvings += 1;
    /// }
    /// assert_eq!(halvings, 10);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn growing<'s, 'g>(&'s mut self, graph: &'g Graph) -> Growing<'s, 'g> {
        self.growing_with(graph, Noise::Off)
    }

    /// [`growing`](Self::growing), with noise in training.
    pub(crate) fn growing_with<'s, 'g>(&'s mut self, graph: &'g Graph, noise: Noise) -> Growing<'s, 'g> {
        Growing { session: self, graph, noise, growth: Growth::default(), plan: None, steps: 0 }
    }
}

impl<'g> Growing<'_, 'g> {
    /// Plans and executes what the values need and is not there yet. The result borrows the rows: nothing
    /// is copied, and the next run must wait until it is gone.
    ///
    /// # Errors
    /// As [`Session::run`]. The next run begins anew with the values that it is asked for: what could not
    /// be executed stands in nobody's way, and what was computed before and is needed is computed again.
    #[track_caller]
    pub fn run(&mut self, values: impl IntoIterator<Item = impl Borrow<Value<'g>>>) -> Result<Run<'_>> {
        self.graph.check()?;
        let wanted = wanted(self.graph, values)?;
        let plan = self.execute(&wanted).map_err(|error| explained(&self.graph.data(), error))?;
        Ok(Run::new(&self.session.executor, plan, self.graph, &wanted))
    }

    /// The elements of one value.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    #[track_caller]
    pub fn value(&mut self, value: Value<'g>) -> Result<Vec<f32>> {
        Ok(self.run([value])?[value].to_vec())
    }

    /// How many steps were executed so far; each once, if nothing failed.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// The graph that grows.
    #[must_use]
    pub fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// Whether it is executed for a step of training.
    fn is_training(&self) -> bool {
        matches!(self.noise, Noise::On { .. })
    }

    fn execute(&mut self, wanted: &[ValueId]) -> Result<Arc<Verified<Plan>>> {
        let data = self.graph.data();
        let training = self.is_training();
        let session = &mut *self.session;
        session.check_module(&data)?;
        let request = Request { wanted, training, rows: session.planning.rows(), ..Request::default() };
        // Where nobody else holds the plan it is made longer in place.
        session.last = None;
        let executed = self.plan.take();
        let resumed = executed.is_some();
        let plan = Arc::new(session.planning.grow(&data, &request, &mut self.growth, executed)?);
        let bound = bound(&data, self.noise);
        let weights = &session.mirror.here().weights;
        let executed = if resumed {
            session.executor.resume(&plan, weights, bound)
        } else {
            session.executor.execute(&plan, weights, bound)
        };
        session.noticed(executed)?;
        (self.plan, self.steps) = (Some(Arc::clone(&plan)), plan.steps.len());
        session.last = Some(Arc::clone(&plan));
        Ok(plan)
    }
}

/// The numbers of values of a graph.
pub(super) fn wanted<'g>(
    graph: &'g Graph,
    values: impl IntoIterator<Item = impl Borrow<Value<'g>>>,
) -> Result<Vec<ValueId>> {
    let mut wanted = Vec::new();
    for value in values {
        let value = value.borrow();
        check_own(graph, *value)?;
        wanted.extend(value.id());
    }
    Ok(wanted)
}
