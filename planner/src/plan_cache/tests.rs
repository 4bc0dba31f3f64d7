//! Tests of the plan cache.

use super::*;
use crate::schedule::{Agenda, Auto, Beam, CostTable, Depth, Fsm, Mean, Ratio, Table, Unbatched};
use crate::{Planner, RowOrder};
use autobatch_ir::plan::Mode;
use autobatch_ir::{Graph, ModuleBuilder, ValueId};

fn graph(module: &Arc<autobatch_ir::Module>, numbers: &[f32], twice: bool) -> GraphData {
    let g = Graph::new(module);
    let x = g.input(numbers).tanh();
    g.output("y", if twice { x.tanh() } else { x });
    g.finish().unwrap()
}

fn get(cache: &mut PlanCache, graph: &GraphData) -> Arc<Verified<Plan>> {
    get_by(cache, graph, &mut Planner::default(), None)
}

fn get_by(
    cache: &mut PlanCache,
    graph: &GraphData,
    planner: &mut Planner,
    passes: Option<&Selection>,
) -> Arc<Verified<Plan>> {
    let request = Request::default();
    let policy = planner.policy();
    let plan = |_| planner.plan(graph, &request).unwrap().verify();
    cache.get_or_plan(graph, &request, policy, passes, plan).unwrap()
}

#[test]
fn graphs_that_differ_in_bindings_share_a_plan_and_others_do_not() {
    let module = ModuleBuilder::new("m").build().unwrap();
    let mut cache = PlanCache::new(8);
    let first = get(&mut cache, &graph(&module, &[1.0, 2.0], false));
    let second = get(&mut cache, &graph(&module, &[3.0, 4.0], false));
    assert!(Arc::ptr_eq(&first, &second));
    let other = get(&mut cache, &graph(&module, &[1.0, 2.0], true));
    assert!(!Arc::ptr_eq(&first, &other));
    let wider = get(&mut cache, &graph(&module, &[1.0, 2.0, 3.0], false));
    assert!(!Arc::ptr_eq(&first, &wider));
    assert_eq!(cache.stats(), CacheStats { hits: 1, misses: 3, replanned: 0, evicted: 0 });
}

#[test]
fn the_least_recently_used_plan_is_evicted() {
    let module = ModuleBuilder::new("m").build().unwrap();
    let graphs: Vec<GraphData> = (1..=3).map(|width| graph(&module, &vec![0.5; width], false)).collect();
    let mut cache = PlanCache::new(2);
    for number in [0, 1, 0, 2, 0] {
        get(&mut cache, &graphs[number]);
    }
    assert_eq!(cache.stats(), CacheStats { hits: 2, misses: 3, replanned: 0, evicted: 1 });
    get(&mut cache, &graphs[1]);
    assert_eq!((cache.stats().misses, cache.len()), (4, 2));
}

#[test]
fn the_key_has_everything_that_a_plan_depends_on() {
    let module = ModuleBuilder::new("m").build().unwrap();
    let graph = graph(&module, &[1.0, 2.0], true);
    let wanted = [ValueId::new(0)];
    let plain = Request::default();
    let passes = Selection::none();
    let mut across = passes.clone();
    across.across_instances = true;
    let auto = PolicyId::of(&Auto::default());
    let mut keys = vec![
        key(&graph, &plain, auto, None),
        key(&graph, &plain, PolicyId::of(&Depth), None),
        key(&graph, &plain, auto, Some(&passes)),
        key(&graph, &plain, auto, Some(&passes.clone().with("cse", true).unwrap())),
        key(&graph, &plain, auto, Some(&across)),
        key(&graph, &Request { mode: Mode::Grow, ..plain.clone() }, auto, None),
        key(&graph, &Request { training: true, ..plain.clone() }, auto, None),
        key(&graph, &Request { rows: RowOrder::Batch, ..plain.clone() }, auto, None),
        key(&graph, &Request { wanted: &wanted, ..plain }, auto, None),
    ];
    let number = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), number, "two requests have one key");
}

