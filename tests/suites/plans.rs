//! Plans of random graphs are verified, proved against their graph, and played naively to the bits of
//! the reference interpreter.

use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::numeric::same_bits;
use autobatch_ir::plan::Mode;
use autobatch_ir::plan::check::{self as proof, Wanted};
use autobatch_ir::plan::interp::play;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::types::DType;
use autobatch_ir::{Weights, reference};
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Planner, Request, RowOrder};
use autobatch_tests::random::{Options, Profile, check};

const POLICIES: [&str; 4] = ["none", "depth", "agenda", "auto"];
const SEED: u64 = 3;
const STEP: u64 = 9;

fn holds(graph: &GraphData, training: bool) -> Result<(), String> {
    let weights = Weights::init(&graph.module, 5);
    let stores: Vec<&[f32]> = weights.iter().map(|param| param.values()).collect();
    let values: Vec<ValueId> =
        (0..graph.arena.values()).map(ValueId::new).filter(|&value| !graph.type_of(value).is_list).collect();
    if values.is_empty() {
        return Ok(());
    }
    let noise = if training { Noise::On { seed: SEED, step: STEP } } else { Noise::Off };
    let run = reference::forward::<f32>(graph, &weights, noise).map_err(|error| error.to_string())?;
    for policy in POLICIES {
        let mut planner = Planner::new(policy.parse::<Policy>().expect("a policy").load().expect("no file"));
        // All values keep all rows; the outputs alone let rows be used again.
        for (mode, wanted) in [(Mode::Train, &values[..]), (Mode::Infer, &[]), (Mode::Infer, &values[..1])] {
            for rows in [RowOrder::Batch, RowOrder::Propagated, RowOrder::Planned] {
                if wanted.is_empty() && graph.outputs.is_empty() {
                    continue;
                }
                let what = format!("{policy} {mode:?} {rows:?}");
                let request = Request { wanted, mode, training, rows, ..Request::default() };
                let plan = planner.plan(graph, &request).map_err(|error| error.to_string())?;
                let plan = plan.verify().map_err(|errors| format!("{what}: {errors}"))?;
                proof::check(&plan, graph, Wanted { values: wanted, training })
                    .map_err(|report| format!("{what}: {report}"))?;
                let played = play(&plan, &stores, &graph.bindings.words, &graph.bindings.floats, noise)
                    .map_err(|error| format!("{what}: {error}"))?;
                let outputs = graph.outputs.iter().map(|output| output.value).chain(wanted.iter().copied());
                for (number, value) in outputs.enumerate() {
                    let found = played.output(number).expect("an output");
                    let equal = match graph.type_of(value).dtype {
                        DType::F32 => {
                            let expected = run.floats(value).ok_or("the reference has no such value")?;
                            found.iter().zip(expected).all(|(&a, &b)| same_bits(f32::from_bits(a), b))
                        }
                        _ => run.words(value) == Some(found),
                    };
                    if !equal {
                        let app = graph.arena.producer(value);
                        let callee = graph.module.callee_name(graph.signature(app).callee);
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
fn plans_that_draw_noise_are_proved() {
    sweep("plans in training", Options::new(Profile::Medium), true);
}

#[test]
fn plans_of_trees_chains_and_lattices_are_proved() {
    sweep("plans of trees", Options::new(Profile::Trees), false);
    sweep("plans of chains", Options::new(Profile::Chains), false);
    sweep("plans of lattices", Options::new(Profile::Lattices), false);
}

#[test]
fn plans_with_wild_numbers_are_proved() {
    sweep("plans of wild graphs", Options::new(Profile::Medium).wild(), false);
}
