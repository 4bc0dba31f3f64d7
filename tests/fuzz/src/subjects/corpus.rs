//! Small graphs and plans that the generators make: the seeds of the targets of files.

use super::values::{Order, distinct};
use crate::setting::Setting;
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::{Plan, Verified};
use autobatch_testing::cases::losses;
use autobatch_testing::hostile::SplitMix64;
use autobatch_testing::random::{Options, Profile, Recipe};
use autobatch_testing::written::{self, Numbers};

/// The largest binary file of a seed. Mutations of small files change a larger share of them.
const LARGEST: usize = 6_000;
/// The number of graphs of each kind.
const OF_EACH: usize = 6;

/// Returns small random graphs of every profile, and written graphs.
pub(super) fn graphs() -> Vec<GraphData> {
    let mut graphs = Vec::new();
    for profile in Profile::ALL {
        let options = [Options::new(profile), Options::new(profile).differentiable()];
        let seeds = (0..).map(|seed| Recipe::new(seed, options[seed as usize % 2]).graph());
        graphs.extend(seeds.filter(is_small).take(OF_EACH));
    }
    let numbers = [Numbers::Tame, Numbers::Wild];
    let texts = (0..).map(|seed| written::text(seed, numbers[seed as usize % 2]));
    let written = texts.map(|text| GraphData::from_text(text).expect("the generator writes valid texts"));
    graphs.extend(written.filter(is_small).take(OF_EACH));
    graphs
}

fn is_small(graph: &GraphData) -> bool {
    graph.to_bytes().len() <= LARGEST
}

/// A plan and the graph that it computes.
pub(super) struct Sample {
    pub(super) graph: GraphData,
    pub(super) plan: Verified<Plan>,
    pub(super) training: bool,
}

/// Plans every graph in one direction. Plans of both directions occur.
pub(super) fn samples() -> Vec<Sample> {
    let mut random = SplitMix64(1);
    let mut samples = Vec::new();
    for (number, graph) in graphs().into_iter().enumerate() {
        let all = losses(&graph);
        let losses = if number % 2 == 0 { &all[..] } else { &[] };
        let setting = match losses {
            [] => Setting::forward(&mut random),
            _ => Setting::reverse(&mut random),
        };
        // Every second plan with gradients pauses.
        let arriving = if number % 4 == 0 { distinct(losses) } else { 0 };
        let order = Order { setting, wanted: &[], losses, arriving, values: &[], shards: Vec::new() };
        let Ok(plan) = order.plan(&graph) else { continue };
        let plan = plan.verify().expect("the planner makes valid plans");
        if plan.to_bytes().len() <= LARGEST {
            samples.push(Sample { graph, plan, training: setting.training });
        }
    }
    samples
}
