//! [`Run`]: the values that a session computed.

use crate::error::{Error, Result};
use crate::executor::AnyExecutor;
use crate::row::Row;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::{OutputKey, Plan, Verified};
use autobatch_ir::{Graph, Value, ValueKey};
use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::ops::Index;
use std::sync::Arc;

/// The values of a run, in the session's memory.
pub struct Run<'s> {
    executor: &'s AnyExecutor,
    plan: Arc<Verified<Plan>>,
    graph: u32,
    rows: HashMap<ValueId, usize>,
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("values", &self.rows.len()).finish_non_exhaustive()
    }
}

impl<'s> Run<'s> {
    /// Pairs the plan's outputs with the values that the caller asked for, in order.
    pub(super) fn new(
        executor: &'s AnyExecutor,
        plan: Arc<Verified<Plan>>,
        graph: &Graph,
        wanted: &[ValueId],
    ) -> Self {
        let first = plan.outputs.len() - wanted.len();
        let rows = wanted.iter().enumerate().map(|(number, &value)| (value, first + number)).collect();
        Run { executor, plan, graph: graph.number(), rows }
    }

    /// Returns the elements of a value, or `None` if the run was not asked for it.
    #[track_caller]
    #[must_use]
    pub fn get(&self, value: Value<'_>) -> Option<&Row> {
        value.key().and_then(|key| self.by_key(key))
    }

    /// Returns the elements of the value with this key.
    #[must_use]
    pub fn by_key(&self, key: ValueKey) -> Option<&Row> {
        let output = *self.rows.get(&key.id()).filter(|_| key.graph() == self.graph)?;
        Some(Row::new(self.executor.output(&self.plan, output)))
    }

    /// Returns the elements of a named output, or `None` if the graph has no output of this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Row> {
        let output = self.plan.output(&OutputKey::named(name))?;
        Some(Row::new(self.executor.output(&self.plan, output)))
    }

    /// Returns values of one shape as the rows of a matrix, with the matrix's size.
    ///
    /// # Errors
    /// The shapes differ.
    ///
    /// # Panics
    /// The run was not asked for one of the values.
    #[track_caller]
    pub fn stack<'g>(
        &self,
        values: impl IntoIterator<Item = impl Borrow<Value<'g>>>,
    ) -> Result<(Vec<f32>, [usize; 2])> {
        let (mut matrix, mut rows, mut shape) = (Vec::new(), 0, None);
        for value in values {
            let value = *value.borrow();
            let expected = *shape.get_or_insert(value.shape());
            if value.shape() != expected {
                return Err(Error::Unequal { expected, found: value.shape() });
            }
            matrix.extend_from_slice(&self[value]);
            rows += 1;
        }
        let width = matrix.len().checked_div(rows).unwrap_or(0);
        Ok((matrix, [rows, width]))
    }

    /// Returns the plan of the run.
    #[must_use]
    pub fn plan(&self) -> &Verified<Plan> {
        &self.plan
    }
}

impl Index<Value<'_>> for Run<'_> {
    type Output = Row;

    /// # Panics
    /// The run was not asked for the value.
    #[track_caller]
    fn index(&self, value: Value<'_>) -> &Row {
        let graph = value.graph().number();
        match self.get(value) {
            Some(row) => row,
            None if graph != self.graph => {
                panic!("{value:?} belongs to graph {graph}, and this run executed graph {}", self.graph)
            }
            None => panic!("{value:?} is not among the values of this run; ask for it too"),
        }
    }
}
