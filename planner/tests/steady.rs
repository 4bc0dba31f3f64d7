//! The second plan of a graph allocates only the memory of the plan itself, each block once and with its final size.

use autobatch_ir::plan::{Mode, Plan};
use autobatch_ir::{Cell, Graph, INDEX, Init, Module, ModuleBuilder, Value, ValueId, f32};
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Gradients, PlanCache, Planner, Request, RowOrder};
use autobatch_testing::hostile::{Counting, Traffic, counted};
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Model {
    leaf: Cell<1, 2>,
    node: Cell<4, 2>,
    fold: Cell<2, 1>,
    /// Takes an index that is an input or a computed value.
    pick: Cell<2, 1>,
}

fn model() -> (Arc<Module>, Model) {
    let mut m = ModuleBuilder::new("steady");
    let embed = m.table("embed", [50, 4], Init::Uniform(0.1));
    let weight = m.param("w", [8, 4], Init::Glorot(1.0));
    let leaf = m.cell("leaf", [INDEX], |g, [word]| [embed.row(word), g.zeros([4])]);
    let node = m.cell("node", [f32([4]); 4], |g, [lh, lc, rh, rc]| {
        let c = g.affine([lh, rh], weight, None).tanh() + lc * rc;
        [c.sigmoid(), c]
    });
    let fold = m.cell("fold", [f32([4]); 2], |_, [a, b]| [a * b]);
    let pick = m.cell("pick", [INDEX, f32([4])], |_, [index, x]| [embed.row(index) + x]);
    (m.build().expect("the model is well typed"), Model { leaf, node, fold, pick })
}

