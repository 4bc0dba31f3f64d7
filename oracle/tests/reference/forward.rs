//! Every op against independently computed values.

use super::{Random, emit, no_params};
use autobatch_ir::{DType, Graph, GraphData, INDEX, Init, ModuleBuilder, Type, Value, ValueId, Weights, f32};
use autobatch_oracle::reference::{Datum, Evaluation, Noise, Run};

type Build = for<'g> fn(&'g Graph) -> Value<'g>;

fn run(graph: &GraphData) -> Run<f64> {
    let weights = Weights::init(&graph.module, 0);
    Evaluation::<f64>::new(graph, &weights, Noise::Off).unwrap().forward().unwrap()
}

/// The last value of a graph, of any type.
fn last(build: Build) -> Vec<f64> {
    let mut id = None;
    let graph = emit(&no_params(), |g| id = build(g).id());
    match run(&graph).value(id.unwrap()).unwrap() {
        Datum::Floats(elements) => elements.to_vec(),
        Datum::Words(words) => words.iter().map(|&word| f64::from(word)).collect(),
        Datum::List(_) => panic!("a list has no elements"),
    }
}

fn check(cases: &[(&str, Build, &[f64])]) {
    for (name, build, expected) in cases {
        let found = last(*build);
        let same = |(a, b): (&f64, &f64)| a == b || (a - b).abs() <= 1e-12 * b.abs().max(1.0);
        let agree = found.len() == expected.len() && found.iter().zip(*expected).all(same);
        assert!(agree, "{name}: found {found:?}, expected {expected:?}");
    }
}

const NEG_INF: f64 = f64::NEG_INFINITY;

#[test]
fn elementwise_ops_compute_the_expected_values() {
    let x = [-2.0f64, -0.5, 0.0, 0.75, 3.0];
    type Case = (&'static str, fn(Value<'_>) -> Value<'_>, fn(f64) -> f64);
    let cases: &[Case] = &[
        ("neg", |x| -x, |x| -x),
        ("abs", |x| x.abs(), f64::abs),
        ("exp", |x| x.exp(), f64::exp),
        ("log", |x| (x + 4.0).log(), |x| (x + 4.0).ln()),
        ("sqrt", |x| (x + 4.0).sqrt(), |x| (x + 4.0).sqrt()),
        ("rsqrt", |x| (x + 4.0).rsqrt(), |x| (x + 4.0).powf(-0.5)),
        ("square", |x| x.square(), |x| x * x),
        ("recip", |x| (x + 4.0).recip(), |x| 1.0 / (x + 4.0)),
        ("tanh", |x| x.tanh(), f64::tanh),
        ("sigmoid", |x| x.sigmoid(), |x| 1.0 / (1.0 + (-x).exp())),
        ("relu", |x| x.relu(), |x| x.max(0.0)),
        ("silu", |x| x.silu(), |x| x / (1.0 + (-x).exp())),
        ("softplus", |x| x.softplus(), |x| (1.0 + x.exp()).ln()),
        ("sin", |x| x.sin(), f64::sin),
        ("cos", |x| x.cos(), f64::cos),
        ("sign", |x| x.sign(), |x| if x == 0.0 { 0.0 } else { x.signum() }),
        ("leaky_relu", |x| x.leaky_relu(0.25), |x| if x < 0.0 { 0.25 * x } else { x }),
        ("elu", |x| x.elu(0.5), |x| if x > 0.0 { x } else { 0.5 * x.exp_m1() }),
        ("clamp", |x| x.clamp(-1.0, 1.0), |x| x.clamp(-1.0, 1.0)),
        ("add a number", |x| x + 0.5, |x| x + 0.5),
        ("number minus", |x| 0.5 - x, |x| 0.5 - x),
        ("pow", |x| (x + 4.0).pow(1.5), |x| (x + 4.0).powf(1.5)),
        ("minimum", |x| x.minimum(0.5), |x| x.min(0.5)),
        ("maximum", |x| x.maximum(0.5), |x| x.max(0.5)),
        ("div", |x| x / 3.0, |x| x / 3.0),
        ("equal", |x| x.equal(0.75), |x| f64::from(x == 0.75)),
        ("not_equal", |x| x.not_equal(0.75), |x| f64::from(x != 0.75)),
        ("less", |x| x.less(0.75), |x| f64::from(x < 0.75)),
        ("less_equal", |x| x.less_equal(0.75), |x| f64::from(x <= 0.75)),
        ("greater", |x| x.greater(0.75), |x| f64::from(x > 0.75)),
        ("greater_equal", |x| x.greater_equal(0.75), |x| f64::from(x >= 0.75)),
        ("select", |x| x.greater(0.0).select(x.square(), x), |x| if x > 0.0 { x * x } else { x }),
        ("stop_gradient", |x| x.stop_gradient(), |x| x),
        ("scale_gradient", |x| x.scale_gradient(3.0), |x| x),
        ("softmax of one", |x| x.reshape([5, 1]).softmax(), |_| 1.0),
    ];
    for (name, build, expected) in cases {
        let mut id = None;
        let graph = emit(&no_params(), |g| id = build(g.input(&x.map(|x| x as f32))).id());
        let run = run(&graph);
        let found: Vec<f64> = match run.value(id.unwrap()).unwrap() {
            Datum::Floats(elements) => elements.to_vec(),
            Datum::Words(words) => words.iter().map(|&word| f64::from(word)).collect(),
            Datum::List(_) => panic!("a list has no elements"),
        };
        for (found, x) in found.iter().zip(x) {
            let expected = expected(x);
            assert!((found - expected).abs() <= 1e-12, "{name}({x}) is {expected}, found {found}");
        }
    }
    check(&[
        ("erf", |g| g.input(&[0.5, -1.0]).erf(), &[0.520_499_877_813_046_5, -0.842_700_792_949_714_9]),
        ("gelu", |g| g.input(&[1.0, -1.0]).gelu(), &[0.841_344_746_068_542_9, -0.158_655_253_931_457_05]),
    ]);
}

