//! Differentiation: adds the reverse to a plan for training.
//!
//! *Needs* a lowered plan in which rows keep their numbers ([`Mode::Train`](autobatch_ir::plan::Mode)), and its graph.
//! *Ensures* the same forward steps, some of which save additional registers, then the steps of the reverse, then reductions.
//! The gradients are those of `reference::reverse`:
//! * Gradients of values are equal bit for bit, except that a zero may have the other sign: a kernel omits the zeros around
//!   the gradient of a slice, which the reference adds. A result without a gradient, of a node that gets one, has a gradient
//!   of zeros in both, so a derivative that is not finite there gives NaN in both.
//! * Gradients of parameters are sums in the order of the steps.
//!
//! *How.* Every forward step with live lanes gets one step in reverse over these lanes. The waves of the reverse are those of
//! the forward steps, backwards, so there is nothing to schedule. Contributions to the gradients of the values of a field
//! have a field of their own, with one row per use. A reader sums the rows of a value in graph order. No step clears rows
//! or adds to rows.
//!
//! *Refuses* folds of a list port together with a list made in the cell:
//! [`PlanError::NotDifferentiable`](crate::PlanError).
//!
//! *Bounds.* The table says how far a gradient may be from that of `reference::reverse` in `f32`. `|terms|` is the sum of the
//! sizes of the terms, `eps = 2^-23`. `tests/plans/gradients.rs` and the gradient suite check every stage.
//!
//! | stage | bits | bound |
//! |---|---|---|
//! | map, row, fold, lookup, product: gradients of values | those of the reference | 0, except the sign of a zero |
//! | gradients of values between policies, threads, instruction sets | equal | 0 |
//! | `wgrad`, `k` rows of sum in step order | a function of plan and rows | `8 * eps * sqrt(k) * |terms|` |
//! | `colsum`, `tgrad`, `k` rows | a function of plan and rows | `8 * eps * sqrt(k) * |terms|` |
//! | the same on other threads, tiles, instruction sets | equal | 0 |
//!
//! *Cost.* Linear in the operands of live nodes. A kernel in reverse is made once per signature.

mod activity;
mod contributions;
mod cut;
mod edit;
mod emit;
mod kernel;
mod lists;
mod reductions;
mod rematerialize;
mod reverse_steps;
mod rules;
mod seeds;
mod signatures;
mod tape;

pub(crate) use kernel::{Derivative, Refused, Wanted, derive};

use crate::PlanError;
use crate::cluster::Clusters;
use activity::Activity;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ParamId, SigId, ValueId};
use autobatch_ir::plan::{FieldId, Plan, Spare};
use contributions::Contributions;
use edit::recount;
use emit::{Emitter, Lists};
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

/// Working memory of differentiation, reused from plan to plan.
#[derive(Default)]
pub(crate) struct Reverse {
    /// Per parameter whether it gets a gradient.
    params: Vec<bool>,
    sigs: Signatures,
    activity: Activity,
    fields: ContributionFields,
    reverse_steps: ReverseSteps,
    seeds: Seeds,
    contributions: Contributions,
    reductions: Reductions,
    lists: Lists,
    spare: Spare,
}

impl Reverse {
    /// Adds the reverse to a plan. `place` gives the field and row of a value; `derivative_of` finds or makes the derivative of a
    /// signature.
    pub(crate) fn add(
        &mut self,
        plan: &mut Plan,
        (graph, clusters): (&GraphData, &Clusters),
        request: &Gradients<'_>,
        place: &dyn Fn(ValueId) -> (FieldId, u32),
        mut derivative_of: impl FnMut(SigId, &Wanted) -> Result<Option<Arc<Derivative>>, Refused>,
    ) -> Result<(), PlanError> {
        let Self {
            params,
            sigs,
            activity,
            fields,
            reverse_steps,
            seeds,
            contributions,
            reductions,
            lists,
            spare,
        } = self;
        find_params(graph, request, params)?;
        sigs.begin(graph, params);
        activity.find_needs(graph, clusters, sigs, request);
        activity.find_live(graph, sigs, request, |sig, node, facts| {
            let derivative = match facts.planned {
                true => derivative_of(sig, &facts.wanted).map_err(|refused| site_of(graph, node, refused))?,
                false => None,
            };
            facts.set_derivative(derivative);
            Ok(())
        })?;
        let Activity { needs, live, .. } = &*activity;
        let (forward_steps, forward_waves) = (plan.steps.len(), plan.waves.len());
        fields.begin();
        reverse_steps.collect(plan, graph, live, sigs, fields)?;
        let emitter = Emitter { graph, sigs, reverse_steps };
        emitter.save(plan, lists);
        seeds.collect(plan, (needs, request), fields, place)?;
        contributions.collect(graph, needs, (reverse_steps, sigs), (seeds, request));
        seeds.steps(plan, graph, request);
        emitter.steps(plan, forward_waves, (fields, contributions));
        emitter.outputs(plan, request, (fields, contributions), place, lists)?;
        reductions.add(plan, (graph, params), (reverse_steps, &emitter));
        plan.normalise_with(spare);
        recount(plan, forward_steps);
        Ok(())
    }
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
