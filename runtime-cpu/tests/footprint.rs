//! The footprint of a plan is what an executor allocates, and is known before the executor allocates any of it.

use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Footprint, Mode, Plan, Verified};
use autobatch_ir::{Graph, ModuleBuilder, Weights, f32};
use autobatch_planner::{Gradients, Planner, Request};
use autobatch_runtime_cpu::{Executor, Inputs, footprint};
use autobatch_testing::hostile::{Counting, measured};
use autobatch_testing::random::{Options, Profile, check};
use autobatch_testing::tree_lstm::{Tree, TreeLstm};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Lists of the executor that are small beside the plan: bindings, caches of kernels, and the spare capacity of vectors.
fn small_lists(footprint: &Footprint) -> usize {
    (32 << 10) + 8 * footprint.tables as usize
}

/// Executes a plan on a new executor. Returns the bytes that it held at most, and the bytes that the footprint promises.
fn seen_and_promised(plan: &Verified<Plan>, graph: &GraphData) -> (usize, Footprint) {
    let weights = Weights::init(&graph.module, 3);
    let bound = Inputs { words: &graph.bindings.words, floats: &graph.bindings.floats, noise: Noise::Off };
    let promised = footprint(plan, 1);
    let (executed, seen) = measured(|| {
        let mut executor = Executor::new(1).expect("an instruction set");
        let executed = executor.execute(plan, &weights, bound).map_err(|error| error.to_string());
        (executed, executor)
    });
    executed.0.expect("bindings fit");
    (seen, promised)
}

/// The bytes of a footprint that the executor allocates. The caller holds the plan, the bindings and the parameters.
fn allocated(footprint: &Footprint) -> usize {
    (footprint.memory() - footprint.tables - footprint.bindings - footprint.parameters) as usize
}

#[test]
fn random_plans_allocate_what_their_footprints_say() {
    for mode in [Mode::Infer, Mode::Train] {
        check("footprint", Options::new(Profile::Medium), 60, |graph| {
            let wanted: Vec<ValueId> = (0..graph.arena.values())
                .map(ValueId::new)
                .filter(|&value| !graph.type_of(value).is_list)
                .collect();
            let request = Request { wanted: &wanted, mode, ..Request::default() };
            let plan = Planner::default().plan(graph, &request).map_err(|error| error.to_string())?;
            let plan = plan.verify().map_err(|errors| errors.to_string())?;
            let (seen, promised) = seen_and_promised(&plan, graph);
            let most = allocated(&promised) + small_lists(&promised);
            if seen > most || seen < promised.slabs as usize {
                return Err(format!("{seen} bytes held, {most} promised: {promised:?}"));
            }
            Ok(())
        });
    }
}

#[test]
fn plans_with_gradients_allocate_what_their_footprints_say() {
    let (module, model) = TreeLstm::new(48);
    let graph = Graph::new(&module);
    let losses: Vec<(ValueId, f32)> = Tree::many(40, 1)
        .iter()
        .filter_map(|tree| model.logits(&graph, tree).cross_entropy(1).id())
        .map(|loss| (loss, 1.0))
        .collect();
    let data = graph.data();
    let gradients = Some(Gradients { losses: &losses, params: None, values: &[] });
    // A shard begins behind the loss before it.
    let first = |loss: usize| NodeId::new(data.arena.producer(losses[loss - 1].0).index() + 1);
    for shards in [vec![], vec![first(7), first(11), first(30)]] {
        let request = Request { mode: Mode::Train, gradients, shards: &shards, ..Request::default() };
        let plan = Planner::default().plan(&data, &request).expect("a plan").verify().expect("sound");
        let (seen, promised) = seen_and_promised(&plan, &data);
        let most = allocated(&promised) + small_lists(&promised);
        assert!(
            seen <= most && 10 * seen >= 9 * allocated(&promised),
            "{seen} bytes held, {most} promised: {promised:?}"
        );
        assert!(promised.work > 1_000_000 && promised.gradients > 0, "{promised:?}");
    }
}

#[test]
fn temporaries_and_constants_are_part_of_the_footprint() {
    let mut m = ModuleBuilder::new("wide");
    let wide = m.cell("wide", [f32([4])], |g, [x]| {
        let large = g.fill([600, 700], 0.5).tanh();
        [x + large.sum().broadcast([4])]
    });
    let module = m.build().expect("the model is well typed");
    let graph = Graph::new(&module);
    let [y] = graph.call(wide, graph.input(&[1.0, 2.0, 3.0, 4.0]));
    let values: Vec<ValueId> = y.id().into_iter().collect();
    let data = graph.data();
    let request = Request { wanted: &values, ..Request::default() };
    let plan = Planner::default().plan(&data, &request).expect("a plan").verify().expect("sound");
    let (seen, promised) = seen_and_promised(&plan, &data);
    let large = 4 * 600 * 700;
    assert!(promised.per_thread + promised.copies >= large && promised.slabs < 100, "{promised:?}");
    assert!(
        seen as u64 >= large && seen <= allocated(&promised) + small_lists(&promised),
        "{seen}: {promised:?}"
    );
    let twice = footprint(&plan, 2);
    assert_eq!(twice.memory() - promised.memory(), promised.per_thread);
}