#[test]
fn integers_and_casts_compute_the_expected_values() {
    check(&[
        ("u32 wraps", |g| g.indices(&[0, 5]) - g.indices(&[1, 2]), &[4_294_967_295.0, 3.0]),
        ("u32 mul", |g| g.indices(&[3, 1 << 31]) * 2.0, &[6.0, 0.0]),
        ("u32 max", |g| g.indices(&[3, u32::MAX]).maximum(7.0), &[7.0, 4_294_967_295.0]),
        (
            "i32 min is signed",
            |g| (-g.input(&[4.0, -4.0])).cast(DType::I32).minimum(1.0).cast(DType::F32),
            &[-4.0, 1.0],
        ),
        (
            "i32 max is signed",
            |g| g.input(&[-4.0, 4.0]).cast(DType::I32).maximum(1.0).cast(DType::F32),
            &[1.0, 4.0],
        ),
        ("i32 less is signed", |g| g.input(&[-4.0, 4.0]).cast(DType::I32).less(1.0), &[1.0, 0.0]),
        (
            "u32 less is not",
            |g| g.input(&[-4.0, 4.0]).cast(DType::I32).cast(DType::U32).less(9.0),
            &[0.0, 1.0],
        ),
        (
            "u32 truncates and saturates",
            |g| g.input(&[2.9, -7.0, 1e20, f32::NAN]).cast(DType::U32),
            &[2.0, 0.0, 4_294_967_295.0, 0.0],
        ),
        (
            "i32 truncates and saturates",
            |g| g.input(&[-2.9, -1e20]).cast(DType::I32).cast(DType::F32),
            &[-2.0, -2_147_483_648.0],
        ),
        ("bool", |g| g.input(&[0.0, -0.0, 0.1, f32::NAN]).cast(DType::Bool), &[0.0, 0.0, 1.0, 1.0]),
        ("bool of words", |g| g.indices(&[0, 7]).cast(DType::Bool).cast(DType::F32), &[0.0, 1.0]),
        (
            "select of words",
            |g| g.indices(&[1, 9]).less(5.0).select(g.indices(&[10, 20]), g.index(3)),
            &[10.0, 3.0],
        ),
        ("mask", |g| g.input(&[1.0, 2.0]).mask(&[true, false]), &[1.0, NEG_INF]),
    ]);
}

