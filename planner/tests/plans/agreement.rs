//! Every policy, row order and mode gives a plan that verifies and has the same bits.

use crate::graphs::{MODELS, Random, weights};
use autobatch_ir::graph::GraphData;
use autobatch_ir::numeric::same_bits;
use autobatch_ir::plan::interp::{Played, play};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, Plan, Verified};
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Planner, Request, RowOrder};

const POLICIES: [&str; 6] = ["none", "depth", "agenda", "ratio", "beam:4", "auto"];

pub(crate) fn planner(policy: &str) -> Planner {
    Planner::new(policy.parse::<Policy>().expect("a policy").load().expect("no file"))
}

fn rounds() -> usize {
    if std::env::var_os("AUTOBATCH_TEST").is_some_and(|value| value == "long") { 200 } else { 6 }
}

fn verified(plan: Plan, what: &str) -> Verified<Plan> {
    plan.verify().unwrap_or_else(|errors| panic!("{what}: {errors}"))
}

pub(crate) fn played(plan: &Verified<Plan>, graph: &GraphData, noise: Noise) -> Played {
    let bound = &graph.bindings;
    play(plan, &weights(graph), &bound.words, &bound.floats, noise).expect("indices are in range")
}

pub(crate) fn same_words(a: &[u32], b: &[u32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| same_bits(f32::from_bits(a), f32::from_bits(b)))
}

#[test]
fn all_policies_orders_and_modes_give_the_same_bits() {
    for (name, model) in MODELS {
        for round in 0..rounds() {
            let graph = model(&mut Random(round as u64));
            for (training, noise) in [(false, Noise::Off), (true, Noise::On { seed: 5, step: 2 })] {
                let mut first: Option<Played> = None;
                for policy in POLICIES {
                    let mut planner = planner(policy);
                    for rows in [RowOrder::Batch, RowOrder::Propagated] {
                        for mode in [Mode::Infer, Mode::Train] {
                            let what = format!("{name} seed {round} {policy} {rows:?} {mode:?} {training}");
                            let request = Request { mode, training, rows, ..Request::default() };
                            let plan = planner.plan(&graph, &request).expect("outputs are wanted");
                            let plan = verified(plan, &what);
                            let run = played(&plan, &graph, noise);
                            let Some(first) = &first else {
                                first = Some(run);
                                continue;
                            };
                            for output in 0..plan.outputs.len() {
                                let (a, b) = (first.output(output), run.output(output));
                                let equal = same_words(a.expect("an output"), b.expect("an output"));
                                assert!(equal, "{what}: output {output} differs: {a:?} {b:?}");
                            }
                        }
                    }
                }
            }
        }
    }
}
