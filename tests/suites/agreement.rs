//! Batched execution gives the bits of the reference interpreter, under every policy, two modes and both row orders, on
//! one thread and on two.
//!
//! A usual run checks 340 random graphs and 80 written ones. `AUTOBATCH_TEST=long` checks ten times as many random
//! graphs and twenty times as many written ones. Each graph runs on one instruction set, and the next graph on the next
//! one. A graph of a requested seed runs on all instruction sets.

use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::numeric::same_bits;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, Plan, Verified};
use autobatch_ir::types::DType;
use autobatch_ir::{NodeId, Weights};
use autobatch_oracle::reference;
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Planner, Request, RowOrder};
use autobatch_runtime_cpu::kernels::Isa;
use autobatch_runtime_cpu::{Executor, Inputs};
use autobatch_testing::cases::POLICIES;
use autobatch_testing::random::{Options, Profile, check};
use autobatch_testing::trials::{asked_seed, trials};
use autobatch_testing::written::{self, Numbers};

const SEED: u64 = 7;
const STEP: u64 = 3;

/// Returns every readable value of the graph: all results that are not lists.
fn readable(graph: &GraphData) -> Vec<ValueId> {
    let values = (0..graph.arena.values()).map(ValueId::new);
    values.filter(|&value| !graph.type_of(value).is_list).collect()
}

/// Computes the words of every requested value with the reference interpreter.
fn expected(
    graph: &GraphData,
    weights: &Weights,
    wanted: &[ValueId],
    noise: Noise,
) -> Result<Vec<Vec<u32>>, String> {
    let run = reference::forward::<f32>(graph, weights, noise).map_err(|error| error.to_string())?;
    let words = |value: ValueId| match graph.type_of(value).dtype {
        DType::F32 => run.floats(value).map(|row| row.iter().map(|x| x.to_bits()).collect()),
        _ => run.words(value).map(<[u32]>::to_vec),
    };
    wanted.iter().map(|&value| words(value).ok_or(format!("the reference has no {value}"))).collect()
}

/// Returns the first output with unexpected bits. All NaNs are equal.
fn difference(
    executor: &Executor,
    plan: &Verified<Plan>,
    graph: &GraphData,
    wanted: &[ValueId],
    expected: &[Vec<u32>],
) -> Result<(), String> {
    let first = plan.outputs.len() - wanted.len();
    for (number, (&value, expected)) in wanted.iter().zip(expected).enumerate() {
        let found = executor.output(plan, first + number);
        let float = graph.type_of(value).dtype == DType::F32;
        let same = |x: f32, word: u32| match float {
            true => same_bits(x, f32::from_bits(word)),
            false => x.to_bits() == word,
        };
        if !found.iter().zip(expected).all(|(&x, &word)| same(x, word)) {
            let node: NodeId = graph.arena.producer(value);
            let callee = graph.module.callee_name(graph.signature(node).callee);
            let expected: Vec<f32> = expected.iter().map(|&word| f32::from_bits(word)).collect();
            return Err(format!("{value} of {callee} is {found:?}, the reference has {expected:?}"));
        }
    }
    Ok(())
}

/// The executors of all instruction sets, which take turns from graph to graph.
struct Turns {
    number: usize,
    /// True if every executor runs every graph: for a requested seed, and while a failing graph is shrunk.
    all: bool,
    /// The executors per instruction set, with one thread and with two.
    executors: Vec<[Executor; 2]>,
}

const PAIRS: [(Mode, RowOrder); 4] = [
    (Mode::Infer, RowOrder::Propagated),
    (Mode::Infer, RowOrder::Batch),
    (Mode::Train, RowOrder::Propagated),
    (Mode::Train, RowOrder::Batch),
];

impl Turns {
    fn new() -> Self {
        let executors = |isa| {
            let mut two = Executor::with_isa(isa, 2);
            // Both threads execute every wave, however small.
            two.set_shared_work(1);
            [Executor::with_isa(isa, 1), two]
        };
        let executors = Isa::available().into_iter().map(executors).collect();
        Self { number: 0, all: asked_seed().is_some(), executors }
    }

    fn agrees(&mut self, graph: &GraphData, training: bool) -> Result<(), String> {
        let outcome = self.execute(graph, training);
        self.all |= outcome.is_err();
        outcome
    }

    fn execute(&mut self, graph: &GraphData, training: bool) -> Result<(), String> {
        let weights = Weights::init(&graph.module, 11);
        let wanted = readable(graph);
        if wanted.is_empty() {
            return Ok(());
        }
        let sets = self.executors.len();
        let turn = self.number % sets;
        self.number += 1;
        let turns = if self.all { 0..sets } else { turn..turn + 1 };
        let noise = if training { Noise::On { seed: SEED, step: STEP } } else { Noise::Off };
        let expected = expected(graph, &weights, &wanted, noise)?;
        let bound = Inputs { words: &graph.bindings.words, floats: &graph.bindings.floats, noise };
        for policy in POLICIES {
            let policy: Policy = policy.parse().expect("a policy");
            let mut planner = Planner::new(policy.load().expect("no file"));
            for (mode, rows) in PAIRS {
                let request = Request { wanted: &wanted, mode, training, rows, ..Request::default() };
                let plan = planner.plan(graph, &request).map_err(|error| error.to_string())?;
                let plan = plan.verify().map_err(|errors| format!("{policy} {mode:?} {rows:?}: {errors}"))?;
                for executor in self.executors[turns.clone()].as_flattened_mut() {
                    executor.execute(&plan, &weights, bound).map_err(|error| error.to_string())?;
                    difference(executor, &plan, graph, &wanted, &expected).map_err(|difference| {
                        format!("{policy} {mode:?} {rows:?} {executor:?}: {difference}")
                    })?;
                }
            }
        }
        Ok(())
    }
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
