//! Every differentiable op and attribute against finite differences.

use super::{Random, check_gradients, emit, mixed, no_params};
use autobatch_ir::graph::Callee;
use autobatch_ir::{DType, Graph, Init, ModuleBuilder, Value, Weights};
use autobatch_oracle::reference::Noise;
use std::collections::BTreeSet;

type Build = for<'g> fn(&'g Graph, &[Value<'g>]) -> Value<'g>;

struct Case {
    name: &'static str,
    /// The shape and range of each input.
    inputs: &'static [(&'static [usize], f32, f32)],
    build: Build,
}

const A: (&[usize], f32, f32) = (&[5], -1.5, 1.5);
const P: (&[usize], f32, f32) = (&[5], 0.3, 2.5);
const M: (&[usize], f32, f32) = (&[3, 4], -1.5, 1.5);
const S: (&[usize], f32, f32) = (&[], 0.4, 1.6);
/// More than sixteen lanes, with a partial group.
const W: (&[usize], f32, f32) = (&[37], -1.5, 1.5);

macro_rules! cases {
    ($($name:literal [$($input:expr),*] |$g:pat_param, $x:ident| $body:expr;)*) => {
        &[$(Case { name: $name, inputs: &[$($input),*], build: |$g, $x| $body },)*]
    };
}

