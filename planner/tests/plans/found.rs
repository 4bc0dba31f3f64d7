//! Small graphs from failures of random tests: nodes with several results whose rows one slot reads (it then reads a lane more
//! than once, but no row), `alone` marks on sources, and registers that a cell also returns in other shapes.

use crate::agreement::planner;
use autobatch_ir::graph::{Graph, GraphData, Value};
use autobatch_ir::id::ValueId;
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_ir::plan::{GroupRule, Mode};
use autobatch_oracle::check::{Wanted, check, check_losses};
use autobatch_planner::{Gradients, Request, RowOrder};
use autobatch_testing::hostile::measured;

#[test]
fn an_alone_source_shares_a_batch_with_other_sources() {
    let module = ModuleBuilder::new("sources").build().expect("valid");
    let g = Graph::new(&module);
    let (x, y) = (g.input(&[1.0]), g.input(&[2.0]).alone());
    let wanted: Vec<_> = (x + y).id().into_iter().collect();
    let graph = g.finish().expect("valid");
    for policy in ["none", "auto"] {
        let plan = planner(policy).plan(&graph, &Request { wanted: &wanted, ..Request::default() });
        let plan = plan.expect("the request has a value").verify().expect("valid");
        check(&plan, &graph, Wanted { values: &wanted, training: false }).expect("a correct plan");
    }
}

#[test]
fn a_loss_over_a_large_vocabulary_is_proved_on_few_lanes() {
    let mut m = ModuleBuilder::new("vocabulary");
    let scores = m.param("scores", [60_000], Init::Uniform(1.0));
    let module = m.build().expect("valid");
    let g = Graph::new(&module);
    let loss = g.param(scores).cross_entropy(59_999).id();
    let losses: Vec<_> = loss.into_iter().map(|id| (id, 1.0)).collect();
    let graph = g.finish().expect("valid");
    let gradients = Some(Gradients { losses: &losses, params: None, values: &[] });
    let request = Request { mode: Mode::Train, gradients, ..Request::default() };
    let plan =
        planner("auto").plan(&graph, &request).expect("a parameter is trained").verify().expect("valid");
    let wanted = Wanted { values: &[], training: false };
    let (proof, peak) = measured(|| check_losses(&plan, &graph, wanted, &losses));
    assert_eq!(proof.expect("a correct plan").params.len(), 1);
    // One lane for every word would have 3,600 million elements.
    assert!(peak < 1 << 30, "the proof takes {peak} bytes");
}

#[test]
fn one_slot_reads_several_results_of_a_lane_and_those_of_a_neighbour_batch() {
    let module = ModuleBuilder::new("halves").build().expect("valid");
    for (halves, before, after) in [(1, 1, 0), (1, 0, 1), (2, 3, 0), (3, 0, 2), (2, 1, 1)] {
        let g = Graph::new(&module);
        let single = |count: u32| -> Vec<Value<'_>> { (0..count).map(|_| g.input(&[0.5]).tanh()).collect() };
        let mut read = single(before);
        for _ in 0..halves {
            let [a, b] = g.input(&[0.25, 0.75]).relu().split();
            read.extend([a, b]);
        }
        read.extend(single(after));
        let wanted: Vec<_> = read.into_iter().filter_map(|value| value.square().id()).collect();
        let graph = g.finish().expect("valid");
        for policy in ["depth", "agenda", "auto", "none"] {
            for rows in [RowOrder::Batch, RowOrder::Propagated] {
                let request = Request { wanted: &wanted, rows, ..Request::default() };
                let plan = planner(policy).plan(&graph, &request).expect("the request has values");
                let plan = plan.verify().expect("valid");
                check(&plan, &graph, Wanted { values: &wanted, training: false }).expect("a correct plan");
            }
        }
    }
}

#[test]
fn the_reverse_reads_a_result_that_the_cell_also_returns_in_another_shape() {
    let results = ["%2", "%1, %2", "%2, %1", "%2, %3, %1"];
    for results in results {
        let names = ["%1", "%1, %2", "%1, %2, %3"][results.matches(',').count()];
        let text = format!(
            "autobatch graph 2 module \"m\"
             cell @c(%0: f32[2]) {{
               %1: f32[2] = tanh(%0)  %2: f32[1,2] = stack(%1)  %3: f32[2,1] = reshape{{shape=[2,1]}}(%1)
               return {results}
             }}
             graph %0 = input f32[2] (#[0.5, 1.0]) {names} = call @c(%0)"
        );
        let graph = GraphData::from_text(text).unwrap_or_else(|error| panic!("{error}"));
        let losses: Vec<_> = (1..graph.arena.values()).map(|loss| (ValueId::new(loss), 1.0)).collect();
        let gradients = Some(Gradients { losses: &losses, params: None, values: &[ValueId::new(0)] });
        let request = Request { mode: Mode::Train, gradients, ..Request::default() };
        let plan = planner("auto").plan(&graph, &request).expect("differentiable");
        let plan = plan.verify().unwrap_or_else(|errors| panic!("{results}: {errors}"));
        check_losses(&plan, &graph, Wanted { values: &[], training: false }, &losses)
            .expect("a correct plan");
    }
}

#[test]
fn the_plan_of_a_list_that_all_nodes_read_grows_with_the_nodes() {
    // The search of `auto` once counted every pair of a reader and an item as a gathered row, and planned node by node.
    linear_plan(|g, items| vec![g.list(items); items.len()], GroupRule::All);
}

#[test]
fn the_plan_of_lists_that_grow_from_one_another_grows_with_the_nodes() {
    linear_plan(
        |g, items| {
            let mut lists = vec![g.list(&items[..1])];
            for &item in &items[1..] {
                lists.push(lists[lists.len() - 1].append(item));
            }
            lists
        },
        GroupRule::Prefix,
    );
}

/// Plans for as many readers as items, each of which reads its list, and finds one group.
fn linear_plan(lists: impl for<'g> Fn(&'g Graph, &[Value<'g>]) -> Vec<Value<'g>>, rule: GroupRule) {
    use autobatch_ir::types::{f32, list};
    const NODES: usize = 6000;
    let mut m = ModuleBuilder::new("readers");
    let item = m.cell("item", [f32([1])], |_, [x]| [x * 0.5]);
    let read = m.cell("read", [f32([1]), list(f32([1]))], |_, [x, xs]| [x + xs.mean()]);
    let g = Graph::new(&m.build().expect("valid"));
    let items: Vec<Value<'_>> =
        (0..NODES).flat_map(|number| g.call(item, g.input(&[number as f32]))).collect();
    let lists = lists(&g, &items);
    let read = items.iter().zip(lists).flat_map(|(&x, xs)| g.call(read, [x, xs]));
    let wanted: Vec<ValueId> = read.filter_map(|value| value.id()).collect();
    let graph = g.finish().expect("valid");
    let plan = planner("auto").plan(&graph, &Request { wanted: &wanted, ..Request::default() });
    let plan = plan.expect("values are wanted").verify().expect("valid");
    assert!(plan.steps.len() < 10, "{} steps", plan.steps.len());
    let [group] = *plan.groups else { panic!("{} groups", plan.groups.len()) };
    assert_eq!((group.end as usize, group.len as usize, group.rule), (NODES, NODES, rule));
    assert!(plan.tables.len() < 4 * NODES, "{} entries", plan.tables.len());
    check(&plan, &graph, Wanted { values: &wanted, training: false }).expect("a correct plan");
}
