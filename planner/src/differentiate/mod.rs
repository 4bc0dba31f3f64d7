//! Differentiation: a plan for training gets its reverse.
//!
//! *Needs* a lowered plan in which rows keep their numbers ([`Mode::Train`](autobatch_ir::plan::Mode)),
//! and the graph it was made of. *Ensures* the same forward steps, some of which leave a few more
//! registers behind, then steps in reverse, then reductions, such that gradients are those of
//! `reference::reverse`:
//! * gradients of values bit for bit, except that a zero may have the other sign: a kernel leaves out the zeros around the
//!   gradient of a slice, which the reference adds. A result that gets no gradient of a node that gets one has a
//!   gradient of zeros in both, so that a derivative that is not finite there makes NaN of it;
//! * gradients of parameters as sums in the order of the steps.
//!
//! *How.* Every forward step that has live lanes gets one step in reverse over those lanes, and the
//! waves are those of the forward steps backwards: there is nothing to schedule. Contributions to
//! the gradients of the values of a field have a field of their own, a row for each use; the reader
//! folds the rows of a value in the order of the graph. Nothing is zeroed, nothing is added in
//! place.
//!
//! *Refuses* folds of a list that comes through a port with one that is made in the cell:
//! [`PlanError::NotDifferentiable`](crate::PlanError).
//!
//! *Bounds.* How far a gradient may be from that of `reference::reverse` in `f32`, `|terms|` being the
//! sum of the sizes of what is added, `eps = 2^-23`; `tests/plans/gradients.rs` and the gradient suite
//! hold every stage to them.
//!
//! | stage | bits | bound |
//! |---|---|---|
//! | map, row, fold, lookup, product: gradients of values | those of the reference | 0, but for the sign of a zero |
//! | gradients of values between policies, threads, instruction sets | equal | 0 |
//! | `wgrad`, `k` rows of sum in step order | of plan and rows | `8 * eps * sqrt(k) * |terms|` |
//! | `colsum`, `tgrad`, `k` rows | of plan and rows | `8 * eps * sqrt(k) * |terms|` |
//! | the same, of other threads, tiles, instruction sets | equal | 0 |
//!
//! *Cost.* Linear in the operands of live nodes; a kernel in reverse is made once a
//! signature.

mod activity;
mod at_hand;
mod backs;
mod contributions;
mod cut;
mod edit;
mod emit;
mod kernel;
mod lists;
mod reductions;
mod rules;
mod seeds;
mod signatures;
mod tape;

pub(crate) use kernel::Wanted;

use crate::PlanError;
use crate::cluster::Clusters;
use crate::kernels::{CompileOptions, KernelCache, Tables};
use crate::lower::Places;
use crate::pipeline::Context;
use activity::Activity;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ParamId, ValueId};
use autobatch_ir::plan::{Plan, Spare};
use backs::{Backs, ContributionFields};
use contributions::Contributions;
use edit::recount;
use emit::{Emitter, Lists};
use kernel::{Derivative, Refused, derive};
use reductions::Reductions;
use seeds::Seeds;
use signatures::Signatures;
use std::sync::Arc;

/// Which gradients a plan makes.
#[derive(Clone, Copy, Debug)]
pub struct Gradients<'a> {
    /// Float values, normally scalars, and their factors: gradients are those of
    /// `sum of factor * sum(value)`.
    pub losses: &'a [(ValueId, f32)],
    /// The parameters and tables that get gradients; all if none are named.
    pub params: Option<&'a [ParamId]>,
    /// Values whose gradients are wanted as outputs, after all others, named `grad %3`.
    pub values: &'a [ValueId],
}

/// Scratch memory of [`add_reverse`], with the derivatives made so far.
#[derive(Default)]
pub(crate) struct Memory {
    derivatives: KernelCache<Option<Arc<Derivative>>>,
    /// Per parameter whether it gets a gradient.
    params: Vec<bool>,
    sigs: Signatures,
    activity: Activity,
    fields: ContributionFields,
    backs: Backs,
    seeds: Seeds,
    contributions: Contributions,
    reductions: Reductions,
    lists: Lists,
    spare: Spare,
}

/// Appends the reverse to a plan, if the request has gradients.
pub(crate) fn add_reverse(
    context: &Context<'_>,
    memory: &mut Memory,
    clusters: &Clusters,
    places: &Places<'_>,
    mut plan: Plan,
) -> Result<Plan, PlanError> {
    let (graph, Some(request)) = (context.graph, &context.request.gradients) else { return Ok(plan) };
    let Memory {
        derivatives,
        params,
        sigs,
        activity,
        fields,
        backs,
        seeds,
        contributions,
        reductions,
        lists,
        spare,
    } = memory;
    let (tables, options) = (Tables::of(graph), CompileOptions { training: context.request.training });
    let place = |value: ValueId| {
        let (field, row) = places.of(value);
        (field, row.0)
    };
    find_params(graph, request, params)?;
    sigs.begin(graph, params);
    activity.find_needs(graph, clusters, sigs, request);
    activity.find_live(graph, sigs, request, |sig, node, facts| {
        let wanted = &facts.wanted;
        let derive = || derive(tables, sig, options, wanted).map(|made| made.map(Arc::new));
        let derivative = match facts.planned {
            true => derivatives
                .get_or_make(tables, sig, options, Some(wanted), derive)
                .map_err(|refused| site_of(graph, node, refused))?,
            false => None,
        };
        facts.set_derivative(derivative);
        Ok(())
    })?;
    let Activity { needs, live, .. } = &*activity;
    let (forward_steps, forward_waves) = (plan.steps.len(), plan.waves.len());
    fields.begin();
    backs.collect(&mut plan, graph, live, sigs, fields)?;
    let emitter = Emitter { graph, sigs, backs };
    emitter.save(&mut plan, lists);
    seeds.collect(&mut plan, (needs, request), fields, &place)?;
    contributions.collect(graph, needs, (backs, sigs), (seeds, request));
    seeds.steps(&mut plan, graph, request);
    emitter.steps(&mut plan, forward_waves, (fields, contributions));
    emitter.outputs(&mut plan, request, (fields, contributions), &place, lists)?;
    reductions.add(&mut plan, (graph, params), (backs, &emitter));
    plan.normalise_with(spare);
    recount(&mut plan, forward_steps);
    Ok(plan)
}

/// Finds per parameter whether it gets a gradient.
fn find_params(graph: &GraphData, request: &Gradients<'_>, wanted: &mut Vec<bool>) -> Result<(), PlanError> {
    for &value in request.losses.iter().map(|(value, _)| value).chain(request.values) {
        let known = value.index() < graph.arena.values();
        let float = |ty: autobatch_ir::Type| ty.dtype == autobatch_ir::DType::F32 && !ty.is_list;
        if !known || !float(graph.type_of(value)) {
            return Err(PlanError::NoFloat(value));
        }
    }
    wanted.clear();
    wanted.resize(graph.module.params.len(), request.params.is_none());
    for param in request.params.unwrap_or(&[]) {
        match wanted.get_mut(param.index()) {
            Some(wanted) => *wanted = true,
            None => return Err(PlanError::NoParam(*param)),
        }
    }
    Ok(())
}

fn site_of(graph: &GraphData, node: NodeId, refused: Refused) -> PlanError {
    let site = graph.site(graph.arena.node(node).site);
    PlanError::NotDifferentiable { op: refused.op, site: site.to_string() }
}