#[test]
fn policies_with_different_options_have_different_ids() {
    let table = |value: i64| -> Table {
        let state = format!(r#"{{"ready": [0], "values": [[0, {value}]]}}"#);
        let text = format!(r#"{{"names": 2, "types": ["00"], "states": [{state}]}}"#);
        serde_json::from_str(&text).unwrap()
    };
    let mut dear = CostTable::default();
    dear.planning.node_ns += 1.0;
    let policies: [Box<dyn Schedule>; 11] = [
        Box::new(Unbatched),
        Box::new(Depth),
        Box::new(Ratio),
        Box::new(Agenda { mean: Mean::All }),
        Box::new(Agenda { mean: Mean::Remaining }),
        Box::new(Beam::default()),
        Box::new(Beam { width: 9, ..Beam::default() }),
        Box::new(Beam { budget: 1000, ..Beam::default() }),
        Box::new(Fsm { table: table(1) }),
        Box::new(Fsm { table: table(2) }),
        Box::new(Auto { costs: dear }),
    ];
    let ids: Vec<PolicyId> = policies.iter().map(|policy| PolicyId::of(&**policy)).collect();
    for (number, id) in ids.iter().enumerate() {
        assert_eq!(*id, PolicyId::of(&*policies[number]));
        assert!(!ids[..number].contains(id), "{}", policies[number].options());
        assert_ne!(*id, PolicyId::of(&Auto::default()), "{}", policies[number].options());
    }
}

#[test]
fn policies_and_passes_with_different_options_share_no_plan() {
    let module = ModuleBuilder::new("m").build().unwrap();
    let graph = graph(&module, &[1.0, 2.0], true);
    let mut cache = PlanCache::new(8);
    let [mut narrow, mut wide] =
        [4, 16].map(|width| Planner::new(Box::new(Beam { width, ..Beam::default() })));
    let passes = [None, Some(Selection::none()), Some(Selection::none().with("cse", true).unwrap())];
    let mut plans: Vec<Arc<Verified<Plan>>> = Vec::new();
    for passes in &passes {
        plans.push(get_by(&mut cache, &graph, &mut narrow, passes.as_ref()));
        plans.push(get_by(&mut cache, &graph, &mut wide, passes.as_ref()));
    }
    assert_eq!(cache.stats(), CacheStats { hits: 0, misses: 6, replanned: 0, evicted: 0 });
    let again = get_by(&mut cache, &graph, &mut narrow, passes[2].as_ref());
    assert!(Arc::ptr_eq(&again, &plans[4]));
    assert_eq!(cache.stats(), CacheStats { hits: 1, misses: 6, replanned: 0, evicted: 0 });
}

/// Nodes of a graph: which op, and which earlier values it reads.
type Recipe = Vec<(u8, u8, u8)>;

/// The graph of a recipe. No plan depends on `bound`.
fn cooked(module: &Arc<autobatch_ir::Module>, recipe: &Recipe, bound: u64) -> GraphData {
    let g = Graph::new(module);
    let mut known = vec![g.input(&[bound as f32, 1.0])];
    for &(op, a, b) in recipe {
        let [a, b] = [a, b].map(|at| known[usize::from(at) % known.len()]);
        known.push(match op {
            0 => a + b,
            1 => a * b,
            2 => a.tanh(),
            3 => g.list([a, b]).sum(),
            _ => g.input(&[0.5, bound as f32]),
        });
    }
    g.output("y", *known.last().expect("an input"));
    g.finish().unwrap()
}

/// A recipe without the operands that its ops ignore.
fn meaning(recipe: &Recipe) -> Recipe {
    let mut known = 1;
    let reads = |&(op, a, b): &(u8, u8, u8)| {
        known += 1;
        let [a, b] = [a, b].map(|at| (usize::from(at) % (known - 1)) as u8);
        match op {
            0 | 1 | 3 => (op, a, b),
            2 => (op, a, 0),
            _ => (4, 0, 0),
        }
    };
    recipe.iter().map(reads).collect()
}

#[test]
fn a_hundred_thousand_pairs_of_similar_graphs_give_no_wrong_hit() {
    let module = ModuleBuilder::new("m").build().unwrap();
    let (mut random, request, auto) = (7u64, Request::default(), PolicyId::of(&Auto::default()));
    let mut below = |limit: u8| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as u8 % limit
    };
    let base: Recipe = (0..8).map(|_| (below(5), below(8), below(8))).collect();
    let cooked: Vec<(u128, Recipe)> = (0..450)
        .map(|bound| {
            // One or two changes to the same recipe, so that most pairs differ little or not at all.
            let mut recipe = base.clone();
            for _ in 0..1 + below(2) {
                let at = usize::from(below(8));
                recipe[at] = (below(5), below(8), below(8));
            }
            (key(&cooked(&module, &recipe, bound), &request, auto, None), meaning(&recipe))
        })
        .collect();
    let (mut pairs, mut hits) = (0, 0);
    for (number, (key, recipe)) in cooked.iter().enumerate() {
        for (other_key, other) in &cooked[..number] {
            assert_eq!(key == other_key, recipe == other, "{recipe:?} and {other:?}");
            (pairs, hits) = (pairs + 1, hits + u32::from(key == other_key));
        }
    }
    assert!(pairs > 100_000 && hits > 100, "{hits} hits in {pairs} pairs");
}
