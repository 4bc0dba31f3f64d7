//! Layers over single values, and losses.

use crate::lab::*;
use autobatch_ir::Init;
use autobatch_nn::{Activation, Embedding, LayerNorm, Linear, Mlp, losses};
use autobatch_oracle::reference::Noise;
use std::sync::Arc;

#[test]
fn a_linear_layer_takes_a_vector_parts_and_rows() {
    let (lab, (layer, bare)) = Lab::with(|m| (Linear::new(m, "l", 4, 3), Linear::no_bias(m, "bare", 4, 3)));
    let v = rows(1, 2, 4);
    let found = lab.eval(|g| {
        let x = g.input(&v[0]);
        let parts = [g.input(&v[0][..1]), g.input(&v[0][1..])];
        let matrix = g.input_shaped([2, 4], &v.concat());
        vec![layer.on(x), layer.on_parts(g, parts), layer.on(matrix), bare.on(x)]
    });
    let [first, second] = [0, 1].map(|k| affine(&wide(&v[k]), &lab.param("l.w"), &lab.param("l.b")));
    close(&found[0], &first);
    close(&found[1], &first);
    close(&found[2], &join(&first, &second));
    close(&found[3], &product(&wide(&v[0]), &lab.param("bare.w")));
}

#[test]
fn an_embedding_looks_up_and_scores_its_rows() {
    let (lab, table) = Lab::with(|m| Embedding::new(m, "e", 5, 2));
    let x = row(1, 2);
    let found = lab.eval(|g| vec![table.lookup(g, 3), table.row(g.index(4)), table.scores(g.input(&x))]);
    let rows = lab.param("e");
    assert_eq!(found[0], rows[6..8]);
    assert_eq!(found[1], rows[8..10]);
    let scores: Vec<f64> = rows.chunks(2).map(|r| mul(r, &wide(&x)).iter().sum()).collect();
    close(&found[2], &scores);
}

#[test]
fn an_embedding_starts_with_the_given_rows() {
    let mut m = autobatch_ir::ModuleBuilder::new("m");
    let values: Arc<[f32]> = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0].into();
    let table = Embedding::from_rows(&mut m, "e", 2, Arc::clone(&values));
    assert_eq!((table.rows(), table.width()), (3, 2));
    let weights = autobatch_ir::Weights::init(&m.build().unwrap(), 1);
    assert_eq!(weights.by_name("e").unwrap(), &*values);
}

#[test]
fn an_mlp_has_no_activation_after_the_last_layer() {
    let (lab, layer) = Lab::with(|m| Mlp::new(m, "f", &[3, 5, 4, 2], Activation::Relu));
    let x = row(1, 3);
    let found = lab.eval(|g| vec![layer.on(g.input(&x))]);
    let mut y = wide(&x);
    for number in 0..3 {
        y = affine(&y, &lab.param(&format!("f.{number}.w")), &lab.param(&format!("f.{number}.b")));
        y = if number < 2 { map(&y, |x| x.max(0.0)) } else { y };
    }
    close(&found[0], &y);
    assert_eq!((layer.inputs(), layer.outputs()), (3, 2));
}

#[test]
fn an_mlp_has_dropout_only_in_training() {
    let (lab, [with, without]) = Lab::with(|m| {
        [0.5, 0.0].map(|rate| Mlp::with_options(m, &format!("f{rate}"), &[3, 64, 2], Activation::Tanh, rate))
    });
    let _ = without;
    let x = row(1, 3);
    let [train, eval] = [Noise::On { seed: 1, step: 1 }, Noise::Off]
        .map(|noise| lab.bits(noise, |g| vec![with.on(g.input(&x))]));
    assert_ne!(train, eval);
    let y = affine(&wide(&x), &lab.param("f0.5.0.w"), &lab.param("f0.5.0.b"));
    let y = affine(&tanh(&y), &lab.param("f0.5.1.w"), &lab.param("f0.5.1.b"));
    close(&lab.eval(|g| vec![with.on(g.input(&x))])[0], &y);
}

