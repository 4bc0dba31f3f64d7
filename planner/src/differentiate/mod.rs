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
mod deriver;
mod edit;
mod emit;
mod emitter;
mod input;
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

use crate::certificate::certify;
use crate::cluster::Clusters;
use crate::error::PlanError;
use crate::kernels::{CompileOptions, KernelCache, Tables};
use crate::lower::Places;
use crate::stage::{Product, Stage};
use activity::Activity;
use arrivals::Arrivals;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::NodeId;
use autobatch_ir::plan::{Certificate, Plan, Spare};
use contributions::Contributions;
use deriver::Refused;
use emit::{Gathered, Lists};
use emitter::Emitter;
use input::Input;
use kernel::{Derivative, Wanted, derive};
use pulls::Pulls;
use reductions::Reductions;
use reverse_steps::{ContributionFields, ReverseSteps};
use seeds::Seeds;
use signatures::Signatures;
use std::fmt::{self, Write};
use std::sync::Arc;

/// Scratch memory of [`add_reverse`], with the derivatives made so far.
#[derive(Default)]
pub(crate) struct Memory {
    derivatives: KernelCache<Wanted, Option<Arc<Derivative>>>,
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
    places: &Places<'_>,
    memory: &mut Memory,
    clusters: &Clusters,
    plan: &mut Plan,
) -> Result<(), PlanError> {
    let Some(input) = Input::new(places) else { return Ok(()) };
    let graph = input.graph;
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
    let (tables, options) = (Tables::of(graph), CompileOptions { training: input.training });
    input.find_params(params)?;
    sigs.begin(graph, params);
    activity.find_needs(&input, clusters, sigs);
    activity.find_live(&input, sigs, |sig, node, facts| {
        let wanted = &facts.wanted;
        let derive = || derive(tables, sig, options, wanted).map(|made| made.map(Arc::new));
        let derivative = match facts.planned {
            true => derivatives
                .get_or_make(tables, sig, options, wanted, derive)
                .map_err(|refused| site_of(graph, node, refused))?,
            false => None,
        };
        facts.set_derivative(derivative);
        Ok(())
    })?;
    let Activity { needs, live, .. } = &*activity;
    let (forward_steps, forward_waves) = (plan.steps.len(), plan.waves.len());
    fields.begin();
    reverse_steps.collect(plan, graph, live, sigs, fields)?;
    let emitter = Emitter { input: &input, needs, sigs, reverse_steps };
    emitter.save(plan, lists);
    seeds.collect(plan, &input, needs, fields)?;
    arrivals.collect(plan, &input, needs, fields)?;
    pulls.collect(plan, &emitter, fields)?;
    let of_losses = input.gradients.losses.iter().map(|loss| loss.0).zip(seeds.rows.iter().copied());
    let all_seeds = of_losses.chain(input.arriving.iter().copied().zip(arrivals.rows.iter().copied()));
    contributions.collect(&emitter, pulls, all_seeds);
    arrivals.steps(plan, &input);
    seeds.steps(plan, &input);
    emitter.steps(plan, forward_waves, &Gathered { fields, contributions, pulls });
    emitter.outputs(plan, fields, contributions, lists)?;
    reductions.add(plan, params, &emitter);
    plan.normalise_with(spare);
    plan.certificate = Certificate { bound: plan.certificate.bound, ..Certificate::default() };
    certify(plan, 0, forward_steps);
    Ok(())
}

/// A plan with its reverse.
pub(crate) struct Reverse<'a>(pub(crate) &'a Plan);

/// Prints the plan as its text, if it has a reverse.
impl Product for Reverse<'_> {
    type After = Plan;
    const STAGE: Stage = Stage {
        name: "differentiate",
        turns: "plan -> plan with its reverse",
        what: "Appends steps in reverse and the reductions of parameter gradients, if the request has gradients.",
    };

    fn print(&self, graph: &GraphData, out: &mut String) -> fmt::Result {
        match self.0.certificate.reverse_batches == 0 {
            true => out.write_str("no gradients\n"),
            false => self.0.print(graph, out),
        }
    }
}

fn site_of(graph: &GraphData, node: NodeId, refused: Refused) -> PlanError {
    let site = graph.site(graph.arena.node(node).site);
    PlanError::NotDifferentiable { op: refused.op, site: site.to_string() }
}
