//! Plans, proves and executes a graph, and compares its values with the reference.

use crate::counts::{Counts, Tally};
use crate::expected::Expected;
use crate::machine::{Machine, Numbers};
use crate::setting::Setting;
use autobatch_ir::Weights;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Plan, Verified};
use autobatch_ir::types::DType;
use autobatch_oracle::check::{Wanted, check, check_losses};
use autobatch_planner::{Gradients, PlanError, Request};
use autobatch_testing::cases::losses;
use autobatch_testing::hostile::SplitMix64;

/// The seed of all weights.
const WEIGHTS: u64 = 11;

/// The values and the gradients of one plan.
pub(super) struct Order<'a> {
    pub(super) setting: Setting,
    pub(super) wanted: &'a [ValueId],
    pub(super) losses: &'a [(ValueId, f32)],
    /// How many leading losses have factors that arrive at a pause. The values of these losses are different.
    pub(super) arriving: usize,
    /// The values whose gradients are outputs.
    pub(super) values: &'a [ValueId],
    /// The first nodes of all shards but the first.
    pub(super) shards: Vec<NodeId>,
}

impl Order<'_> {
    pub(super) fn noise(&self) -> Noise {
        if self.setting.training { Noise::On { seed: 7, step: 3 } } else { Noise::Off }
    }

    /// Plans a graph.
    pub(super) fn plan(&self, graph: &GraphData) -> Result<Plan, PlanError> {
        let Setting { mode, training, rows, .. } = self.setting;
        let (arriving, losses) = self.losses.split_at(self.arriving);
        let gradients = Gradients { losses, params: None, values: self.values };
        let gradients = (!self.losses.is_empty()).then_some(gradients);
        let arriving: Vec<ValueId> = arriving.iter().map(|loss| loss.0).collect();
        let request = Request {
            wanted: self.wanted,
            mode,
            training,
            rows,
            gradients,
            arriving: &arriving,
            shards: &self.shards,
        };
        self.setting.planner(graph, self.wanted).plan(graph, &request)
    }

    /// Proves a plan. Returns the complaint of the proof.
    fn prove(&self, plan: &Verified<Plan>, graph: &GraphData) -> Option<String> {
        let wanted = Wanted { values: self.wanted, training: self.setting.training };
        let proof = match self.losses {
            [] => check(plan, graph, wanted),
            losses => check_losses(plan, graph, wanted, &losses[self.arriving..]),
        };
        proof.err().map(|report| report.to_string())
    }

    /// Executes a verified plan and compares its values.
    ///
    /// # Errors
    /// The first broken promise.
    pub(super) fn execute(
        &self,
        machine: &mut Machine,
        graph: &GraphData,
        plan: &Verified<Plan>,
        draw: u64,
        counts: &mut Counts,
    ) -> Result<(), String> {
        let weights = Weights::init(&graph.module, WEIGHTS);
        let mut floats = graph.bindings.floats.clone();
        for &(value, factor) in &self.losses[..self.arriving] {
            floats.extend(vec![factor; graph.type_of(value).shape.elements()]);
        }
        let words = &graph.bindings.words[..];
        let numbers = Numbers::new(elements(&weights), words, &floats, self.noise());
        let run = machine.execute(plan, &numbers, draw)?;
        match (Expected::new(graph, &weights, self.noise(), self.losses, &self.shards), run) {
            (Ok(expected), Some(run)) => {
                counts.add(Tally::Executed);
                let values = expected.compare(plan, &run)?;
                let params = expected.compare_params(plan, &run)?;
                counts.add_many(Tally::Values, values + params);
                Ok(())
            }
            (Ok(_), None) => Err("the executors reject what the reference computes".to_owned()),
            // The plan computes only what the request needs, so it may not read the word that the reference rejects.
            (Err(_), Some(_)) => {
                counts.add(Tally::Executed);
                Ok(())
            }
            (Err(_), None) => {
                counts.add(Tally::Unplanned);
                Ok(())
            }
        }
    }

    /// Plans, verifies, proves and executes.
    ///
    /// # Errors
    /// The first broken promise. A rejected plan of a correct planner is one, unless `is_foreign`: the proof may be
    /// unable to show that a plan of an unusual graph is correct.
    pub(super) fn check(
        &self,
        machine: &mut Machine,
        graph: &GraphData,
        draw: u64,
        is_foreign: bool,
        counts: &mut Counts,
    ) -> Result<(), String> {
        let setting = self.setting;
        let plan = match self.plan(graph) {
            Ok(plan) => plan,
            Err(error) if is_foreign || matches!(error, PlanError::NothingWanted) => {
                counts.add(Tally::Unplanned);
                return Ok(());
            }
            Err(error) => return Err(format!("{setting}: no plan: {error}")),
        };
        let plan = plan.verify().map_err(|errors| format!("{setting}: the plan is invalid: {errors}"))?;
        counts.add(Tally::Planned);
        *counts.settings.entry(setting.to_string()).or_default() += 1;
        match self.prove(&plan, graph) {
            None => counts.add(Tally::Proven),
            Some(report) => {
                counts.add(Tally::Unproven);
                counts.note(&format!("{setting}: the proof says: {report}"));
            }
        }
        self.execute(machine, graph, &plan, draw, counts).map_err(|what| format!("{setting}: {what}"))
    }
}

