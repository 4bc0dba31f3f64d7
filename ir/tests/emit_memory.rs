//! A recorded graph is small: at most 48 bytes an application and 4 an operand, spare memory
//! included, and a cleared graph records the next one without allocating for it.

use autobatch_ir::{Cell, Graph, INDEX, Init, ModuleBuilder, f32};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

struct Counting;

static HELD: AtomicIsize = AtomicIsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size() as isize, Ordering::Relaxed);
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's layout is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the block came from `alloc` or `realloc` with this layout.
        unsafe { System.dealloc(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        HELD.fetch_add(size as isize - layout.size() as isize, Ordering::Relaxed);
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the block came from `alloc` or `realloc` with this layout.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn emit(g: &Graph, leaf: Cell<1, 2>, node: Cell<4, 2>, count: usize) {
    let [mut h, mut c] = g.call(leaf, 0);
    for number in 0..count / 2 {
        let [rh, rc] = g.call(leaf, number as u32);
        [h, c] = g.call(node, [h, c, rh, rc]);
    }
}

#[test]
fn an_application_takes_at_most_48_bytes_and_an_operand_4() {
    let mut m = ModuleBuilder::new("memory");
    let embed = m.table("embed", [1 << 20, 8], Init::ZEROS);
    let w = m.param("w", [16, 8], Init::ZEROS);
    let leaf = m.cell("leaf", [INDEX], |g, [word]| [embed.row(word), g.zeros([8])]);
    let node = m.cell("node", [f32([8]); 4], |g, [lh, lc, rh, rc]| {
        let h = g.affine([lh, rh], w, None).tanh();
        [h, lc + rc]
    });
    let module = m.build().expect("the model is well typed");
    for count in [5_000, 37_000, 200_000] {
        let mut g = Graph::new(&module);
        let before = HELD.load(Ordering::Relaxed);
        emit(&g, leaf, node, count);
        let held = (HELD.load(Ordering::Relaxed) - before) as usize;
        let (applications, operands, words) = {
            let data = g.data();
            (data.arena.len(), data.arena.operand_pool().len(), data.bindings.words.len())
        };
        // Bound words belong to the instance's data; they double like any vector.
        let allowed = 48 * applications + 4 * operands + 8 * words + 4096;
        assert!(held <= allowed, "{held} bytes for {applications} applications; {allowed} are allowed");
        g.clear();
        let calls = CALLS.load(Ordering::Relaxed);
        emit(&g, leaf, node, count);
        // The names of the few source lines are noted anew; nothing grows with the graph.
        let calls = CALLS.load(Ordering::Relaxed) - calls;
        assert!(calls <= 8, "a cleared graph made {calls} allocations");
    }
}
