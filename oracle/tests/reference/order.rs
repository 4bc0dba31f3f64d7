//! The summation order of contributions, and which values get gradients.

use super::{emit, losses, no_params};
use autobatch_ir::{DType, GraphData, Init, ModuleBuilder, ValueId, Weights};
use autobatch_oracle::reference::{Evaluation, Gradients, Noise};

fn gradients(graph: &GraphData) -> Gradients<f32> {
    let weights = Weights::init(&graph.module, 0);
    let evaluation = Evaluation::<f32>::new(graph, &weights, Noise::Off).unwrap();
    evaluation.reverse(&evaluation.forward().unwrap(), &losses(graph)).unwrap()
}

const X: ValueId = ValueId::new(0);

#[test]
fn contributions_are_summed_from_the_first_use_to_the_last() {
    // (1 + 1e8) - 1e8 is 0 in f32, (-1e8 + 1e8) + 1 is 1.
    let graph = emit(&no_params(), |g| {
        let x = g.input(&[1.0]);
        for (number, factor) in [1.0, 1e8, -1e8].into_iter().enumerate() {
            g.loss(&number.to_string(), (x * factor).sum());
        }
    });
    assert_eq!(gradients(&graph).value(X), Some(&[0.0][..]));
}

#[test]
fn a_list_contributes_at_its_use_and_not_at_its_creation() {
    // (1e8 - 1e8) + 1 is 1 in f32, (1 + 1e8) - 1e8 is 0.
    let graph = emit(&no_params(), |g| {
        let x = g.input(&[1.0]);
        let named = g.list([x]);
        let (a, b) = (x * 1e8, x * -1e8);
        g.loss("a", a.sum());
        g.loss("b", b.sum());
        g.loss("c", named.sum().sum());
    });
    assert_eq!(gradients(&graph).value(X), Some(&[1.0][..]));
}

#[test]
fn operands_of_one_node_contribute_in_order() {
    let graph = emit(&no_params(), |g| {
        let x = g.input(&[1.0]);
        let factors = [1.0, 1e8, -1e8].map(|factor| g.input(&[factor]));
        g.loss("loss", g.weighted_sum(g.list(factors), g.list([x; 3])).sum());
    });
    assert_eq!(gradients(&graph).value(X), Some(&[0.0][..]));
}

#[test]
fn a_loss_counts_as_a_use_after_all_nodes() {
    let graph = emit(&no_params(), |g| {
        let x = g.constant(1.0);
        let _ = [g.loss("a", x * 1e8), g.loss("b", x * -1e8), g.loss("x", x)];
    });
    assert_eq!(gradients(&graph).value(X), Some(&[1.0][..]));
}

#[test]
fn parameters_sum_their_uses_in_ascending_order_also_inside_cells() {
    let mut m = ModuleBuilder::new("uses");
    let w = m.param("w", [1, 1], Init::Constant(1.0));
    let cell =
        m.cell("cell", [autobatch_ir::f32([1]); 2], |_, [x, y]| [x.affine(w, None), y.affine(w, None)]);
    let module = m.build().unwrap();
    let graph = emit(&module, |g| {
        let inputs = [1.0, 1e8, -1e8].map(|number| g.input(&[number]));
        let [a, b] = g.call(cell, [inputs[0], inputs[1]]);
        g.loss("loss", g.list([a, b, inputs[2].affine(w, None)]).sum().sum());
    });
    assert_eq!(gradients(&graph).param(w.id().unwrap()), Some(&[0.0][..]));
}

#[test]
fn values_without_a_path_to_a_loss_have_no_gradient() {
    let mut m = ModuleBuilder::new("dead");
    let used = m.param("used", [2], Init::ZEROS);
    let unused = m.param("unused", [2], Init::ZEROS);
    let module = m.build().unwrap();
    let (mut stopped, mut cast, mut dead) = (None, None, None);
    let graph = emit(&module, |g| {
        let x = g.input(&[1.0, 2.0]);
        let (y, z) = (g.input(&[3.0, 4.0]), g.input(&[3.0, 4.0]));
        [stopped, cast, dead] = [x.id(), y.id(), g.param(unused).id()];
        let counted = y.cast(DType::I32).cast(DType::F32);
        g.loss("loss", (x.stop_gradient() * counted * z.scale_gradient(-2.0) * g.param(used)).sum());
    });
    let gradients = gradients(&graph);
    for id in [stopped, cast, dead] {
        assert_eq!(gradients.value(id.unwrap()), None);
    }
    assert_eq!(gradients.param(unused.id().unwrap()), None);
    assert!(gradients.param(used.id().unwrap()).is_some());
}

#[test]
fn slopes_at_corners_follow_the_documented_conventions() {
    type Case = (&'static str, fn(autobatch_ir::Value<'_>) -> autobatch_ir::Value<'_>, f32, f32);
    let cases: &[Case] = &[
        ("relu", |x| x.relu(), 0.0, 0.0),
        ("abs", |x| x.abs(), 0.0, 0.0),
        ("leaky_relu", |x| x.leaky_relu(0.25), 0.0, 0.25),
        ("elu", |x| x.elu(0.5), 0.0, 0.5),
        ("clamp above", |x| x.clamp(-1.0, 1.0), 1.0, 1.0),
        ("clamp below", |x| x.clamp(-1.0, 1.0), -1.0, 1.0),
        ("clamp outside", |x| x.clamp(-1.0, 1.0), 2.0, 0.0),
        ("norm", |x| x.norm(), 0.0, 0.0),
        ("pow 0 at 0", |x| x.pow(0.0), 0.0, 0.0),
        ("hinge at the margin", |x| x.graph().concat([x, x]).hinge(0, 0.0), 3.0, 0.0),
        ("maximum takes the first", |x| x.maximum(x.scale_gradient(5.0)), 2.0, 1.0),
        ("minimum takes the first", |x| x.minimum(x.scale_gradient(5.0)), 2.0, 1.0),
        ("max takes the first", |x| x.graph().concat([x, x.scale_gradient(5.0)]).max(), 2.0, 1.0),
        ("min takes the first", |x| x.graph().concat([x, x.scale_gradient(5.0)]).min(), 2.0, 1.0),
        ("list max takes the first", |x| x.graph().list([x, x.scale_gradient(5.0)]).max(), 2.0, 1.0),
        ("top_k takes the first", |x| x.graph().concat([x, x.scale_gradient(5.0)]).top_k(1)[0], 2.0, 1.0),
    ];
    for (name, build, at, expected) in cases {
        let graph = emit(&no_params(), |g| {
            let y = build(g.input(&[*at]));
            g.loss("loss", if y.shape().rank() == 0 { y } else { y.sum() });
        });
        assert_eq!(gradients(&graph).value(X), Some(&[*expected][..]), "{name}");
    }
}
