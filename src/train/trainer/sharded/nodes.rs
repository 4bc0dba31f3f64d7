//! [`OwnNodes`]: the gradients of this rank's shards. Those of the last graph are summed while the ranks exchange others.

use super::layout::GradientLayout;
use crate::error::{Error, Result};
use crate::session::Session;
use autobatch_distributed::{Gradient, Nodes, Rows};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ParamId;
use autobatch_ir::plan::{Plan, Verified};
use std::ops::Range;
use std::time::{Duration, Instant};

/// A plan whose steps were executed, and whose gradients are not complete.
pub(super) struct Incomplete<'a> {
    pub(super) session: &'a mut Session,
    pub(super) plan: &'a Verified<Plan>,
    pub(super) graph: &'a GraphData,
}

/// The gradients of the nodes of the tree that this rank's shards make.
pub(super) struct OwnNodes<'a> {
    layout: &'a GradientLayout,
    /// The nodes that are complete.
    complete: Vec<Gradient>,
    /// The node after them.
    last: Option<Incomplete<'a>>,
    /// The first failure.
    failure: Option<Error>,
    /// The time of completing the last node.
    time: Duration,
}

impl<'a> OwnNodes<'a> {
    pub(super) fn new(
        layout: &'a GradientLayout,
        complete: Vec<Gradient>,
        last: Option<Incomplete<'a>>,
    ) -> Self {
        Self { layout, complete, last, failure: None, time: Duration::ZERO }
    }

    /// Completes gradients of the last node; all that are left for `None`.
    fn complete(&mut self, params: Option<&[ParamId]>) {
        let Some(Incomplete { session, plan, graph }) = &mut self.last else { return };
        if self.failure.is_none() {
            let start = Instant::now();
            self.failure = session.complete(plan, graph, params).err();
            self.time += start.elapsed();
        }
    }

    /// Returns the time of completing the last node.
    ///
    /// # Errors
    /// The first failure.
    pub(super) fn finish(self) -> Result<Duration> {
        self.failure.map_or(Ok(self.time), Err)
    }
}

impl Nodes for OwnNodes<'_> {
    fn count(&self) -> usize {
        self.complete.len() + usize::from(self.last.is_some())
    }

    fn compute(&mut self, elements: Range<usize>) {
        let params = self.layout.params_in(&elements);
        self.complete(Some(&params));
    }

    fn append(&self, node: usize, elements: Range<usize>, to: &mut Vec<f32>) {
        match (self.complete.get(node), &self.last) {
            (Some(node), _) => to.extend_from_slice(&node.dense[elements]),
            (None, Some(last)) => self.layout.append_dense(last.session.executor(), &elements, to),
            (None, None) => {}
        }
    }

    fn tables(&mut self) -> Result<Vec<Vec<Rows>>, String> {
        self.complete(None);
        if let Some(failure) = &self.failure {
            return Err(failure.to_string());
        }
        let mut tables: Vec<Vec<Rows>> =
            self.complete.iter_mut().map(|node| std::mem::take(&mut node.tables)).collect();
        let last = self.last.as_ref().map(|last| self.layout.tables_of(last.session.executor()));
        tables.extend(last);
        Ok(tables)
    }
}
