//! [`Growing`]: a graph that the model extends while the session executes it.

use super::planning::Growth;
use super::{Run, Session, inputs_of};
use crate::emit::check_own;
use crate::error::Result;
use crate::executor::AnyExecutor;
use crate::row::Row;
use crate::train::explained;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Plan, Verified};
use autobatch_ir::{Graph, Value};
use autobatch_oracle::reference::{Datum, Given, OnDemand};
use autobatch_planner::Request;
use std::borrow::{Borrow, Cow};
use std::fmt;
use std::sync::Arc;

/// The operations up to which values are evaluated op by op. They take the time of the smallest plan.
const SMALL_WORK: u64 = 8000;

/// A graph that grows while the session executes it. Each [`run`](Self::run) plans and executes only
/// what is new, over the rows of earlier runs.
///
/// All computed rows stay until this value is dropped. A GPU reserves up to twice the rows it needs. When
/// a graph outgrows that, the GPU doubles the reserve and executes everything once more, with equal results.
pub struct Growing<'s, 'g> {
    session: &'s mut Session,
    graph: &'g Graph,
    noise: Noise,
    growth: Growth,
    /// The plan whose rows the executor holds: the plan of the last run, or `None` if that run failed.
    plan: Option<Arc<Verified<Plan>>>,
    steps: usize,
    /// The values that were computed without a plan.
    on_demand: OnDemand,
}

/// The state of a suspended [`Growing`]. It borrows neither the session nor the graph.
#[derive(Default)]
pub struct SuspendedGrowth {
    growth: Growth,
    plan: Option<Arc<Verified<Plan>>>,
    steps: usize,
    on_demand: OnDemand,
    /// The number of the graph, and of the executions of the session.
    suspended: Option<(u32, u64)>,
}

impl fmt::Debug for SuspendedGrowth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SuspendedGrowth").field("steps", &self.steps).finish_non_exhaustive()
    }
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
    /// Executes a graph step by step while the model emits it.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut session = Session::new(&ModuleBuilder::new("m").build()?, Device::Cpu)?;
    /// let g = session.graph();
    /// let mut growing = session.growing(&g);
    /// let mut x = g.input(&[1000.0]);
    /// let mut halvings = 0;
    /// while growing.value(x)?[0] >= 1.0 {         // each round executes one multiplication
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

    /// [`growing`](Self::growing) with noise, for training.
    pub(crate) fn growing_with<'s, 'g>(&'s mut self, graph: &'g Graph, noise: Noise) -> Growing<'s, 'g> {
        self.resume_with(graph, noise, SuspendedGrowth::default())
    }

    /// Continues a suspended execution. It starts again from an empty plan if the session executed another plan since
    /// the suspension, or if the state belongs to another graph.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut session = Session::new(&ModuleBuilder::new("m").build()?, Device::Cpu)?;
    /// let g = session.graph();
    /// let x = g.input(&[3.0]);
    /// let mut growing = session.growing(&g);
    /// assert_eq!(growing.value(x)?, [3.0]);
    /// let suspended = growing.suspend();            // the session is free now
    /// let y = x * 2.0;
    /// assert_eq!(session.resume(&g, suspended).value(y)?, [6.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn resume<'s, 'g>(&'s mut self, graph: &'g Graph, suspended: SuspendedGrowth) -> Growing<'s, 'g> {
        self.resume_with(graph, Noise::Off, suspended)
    }

    /// [`resume`](Self::resume) with noise, for training.
    pub(crate) fn resume_with<'s, 'g>(
        &'s mut self,
        graph: &'g Graph,
        noise: Noise,
        suspended: SuspendedGrowth,
    ) -> Growing<'s, 'g> {
        let same = suspended.suspended == Some((graph.number(), self.executions));
        let SuspendedGrowth { growth, plan, steps, on_demand, .. } =
            if same { suspended } else { SuspendedGrowth::default() };
        Growing { session: self, graph, noise, growth, plan, steps, on_demand }
    }
}

