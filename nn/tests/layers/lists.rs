//! Layers over lists: attention, lattices, character convolutions.

use crate::lab::*;
use autobatch_nn::{Activation, AdditiveAttention, CharCnn, DotAttention, LatticeLstm, LatticeWord};

const H: usize = 4;

fn softmax(scores: &[f64]) -> Vec<f64> {
    let total: f64 = scores.iter().map(|s| s.exp()).sum();
    map(scores, |s| s.exp() / total)
}

fn weighted(weights: &[f64], values: &[Vec<f32>]) -> Vec<f64> {
    let terms = weights.iter().zip(values).map(|(&w, v)| map(&wide(v), |x| w * x));
    terms.reduce(|a, b| add(&a, &b)).unwrap()
}

#[test]
fn additive_attention_weighs_values_by_its_scores() {
    let (lab, layer) = Lab::with(|m| AdditiveAttention::new(m, "a", 3, 2, H));
    let (q, keys, values) = (row(1, 3), rows(2, 3, 2), rows(3, 3, 5));
    let found = lab.eval(|g| {
        let keys = layer.keys(g, inputs(g, &keys));
        let query = g.input(&q);
        let mut emitted = layer.scores(g, query, &keys);
        emitted.push(layer.read(g, query, &keys, inputs(g, &values)));
        emitted
    });
    let query = affine(&wide(&q), &lab.param("a.wq"), &lab.param("a.b"));
    let score = |key: &Vec<f32>| {
        let sum = add(&query, &product(&wide(key), &lab.param("a.wk")));
        product(&tanh(&sum), &lab.param("a.v"))[0]
    };
    let scores: Vec<f64> = keys.iter().map(score).collect();
    close(&found[..3].concat(), &scores);
    close(&found[3], &weighted(&softmax(&scores), &values));
}

#[test]
fn dot_attention_scales_its_scores() {
    let layer = DotAttention::scaled(3);
    let (q, keys, values) = (row(1, 3), rows(2, 4, 3), rows(3, 4, 2));
    let found =
        Lab::new(|_| ()).eval(|g| vec![layer.read(g, g.input(&q), inputs(g, &keys), inputs(g, &values))]);
    let scale = f64::from(layer.scale);
    let score = |key: &Vec<f32>| scale * mul(&wide(&q), &wide(key)).iter().sum::<f64>();
    let scores: Vec<f64> = keys.iter().map(score).collect();
    close(&found[0], &weighted(&softmax(&scores), &values));
    assert!((layer.scale - 1.0 / 3f32.sqrt()).abs() < 1e-7);
}

#[test]
fn a_character_cnn_takes_the_maximum_over_padded_windows() {
    for (window, length) in [(1, 3), (3, 1), (3, 4), (4, 2), (5, 3)] {
        let (lab, layer) = Lab::with(|m| CharCnn::new(m, "c", 2, window, H, Activation::Tanh));
        let chars = rows(1, length, 2);
        let found = lab.eval(|g| vec![layer.on(g, inputs(g, &chars))]);
        let (w, b) = (lab.param("c.w"), lab.param("c.b"));
        let at = |t: isize| match usize::try_from(t).ok().and_then(|t| chars.get(t)) {
            Some(x) => wide(x),
            None => vec![0.0; 2],
        };
        let before = (window as isize - 1) / 2;
        let mut best = vec![f64::NEG_INFINITY; H];
        for t in 0..length as isize {
            let seen: Vec<f64> = (0..window as isize).flat_map(|k| at(t - before + k)).collect();
            best = zip(&best, &tanh(&affine(&seen, &w, &b)), f64::max);
        }
        close(&found[0], &best);
    }
}

#[test]
fn an_empty_word_has_zero_features() {
    let (lab, layer) = Lab::with(|m| CharCnn::new(m, "c", 2, 3, H, Activation::Relu));
    let none: [Vec<f32>; 0] = [];
    assert_eq!(lab.eval(|g| vec![layer.on(g, inputs(g, &none))]), [vec![0.0; H]]);
}

/// The states of a lattice LSTM; words are `(first, last, vector)`.
fn lattice(lab: &Lab, chars: &[Vec<f32>], words: &[(usize, usize, Vec<f32>)]) -> Vec<[Vec<f64>; 2]> {
    let p = |name: &str| lab.param(&format!("l.{name}"));
    let part = |row: &[f64], k: usize| row[k * H..(k + 1) * H].to_vec();
    let mut states: Vec<[Vec<f64>; 2]> = Vec::new();
    let mut state = [vec![0.0; H], vec![0.0; H]];
    for (e, x) in chars.iter().enumerate() {
        let x = wide(x);
        let z = affine(&join(&x, &state[0]), &p("char.w"), &p("char.b"));
        let (i, o, u) = (sigmoid(&part(&z, 0)), sigmoid(&part(&z, 1)), tanh(&part(&z, 2)));
        let mut scores = vec![i.clone()];
        let mut memories = vec![u.clone()];
        for (first, _, xw) in words.iter().filter(|word| word.1 == e) {
            let [h, c] = &states[*first];
            let z = affine(&join(&wide(xw), h), &p("word.w"), &p("word.b"));
            let kept = mul(&sigmoid(&part(&z, 1)), c);
            let cw = add(&kept, &mul(&sigmoid(&part(&z, 0)), &tanh(&part(&z, 2))));
            scores.push(sigmoid(&affine(&join(&x, &cw), &p("link.w"), &p("link.b"))));
            memories.push(cw);
        }
        let c = if scores.len() == 1 {
            add(&mul(&map(&i, |i| 1.0 - i), &state[1]), &mul(&i, &u))
        } else {
            (0..H)
                .map(|k| {
                    let column: Vec<f64> = scores.iter().map(|s| s[k]).collect();
                    softmax(&column).iter().zip(&memories).map(|(a, c)| a * c[k]).sum()
                })
                .collect()
        };
        state = [mul(&o, &tanh(&c)), c];
        states.push(state.clone());
    }
    states
}

#[test]
fn a_lattice_lstm_computes_its_formula() {
    let (lab, layer) = Lab::with(|m| LatticeLstm::new(m, "l", 3, 2, H));
    let chars = rows(1, 5, 3);
    let words: Vec<(usize, usize, Vec<f32>)> =
        [(0, 1), (0, 3), (1, 3), (2, 3), (3, 4)].map(|(a, b)| (a, b, row(50 + a as u64, 2))).to_vec();
    let found = lab.eval(|g| {
        let list: Vec<LatticeWord<'_>> = words
            .iter()
            .map(|(first, last, x)| LatticeWord { first: *first, last: *last, x: g.input(x) })
            .collect();
        layer.run(g, &inputs(g, &chars), &list).into_iter().flatten().collect()
    });
    let expected: Vec<Vec<f64>> = lattice(&lab, &chars, &words).into_iter().flatten().collect();
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        close(found, expected);
    }
}