#[test]
fn moves_copy_every_element_to_its_position() {
    fn m(g: &Graph) -> Value<'_> {
        g.input_shaped([2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    }
    check(&[
        ("concat", |g| g.concat([m(g), m(g).slice(0..1)]), &[1.0, 2.0, 3.0, 1.0, 4.0, 5.0, 6.0, 4.0]),
        (
            "concat rows",
            |g| g.concat_axis(0, [m(g), m(g).slice_axis(0, 1..2)]),
            &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 4.0, 5.0, 6.0],
        ),
        ("split", |g| m(g).chunks(1, 3)[1], &[2.0, 5.0]),
        ("split rows", |g| m(g).chunks(0, 2)[1], &[4.0, 5.0, 6.0]),
        ("slice", |g| m(g).slice(1..3), &[2.0, 3.0, 5.0, 6.0]),
        ("reshape", |g| m(g).reshape([3, 2]).pick(1), &[3.0, 4.0]),
        ("transpose", |g| m(g).t(), &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]),
        (
            "transpose of rank 3",
            |g| m(g).reshape([1, 2, 3]).transpose([2, 0, 1]),
            &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0],
        ),
        ("pick", |g| m(g).pick(1), &[4.0, 5.0, 6.0]),
        ("stack", |g| g.stack([g.input(&[1.0, 2.0]), g.input(&[3.0, 4.0])]).t(), &[1.0, 3.0, 2.0, 4.0]),
        (
            "broadcast",
            |g| g.input_shaped([2, 1], &[1.0, 2.0]).broadcast([2, 2, 2]),
            &[1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0],
        ),
        ("concat of words", |g| g.concat([g.indices(&[1]), g.indices(&[2, 3])]), &[1.0, 2.0, 3.0]),
        ("one_hot", |g| g.one_hot(1, 3), &[0.0, 1.0, 0.0]),
        ("fill", |g| g.fill([3], -1.5), &[-1.5; 3]),
    ]);
}

#[test]
fn row_reductions_compute_the_expected_values() {
    fn m(g: &Graph) -> Value<'_> {
        g.input_shaped([2, 3], &[3.0, -1.0, 3.0, 4.0, 6.0, 5.0])
    }
    let e = |x: f64| x.exp();
    let z = [e(3.0) + e(-1.0) + e(3.0), e(4.0) + e(6.0) + e(5.0)];
    check(&[
        ("sum", |g| m(g).sum(), &[20.0]),
        ("mean", |g| m(g).mean(), &[20.0 / 6.0]),
        ("max", |g| m(g).max(), &[6.0]),
        ("min", |g| m(g).min(), &[-1.0]),
        ("sum of rows", |g| m(g).sum_rows(), &[5.0, 15.0]),
        ("mean of rows", |g| m(g).mean_rows(), &[5.0 / 3.0, 5.0]),
        ("max of rows", |g| m(g).max_rows(), &[3.0, 6.0]),
        ("min of rows", |g| m(g).min_rows(), &[-1.0, 4.0]),
        ("argmax", |g| m(g).argmax(), &[0.0, 1.0]),
        ("top_k values", |g| m(g).top_k(2)[0], &[3.0, 3.0, 6.0, 5.0]),
        ("top_k indices", |g| m(g).top_k(2)[1], &[0.0, 2.0, 1.0, 2.0]),
        ("softmax", |g| m(g).softmax().pick(1), &[e(4.0) / z[1], e(6.0) / z[1], e(5.0) / z[1]]),
        (
            "log_softmax",
            |g| m(g).log_softmax().pick(0),
            &[3.0 - z[0].ln(), -1.0 - z[0].ln(), 3.0 - z[0].ln()],
        ),
        ("logsumexp", |g| m(g).logsumexp(), &[z[0].ln(), z[1].ln()]),
        ("norm", |g| m(g).norm(), &[19.0f64.sqrt(), 77.0f64.sqrt()]),
        (
            "layer_norm",
            |g| m(g).layer_norm(0.25).pick(1),
            &[-1.0 / (2.0f64 / 3.0 + 0.25).sqrt(), 1.0 / (2.0f64 / 3.0 + 0.25).sqrt(), 0.0],
        ),
    ]);
}