/// Returns the elements of all parameters.
pub(super) fn elements(weights: &Weights) -> Vec<Vec<f32>> {
    weights.iter().map(|param| param.values().to_vec()).collect()
}

/// Checks a graph in the forward direction under a setting.
///
/// # Errors
/// The first broken promise.
pub(super) fn forward(
    machine: &mut Machine,
    graph: &GraphData,
    setting: Setting,
    random: &mut SplitMix64,
    is_foreign: bool,
    counts: &mut Counts,
) -> Result<(), String> {
    let wanted = some_of(random, readable(graph));
    let order = Order { setting, wanted: &wanted, losses: &[], arriving: 0, values: &[], shards: Vec::new() };
    order.check(machine, graph, random.next(), is_foreign, counts)
}

/// Divides the nodes of a graph into a few shards, or leaves them together.
fn some_shards(random: &mut SplitMix64, graph: &GraphData) -> Vec<NodeId> {
    let mut firsts: Vec<usize> = (0..random.below(5)).map(|_| random.below(graph.arena.len() + 1)).collect();
    firsts.sort_unstable();
    firsts.dedup();
    firsts.into_iter().map(NodeId::new).collect()
}

/// Checks a graph with the gradients of its losses under a setting.
///
/// # Errors
/// The first broken promise.
pub(super) fn reverse(
    machine: &mut Machine,
    graph: &GraphData,
    setting: Setting,
    random: &mut SplitMix64,
    is_foreign: bool,
    counts: &mut Counts,
) -> Result<(), String> {
    let losses = losses(graph);
    if losses.is_empty() {
        return Ok(());
    }
    let floats = readable(graph).into_iter().filter(|&value| graph.type_of(value).dtype == DType::F32);
    let values = some_of(random, floats.collect());
    let arriving = if random.below(2) == 0 { 0 } else { distinct(&losses) };
    let order = Order {
        setting,
        wanted: &[],
        losses: &losses,
        arriving,
        values: &values,
        shards: some_shards(random, graph),
    };
    order.check(machine, graph, random.next(), is_foreign, counts)
}

/// Returns how many leading losses have values that occur in no other loss.
pub(super) fn distinct(losses: &[(ValueId, f32)]) -> usize {
    let count = |value: ValueId| losses.iter().filter(|loss| loss.0 == value).count();
    losses.iter().take_while(|loss| count(loss.0) == 1).count()
}

/// Returns every value but lists.
fn readable(graph: &GraphData) -> Vec<ValueId> {
    let values = (0..graph.arena.values()).map(ValueId::new);
    values.filter(|&value| !graph.type_of(value).is_list).collect()
}

/// Returns all values, a part of them, or none.
fn some_of(random: &mut SplitMix64, mut values: Vec<ValueId>) -> Vec<ValueId> {
    match random.below(3) {
        0 => {}
        1 => values.retain(|_| random.below(4) == 0),
        _ => values.clear(),
    }
    values
}
