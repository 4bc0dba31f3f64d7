//! Memory of recorded graphs: at most 48 bytes per node and 4 per operand, including spare capacity. A
//! cleared graph records the next one without allocations.

use autobatch_ir::{Cell, Graph, INDEX, Init, ModuleBuilder, f32};
use autobatch_testing::hostile::{Counting, allocations, held};

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
fn a_node_takes_at_most_48_bytes_and_an_operand_4() {
    let mut m = ModuleBuilder::new("memory");
    let embed = m.table("embed", [1 << 20, 8], Init::ZEROS);
    let w = m.param("w", [16, 8], Init::ZEROS);
    let leaf = m.cell("leaf", [INDEX], |g, [word]| [embed.row(word), g.zeros([8])]);
    let node = m.cell("node", [f32([8]); 4], |g, [lh, lc, rh, rc]| {
        let h = g.affine([lh, rh], w, None).tanh();
        [h, lc + rc]
    });
    let module = m.build().expect("the model is well-typed");
    for count in [5_000, 37_000, 200_000] {
        let mut g = Graph::new(&module);
        let before = held();
        emit(&g, leaf, node, count);
        let held = (held() - before) as usize;
        let (nodes, operands, words) = {
            let data = g.data();
            (data.arena.len(), data.arena.operand_pool().len(), data.bindings.words.len())
        };
        // Bound words are extra; their vector grows by doubling.
        let allowed = 48 * nodes + 4 * operands + 8 * words + 4096;
        assert!(held <= allowed, "{held} bytes for {nodes} nodes; the limit is {allowed}");
        g.clear();
        let calls = allocations();
        emit(&g, leaf, node, count);
        // Clearing drops the few source lines, which are interned again. Nothing grows with the graph.
        let calls = allocations() - calls;
        assert!(calls <= 8, "a cleared graph made {calls} allocations");
    }
}

#[test]
fn ops_with_many_operands_allocate_nothing() {
    let mut m = ModuleBuilder::new("memory");
    let w = m.param("w", [16, 8], Init::ZEROS);
    let mut g = Graph::new(&m.build().expect("the model is well-typed"));
    let emit = |g: &Graph| {
        let mut recent = [g.zeros([8]); 3];
        for _ in 0..1000 {
            let sum = g.list(recent).sum();
            let product = g.affine([sum, recent[0]], w, None);
            let wide = g.stack([sum, product, recent[1]]).tanh();
            recent = [recent[1], recent[2], product];
            assert!(g.list([wide]).mean().id().is_some(), "the ops are well-typed");
        }
    };
    emit(&g);
    g.check().expect("the model is well-typed");
    g.clear();
    let calls = allocations();
    emit(&g);
    let calls = allocations() - calls;
    // As above, source lines are interned again, and signatures are inferred again.
    assert!(calls <= 80, "a cleared graph made {calls} allocations for 5000 nodes");
}