#[test]
fn list_folds_compute_the_expected_values() {
    fn l(g: &Graph) -> Value<'_> {
        g.list([g.input(&[1.0, 5.0]), g.input(&[3.0, -2.0]), g.input(&[2.0, 0.0])])
    }
    fn s(g: &Graph) -> Value<'_> {
        g.list([g.constant(1.0), g.constant(0.0), g.constant(-2.0)])
    }
    let e = |x: f64| x.exp();
    let z = e(1.0) + 1.0 + e(-2.0);
    let a = [e(0.5), e(1.5), e(1.0)];
    let total: f64 = a.iter().sum();
    check(&[
        ("sum", |g| l(g).sum(), &[6.0, 3.0]),
        ("mean", |g| l(g).mean(), &[2.0, 1.0]),
        ("max", |g| l(g).max(), &[3.0, 5.0]),
        ("wsum", |g| g.weighted_sum(s(g), l(g)), &[-3.0, 5.0]),
        ("wsum by element", |g| g.weighted_sum(l(g), l(g)), &[14.0, 29.0]),
        (
            "softmax wsum",
            |g| g.softmax_sum(s(g), l(g)),
            &[(e(1.0) + 3.0 + 2.0 * e(-2.0)) / z, (5.0 * e(1.0) - 2.0) / z],
        ),
        (
            "attend",
            |g| g.attend(g.input(&[1.0, 0.0]), l(g), l(g), 0.5),
            &[(a[0] + 3.0 * a[1] + 2.0 * a[2]) / total, (5.0 * a[0] - 2.0 * a[1]) / total],
        ),
        ("empty sum", |g| g.empty_list(f32([2])).sum(), &[0.0, 0.0]),
        ("empty max", |g| g.empty_list(f32([2])).max(), &[0.0, 0.0]),
        (
            "empty attend",
            |g| g.attend(g.zeros([2]), g.empty_list(f32([2])), g.empty_list(f32([3])), 1.0),
            &[0.0; 3],
        ),
    ]);
}

#[test]
fn products_and_losses_compute_the_expected_values() {
    fn m(g: &Graph) -> Value<'_> {
        g.input_shaped([2, 2], &[1.0, 2.0, 3.0, 4.0])
    }
    fn x(g: &Graph) -> Value<'_> {
        g.input(&[1.0, -1.0, 0.5])
    }
    let z = 1.0f64.exp() + (-1.0f64).exp() + 0.5f64.exp();
    let soft = |x: f64| (1.0 + x.exp()).ln();
    check(&[
        ("matmul", |g| m(g).matmul(m(g)), &[7.0, 10.0, 15.0, 22.0]),
        ("row times matrix", |g| g.input(&[1.0, 10.0]).matmul(m(g)), &[31.0, 42.0]),
        ("matrix times column", |g| m(g).matmul(g.input(&[1.0, 10.0])), &[21.0, 43.0]),
        ("dot", |g| x(g).dot(x(g)), &[2.25]),
        ("outer", |g| g.input(&[2.0, 3.0]).outer(g.input(&[5.0, 7.0])), &[10.0, 14.0, 15.0, 21.0]),
        ("pick_neg_log_softmax", |g| x(g).cross_entropy(1), &[z.ln() + 1.0]),
        (
            "of rows",
            |g| m(g).cross_entropy(g.indices(&[0, 1])),
            &[1.0f64.exp().ln_1p(), (-1.0f64).exp().ln_1p()],
        ),
        ("cross_entropy", |g| x(g).cross_entropy_with(g.input(&[0.5, 0.0, 0.5])), &[z.ln() - 0.75]),
        (
            "kl_div",
            |g| x(g).kl_div(g.input(&[0.5, 0.0, 0.25])),
            &[0.5 * (0.5f64.ln() - 1.0) + 0.25 * (0.25f64.ln() - 0.5)],
        ),
        ("mse", |g| m(g).mse(m(g).t()), &[0.5]),
        (
            "bce",
            |g| g.input(&[1.0, -2.0]).bce(g.input(&[1.0, 0.5])),
            &[(soft(-1.0) + soft(-2.0) + 1.0) / 2.0],
        ),
        ("hinge", |g| x(g).hinge(2, 1.0), &[1.5]),
        ("hinge of rows", |g| m(g).hinge(g.indices(&[0, 1]), 0.5), &[1.5, 0.0]),
    ]);
}