const CASES: &[Case] = cases! {
    "neg" [A] |_, x| -x[0];
    "abs" [A] |_, x| x[0].abs();
    "exp" [A] |_, x| x[0].exp();
    "log" [P] |_, x| x[0].log();
    "sqrt" [P] |_, x| x[0].sqrt();
    "rsqrt" [P] |_, x| x[0].rsqrt();
    "square" [A] |_, x| x[0].square();
    "recip" [P] |_, x| x[0].recip();
    "tanh" [A] |_, x| x[0].tanh();
    "sigmoid" [A] |_, x| x[0].sigmoid();
    "relu" [W] |_, x| x[0].relu();
    "gelu" [W] |_, x| x[0].gelu();
    "silu" [W] |_, x| x[0].silu();
    "softplus" [A] |_, x| x[0].softplus();
    "sin" [A] |_, x| x[0].sin();
    "cos" [A] |_, x| x[0].cos();
    "erf" [A] |_, x| x[0].erf();
    "sign" [A] |_, x| x[0].sign() * x[0];
    "leaky_relu" [W] |_, x| x[0].leaky_relu(0.1);
    "elu" [W] |_, x| x[0].elu(0.7);
    "clamp" [W] |_, x| x[0].clamp(-0.5, 0.75);
    "add" [A, A] |_, x| x[0] + x[1];
    "sub" [A, A] |_, x| x[0] - x[1];
    "mul" [A, A] |_, x| x[0] * x[1];
    "div" [A, P] |_, x| x[0] / x[1];
    "pow" [P, A] |_, x| x[0].pow(x[1]);
    "pow of a negative base" [(&[5], -2.0, -0.5)] |_, x| x[0].pow(3.0);
    "minimum" [W, W] |_, x| x[0].minimum(x[1]);
    "maximum" [W, W] |_, x| x[0].maximum(x[1]);
    "a scalar on the left" [S, W] |_, x| x[0] / (x[1] + 4.0);
    "a scalar on the right" [W, S] |_, x| x[0].maximum(x[1]) - x[1] * x[0];
    "a value combined with itself" [A] |_, x| x[0] * x[0] + x[0];
    "select" [W, W] |_, x| x[0].less(x[1]).select(x[0].square(), x[1]);
    "select of a scalar" [W, S] |_, x| x[0].greater(0.0).select(x[1], x[0]);
    "cast to its own type" [A] |_, x| x[0].cast(DType::F32).square();
    "broadcast" [(&[3, 1], -1.0, 1.0)] |_, x| x[0].broadcast([2, 3, 20]);
    "broadcast of a row" [A] |_, x| x[0].broadcast([3, 5]);
    "matmul" [M, (&[4, 2], -1.0, 1.0)] |_, x| x[0].matmul(x[1]);
    "matmul of a row" [(&[4], -1.0, 1.0), (&[4, 2], -1.0, 1.0)] |_, x| x[0].matmul(x[1]);
    "matmul with a column" [M, (&[4], -1.0, 1.0)] |_, x| x[0].matmul(x[1]);
    "dot" [W, W] |_, x| x[0].dot(x[1]);
    "outer" [A, W] |_, x| x[0].outer(x[1]);
    "concat" [A, W] |g, x| g.concat([x[0], x[1], x[0]]);
    "concat of columns" [M, (&[3, 2], -1.0, 1.0)] |g, x| g.concat([x[0], x[1]]);
    "concat of rows" [M, (&[1, 4], -1.0, 1.0)] |g, x| g.concat_axis(0, [x[0], x[1]]);
    "split" [(&[2, 6], -1.0, 1.0)] |_, x| { let [a, b, _] = x[0].split(); a * b };
    "split of rows" [M] |_, x| x[0].chunks(0, 3)[1];
    "slice" [M] |_, x| x[0].slice(1..3);
    "slice of rows" [M] |_, x| x[0].slice_axis(0, 1..3);
    "reshape" [M] |_, x| x[0].reshape([2, 6]);
    "transpose" [(&[2, 3, 4], -1.0, 1.0)] |_, x| x[0].transpose([2, 0, 1]);
    "pick" [M] |_, x| x[0].pick(2);
    "pick of an element" [A] |_, x| x[0].pick(1);
    "stack" [A, A] |g, x| g.stack([x[0], x[1], x[0]]);
    "sum" [W] |_, x| x[0].sum();
    "mean" [M] |_, x| x[0].mean();
    "max" [W] |_, x| x[0].max();
    "min" [W] |_, x| x[0].min();
    "sum of rows" [M] |_, x| x[0].sum_rows();
    "mean of rows" [M] |_, x| x[0].mean_rows();
    "max of rows" [M] |_, x| x[0].max_rows();
    "min of rows" [M] |_, x| x[0].min_rows();
    "argmax leads nowhere" [A] |_, x| x[0].pick(x[0].argmax());
    "top_k" [M] |_, x| x[0].top_k(2)[0];
    "softmax" [M] |_, x| x[0].softmax();
    "log_softmax" [W] |_, x| x[0].log_softmax();
    "logsumexp" [M] |_, x| x[0].logsumexp();
    "norm" [M] |_, x| x[0].norm();
    "layer_norm" [M] |_, x| x[0].layer_norm(1e-2);
    "layer_norm of many lanes" [W] |_, x| x[0].layer_norm(1e-5);
    "list sum" [A, A] |g, x| g.list([x[0], x[1], x[0]]).sum();
    "list mean" [A, A, A] |g, x| g.list([x[0], x[1], x[2]]).mean();
    "list max" [A, A, A] |g, x| g.list([x[0], x[1], x[2]]).max();
    "wsum" [S, S, A, A] |g, x| g.weighted_sum(g.list([x[0], x[1]]), g.list([x[2], x[3]]));
    "wsum by element" [A, A, A, A] |g, x| g.weighted_sum(g.list([x[0], x[1]]), g.list([x[2], x[3]]));
    "softmax wsum" [S, S, A, A] |g, x| g.softmax_sum(g.list([x[0], x[1]]), g.list([x[2], x[3]]));
    "softmax wsum by element" [A, A, A, A] |g, x| g.softmax_sum(g.list([x[0], x[1]]), g.list([x[2], x[3]]));
    "attend" [A, A, A, A, M, M, M] |g, x| {
        g.attend(x[0], g.list([x[1], x[2], x[3]]), g.list([x[4], x[5], x[6]]), 0.4)
    };
    "pick_neg_log_softmax" [A] |_, x| x[0].cross_entropy(3);
    "pick_neg_log_softmax of rows" [M] |g, x| x[0].cross_entropy(g.indices(&[3, 0, 2]));
    "cross_entropy" [A, P] |_, x| x[0].cross_entropy_with(x[1]);
    "kl_div" [A, P] |_, x| x[0].kl_div(x[1]);
    "mse" [M, M] |_, x| x[0].mse(x[1]);
    "bce" [M, (&[3, 4], 0.1, 0.9)] |_, x| x[0].bce(x[1]);
    "hinge" [A] |_, x| x[0].hinge(2, 1.0);
    "hinge of rows" [M] |g, x| x[0].hinge(g.indices(&[3, 0, 2]), 0.5);
    "dropout" [W] |_, x| x[0].dropout(0.4);
    "one_hot" [A] |g, x| x[0] * g.one_hot(1, 5);
    "mask" [A] |_, x| x[0].mask(&[true, false, true, true, false]).softmax();
};