#[test]
fn a_layer_norm_has_a_gain_and_a_bias() {
    let (lab, layer) = Lab::with(|m| LayerNorm::new(m, "n", 4));
    let v = rows(1, 2, 4);
    let found = lab.eval(|g| vec![layer.on(g.input_shaped([2, 4], &v.concat()))]);
    let [a, b] = [0, 1].map(|k| add(&mul(&normed(&wide(&v[k])), &lab.param("n.gain")), &lab.param("n.bias")));
    close(&found[0], &join(&a, &b));
}

#[test]
fn activations_compute_their_formulas() {
    let x = row(1, 8);
    let all = [
        Activation::Identity,
        Activation::Tanh,
        Activation::Sigmoid,
        Activation::Relu,
        Activation::LeakyRelu(0.25),
        Activation::Elu(0.5),
        Activation::Silu,
    ];
    let found = Lab::new(|_| ()).eval(|g| all.iter().map(|f| f.on(g.input(&x))).collect());
    let x = wide(&x);
    let expected = [
        x.clone(),
        tanh(&x),
        sigmoid(&x),
        map(&x, |x| x.max(0.0)),
        map(&x, |x| if x > 0.0 { x } else { 0.25 * x }),
        map(&x, |x| if x > 0.0 { x } else { 0.5 * (x.exp() - 1.0) }),
        mul(&x, &sigmoid(&x)),
    ];
    for (found, expected) in found.iter().zip(&expected) {
        close(found, expected);
    }
    let gelu = Lab::new(|_| ()).eval(|g| vec![Activation::Gelu.on(g.input(&[1.0]))]);
    assert!((gelu[0][0] - 0.841_344_746).abs() < 1e-6);
}

fn minus_log_softmax(x: &[f64]) -> Vec<f64> {
    let total: f64 = x.iter().map(|x| x.exp()).sum();
    map(x, |x| total.ln() - x)
}

