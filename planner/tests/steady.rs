//! A planner that has met a graph of the same size before allocates little but its output.

use autobatch_ir::{Cell, Graph, INDEX, Init, Module, ModuleBuilder, Value, ValueId, f32};
use autobatch_planner::{PlanCache, Planner, Request};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell as Counter;
use std::sync::Arc;

thread_local! {
    static BLOCKS: Counter<usize> = const { Counter::new(0) };
    static BYTES: Counter<usize> = const { Counter::new(0) };
}

/// Counts what each thread allocates, so that other tests of the process do not disturb.
struct Counting;

fn count(bytes: usize) {
    // While a thread ends its counters may be gone; what it allocates then is not of interest.
    let _ = BLOCKS.try_with(|blocks| blocks.set(blocks.get() + 1));
    let _ = BYTES.try_with(|total| total.set(total.get() + bytes));
}

// SAFETY: every call goes on to the system's allocator; the counters are plain cells that allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller vouches for the layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the memory came from `alloc`, with this layout.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.saturating_sub(layout.size()));
        // SAFETY: the memory came from `alloc`, with this layout.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a call returns, with the blocks and bytes that it allocated.
fn counted<T>(make: impl FnOnce() -> T) -> (T, [usize; 2]) {
    let before = [BLOCKS.get(), BYTES.get()];
    let made = make();
    (made, [BLOCKS.get() - before[0], BYTES.get() - before[1]])
}

struct Model {
    leaf: Cell<1, 2>,
    node: Cell<4, 2>,
    fold: Cell<2, 1>,
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
    (m.build().expect("the model is well typed"), Model { leaf, node, fold })
}

/// Chains of different lengths that read sums of their own past: parts that need a search, lists and constants.
fn emit(g: &Graph, model: &Model, chains: usize, wanted: &mut Vec<ValueId>) {
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
            states.push(g.call(model.node, [x, c, h, c]));
        }
        wanted.extend(states.last().and_then(|[h, _]| h.id()));
    }
}

/// Blocks and bytes that the second plan allocates, less those of copying what it returns.
fn besides_output(chains: usize) -> [usize; 2] {
    let (module, model) = model();
    let g = Graph::new(&module);
    let mut wanted = Vec::new();
    emit(&g, &model, chains, &mut wanted);
    let request = Request { wanted: &wanted, ..Request::default() };
    let mut planner = Planner::default();
    let first = planner.plan(&g.data(), &request).expect("values are wanted");
    let (second, made) = counted(|| planner.plan(&g.data(), &request).expect("values are wanted"));
    assert!(first == second, "equal graphs have equal plans");
    let (_, copied) = counted(|| second.clone());
    [made[0].saturating_sub(copied[0]), made[1].saturating_sub(copied[1])]
}

#[test]
fn the_second_plan_of_a_size_allocates_few_blocks_besides_its_output_whatever_the_size() {
    let [small, large] = [64, 1024].map(besides_output);
    assert!(small[0] < 250, "{} blocks besides the output", small[0]);
    assert!(
        large[0] < small[0] + 60,
        "{} blocks besides the output, {} of a small graph",
        large[0],
        small[0]
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
            .get_or_plan(&data, &request, policy, None, || {
                planner.plan(&data, &request).expect("values are wanted").verify()
            })
            .expect("the plan keeps the rules")
    };
    let first = get();
    let (second, made) = counted(&mut get);
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(made[0], 0, "blocks allocated by a hit");
}