#[test]
fn every_rule_agrees_with_finite_differences() {
    let module = no_params();
    let weights = Weights::init(&module, 0);
    let mut seen = BTreeSet::new();
    for (number, case) in CASES.iter().enumerate() {
        let mut random = Random(number as u64);
        let graph = emit(&module, |g| {
            g.instance(4);
            let make = |&(shape, low, high): &(&[usize], f32, f32)| {
                let elements = shape.iter().product();
                g.input_shaped(shape, &random.row(elements, low, high))
            };
            let inputs: Vec<Value<'_>> = case.inputs.iter().map(make).collect();
            let result = mixed((case.build)(g, &inputs), &mut random);
            g.loss("loss", result);
        });
        for signature in graph.sigs.items() {
            if let Callee::Op(op) = signature.callee {
                seen.insert(op.spelling());
            }
        }
        check_gradients(case.name, &graph, &weights, Noise::On { seed: 3, step: 5 });
    }
    // Other tests cover ops with parameters and ops without derivatives.
    let elsewhere = [
        "port",
        "param",
        "affine",
        "lookup",
        "label_loss",
        "fork_noise",
        "stop_gradient",
        "scale_gradient",
        "eq",
        "ne",
        "le",
        "ge",
    ];
    let missing: Vec<_> =
        SPELLINGS.split_whitespace().filter(|op| !seen.contains(op) && !elsewhere.contains(op)).collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
}

const SPELLINGS: &str = "port input fill param list neg abs exp log sqrt rsqrt square recip tanh sigmoid relu gelu \
    silu softplus sin cos erf sign leaky_relu elu clamp add sub mul div pow min max eq ne lt le gt ge select cast \
    broadcast affine matmul dot outer concat split slice reshape transpose pick stack reduce argmax top_k softmax \
    log_softmax logsumexp norm layer_norm list_sum list_mean list_max wsum attend lookup one_hot \
    pick_neg_log_softmax label_loss cross_entropy kl_div mse bce hinge dropout fork_noise stop_gradient scale_gradient";

#[test]
fn parameters_and_tables_agree_with_finite_differences() {
    let mut m = ModuleBuilder::new("params");
    let w = m.param("w", [7, 4], Init::Glorot(1.0));
    let b = m.param("b", [4], Init::Normal(0.5));
    let table = m.table("table", [6, 4], Init::Uniform(1.0));
    let v = m.param("v", [3, 4], Init::Normal(1.0));
    let module = m.build().unwrap();
    let weights = Weights::init(&module, 9);
    let mut random = Random(1);
    let graph = emit(&module, |g| {
        let (x, y) = (g.input(&random.row(3, -1.0, 1.0)), g.input(&random.row(4, -1.0, 1.0)));
        let rows = g.input_shaped([5, 7], &random.row(35, -1.0, 1.0));
        let first = g.affine([x, y], w, Some(b)).tanh();
        let second = rows.affine(w, None);
        let third = rows.affine(w, Some(b)).affine_transposed(table.as_param(), None);
        let looked = table.lookup(g, 2) + table.lookup(g, 5) * table.lookup(g, 2);
        let computed = table.row(first.argmax());
        let whole = g.param(v) * 0.5;
        let of_label = y.label_loss(table.as_param(), 4) * y.label_loss(v, first.argmax());
        let values = [first, second, third, looked, computed, whole, of_label];
        for (number, value) in values.into_iter().enumerate() {
            g.loss(&format!("loss{number}"), mixed(value, &mut random));
        }
    });
    check_gradients("parameters", &graph, &weights, Noise::Off);
}