impl<'g> Growing<'_, 'g> {
    /// Plans and executes what the values need and earlier runs did not compute. The result borrows the
    /// rows: it copies nothing, and the next run has to wait until it is dropped.
    ///
    /// # Errors
    /// As [`Session::run`]. After an error the next run starts again from an empty plan. It computes its
    /// values anew, even if earlier runs had computed them.
    #[track_caller]
    pub fn run(&mut self, values: impl IntoIterator<Item = impl Borrow<Value<'g>>>) -> Result<Run<'_>> {
        self.graph.check()?;
        let wanted = wanted(self.graph, values)?;
        self.run_ids(&wanted)
    }

    /// [`run`](Self::run), which also computes every value that no node reads. A program that reads the values of a
    /// list one after the other pays for one plan: [`computed`](Self::computed) returns the other values.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut session = Session::new(&ModuleBuilder::new("m").build()?, Device::Cpu)?;
    /// let g = session.graph();
    /// let roots = [1.0, 4.0, 9.0].map(|x| g.input(&[x]).sqrt());
    /// let mut growing = session.growing(&g);
    /// assert_eq!(growing.run_ahead([roots[0]])?[roots[0]].to_vec(), [1.0]);
    /// assert_eq!(growing.computed(roots[2]).map(|row| row.to_vec()), Some(vec![3.0]));
    /// assert!(growing.computed(roots[2] + 1.0).is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run).
    #[track_caller]
    pub fn run_ahead(&mut self, values: impl IntoIterator<Item = impl Borrow<Value<'g>>>) -> Result<Run<'_>> {
        self.graph.check()?;
        let mut wanted = wanted(self.graph, values)?;
        let others: Vec<_> = self.graph.data().unread(&wanted).collect();
        wanted.extend(others);
        self.run_ids(&wanted)
    }

    /// Returns the elements of a value that an earlier run computed, without planning. `None` if none did, and for
    /// rows in the memory of a GPU.
    #[must_use]
    #[track_caller]
    pub fn computed(&self, value: Value<'g>) -> Option<&Row> {
        check_own(self.graph, value).ok()?;
        let id = value.id()?;
        let elements = match self.on_demand.value(id) {
            Some(Datum::Floats(elements)) => elements,
            Some(Datum::Words(words)) => bytemuck::cast_slice(words),
            Some(Datum::List(_)) => return None,
            None => row(&self.growth, self.plan.as_deref()?, &self.session.executor, id)?,
        };
        Some(Row::new(elements))
    }

    /// Evaluates values op by op for [`computed`](Self::computed), without a plan, if that takes a few thousand operations at most.
    /// Returns false if it takes more, on a GPU, and where `AUTOBATCH_DUMP` asks for plans, and then computes nothing. A program that reads one small value after the other, and decides by
    /// each what it emits next, so waits for microseconds.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut session = Session::new(&ModuleBuilder::new("m").build()?, Device::Cpu)?;
    /// let g = session.graph();
    /// let mut growing = session.growing(&g);
    /// let mut x = g.input(&[0.5, 0.25]);
    /// for _ in 0..10 {
    ///     assert!(growing.evaluate_small([x])?);
    ///     let largest = growing.computed(x).map_or(0, |row| row.argmax());
    ///     x = x + g.one_hot(1 - largest as u32, 2);
    /// }
    /// assert_eq!(growing.steps(), 0, "no step of a plan");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The first fault of emitting, a value of another graph, or a graph of a module with other parameters. Values that cannot be
    /// computed, such as a row that a table does not have, are no error here: [`run`](Self::run) reports them.
    #[track_caller]
    pub fn evaluate_small(
        &mut self,
        values: impl IntoIterator<Item = impl Borrow<Value<'g>>>,
    ) -> Result<bool> {
        self.graph.check()?;
        let wanted = wanted(self.graph, values)?;
        let Self { session, growth, plan, on_demand, .. } = self;
        if session.executor.is_elsewhere() || session.planning.dumps() {
            return Ok(false);
        }
        let data = self.graph.data();
        session.check_module(&data)?;
        let known = |id| row(growth, plan.as_deref()?, &session.executor, id);
        let weights = &session.mirror.host_copy().weights;
        let given = Given { weights, noise: self.noise, known: &known };
        Ok(on_demand.evaluate(&data, &wanted, &given, SMALL_WORK).unwrap_or(false))
    }

    fn run_ids(&mut self, wanted: &[ValueId]) -> Result<Run<'_>> {
        let plan = self.execute(wanted).map_err(|error| {
            let data = self.graph.data();
            explained(&data, || Some(Cow::Borrowed(&*data)), error)
        })?;
        Ok(Run::new(&self.session.executor, plan, self.graph, wanted))
    }

    /// Returns the elements of one value.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    #[track_caller]
    pub fn value(&mut self, value: Value<'g>) -> Result<Vec<f32>> {
        if self.evaluate_small([value])?
            && let Some(row) = self.computed(value)
        {
            return Ok(row.to_vec());
        }
        Ok(self.run([value])?[value].to_vec())
    }

    /// Ends the borrow of the session and the graph. [`Session::resume`] continues.
    #[must_use]
    pub fn suspend(self) -> SuspendedGrowth {
        let Self { session, graph, growth, plan, steps, on_demand, .. } = self;
        SuspendedGrowth {
            growth,
            plan,
            steps,
            on_demand,
            suspended: Some((graph.number(), session.executions)),
        }
    }

    /// Counts the steps executed so far. Without errors each step runs once.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Returns the graph that grows.
    #[must_use]
    pub fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// Returns whether this execution belongs to a training step.
    fn is_training(&self) -> bool {
        matches!(self.noise, Noise::On { .. })
    }

    fn execute(&mut self, wanted: &[ValueId]) -> Result<Arc<Verified<Plan>>> {
        let data = self.graph.data();
        let training = self.is_training();
        let session = &mut *self.session;
        session.check_module(&data)?;
        let request = Request { wanted, training, rows: session.planning.rows(), ..Request::default() };
        // With a unique reference, the planner extends the plan in place.
        session.last = None;
        let executed = self.plan.take();
        let resumed = executed.is_some();
        let plan = Arc::new(session.planning.grow(&data, &request, &mut self.growth, executed)?);
        let inputs = inputs_of(&data, self.noise);
        session.executions += 1;
        let weights = &session.mirror.host_copy().weights;
        let executed = if resumed {
            session.executor.resume(&plan, weights, inputs)
        } else {
            session.executor.execute(&plan, weights, inputs)
        };
        session.handle_device_loss(executed)?;
        (self.plan, self.steps) = (Some(Arc::clone(&plan)), plan.steps.len());
        session.last = Some(Arc::clone(&plan));
        Ok(plan)
    }
}

/// The elements of a value that a plan computes, where the executor holds its rows; `None` for rows in the memory of a GPU.
fn row<'a>(growth: &Growth, plan: &Plan, executor: &'a AnyExecutor, value: ValueId) -> Option<&'a [f32]> {
    let (field, row) = growth.place(value)?;
    executor.row(plan, field, row)
}

/// Returns the ids of values of one graph.
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
