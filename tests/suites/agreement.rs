//! Batched execution gives the bits of the reference interpreter, under every policy, two modes and both row orders, on
//! one thread and on two.
//!
//! A usual run checks 340 random graphs and 80 written ones. `AUTOBATCH_TEST=long` checks ten times as many random
//! graphs and twenty times as many written ones. Each graph runs on one instruction set, and the next graph on the next
//! one. A graph of a requested seed runs on all instruction sets.

use autobatch_ir::Weights;
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::{Mode, Plan, Verified};
use autobatch_planner::RowOrder;
use autobatch_runtime_cpu::kernels::Isa;
use autobatch_runtime_cpu::{Executor, Inputs};
use autobatch_testing::cases::POLICIES;
use autobatch_testing::random::{Options, Profile, check};
use autobatch_testing::trials::{asked_seed, trials};
use autobatch_testing::written::{self, Numbers};
use autobatch_tests::agreement::{Execute, Nearness, Setting, values_agree};

struct OnCpu(Executor);

impl Execute for OnCpu {
    fn name(&self) -> String {
        format!("{:?}", self.0)
    }

    fn execute(
        &mut self,
        plan: &Verified<Plan>,
        weights: &Weights,
        inputs: Inputs<'_>,
    ) -> Result<(), String> {
        self.0.execute(plan, weights, inputs).map_err(|error| error.to_string())
    }

    fn output(&self, plan: &Plan, number: usize) -> &[f32] {
        self.0.output(plan, number)
    }
}

/// The executors of all instruction sets, which take turns from graph to graph.
struct Turns {
    number: usize,
    /// True if every executor runs every graph: for a requested seed, and while a failing graph is shrunk.
    all: bool,
    /// The executors per instruction set, with one thread and with two.
    executors: Vec<[OnCpu; 2]>,
}

impl Turns {
    fn new() -> Self {
        let executors = |isa| {
            let mut two = Executor::with_isa(isa, 2);
            // Both threads execute every wave, however small.
            two.set_shared_work(1);
            [Executor::with_isa(isa, 1), two].map(OnCpu)
        };
        let executors = Isa::available().into_iter().map(executors).collect();
        Self { number: 0, all: asked_seed().is_some(), executors }
    }

    fn agrees(&mut self, graph: &GraphData, training: bool) -> Result<(), String> {
        let sets = self.executors.len();
        let turn = self.number % sets;
        self.number += 1;
        let turns = if self.all { 0..sets } else { turn..turn + 1 };
        let executors = self.executors[turns].as_flattened_mut().iter_mut();
        let mut executors: Vec<&mut dyn Execute> = executors.map(|own| own as _).collect();
        let outcome = values_agree(&mut executors, graph, training, settings(), Nearness::Bits);
        self.all |= outcome.is_err();
        outcome
    }
}

/// Every policy, in two modes and both row orders.
fn settings() -> impl Iterator<Item = Setting<'static>> {
    POLICIES.into_iter().flat_map(|policy| {
        [Mode::Infer, Mode::Train].into_iter().flat_map(move |mode| {
            [RowOrder::Propagated, RowOrder::Batch].map(|rows| Setting { policy, mode, rows })
        })
    })
}

/// Checks `count` graphs of a profile.
fn sweep(property: &str, options: Options, count: u64, training: bool) {
    // Long runs multiply the number of seeds by twenty. Halving the count makes that ten.
    let count = trials(count, count.div_ceil(2));
    let turns = std::cell::RefCell::new(Turns::new());
    check(property, options, count, |graph| turns.borrow_mut().agrees(graph, training));
}

#[test]
fn small_graphs_match_the_reference_bit_for_bit() {
    sweep("small graphs agree", Options::new(Profile::Small), 70, false);
}

#[test]
fn medium_graphs_match_the_reference_bit_for_bit() {
    sweep("medium graphs agree", Options::new(Profile::Medium), 45, false);
}

#[test]
fn medium_graphs_with_noise_match_the_reference_bit_for_bit() {
    sweep("medium graphs agree in training", Options::new(Profile::Medium), 45, true);
}

#[test]
fn trees_match_the_reference_bit_for_bit() {
    sweep("trees agree", Options::new(Profile::Trees), 40, false);
}

#[test]
fn chains_match_the_reference_bit_for_bit() {
    sweep("chains agree", Options::new(Profile::Chains), 40, false);
}

#[test]
fn lattices_match_the_reference_bit_for_bit() {
    sweep("lattices agree", Options::new(Profile::Lattices), 30, false);
}

#[test]
fn blocks_match_the_reference_bit_for_bit() {
    sweep("blocks agree", Options::new(Profile::Blocks), 40, false);
}

#[test]
fn wild_numbers_match_the_reference_bit_for_bit() {
    sweep("wild graphs agree", Options::new(Profile::Medium).wild(), 30, false);
}

#[test]
fn written_graphs_match_the_reference_bit_for_bit() {
    let turns = std::cell::RefCell::new(Turns::new());
    for numbers in [Numbers::Tame, Numbers::Wild] {
        written::check("written graphs agree", numbers, 40, |graph| turns.borrow_mut().agrees(graph, false));
    }
}
