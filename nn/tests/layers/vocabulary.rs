//! Losses over many classes.

use crate::lab::*;
use autobatch_nn::{AdaptiveSoftmax, SampledSoftmax};

/// `log(sum e^x)`
fn log_sum(x: &[f64]) -> f64 {
    x.iter().map(|x| x.exp()).sum::<f64>().ln()
}

#[test]
fn an_adaptive_softmax_is_a_distribution_over_all_classes() {
    let (lab, layer) = Lab::with(|m| AdaptiveSoftmax::new(m, "s", 6, &[4, 9, 20], 2));
    assert_eq!(layer.classes(), 20);
    let x = row(5, 6);
    let found = lab.eval(|g| {
        let x = g.input(&x);
        let losses = (0..20).map(|class| layer.loss(x, class));
        std::iter::once(layer.log_probabilities(x)).chain(losses).collect()
    });
    assert!(log_sum(&found[0]).abs() < 1e-6, "the probabilities sum to 1");
    for (class, log) in found[0].iter().enumerate() {
        close(&found[1 + class], &[-log]);
    }
    // Class 11 by the formula: the third group of the head, then its place in the group.
    let x = wide(&x);
    let head = affine(&x, &lab.param("s.head.w"), &lab.param("s.head.b"));
    let group = product(&product(&x, &lab.param("s.1.project.w")), &lab.param("s.1.out.w"));
    assert_eq!((head.len(), group.len()), (6, 11));
    close(&[found[0][11]], &[head[5] - log_sum(&head) + group[2] - log_sum(&group)]);
}

#[test]
fn a_sampled_softmax_is_a_softmax_of_the_label_and_a_sample() {
    let (lab, layer) = Lab::with(|m| SampledSoftmax::new(m, "s", 4, 30, 3000));
    let x = row(5, 4);
    let found = lab.eval(|g| {
        let x = g.input(&x);
        let sampled = [1, 1, 2].map(|seed| layer.loss(&layer.sample(g, seed), [x], &[11]));
        sampled.into_iter().chain([layer.full_loss(x, 11)]).collect()
    });
    assert_eq!(found[0], found[1], "equal seeds draw equal samples");
    assert_ne!(found[0], found[2]);
    let (w, b) = (lab.param("s.w"), lab.param("s.b"));
    let score = |class: usize| mul(&w[4 * class..4 * class + 4], &wide(&x)).iter().sum::<f64>() + b[class];
    let scores: Vec<f64> = (0..30).map(score).collect();
    close(&found[3], &[log_sum(&scores) - scores[11]]);
    // A large sample holds each other class as often as expected, which the corrections undo. The label counts once.
    let expected = 3000.0 * (13f64 / 12.0).ln() / 31f64.ln();
    let own = scores[11] - expected.ln();
    let others: f64 = scores.iter().enumerate().filter(|(class, _)| *class != 11).map(|(_, s)| s.exp()).sum();
    for sampled in &found[..3] {
        assert!((sampled[0] - ((own.exp() + others).ln() - own)).abs() < 0.15, "{}", sampled[0]);
    }
}

#[test]
fn the_sampled_loss_of_a_sequence_is_the_sum_of_its_losses() {
    let (lab, layer) = Lab::with(|m| SampledSoftmax::new(m, "s", 4, 300, 20));
    let rows = [row(1, 4), row(2, 4), row(3, 4)];
    let found = lab.eval(|g| {
        let sample = layer.sample(g, 5);
        let xs = rows.each_ref().map(|row| g.input(row));
        let classes = [0, 11, 299];
        let alone = xs.iter().zip(classes).map(|(&x, class)| layer.loss(&sample, [x], &[class]));
        let none: [autobatch_ir::Value<'_>; 0] = [];
        let together = [layer.loss(&sample, xs, &classes), layer.loss(&sample, none, &[])];
        together.into_iter().chain(alone).collect()
    });
    close(&found[0], &[found[2..].iter().map(|loss| loss[0]).sum()]);
    close(&found[1], &[0.0]);
}