/// Emits chains of different lengths that read sums of earlier states. The graph has types that need a search, lists,
/// constants, shared values, nodes marked `.alone()`, bound and computed indices, and an op with many operands.
fn emit(g: &Graph, model: &Model, chains: usize, wanted: &mut Vec<ValueId>) -> ValueId {
    let common = g.input(&[1.0, 2.0, 3.0, 4.0]).tanh().shared();
    for key in 0..chains {
        g.instance(key as u64);
        let zero = g.zeros([4]);
        let mut states: Vec<[Value<'_>; 2]> = vec![[zero; 2]];
        for at in 0..3 + key % 7 {
            let [x, _] = g.call(model.leaf, (key * 5 + at) as u32 % 50);
            let [h, c] = states[at];
            let extra = match at % 3 {
                2 => g.list([states[at - 1][0], states[at - 2][0]]).sum(),
                _ => zero,
            };
            let [x] = g.call(model.fold, [x, extra]);
            let [x] = match at % 2 {
                0 => g.call(model.pick, (3, x)),
                _ => g.call(model.pick, (x.argmax(), x)),
            };
            states.push(g.call(model.node, [x, c, h, c]));
        }
        let last = states[states.len() - 1][0];
        if key % 16 == 0 {
            let wide = g.stack((0..70).map(|at| states[at % states.len()][0]));
            wanted.extend(wide.id());
        }
        wanted.extend((last + common).id());
        wanted.extend(last.exp().alone().id());
    }
    common.id().expect("the model is well typed")
}

/// Losses with different factors, one of them listed twice, and values whose gradients are requested.
fn differentiable(wanted: &[ValueId], common: ValueId) -> (Vec<(ValueId, f32)>, Vec<ValueId>) {
    let factors = [1.0, 0.5, 0.25].into_iter().cycle();
    let mut losses: Vec<_> = wanted.iter().copied().zip(factors).collect();
    losses.push((wanted[0], 2.0));
    (losses, [common].into_iter().chain(wanted.iter().copied().step_by(5)).collect())
}

/// The memory traffic of planning a second time, and that of a copy of the plan. A copy allocates just the plan.
fn second_plan(planner: &mut Planner, g: &Graph, request: &Request<'_>) -> [Traffic; 2] {
    let plan = |planner: &mut Planner| planner.plan(&g.data(), request).expect("the request has values");
    let first: Plan = plan(planner);
    let (second, made) = counted(|| plan(planner));
    assert!(first == second, "equal graphs have equal plans");
    let (_, copied) = counted(|| second.clone());
    [made, copied]
}

#[test]
fn the_second_plan_of_a_size_allocates_only_its_output() {
    let (module, model) = model();
    let (mut g, mut wanted) = (Graph::new(&module), Vec::new());
    for policy in Policy::SPELLINGS.into_iter().filter(|policy| !policy.starts_with("fsm")) {
        let policy: Policy = policy.parse().expect("a spelling");
        let mut planner = Planner::new(policy.load().expect("needs no file"));
        for chains in [64, 500, 3] {
            g.clear();
            wanted.clear();
            let common = emit(&g, &model, chains, &mut wanted);
            g.check().expect("the model is well typed");
            let (losses, values) = differentiable(&wanted, common);
            let gradients = Some(Gradients { losses: &losses, params: None, values: &values });
            for rows in [RowOrder::Propagated, RowOrder::Batch] {
                for (mode, gradients) in [(Mode::Infer, None), (Mode::Train, None), (Mode::Train, gradients)]
                {
                    let request = Request { wanted: &wanted, rows, mode, gradients, ..Request::default() };
                    let [made, output] = second_plan(&mut planner, &g, &request);
                    let reverse = gradients.is_some();
                    assert_eq!(
                        made, output,
                        "{policy}, {rows:?}, {mode:?}, reverse {reverse}, {chains} chains"
                    );
                }
            }
        }
    }
}

#[test]
fn a_recycled_plan_lends_only_fitting_memory() {
    let (module, model) = model();
    let (mut g, mut wanted) = (Graph::new(&module), Vec::new());
    let mut planner = Planner::default();
    let mut emit_chains = |chains: usize| {
        g.clear();
        wanted.clear();
        emit(&g, &model, chains, &mut wanted);
        (g.data().clone(), wanted.clone())
    };
    let (large, of_large) = emit_chains(500);
    let (small, of_small) = emit_chains(64);
    let plan = |planner: &mut Planner, is_large: bool| {
        let (data, wanted) = if is_large { (&large, &of_large) } else { (&small, &of_small) };
        planner.plan(data, &Request { wanted, ..Request::default() }).expect("the request has values")
    };
    let (first, other) = (plan(&mut planner, true), plan(&mut planner, false));
    let (_, output) = counted(|| first.clone());
    let at = first.tables.as_ptr();
    planner.recycle(first.clone());
    planner.recycle(first);
    let (second, made) = counted(|| plan(&mut planner, true));
    assert_eq!(second.tables.as_ptr(), at, "the memory of the recycled plan");
    assert!(made.bytes < output.bytes / 8 && made.freed < 4, "{made:?}, expected an eighth of {output:?}");
    assert_eq!(plan(&mut planner, true), second, "recycled memory is reused once");
    planner.recycle(second);
    let smaller = plan(&mut planner, false);
    assert_eq!(smaller, other);
    assert_eq!(
        smaller.tables.capacity(),
        smaller.tables.len(),
        "a small plan does not reuse much larger lists"
    );
}

#[test]
fn a_hit_of_the_cache_allocates_nothing() {
    let (module, model) = model();
    let g = Graph::new(&module);
    let mut wanted = Vec::new();
    emit(&g, &model, 200, &mut wanted);
    let request = Request { wanted: &wanted, ..Request::default() };
    let (mut planner, mut cache) = (Planner::default(), PlanCache::new(4));
    let (data, policy) = (g.data(), planner.policy());
    let mut get = || {
        cache
            .get_or_plan(&data, &request, policy, None, |_| {
                planner.plan(&data, &request).expect("the request has values").verify()
            })
            .expect("the plan follows the rules")
    };
    let first = get();
    let (second, made) = counted(&mut get);
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(made, Traffic { blocks: 0, bytes: 0, freed: 0 }, "a hit of the cache");
}
