//! Differentiation: adds the reverse to a plan for training.
//!
//! *Needs* a lowered plan in which rows keep their numbers ([`Mode::Train`](autobatch_ir::plan::Mode)), and its graph.
//! *Ensures* the same forward steps, some of which save additional registers, then the steps of the reverse, then reductions.
//! The gradients are those of `reference::reverse`:
//! * Gradients of values are equal bit for bit, except that a zero may have the other sign: a kernel omits the zeros around
//!   the gradient of a slice, which the reference adds. A result without a gradient, of a node that gets one, has a gradient
//!   of zeros in both, so a derivative that is not finite there gives NaN in both.
//! * Gradients of parameters are equal bit for bit, except for such zeros. The graph defines the order of their sums.
//!
//! *How.* Every forward step with live lanes gets one step in reverse over these lanes. The waves of the reverse are those of
//! the forward steps, backwards, so there is nothing to schedule. Contributions to the gradients of the values of a field
//! have a field of their own, with one row per use. Keys and values of attention have one row for all nodes that attend to
//! them, which a step of its own makes ([`pulls`]). A reader sums the rows of a value in graph order. No step clears rows
//! or adds to rows.
//!
//! *Pauses* between the forward steps and the reverse if gradients of values arrive there. An arriving gradient is a seed, as
//! the factor of a loss is, so equal numbers give equal bits.
//!
//! *Refuses* folds of a list port together with a list made in the cell:
//! [`PlanError::NotDifferentiable`](crate::PlanError).
//!
//! `tests/plans/gradients.rs` and the gradient suite compare the bits of every stage with the reference. They are equal between
//! policies, orders of rows, threads, tiles and instruction sets.
//!
//! *Cost.* Linear in the operands of live nodes. A kernel in reverse is made once per signature.

mod activity;
mod arrivals;
mod contributions;
mod cut;
mod edit;
mod emit;
mod kernel;
mod lists;
mod operands;
mod pulls;
mod reductions;
mod rematerialize;
mod reverse_steps;
mod rules;
mod seeds;
mod signatures;
mod tape;

pub(crate) use kernel::Wanted;

use crate::PlanError;
use crate::certificate::certify;
use crate::cluster::Clusters;
use crate::kernels::{CompileOptions, KernelCache, Tables};
use crate::lower::Places;
use crate::pipeline::Context;
use activity::Activity;
use arrivals::Arrivals;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ParamId, ValueId};
use autobatch_ir::plan::{Certificate, Plan, Spare};
use contributions::Contributions;
use emit::{Emitter, Lists};
use kernel::{Derivative, Refused, derive};
use pulls::Pulls;
use reductions::Reductions;
use reverse_steps::{ContributionFields, ReverseSteps};
use seeds::Seeds;
use signatures::Signatures;
use std::sync::Arc;

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

/// Scratch memory of [`add_reverse`], with the derivatives made so far.
#[derive(Default)]
pub(crate) struct Memory {
    derivatives: KernelCache<Option<Arc<Derivative>>>,
    /// Per parameter whether it gets a gradient.
    params: Vec<bool>,
    sigs: Signatures,
    activity: Activity,
    fields: ContributionFields,
    reverse_steps: ReverseSteps,
    seeds: Seeds,
    arrivals: Arrivals,
    contributions: Contributions,
    pulls: Pulls,
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
        reverse_steps,
        seeds,
        arrivals,
        contributions,
        pulls,
        reductions,
        lists,
        spare,
    } = memory;
    let arriving = context.request.arriving;
    let (tables, options) = (Tables::of(graph), CompileOptions { training: context.request.training });
    find_params(graph, (request, arriving), params)?;
    sigs.begin(graph, params);
    activity.find_needs(graph, clusters, sigs, request);
    activity.find_live(graph, sigs, (request, arriving), |sig, node, facts| {
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
    reverse_steps.collect(&mut plan, graph, live, sigs, fields)?;
    let emitter = Emitter { graph, sigs, reverse_steps };
    emitter.save(&mut plan, lists);
    seeds.collect(&mut plan, (needs, request), fields, places)?;
    arrivals.collect(&mut plan, needs, arriving, fields, places)?;
    pulls.collect(&mut plan, (graph, needs), (reverse_steps, sigs), fields, places)?;
    let of_losses = request.losses.iter().map(|loss| loss.0).zip(seeds.rows.iter().copied());
    let all_seeds = of_losses.chain(arriving.iter().copied().zip(arrivals.rows.iter().copied()));
    contributions.collect(graph, needs, (reverse_steps, sigs, pulls), all_seeds);
    arrivals.steps(&mut plan, graph, arriving);
    seeds.steps(&mut plan, graph, request);
    emitter.steps(&mut plan, forward_waves, (fields, contributions), pulls);
    emitter.outputs(&mut plan, request, (fields, contributions), places, lists)?;
    reductions.add(&mut plan, (graph, params, context.request.shards), (reverse_steps, &emitter));
    plan.normalise_with(spare);
    plan.certificate = Certificate { bound: plan.certificate.bound, ..Certificate::default() };
    certify(&mut plan, 0, forward_steps);
    Ok(plan)
}

/// Finds per parameter whether it gets a gradient.
fn find_params(
    graph: &GraphData,
    (request, arriving): (&Gradients<'_>, &[ValueId]),
    wanted: &mut Vec<bool>,
) -> Result<(), PlanError> {
    for &value in request.losses.iter().map(|(value, _)| value).chain(request.values).chain(arriving) {
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
