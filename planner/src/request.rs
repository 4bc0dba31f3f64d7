//! Requests for plans, and the values that a request makes available.

use crate::error::PlanError;
use autobatch_ir::graph::{Callee, GraphData, Op};
use autobatch_ir::id::{NodeId, ParamId, ValueId};
use autobatch_ir::plan::Mode;
use std::collections::HashSet;

/// How the planner orders rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RowOrder {
    /// In the order of the nodes.
    Batch,
    /// In the order in which consumers read, from the last batch to the first.
    #[default]
    Propagated,
}

/// Which gradients a plan makes.
#[derive(Clone, Copy, Debug)]
pub struct Gradients<'a> {
    /// Float values, normally scalars, and their factors. Gradients are those of `sum of factor * sum(value)`.
    pub losses: &'a [(ValueId, f32)],
    /// The parameters and tables that get gradients; all if `None`.
    pub params: Option<&'a [ParamId]>,
    /// Values whose gradients are requested as outputs, behind all other outputs.
    pub values: &'a [ValueId],
}

/// The values that a plan computes, and its options.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Values to read after the run, besides the graph's own outputs.
    pub wanted: &'a [ValueId],
    /// The promise of the plan.
    pub mode: Mode,
    /// Whether dropout draws noise.
    pub training: bool,
    /// How the planner orders rows.
    pub rows: RowOrder,
    /// The gradients that the plan computes; only in [`Mode::Train`].
    pub gradients: Option<Gradients<'a>>,
    /// Values whose gradients arrive at a pause of the plan. The gradients that it makes are those of the sum of all losses and
    /// of `sum(gradient * value)` of these values. They must be outputs of the graph or wanted, and only a request with
    /// gradients has them. The plan pauses if there is one.
    pub arriving: &'a [ValueId],
    /// The first node of each shard behind the first one, ascending. Each shard has sums of its own for the gradients of
    /// parameters, which are added in the [tree](autobatch_ir::numeric::tree) of the shards.
    pub shards: &'a [NodeId],
}

impl Default for Request<'_> {
    fn default() -> Self {
        Self {
            wanted: &[],
            mode: Mode::Infer,
            training: false,
            rows: RowOrder::default(),
            gradients: None,
            arriving: &[],
            shards: &[],
        }
    }
}

impl Request<'_> {
    /// The losses, the values whose gradients are outputs, and those whose gradients arrive.
    fn differentiated(&self) -> impl Iterator<Item = ValueId> {
        let gradients = self.gradients.iter();
        let of_request =
            gradients.flat_map(|of| of.losses.iter().map(|loss| loss.0).chain(of.values.iter().copied()));
        of_request.chain(self.arriving.iter().copied())
    }

    /// Whether a constant may have copies in several fields. The gradient of a constant needs all its readers in one field, and
    /// rows of a growing plan have one field for each type.
    pub(crate) fn may_copy_constants(&self, graph: &GraphData) -> bool {
        let is_constant = |value: ValueId| {
            let producer = graph.arena.node(graph.arena.producer(value));
            matches!(graph.sigs.get(producer.sig).callee, Callee::Op(Op::Fill { .. }))
        };
        self.mode != Mode::Grow && !self.differentiated().any(is_constant)
    }
}

/// Lists in `roots` the values that a plan must make available: outputs of the graph, wanted values, losses, and values whose
/// gradients are outputs.
pub(crate) fn find_roots(
    graph: &GraphData,
    request: &Request<'_>,
    roots: &mut Vec<ValueId>,
) -> Result<(), PlanError> {
    find_wanted(graph, request, roots)?;
    if request.gradients.is_some() && request.mode != Mode::Train {
        return Err(PlanError::NotTraining(request.mode));
    }
    check_arriving(request, roots)?;
    if !request.shards.is_sorted_by(|a, b| a < b) {
        return Err(PlanError::Shards);
    }
    let first = roots.len();
    roots.extend(request.differentiated());
    match roots[first..].iter().find(|value| value.index() >= graph.arena.values()) {
        Some(&missing) => Err(PlanError::NoFloat(missing)),
        None => Ok(()),
    }
}

/// Checks that arriving gradients belong to different values that can be read.
fn check_arriving(request: &Request<'_>, readable: &[ValueId]) -> Result<(), PlanError> {
    if request.arriving.is_empty() {
        return Ok(());
    }
    let mut sorted = request.arriving.to_vec();
    sorted.sort_unstable();
    let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
    let unread = || {
        let readable: HashSet<ValueId> = readable.iter().copied().collect();
        request.arriving.iter().copied().find(|value| !readable.contains(value))
    };
    let without = || request.arriving.first().copied().filter(|_| request.gradients.is_none());
    match twice.or_else(without).or_else(unread) {
        Some(value) => Err(PlanError::Arriving(value)),
        None => Ok(()),
    }
}

/// Lists in `roots` the outputs of the graph and the wanted values, which must exist and be no lists.
fn find_wanted(graph: &GraphData, request: &Request<'_>, roots: &mut Vec<ValueId>) -> Result<(), PlanError> {
    roots.clear();
    roots.extend(graph.outputs.iter().map(|output| output.value));
    roots.extend_from_slice(request.wanted);
    if roots.is_empty() && request.gradients.is_none() {
        return Err(PlanError::NothingWanted);
    }
    if let Some(&missing) = roots.iter().find(|value| value.index() >= graph.arena.values()) {
        return Err(PlanError::NoValue(missing));
    }
    match roots.iter().find(|&&value| graph.type_of(value).is_list) {
        Some(&value) => {
            let site = graph.site(graph.arena.node(graph.arena.producer(value)).site);
            let site = (!site.file.is_empty()).then(|| site.to_string());
            Err(PlanError::WantedList { value, site })
        }
        None => Ok(()),
    }
}