#[test]
fn sequence_losses_are_sums() {
    let v = rows(1, 3, 4);
    let labels = [2, 0, 3];
    let found = Lab::new(|_| ()).eval(|g| {
        let logits = inputs(g, &v);
        let none: [autobatch_ir::Value<'_>; 0] = [];
        vec![
            losses::sequence_cross_entropy(g, &logits, labels),
            losses::sequence_cross_entropy(g, none, [0; 0]),
        ]
    });
    let expected: f64 = v.iter().zip(labels).map(|(x, y)| minus_log_softmax(&wide(x))[y as usize]).sum();
    close(&found[0], &[expected]);
    assert_eq!(found[1], [0.0]);
}

#[test]
fn missing_labels_and_zero_weights_are_skipped() {
    let v = rows(1, 3, 4);
    let found = Lab::new(|_| ()).eval(|g| {
        let logits = inputs(g, &v);
        let infinite = g.constant(f32::INFINITY);
        let [one, two] = [g.constant(1.0), g.constant(2.0)];
        vec![
            losses::sequence_cross_entropy(g, &logits, [None, Some(1u32), None]),
            losses::sequence_cross_entropy(g, &logits, [None::<u32>; 3]),
            losses::weighted_mean(g, [(3.0, one), (0.0, infinite), (0.5, two)]),
            losses::weighted_mean(g, [(0.0, infinite)]),
            losses::weighted_cross_entropy(logits[0], 2, &[1.0, 5.0, 0.25, 1.0]),
        ]
    });
    close(&found[0], &[minus_log_softmax(&wide(&v[1]))[1]]);
    assert_eq!(found[1], [0.0]);
    assert!((found[2][0] - 4.0 / 3.5).abs() < 1e-7, "{found:?}");
    assert_eq!(found[3], [0.0]);
    close(&found[4], &[0.25 * minus_log_softmax(&wide(&v[0]))[2]]);
}

#[test]
fn smoothed_labels_of_large_logits_are_accurate() {
    // x = torch.tensor([10000., 10001., 10000.5])
    // torch.nn.functional.cross_entropy(x, torch.tensor(0), label_smoothing=0.1)  # 1.6302696
    let found = Lab::new(|_| ())
        .bits(Noise::Off, |g| vec![losses::label_smoothing(g.input(&[10000.0, 10001.0, 10000.5]), 0, 0.1)]);
    let loss = f32::from_bits(found[0][0]);
    assert!((loss - 1.630_269_6).abs() < 1e-6, "{loss}");
}

#[test]
fn losses_compute_their_formulas() {
    let v = rows(1, 3, 4);
    let found = Lab::new(|_| ()).eval(|g| {
        let [a, b, c] = [0, 1, 2].map(|k| g.input(&v[k]));
        let [s, t] = [g.constant(0.25), g.constant(-0.5)];
        vec![
            losses::label_smoothing(a, 2, 0.125),
            losses::nll(a, 1),
            losses::contrastive(a, b, true, 2.0),
            losses::contrastive(a, b, false, 2.0),
            losses::triplet(a, b, c, 0.5),
            losses::triplet(a, c, b, 0.5),
            losses::margin_ranking(s, t, 1.0),
            losses::margin_ranking(s, t, 0.5),
            losses::binary_hinge(s, true),
            losses::binary_hinge(s, false),
            losses::l1(a, b),
            losses::huber(a, b, 0.875),
            losses::cosine_similarity(a, b),
        ]
    });
    let [a, b, c] = [0, 1, 2].map(|k| wide(&v[k]));
    let square = |a: &[f64], b: &[f64]| zip(a, b, |a, b| (a - b) * (a - b)).iter().sum::<f64>();
    let dot = |a: &[f64], b: &[f64]| mul(a, b).iter().sum::<f64>();
    let logs = minus_log_softmax(&a);
    let huber = |d: f64| if d.abs() <= 0.875 { d * d / 2.0 } else { 0.875 * (d.abs() - 0.4375) };
    let ds = zip(&a, &b, |a, b| a - b);
    let expected = [
        0.875 * logs[2] + 0.125 / 4.0 * logs.iter().sum::<f64>(),
        -a[1],
        square(&a, &b) / 2.0,
        (2.0 - square(&a, &b).sqrt()).max(0.0).powi(2) / 2.0,
        (square(&a, &b) - square(&a, &c) + 0.5).max(0.0),
        (square(&a, &c) - square(&a, &b) + 0.5).max(0.0),
        0.25,
        0.0,
        0.75,
        1.25,
        ds.iter().map(|d| d.abs()).sum::<f64>() / 4.0,
        ds.iter().map(|&d| huber(d)).sum::<f64>() / 4.0,
        dot(&a, &b) / ((dot(&a, &a) * dot(&b, &b)).sqrt() + 1e-8f32 as f64),
    ];
    close(&found.concat(), &expected);
    assert!(
        ds.iter().any(|d| d.abs() > 0.875) && ds.iter().any(|d| d.abs() < 0.875),
        "the inputs must cover both cases: {ds:?}"
    );
}

#[test]
fn labels_without_smoothing_allow_masked_classes() {
    let found = Lab::new(|_| ()).eval(|g| {
        let logits = g.input(&[1.0, 2.0, 0.5]).mask(&[true, false, true]);
        vec![losses::label_smoothing(logits, 0, 0.0), losses::label_smoothing(logits, 0, 0.1)]
    });
    close(&found[0], &[(1.0 + (-0.5f64).exp()).ln()]);
    assert_eq!(found[1], [f64::INFINITY]);
}

#[test]
fn a_rating_is_divided_between_its_integer_neighbours() {
    assert_eq!(losses::rating_distribution(3.0, 5), [0.0, 0.0, 1.0, 0.0, 0.0]);
    assert_eq!(losses::rating_distribution(4.25, 5), [0.0, 0.0, 0.0, 0.75, 0.25]);
    assert_eq!(losses::rating_distribution(5.0, 5), [0.0, 0.0, 0.0, 0.0, 1.0]);
    assert_eq!(losses::rating_distribution(9.0, 2), [0.0, 1.0]);
    assert_eq!(losses::rating_distribution(f32::NAN, 2), [1.0, 0.0]);
    assert!(losses::rating_distribution(1.0, 0).is_empty());
}

#[test]
fn pretrained_rows_must_fill_the_table() {
    let mut m = autobatch_ir::ModuleBuilder::new("m");
    let line = line!() + 1;
    let _ = Embedding::with_options(&mut m, "e", 2, 2, Init::Values(vec![0.0; 3].into()));
    assert_eq!(m.build().unwrap_err().site.line, line);
}