#[test]
fn products_in_f32_are_chains_of_fused_multiply_adds() {
    let mut m = ModuleBuilder::new("affine");
    let w = m.param("w", [7, 3], Init::Normal(1.0));
    let t = m.param("t", [3, 7], Init::Normal(1.0));
    let b = m.param("b", [3], Init::Normal(1.0));
    let module = m.build().unwrap();
    let weights = Weights::init(&module, 8);
    let mut random = Random(5);
    let (x, y) = (random.row(10, -1.0, 1.0), random.row(4, -1.0, 1.0));
    let mut ids = Vec::new();
    let graph = emit(&module, |g| {
        let (left, right) = (g.input_shaped([2, 5], &x), g.input_shaped([2, 2], &y));
        let whole = g.concat([left, right]);
        let parts = g.affine([left, right], w, Some(b));
        let results = [parts, whole.affine(w, None), whole.affine_transposed(t, Some(b))];
        ids.extend(results.map(|value| value.id().unwrap()));
    });
    let run = Evaluation::<f32>::new(&graph, &weights, Noise::Off).unwrap().forward().unwrap();
    let [w, t, b] = [w, t, b].map(|param| weights.get(param.id().unwrap()));
    let chain = |row: usize, start: f32, weight: &dyn Fn(usize) -> f32| {
        let row = [&x[row * 5..row * 5 + 5], &y[row * 2..row * 2 + 2]].concat();
        row.iter().enumerate().fold(start, |acc, (k, x)| x.mul_add(weight(k), acc))
    };
    for (row, n) in (0..2).flat_map(|row| (0..3).map(move |n| (row, n))) {
        let found = |id: usize| run.floats(ids[id]).unwrap()[row * 3 + n].to_bits();
        assert_eq!(found(0), chain(row, b[n], &|k| w[k * 3 + n]).to_bits());
        assert_eq!(found(1), chain(row, 0.0, &|k| w[k * 3 + n]).to_bits());
        assert_eq!(found(2), chain(row, b[n], &|k| t[n * 7 + k]).to_bits());
    }
}

#[test]
fn parameters_and_table_rows_are_read() {
    let mut m = ModuleBuilder::new("tables");
    let table = m.table("table", [2, 2], Init::Values([1.0, 2.0, 3.0, 4.0].into()));
    let cell = m.cell("cell", [INDEX], |g, [word]| [table.row(word) + g.param(table.as_param()).pick(word)]);
    let module = m.build().unwrap();
    let graph = emit(&module, |g| {
        let _ = g.call(cell, 1);
    });
    assert_eq!(run(&graph).floats(ValueId::new(0)), Some(&[6.0, 8.0][..]));
}

#[test]
fn lists_store_the_ids_of_their_elements() {
    let mut id = None;
    let graph = emit(&no_params(), |g| {
        let (a, b) = (g.input(&[1.0]), g.input(&[2.0]));
        id = g.list([b, a, b]).id();
    });
    let names: Vec<usize> = run(&graph).list(id.unwrap()).unwrap().iter().map(|id| id.index()).collect();
    assert_eq!(names, [1, 0, 1]);
    assert_eq!(graph.type_of(id.unwrap()), Type { is_list: true, ..f32([1]) });
}
