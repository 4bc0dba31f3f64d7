//! Conditional random fields and mixtures of experts.

use crate::lab::*;
use autobatch_ir::{Graph, Value};
use autobatch_nn::{Activation, Crf, Experts};
use autobatch_oracle::reference::{Noise, forward};

const TAGS: usize = 3;

/// The score of a sequence of tags.
fn score(lab: &Lab, scores: &[Vec<f64>], tags: &[usize]) -> f64 {
    let [transitions, start, end] = ["crf.transitions", "crf.start", "crf.end"].map(|name| lab.param(name));
    let own: f64 = scores.iter().zip(tags).map(|(row, &tag)| row[tag]).sum();
    let pairs: f64 = tags.windows(2).map(|pair| transitions[pair[1] * TAGS + pair[0]]).sum();
    start[tags[0]] + own + pairs + end[tags[tags.len() - 1]]
}

/// All sequences of tags of a length.
fn sequences(length: usize) -> Vec<Vec<usize>> {
    let digit = |number: usize, place: usize| number / TAGS.pow(place as u32) % TAGS;
    (0..TAGS.pow(length as u32))
        .map(|number| (0..length).map(|place| digit(number, place)).collect())
        .collect()
}

#[test]
fn the_loss_of_a_crf_sums_over_all_sequences_of_tags() {
    let (lab, crf) = Lab::with(|m| Crf::new(m, "crf", TAGS));
    for length in [1, 2, 5] {
        let rows = rows(4, length, TAGS);
        let tags: Vec<u32> = (0..length as u32).map(|place| place * 2 % 3).collect();
        let found = lab.eval(|g| vec![crf.loss(g, inputs(g, &rows), &tags)]);
        let wide: Vec<Vec<f64>> = rows.iter().map(|row| wide(row)).collect();
        let total: f64 = sequences(length).iter().map(|tags| score(&lab, &wide, tags).exp()).sum();
        let tags: Vec<usize> = tags.iter().map(|&tag| tag as usize).collect();
        close(&found[0], &[total.ln() - score(&lab, &wide, &tags)]);
    }
}

#[test]
fn a_crf_decodes_the_best_sequence() {
    let (lab, crf) = Lab::with(|m| Crf::new(m, "crf", TAGS));
    for (seed, length) in [(1, 1), (2, 2), (3, 4), (5, 6)] {
        let rows = rows(seed, length, TAGS);
        let g = Graph::new(&lab.module);
        let tags: Vec<_> =
            crf.decode(&g, inputs(&g, &rows)).into_iter().map(|tag| tag.id().unwrap()).collect();
        let run = forward::<f32>(&g.finish().unwrap(), &lab.weights, Noise::Off).unwrap();
        let found: Vec<usize> = tags.iter().map(|&tag| run.words(tag).unwrap()[0] as usize).collect();
        let wide: Vec<Vec<f64>> = rows.iter().map(|row| wide(row)).collect();
        let best = sequences(length)
            .into_iter()
            .max_by(|a, b| score(&lab, &wide, a).total_cmp(&score(&lab, &wide, b)));
        assert_eq!(Some(found), best, "length {length}");
    }
    let g = Graph::new(&lab.module);
    assert!(crf.decode(&g, &[] as &[Value<'_>]).is_empty());
    assert_eq!(crf.tags(), TAGS);
}

#[test]
fn experts_are_weighed_by_their_gates() {
    let (lab, layer) = Lab::with(|m| Experts::new(m, "e", &[3, 4, 2], Activation::Tanh, 3));
    let x = row(7, 3);
    let found = lab.eval(|g| {
        let x = g.input(&x);
        let gates = layer.gates(x);
        vec![layer.dense(g, x), layer.sparse(g, x, gates, &[2, 0]), layer.sparse(g, x, gates, &[1])]
    });
    let p = |name: &str| lab.param(&format!("e.{name}"));
    let x = wide(&x);
    let gates = map(&affine(&x, &p("gate.w"), &p("gate.b")), f64::exp);
    let expert = |number: usize| {
        let hidden = tanh(&affine(&x, &p(&format!("{number}.0.w")), &p(&format!("{number}.0.b"))));
        affine(&hidden, &p(&format!("{number}.1.w")), &p(&format!("{number}.1.b")))
    };
    let mixed = |used: &[usize]| {
        let total: f64 = used.iter().map(|&number| gates[number]).sum();
        used.iter().fold(vec![0.0; 2], |sum, &number| {
            add(&sum, &map(&expert(number), |y| gates[number] / total * y))
        })
    };
    close(&found[0], &mixed(&[0, 1, 2]));
    close(&found[1], &mixed(&[2, 0]));
    close(&found[2], &expert(1));
    assert_eq!(layer.count(), 3);
}
