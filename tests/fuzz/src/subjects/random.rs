//! Random graphs: planned under a drawn setting or every one, verified, proven, executed and compared with the reference.
//!
//! The bytes of an input make the decisions of the generators of `autobatch_testing`.

use super::boxed;
use super::values::{forward, reverse};
use crate::counts::{Counts, Tally};
use crate::effort::is_small_graph;
use crate::machine::Machine;
use crate::setting::Setting;
use crate::target::Subject;
use arbitrary::{Arbitrary, Result, Unstructured};
use autobatch_ir::GraphData;
use autobatch_ir::hash::hash_bytes;
use autobatch_testing::hostile::SplitMix64;
use autobatch_testing::random::{Options, Recipe, Rng};
use autobatch_testing::written::{self, Numbers};

/// A valid graph, as a model emits it or as a user writes it.
struct RandomGraph {
    graph: GraphData,
    /// Whether the proof must accept every plan of the graph.
    is_tame: bool,
}

/// The direction of the plans.
#[derive(Clone, Copy, PartialEq, Eq)]
struct WithLosses(bool);

impl RandomGraph {
    fn draw(u: &mut Unstructured<'_>, losses: WithLosses) -> Result<Self> {
        if u.ratio(1, 8)? {
            let numbers = *u.choose(&[Numbers::Tame, Numbers::Wild])?;
            let text = written::drawn(u.arbitrary()?, numbers);
            let graph = GraphData::from_text(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            graph.verify().unwrap_or_else(|errors| panic!("{errors}\n{text}"));
            return Ok(Self { graph, is_tame: false });
        }
        let mut options = Options::arbitrary(u)?;
        if losses.0 {
            options = Options { losses: true, infer_only: false, ..options };
        }
        let graph = Recipe::drawn(u.arbitrary()?, options).graph();
        Ok(Self { graph, is_tame: options.smooth || !options.wild })
    }
}

/// The settings under which a graph is planned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Under {
    /// One that the input draws.
    One,
    /// Every policy and every order of rows.
    Every,
}

struct Graphs {
    losses: WithLosses,
    under: Under,
    seeds: Vec<Vec<u8>>,
    machine: Machine,
}

/// The bytes of an input that choose the generator and its options, and seed the decisions behind the script.
const HEAD: usize = 16;

pub(super) fn open(losses: bool, under: Under) -> Box<dyn Subject> {
    let mut random = SplitMix64(3);
    let seeds = (0..64).map(|number| bytes(&mut random, HEAD + 4 * number)).collect();
    boxed(Graphs { losses: WithLosses(losses), under, seeds, machine: Machine::new() })
}

/// Draws this many bytes.
pub(super) fn bytes(random: &mut SplitMix64, count: usize) -> Vec<u8> {
    (0..count).map(|_| random.next() as u8).collect()
}

/// Returns the generator of random graphs that an input begins; an input that is too short is refused.
pub(super) fn generator(input: &[u8], counts: &mut Counts) -> Option<Rng> {
    let rng = Rng::arbitrary(&mut Unstructured::new(input)).ok();
    counts.add(if rng.is_some() { Tally::Accepted } else { Tally::Refused });
    rng
}

impl Subject for Graphs {
    fn seeds(&self) -> &[Vec<u8>] {
        &self.seeds
    }

    fn draw(&self, random: &mut SplitMix64) -> Vec<u8> {
        bytes(random, HEAD)
    }

    fn check(&mut self, input: &[u8], counts: &mut Counts) {
        let drawn = RandomGraph::draw(&mut Unstructured::new(input), self.losses);
        let Ok(RandomGraph { graph, is_tame }) = drawn else {
            counts.add(Tally::Refused);
            return;
        };
        counts.add(Tally::Accepted);
        if !is_small_graph(&graph) {
            counts.add(Tally::Large);
            return;
        }
        let mut random = SplitMix64(hash_bytes(input));
        let unproven = counts.get(Tally::Unproven);
        let drawn = if self.losses.0 { Setting::reverse } else { Setting::forward }(&mut random);
        let check = if self.losses.0 { reverse } else { forward };
        let settings = if self.under == Under::Every { drawn.everywhere() } else { vec![drawn] };
        for setting in settings {
            let outcome = check(&mut self.machine, &graph, setting, &mut random, false, counts);
            outcome.unwrap_or_else(|what| panic!("{what}\n{graph}"));
        }
        let is_proven = counts.get(Tally::Unproven) == unproven;
        assert!(is_proven || !is_tame, "the proof rejects a correct plan\n{graph}");
    }
}
