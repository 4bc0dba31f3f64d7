//! Each test plans random graphs, verifies every plan, proves it against its graph, executes it with the naive
//! executor, and compares the bits with the reference. No test here asks for gradients.

use autobatch_ir::Weights;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::numeric::same_bits;
use autobatch_ir::plan::Mode;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::types::DType;
use autobatch_oracle::check::{self as proof, Wanted};
use autobatch_oracle::naive::execute;
use autobatch_oracle::reference;
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Planner, Request, RowOrder};
use autobatch_testing::cases::{FEW_POLICIES, POLICIES};
use autobatch_testing::random::{Options, Profile, check, seeds};
use autobatch_testing::trials::asked_seed;
use autobatch_testing::written::{self, Numbers};
use std::cell::Cell;

const ORDERS: [RowOrder; 2] = [RowOrder::Batch, RowOrder::Propagated];
/// The number of graphs per profile, chosen so that at least five hundred have 20 to 200 nodes.
const MANY: [(Profile, u64); 4] =
    [(Profile::Medium, 320), (Profile::Trees, 110), (Profile::Chains, 110), (Profile::Lattices, 110)];
const SEED: u64 = 3;
const STEP: u64 = 9;

/// Checks a graph under few policies, in every mode and row order.
fn holds(graph: &GraphData, training: bool) -> Result<(), String> {
    holds_under(graph, training, &FEW_POLICIES, |_| true)
}

/// Checks a graph under each policy, in one combination of mode and row order. The structure selects it.
fn holds_once_each(graph: &GraphData, training: bool) -> Result<(), String> {
    let chosen = graph.structure() as usize;
    holds_under(graph, training, &POLICIES, |number| (number + chosen).is_multiple_of(8))
}

/// Checks the plans of the policies for the combinations of mode and row order that `chosen` selects by number.
fn holds_under(
    graph: &GraphData,
    training: bool,
    policies: &[&str],
    chosen: impl Fn(usize) -> bool,
) -> Result<(), String> {
    let weights = Weights::init(&graph.module, 5);
    let stores: Vec<&[f32]> = weights.iter().map(|param| param.values()).collect();
    let values: Vec<ValueId> =
        (0..graph.arena.values()).map(ValueId::new).filter(|&value| !graph.type_of(value).is_list).collect();
    if values.is_empty() {
        return Ok(());
    }
    let noise = if training { Noise::On { seed: SEED, step: STEP } } else { Noise::Off };
    let run = reference::forward::<f32>(graph, &weights, noise).map_err(|error| error.to_string())?;
    for (policy_number, policy) in policies.iter().enumerate() {
        let mut planner = Planner::new(
            policy.parse::<Policy>().expect("a policy").load().expect("the policy needs no file"),
        );
        // A request for all values keeps all rows. A request for the outputs alone allows the reuse of rows.
        let modes = [
            (Mode::Train, &values[..]),
            (Mode::Infer, &[]),
            (Mode::Infer, &values[..1]),
            (Mode::Grow, &values[..]),
        ];
        for (mode_number, (mode, wanted)) in modes.into_iter().enumerate() {
            for (order_number, rows) in ORDERS.into_iter().enumerate() {
                let number = policy_number + 2 * mode_number + order_number;
                if !chosen(number) || (wanted.is_empty() && graph.outputs.is_empty()) {
                    continue;
                }
                let what = format!("{policy} {mode:?} {rows:?}");
                let request = Request { wanted, mode, training, rows, ..Request::default() };
                let plan = planner.plan(graph, &request).map_err(|error| error.to_string())?;
                let plan = plan.verify().map_err(|errors| format!("{what}: {errors}"))?;
                proof::check(&plan, graph, Wanted { values: wanted, training })
                    .map_err(|report| format!("{what}: {report}"))?;
                let executed = execute(&plan, &stores, &graph.bindings.words, &graph.bindings.floats, noise)
                    .map_err(|error| format!("{what}: {error}"))?;
                let outputs = graph.outputs.iter().map(|output| output.value).chain(wanted.iter().copied());
                for (number, value) in outputs.enumerate() {
                    let found = executed.output(number).expect("an output");
                    let equal = match graph.type_of(value).dtype {
                        DType::F32 => {
                            let expected = run.floats(value).ok_or("the reference has no such value")?;
                            let same = |(&a, &b): (&u32, &f32)| same_bits(f32::from_bits(a), b);
                            found.len() == expected.len() && found.iter().zip(expected).all(same)
                        }
                        _ => run.words(value) == Some(found),
                    };
                    if !equal {
                        let node = graph.arena.producer(value);
                        let callee = graph.module.callee_name(graph.signature(node).callee);
                        return Err(format!("{what}: {value} of {callee} differs from the reference"));
                    }
                }
            }
        }
    }
    Ok(())
}

fn sweep(property: &str, options: Options, training: bool) {
    check(property, options, 20, |graph| holds(graph, training));
}

#[test]
fn plans_of_small_and_medium_graphs_are_proved() {
    sweep("plans of small graphs", Options::new(Profile::Small), false);
    sweep("plans of medium graphs", Options::new(Profile::Medium), false);
}

#[test]
fn plans_with_noise_are_proved() {
    sweep("plans in training", Options::new(Profile::Medium), true);
}

#[test]
fn plans_of_trees_chains_and_lattices_are_proved() {
    sweep("plans of trees", Options::new(Profile::Trees), false);
    sweep("plans of chains", Options::new(Profile::Chains), false);
    sweep("plans of lattices", Options::new(Profile::Lattices), false);
}

#[test]
fn plans_of_blocks_are_proved() {
    sweep("plans of blocks", Options::new(Profile::Blocks), false);
    sweep("plans of blocks of wild numbers", Options::new(Profile::Blocks).wild(), false);
}

#[test]
fn plans_with_wild_numbers_are_proved() {
    sweep("plans of wild graphs", Options::new(Profile::Medium).wild(), false);
}

#[test]
fn plans_of_written_graphs_are_proved() {
    for numbers in [Numbers::Tame, Numbers::Wild] {
        written::check("plans of written graphs", numbers, 60, |graph| holds_once_each(graph, false));
    }
}

/// Five hundred graphs of 20 to 200 nodes; ten thousand in the long tier.
#[test]
fn plans_of_many_graphs_are_proved_under_every_policy() {
    let proved = Cell::new(0);
    for (profile, count) in MANY {
        let property = format!("plans of many graphs, {profile:?}");
        check(&property, Options::new(profile), count, |graph| {
            let sized = (20..=200).contains(&graph.arena.len());
            proved.set(proved.get() + usize::from(sized));
            if sized { holds_once_each(graph, false) } else { Ok(()) }
        });
    }
    let alone = asked_seed().is_some();
    let (proved, asked) = (proved.get(), seeds(500).len());
    assert!(alone || proved >= asked, "{proved} graphs have 20 to 200 nodes, expected at least {asked}");
}
