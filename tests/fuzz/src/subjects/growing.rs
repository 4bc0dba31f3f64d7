//! Graphs that grow: each round extends the plan, and every executor continues over the old rows.

use super::boxed;
use super::random::{bytes, generator};
use super::values::elements;
use crate::counts::{Counts, Tally};
use crate::expected::Expected;
use crate::machine::{Machine, Numbers, same_as_naive};
use crate::target::Subject;
use autobatch_ir::graph::Graph;
use autobatch_ir::module::Module;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Examined, Plan, Verified};
use autobatch_ir::{ValueId, Weights};
use autobatch_oracle::check::{Wanted, check};
use autobatch_oracle::naive::{Executed, resume};
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Grown, Planner, Request, RowOrder};
use autobatch_testing::cases::POLICIES;
use autobatch_testing::growing::{Known, Model, model};
use autobatch_testing::hostile::SplitMix64;
use autobatch_testing::random::Rng;
use std::sync::Arc;

struct Growing {
    module: Arc<Module>,
    model: Model,
    weights: Weights,
    seeds: Vec<Vec<u8>>,
    machine: Machine,
}

pub(super) fn open() -> Box<dyn Subject> {
    let (module, model) = model();
    let weights = Weights::init(&module, 3);
    let mut random = SplitMix64(4);
    let seeds = (0..32).map(|number| bytes(&mut random, 8 * (2 + number))).collect();
    boxed(Growing { module, model, weights, seeds, machine: Machine::new() })
}

/// The last round of a growing plan, and what verification remembers of it.
#[derive(Default)]
struct History {
    last: Option<Round>,
    examined: Examined,
}

/// The plan so far, and the naive run of it.
struct Round {
    grown: Grown,
    plan: Verified<Plan>,
    run: Executed,
}

impl Subject for Growing {
    fn seeds(&self) -> &[Vec<u8>] {
        &self.seeds
    }

    fn draw(&self, random: &mut SplitMix64) -> Vec<u8> {
        bytes(random, 8)
    }

    fn check(&mut self, input: &[u8], counts: &mut Counts) {
        let Some(mut rng) = generator(input, counts) else { return };
        let g = Graph::new(&self.module);
        let outcome = self.grow(&g, &mut rng, counts);
        outcome.unwrap_or_else(|what| panic!("{what}\n{}", *g.data()));
    }
}

impl Growing {
    fn grow(&mut self, g: &Graph, rng: &mut Rng, counts: &mut Counts) -> Result<(), String> {
        let policy: Policy = rng.pick(&POLICIES).parse().map_err(|_| "the list holds policies")?;
        let mut planner = Planner::new(policy.load().map_err(|error| error.to_string())?);
        let rows = rng.pick(&[RowOrder::Batch, RowOrder::Propagated]);
        let draw = rng.word();
        let mut known = Known::default();
        let mut history = History::default();
        for _ in 0..rng.between(1, 6) {
            for _ in 0..rng.between(1, 12) {
                self.model.act(g, &mut known, &mut |limit| rng.below(limit as u32) as usize);
            }
            let wanted: Vec<ValueId> = (0..rng.between(1, 3))
                .filter_map(|_| known[rng.below(known.len() as u32) as usize].id())
                .collect();
            let request = Request { wanted: &wanted, rows, ..Request::default() };
            self.round(g, &mut planner, &request, &mut history, draw, counts)?;
        }
        Ok(())
    }

    /// Extends the plan by a round.
    fn round(
        &mut self,
        g: &Graph,
        planner: &mut Planner,
        request: &Request<'_>,
        History { last, examined }: &mut History,
        draw: u64,
        counts: &mut Counts,
    ) -> Result<(), String> {
        let graph = g.data();
        let bound = &graph.bindings;
        let numbers = Numbers::new(elements(&self.weights), &bound.words, &bound.floats, Noise::Off);
        let (grown, plan, run) = match last.take() {
            None => {
                let grown = planner.begin(&graph, request).map_err(|error| error.to_string())?;
                let plan =
                    grown.plan().clone().verify_to_grow(examined).map_err(|errors| errors.to_string())?;
                let run =
                    self.machine.execute(&plan, &numbers, draw)?.ok_or("the first plan does not run")?;
                (grown, plan, run)
            }
            Some(Round { mut grown, plan, run }) => {
                let delta = planner.grow(&graph, request, &mut grown).map_err(|error| error.to_string())?;
                let plan = plan.grow(grown.plan(), examined).map_err(|errors| errors.to_string())?;
                let (stores, words, floats) = (&numbers.stores, &bound.words, &bound.floats);
                let run = resume(&plan, &run, delta.steps.start, stores, words, floats, Noise::Off)
                    .map_err(|error| error.to_string())?;
                for executor in self.machine.pair(draw) {
                    executor.resume(&plan, &numbers, numbers.bound()).map_err(|error| error.to_string())?;
                    same_as_naive(executor, &plan, &run).map_err(|what| format!("{executor:?}: {what}"))?;
                }
                (grown, plan, run)
            }
        };
        counts.add(Tally::Planned);
        counts.add(Tally::Executed);
        let whole = Plan::clone(&plan).verify().map_err(|errors| format!("as a whole: {errors}"))?;
        if whole != plan {
            return Err("the grown plan differs from the whole plan".to_owned());
        }
        let wanted = Wanted { values: request.wanted, training: false };
        check(&plan, &graph, wanted).map_err(|report| report.to_string())?;
        counts.add(Tally::Proven);
        let expected =
            Expected::new(&graph, &self.weights, Noise::Off, &[], &[]).map_err(|error| error.to_string())?;
        counts.add_many(Tally::Values, expected.compare(&plan, &run)?);
        *last = Some(Round { grown, plan, run });
        Ok(())
    }
}
