//! The inputs of all stages.

use crate::existing::ExistingRows;
use crate::request::Request;
use crate::schedule::Schedule;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::Mode;

/// The inputs of all stages.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) graph: &'a GraphData,
    pub(crate) request: &'a Request<'a>,
    pub(crate) policy: &'a dyn Schedule,
    /// The expected number of executions of the plan.
    pub(crate) executions: f64,
    /// The values that can be read after the run: outputs, wanted values, losses, and values whose gradients are
    /// outputs.
    pub(crate) roots: &'a [ValueId],
    /// The rows of the values that a growing plan already computes. Empty for other plans.
    pub(crate) existing: &'a ExistingRows,
}

impl Context<'_> {
    /// Whether the plan grows with its graph.
    pub(crate) fn is_growing(&self) -> bool {
        self.request.mode == Mode::Grow
    }
}
