//! Dropout in models: its rate, its scale, and the independence of its masks.

use crate::lab::row;
use autobatch_ir::{Graph, ModuleBuilder, Weights};
use autobatch_nn::*;
use autobatch_oracle::reference::{Noise, forward, reverse};

const WIDTH: usize = 4096;

/// Rows of ones after dropout, and the gradient of their sum: twice in each of three instances.
fn dropped(rate: f32, noise: Noise) -> Vec<[Vec<f32>; 2]> {
    let module = ModuleBuilder::new("m").build().unwrap();
    let g = Graph::new(&module);
    let (mut pairs, mut losses) = (Vec::new(), Vec::new());
    for key in 0..3 {
        g.instance(key);
        for _ in 0..2 {
            let x = g.input(&[1.0; WIDTH]);
            let y = x.dropout(rate);
            losses.push((y.sum().id().unwrap(), 1.0));
            pairs.push([x.id().unwrap(), y.id().unwrap()]);
        }
    }
    let graph = g.finish().unwrap();
    let weights = Weights::init(&module, 1);
    let run = forward::<f32>(&graph, &weights, noise).unwrap();
    let gradients = reverse(&graph, &weights, &run, &losses).unwrap();
    let rows = |[x, y]: [autobatch_ir::ValueId; 2]| {
        [run.floats(y).unwrap().to_vec(), gradients.value(x).unwrap().to_vec()]
    };
    pairs.into_iter().map(rows).collect()
}

const STEP: Noise = Noise::On { seed: 7, step: 3 };

#[test]
fn dropout_scales_the_remaining_elements_and_their_gradients() {
    for rate in [0.1f32, 0.5, 0.9] {
        for [forward, gradient] in dropped(rate, STEP) {
            assert_eq!(forward, gradient, "both directions must use one mask");
            let scale = 1.0 / (1.0 - rate);
            assert!(forward.iter().all(|&y| y == 0.0 || y == scale));
            let share = forward.iter().filter(|&&y| y == 0.0).count() as f64 / WIDTH as f64;
            let deviation = (f64::from(rate) * (1.0 - f64::from(rate)) / WIDTH as f64).sqrt();
            assert!((share - f64::from(rate)).abs() < 4.0 * deviation, "{rate}: {share}");
        }
    }
}

#[test]
fn inference_and_rate_0_drop_nothing() {
    for (rate, noise) in [(0.5, Noise::Off), (0.0, STEP), (0.0, Noise::Off)] {
        assert!(dropped(rate, noise).into_iter().flatten().flatten().all(|y| y == 1.0));
    }
    let module = ModuleBuilder::new("m").build().unwrap();
    let g = Graph::new(&module);
    g.instance(0);
    let x = row(1, 64);
    let y = g.input(&x).dropout(0.0).id().unwrap();
    let run = forward::<f32>(&g.finish().unwrap(), &Weights::init(&module, 1), STEP).unwrap();
    assert_eq!(run.floats(y).unwrap(), x, "rate 0 must preserve every bit");
}

#[test]
fn masks_are_reproducible_and_differ_by_use_instance_step_and_seed() {
    let mut masks = Vec::new();
    for (seed, step) in [(7, 3), (7, 4), (8, 3)] {
        let noise = Noise::On { seed, step };
        let once = dropped(0.5, noise);
        assert_eq!(once, dropped(0.5, noise));
        masks.extend(once.into_iter().map(|[forward, _]| forward));
    }
    assert_eq!(masks.len(), 18);
    for (number, one) in masks.iter().enumerate() {
        for other in &masks[..number] {
            let equal = one.iter().zip(other).filter(|(a, b)| a == b).count() as f64 / WIDTH as f64;
            assert!((equal - 0.5).abs() < 5.0 * 0.5 / (WIDTH as f64).sqrt(), "{equal}");
        }
    }
}

#[test]
fn a_rate_of_1_is_rejected() {
    type Use = fn(&mut ModuleBuilder) -> Box<dyn Fn(&Graph)>;
    let uses: [Use; 4] = [
        |_| {
            Box::new(|g| {
                let _ = g.zeros([2]).dropout(1.0);
            })
        },
        |_| {
            Box::new(|g| {
                let _ = dropout_mask(g, 2, 1.0);
            })
        },
        |m| {
            let layer = Stacked::<Rnn, 2>::with_options(m, "l", 2, 2, &RnnOptions::default(), 1.0);
            Box::new(move |g| drop(layer.run(g, [g.zeros([2])])))
        },
        |m| {
            let layer =
                Lstm::with_options(m, "l", 2, 2, &LstmOptions { hidden_dropout: 1.0, ..Default::default() });
            Box::new(move |g| drop(layer.run(g, [g.zeros([2])])))
        },
    ];
    for declare in uses {
        let mut m = ModuleBuilder::new("m");
        let emit = declare(&mut m);
        let g = Graph::new(&m.build().unwrap());
        g.instance(0);
        emit(&g);
        let error = g.check().unwrap_err();
        assert!(error.message.contains("at least 0 and below 1, found 1"), "{error}");
        assert!(error.site.file.ends_with("dropout.rs"), "{error}");
    }
}
