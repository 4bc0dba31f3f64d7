//! Cells with random bodies: slicing, joining and fusion never change the results of a kernel.

use crate::agreement::{executed, planner, proved, same_words, verified};
use crate::graphs::Random;
use autobatch_ir::graph::{Graph, GraphData, Value};
use autobatch_ir::module::{Cell, Init, ModuleBuilder, Param};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::types::{DType, Type, f32, list};
use autobatch_planner::Request;
use autobatch_testing::trials::trials;

const WIDTHS: [usize; 4] = [1, 2, 4, 6];

/// Emits one more value from the existing values.
fn grow<'g>(g: &'g Graph, pool: &mut Vec<Value<'g>>, weights: &[Param], random: &mut Random) {
    let vector = |value: Value<'g>| if value.shape().rank() == 0 { value.reshape(1) } else { value };
    let x = vector(pool[random.below(pool.len())]);
    let y = vector(pool[random.below(pool.len())]);
    let width = x.shape().elements();
    let scalar = pool.iter().copied().find(|value| value.shape().rank() == 0).unwrap_or_else(|| x.sum());
    let same = pool.iter().rev().copied().find(|value| value.shape() == x.shape()).unwrap_or(x);
    let new = match random.below(18) {
        0 => x.tanh(),
        1 => x + same,
        2 => same * x - x,
        3 => x * scalar,
        4 => scalar - x,
        5 => g.concat([x, y]),
        6 => g.concat([y, x, y]),
        7 if width > 1 => {
            let start = random.below(width);
            x.slice(start..start + 1 + random.below(width - start))
        }
        8 if width.is_multiple_of(2) => {
            let parts = x.chunks(0, 2);
            pool.push(parts[1]);
            parts[0]
        }
        9 if width.is_multiple_of(2) => g.stack(x.chunks(0, 2)).t().reshape(width),
        10 => x.sum(),
        11 if width <= 6 => x.affine(weights[width - 1], Some(weights[6])),
        12 if width < 6 => {
            let left = 6 - width;
            if y.shape().elements() < left {
                x.relu()
            } else {
                g.affine([x, y.slice(0..left)], weights[5], None)
            }
        }
        13 => g.fill(width, 0.5),
        14 => g.list([x, same, x]).mean(),
        15 => g.softmax_sum(g.list([scalar, x.max()]), g.list([same, x])),
        16 => x.less(same).select(same, x).stop_gradient(),
        17 => x.softmax().scale_gradient(2.0),
        _ => x.sigmoid(),
    };
    let new = if new.shape().elements() > 24 { new.slice(0..3) } else { new };
    pool.push(new);
}

fn cell(
    m: &mut ModuleBuilder,
    weights: &[Param],
    inner: Option<Cell<2, 2>>,
    random: &mut Random,
) -> Cell<2, 2> {
    let (a, b) = (WIDTHS[random.below(4)], f32(4));
    let ports = if inner.is_some() { [f32(4), f32(4)] } else { [f32(a), b] };
    m.cell(if inner.is_some() { "outer" } else { "inner" }, ports, |g, [x, y]| {
        let mut pool = vec![x, y];
        for _ in 0..3 + random.below(12) {
            grow(g, &mut pool, weights, random);
            if let Some(inner) = inner
                && random.below(4) == 0
            {
                // The ports of the inner cell have random types, so the arguments are converted to fit.
                let wanted =
                    |width: usize| pool.iter().copied().find(|value| value.shape().dims() == [width as u32]);
                if let (Some(p), Some(q)) = (wanted(inner_width(g, inner)), wanted(4)) {
                    pool.extend(g.call(inner, [p, q]));
                }
            }
        }
        let pick = |random: &mut Random| pool[random.below(pool.len())];
        [pick(random), pick(random)]
    })
}

/// The width of the first port of a cell.
fn inner_width(g: &Graph, cell: Cell<2, 2>) -> usize {
    let data = g.data();
    let signature = data.sigs.get(cell.sig().expect("traced"));
    data.ty(signature.operands[0]).shape.elements()
}

fn graph(random: &mut Random) -> GraphData {
    let mut m = ModuleBuilder::new("bodies");
    let mut weights: Vec<Param> =
        (1..=6).map(|rows| m.param(&format!("w{rows}"), [rows, 3], Init::Glorot(1.0))).collect();
    weights.push(m.param("b", 3, Init::ZEROS));
    let inner = cell(&mut m, &weights, None, random);
    let outer = cell(&mut m, &weights, Some(inner), random);
    let folded = m.cell("folded", [list(f32(4)), Type::scalar(DType::F32)], |g, [xs, s]| {
        let total = xs.sum() * s;
        [g.list([total, xs.max()]).mean(), total]
    });
    let g = Graph::new(&m.build().expect("the test model is valid"));
    for key in 0..3 {
        g.instance(key);
        let inputs: Vec<Value<'_>> = (0..3).map(|_| g.input(&random.floats(4))).collect();
        let [a, b] = g.call(outer, [inputs[0], inputs[1]]);
        let mut pool = vec![a, b, inputs[2]];
        for _ in 0..3 {
            grow(&g, &mut pool, &weights, random);
        }
        let [c, d] = g.call(folded, [g.list(&inputs), inputs[2].sum()]);
        for (number, value) in pool.into_iter().chain([c, d]).enumerate() {
            g.output(&format!("v{key}_{number}"), value);
        }
    }
    g.finish().expect("the test model is valid")
}

#[test]
fn kernels_of_random_cells_compute_the_cells() {
    for seed in 0..trials(300, 20_000) {
        let graph = graph(&mut Random(seed));
        let runs = ["none", "depth"].map(|policy| {
            let what = format!("bodies seed {seed} {policy}");
            let plan = planner(policy).plan(&graph, &Request::default()).expect("the graph has outputs");
            let plan = verified(plan, &what);
            proved(&plan, &graph, false, &what);
            executed(&plan, &graph, Noise::Off)
        });
        for output in 0..runs[0].outputs() {
            let [a, b] = [0, 1].map(|run: usize| runs[run].output(output).expect("an output"));
            assert!(same_words(a, b), "seed {seed}: output {output}: {a:?} {b:?}");
        }
    }
}
