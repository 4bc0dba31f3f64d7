//! Growing plans: old steps and rows stay, and executing only the new steps gives the bits of the whole plan.

use crate::agreement::{executed, planner, same_words, verified};
use crate::graphs::{Random, weights};
use autobatch_ir::ValueId;
use autobatch_ir::graph::{Graph, GraphData};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, Plan};
use autobatch_oracle::check::{Wanted, check};
use autobatch_oracle::naive::{Executed, resume};
use autobatch_oracle::reference;
use autobatch_planner::{Grown, Request, RowOrder};
use autobatch_testing::growing::{Known, model};
use autobatch_testing::trials::trials;

/// The words of a value, by the reference evaluator.
fn meant(graph: &GraphData, value: ValueId) -> Vec<u32> {
    let run = reference::forward::<f32>(graph, &weights(graph), reference::Noise::Off).expect("in range");
    run.floats(value).expect("a vector").iter().map(|x| x.to_bits()).collect()
}

fn resumed(plan: &Plan, graph: &GraphData, before: &Executed, first: usize, what: &str) -> Executed {
    let (weights, bound) = (weights(graph), &graph.bindings);
    let stores: Vec<&[f32]> = weights.iter().map(|param| param.values()).collect();
    let plan = verified(plan.clone(), what);
    resume(&plan, before, first, &stores, &bound.words, &bound.floats, Noise::Off).expect("in range")
}

/// Whether the pools of a plan begin with those of another.
pub(crate) fn begins_with(plan: &Plan, earlier: &Plan) -> bool {
    plan.steps.starts_with(&earlier.steps)
        && plan.operands.starts_with(&earlier.operands)
        && plan.places.starts_with(&earlier.places)
        && plan.store_args.starts_with(&earlier.store_args)
        && plan.tables.starts_with(&earlier.tables)
        && plan.lanes.starts_with(&earlier.lanes)
        && plan.waves.starts_with(&earlier.waves)
        && plan.kernels.starts_with(&earlier.kernels)
        && plan.fields.starts_with(&earlier.fields)
}

#[test]
fn a_grown_plan_continues_over_the_old_rows_with_the_bits_of_the_whole() {
    let (module, model) = model();
    let (mut deltas, mut old_rows_read) = (0, 0);
    for seed in 0..trials(150, 5_000) {
        let mut random = Random(seed);
        let g = Graph::new(&module);
        let mut known = Known::default();
        let mut planner = planner(["auto", "depth", "none"][random.below(3)]);
        let rows = [RowOrder::Batch, RowOrder::Propagated][random.below(2)];
        let mut kept: Option<(Grown, Executed)> = None;
        for round in 0..1 + random.below(6) {
            (0..1 + random.below(12))
                .for_each(|_| model.act(&g, &mut known, &mut |limit| random.below(limit)));
            let wanted: Vec<ValueId> =
                (0..1 + random.below(3)).filter_map(|_| known[random.below(known.len())].id()).collect();
            let what = format!("seed {seed} round {round} {rows:?}");
            let graph = g.data();
            let request = Request { wanted: &wanted, rows, ..Request::default() };
            let (grown, run) = match kept.take() {
                None => {
                    let grown = planner.begin(&graph, &request).expect("the request has values");
                    let run = executed(&verified(grown.plan().clone(), &what), &graph, Noise::Off);
                    (grown, run)
                }
                Some((mut grown, before)) => {
                    let earlier = grown.plan().clone();
                    if random.below(4) == 0 {
                        // The planner's memory of lists is that of another plan, then.
                        planner.begin(&graph, &request).expect("the request has values");
                    }
                    let delta = planner.grow(&graph, &request, &mut grown).expect("the request has values");
                    assert!(begins_with(grown.plan(), &earlier), "{what}: old steps changed");
                    assert_eq!(delta.steps.start, earlier.steps.len(), "{what}");
                    assert_eq!(delta.waves, earlier.waves.len()..grown.plan().waves.len(), "{what}");
                    deltas += 1;
                    old_rows_read += usize::from(wanted.iter().any(|&value| {
                        grown.place(value).is_some_and(|(field, row)| {
                            let slab = grown.plan().field(field).slab;
                            earlier.slabs.get(slab.index()).is_some_and(|slab| row < slab.rows)
                        })
                    }));
                    let run = resumed(grown.plan(), &graph, &before, delta.steps.start, &what);
                    (grown, run)
                }
            };
            let plan = verified(grown.plan().clone(), &what);
            assert_eq!(plan.mode, Mode::Grow);
            check(&plan, &graph, Wanted { values: &wanted, training: false })
                .unwrap_or_else(|report| panic!("{what}: {report}"));
            let whole = executed(&plan, &graph, Noise::Off);
            for (number, &value) in wanted.iter().enumerate() {
                let found = run.output(number).expect("an output");
                assert!(same_words(&meant(&graph, value), found), "{what}: {value} differs");
                assert_eq!(whole.output(number), Some(found), "{what}: {value} by the whole plan");
            }
            kept = Some((grown, run));
        }
    }
    assert!(deltas > 100 && old_rows_read > 20, "only {deltas} deltas, {old_rows_read} read old rows");
}

#[test]
fn existing_values_are_not_planned_again() {
    let (module, model) = model();
    let g = Graph::new(&module);
    let [h, c] = g.call(model.leaf, 3);
    let wanted: Vec<ValueId> = [h, c].iter().filter_map(|value| value.id()).collect();
    let request = Request { wanted: &wanted, ..Request::default() };
    let mut planner = planner("auto");
    let mut grown = planner.begin(&g.data(), &request).expect("the request has values");
    let [root, _] = g.call(model.node, [h, c, h, c]);
    let delta = planner.grow(&g.data(), &request, &mut grown).expect("the request has values");
    assert!(delta.steps.is_empty() && delta.waves.is_empty(), "the request has no new values: {delta:?}");
    let wanted: Vec<ValueId> = root.id().into_iter().collect();
    let request = Request { wanted: &wanted, ..Request::default() };
    let delta = planner.grow(&g.data(), &request, &mut grown).expect("the request has values");
    assert_eq!((delta.steps.len(), delta.waves.len()), (1, 1), "one node is new");
    let plan = verified(grown.into_plan(), "the grown plan");
    check(&plan, &g.data(), Wanted { values: &wanted, training: false }).expect("the plan computes the root");
}
