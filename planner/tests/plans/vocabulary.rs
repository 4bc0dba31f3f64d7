//! Models that use many ops: shapes, elementwise functions, and sources as outputs.

use crate::graphs::{Random, finish, output};
use autobatch_ir::graph::{Graph, GraphData};
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_ir::types::{DType, Type, f32};

pub(crate) fn shapes(random: &mut Random) -> GraphData {
    let mut m = ModuleBuilder::new("shapes");
    let w = m.param("w", [4, 6], Init::Glorot(1.0));
    let b = m.param("b", 6, Init::ZEROS);
    let v = m.param("v", [2, 3], Init::Glorot(1.0));
    let cell = m.cell("cell", [f32([2, 2]), f32([2, 2]), f32(3)], |g, [x, y, z]| {
        let xy = g.affine([x, y], w, Some(b));
        let parts = xy.chunks(1, 2);
        let cut = xy.slice_axis(1, 1..4);
        let wide = g.concat_axis(1, [cut, g.param(v)]);
        let rows = g.concat_axis(0, [parts[0], parts[1]]).softmax();
        let outer = z.outer(z).matmul(z) + z.broadcast([2, 3]).t().max_rows();
        [wide.layer_norm(1e-5), rows.log_softmax(), outer * xy.matmul(wide.t()).sum()]
    });
    let g = Graph::new(&m.build().expect("valid"));
    for key in 0..1 + random.below(3) {
        g.instance(key as u64);
        let x = g.input_shaped([2, 2], &random.floats(4));
        let z = g.input(&random.floats(3));
        let [a, r, o] = g.call(cell, [x, x.t(), z]);
        let [top, places] = a.top_k(2);
        output(&g, "top", top);
        output(&g, "places", places);
        output(&g, "norms", r.norm() + r.logsumexp());
        output(&g, "stacked", g.stack([o, z]).reshape([3, 2]).t());
        let labels = g.indices(&[0, 1, 2, 0].map(|label| (label + random.below(3) as u32) % 3));
        let _ = labels;
        output(&g, "distance", o.mse(z) + o.bce(z.sigmoid()) + o.log_softmax().kl_div(z.softmax()));
        output(&g, "dot", o.dot(z) + o.cross_entropy_with(z.softmax()) + a.min() + a.mean());
    }
    finish(g)
}

pub(crate) fn elementwise(random: &mut Random) -> GraphData {
    let mut m = ModuleBuilder::new("elementwise");
    let cell = m.cell("cell", [f32(4), f32(4), Type::scalar(DType::F32)], |g, [x, y, s]| {
        let a = x.exp().recip() + y.abs().sqrt() * s - s;
        let b = (x / (y.square() + 1.0)).pow(2.0).maximum(y).minimum(s);
        let c = x.less(y).select(a.gelu(), b.silu()).leaky_relu(0.1).elu(0.7).clamp(-0.8, 1.5);
        let d = x.greater_equal(s).cast(DType::F32) + c.softplus().log() + a.sign() * a.sin() - b.cos().erf();
        let whole = g.concat([c, d]);
        [whole.relu() + whole.rsqrt().minimum(3.0), s.tanh() * s, a.slice(1..3)]
    });
    let g = Graph::new(&m.build().expect("valid"));
    for key in 0..1 + random.below(3) {
        g.instance(key as u64);
        let (x, y) = (g.input(&random.floats(4)), g.input(&random.floats(4)));
        let s = y.sum();
        let [wide, number, cut] = g.call(cell, [x, y, s]);
        output(&g, "wide", wide);
        output(&g, "number", number + cut.max());
        let (i, j) = (g.index(random.below(9) as u32), g.index(random.below(9) as u32));
        output(&g, "index", (i + j).maximum(i * j));
        output(&g, "both", i.equal(j).select(x, y).stop_gradient());
    }
    finish(g)
}

/// Outputs that are inputs, constants and parameters; unused values; one value as two outputs; an alone node.
pub(crate) fn sources(random: &mut Random) -> GraphData {
    let mut m = ModuleBuilder::new("sources");
    let p = m.param("p", 4, Init::ZEROS);
    let cell = m.cell("cell", [f32(4)], |g, [x]| [g.param(p), x, g.fill(4, 2.0), x]);
    let g = Graph::new(&m.build().expect("valid"));
    for key in 0..1 + random.below(3) {
        g.instance(key as u64);
        let x = g.input(&random.floats(4));
        let unused = x.tanh();
        let _ = unused.exp();
        let [a, b, c, d] = g.call(cell, x);
        output(&g, "x", x);
        output(&g, "x", x);
        output(&g, "p", g.param(p));
        output(&g, "c", c);
        output(&g, "sum", (a + b * d).alone() + g.fill(4, 3.0));
        output(&g, "list", g.list([x, x, a]).sum());
        output(&g, "label", g.index(random.below(5) as u32));
    }
    finish(g)
}
