//! Dropout: the dropped elements, and the same mask in the derivative.

use super::{emit, losses, no_params};
use autobatch_ir::hash::noise_key;
use autobatch_ir::numeric::noise::uniform;
use autobatch_ir::{ModuleBuilder, ValueId, Weights, f32};
use autobatch_oracle::reference::{Evaluation, Noise};

const TRAIN: Noise = Noise::On { seed: 7, step: 3 };

#[test]
fn the_derivative_uses_the_forward_mask() {
    let graph = emit(&no_params(), |g| {
        g.instance(21);
        g.loss("loss", g.input(&[1.0; 100]).dropout(0.3).sum());
    });
    let weights = Weights::init(&graph.module, 0);
    let evaluation = Evaluation::<f32>::new(&graph, &weights, TRAIN).unwrap();
    let run = evaluation.forward().unwrap();
    let gradients = evaluation.reverse(&run, &losses(&graph)).unwrap();
    let dropped = run.floats(ValueId::new(1)).unwrap();
    assert_eq!(gradients.value(ValueId::new(0)).unwrap(), dropped);
    let zeros = dropped.iter().filter(|&&x| x == 0.0).count();
    assert!((15..45).contains(&zeros), "{zeros} of 100 elements dropped at rate 0.3");
}

#[test]
fn the_documented_key_selects_the_dropped_elements() {
    let graph = emit(&no_params(), |g| {
        g.instance(21);
        let _ = g.input(&[1.0; 64]).dropout(0.25);
    });
    let weights = Weights::init(&graph.module, 0);
    let run = Evaluation::<f32>::new(&graph, &weights, TRAIN).unwrap().forward().unwrap();
    // The graph binds a key derived from that of the instance; the op derives its own from the bound key.
    let [low, high] = noise_key(noise_key([21, 0], 0), 0);
    assert_eq!(graph.bindings.words, noise_key([21, 0], 0));
    let key = u64::from(high) << 32 | u64::from(low);
    let kept = |i| if uniform(7, 3, key, i) >= 0.25 { 1.0 / 0.75 } else { 0.0 };
    assert_eq!(run.floats(ValueId::new(1)).unwrap(), (0..64).map(kept).collect::<Vec<f32>>());
}

#[test]
fn dropout_is_the_identity_in_inference() {
    let graph = emit(&no_params(), |g| g.loss("loss", g.input(&[1.0, -2.0, 3.0]).dropout(0.9).sum()));
    let weights = Weights::init(&graph.module, 0);
    let evaluation = Evaluation::<f32>::new(&graph, &weights, Noise::Off).unwrap();
    let run = evaluation.forward().unwrap();
    assert_eq!(run.floats(ValueId::new(1)), Some(&[1.0, -2.0, 3.0][..]));
    let gradients = evaluation.reverse(&run, &losses(&graph)).unwrap();
    assert_eq!(gradients.value(ValueId::new(0)), Some(&[1.0; 3][..]));
}

#[test]
fn uses_instances_steps_and_nested_calls_draw_different_noise() {
    let mut m = ModuleBuilder::new("drops");
    let drop = m.cell("drop", [f32([32])], |_, [x]| [x.dropout(0.5)]);
    let twice = m.cell("twice", [f32([32])], |g, [x]| {
        let ([a], [b]) = (g.call(drop, x), g.call(drop, x));
        [a, b]
    });
    let module = m.build().unwrap();
    let weights = Weights::init(&module, 0);
    let masks = |mode: Noise, keys: &[u64]| {
        let mut ids = Vec::new();
        let graph = emit(&module, |g| {
            for &key in keys {
                g.instance(key);
                let x = g.input(&[1.0; 32]);
                let [a, b] = g.call(twice, x);
                ids.extend([a, b, x.dropout(0.5), x.dropout(0.5)].map(|value| value.id().unwrap()));
            }
        });
        let run = Evaluation::<f32>::new(&graph, &weights, mode).unwrap().forward().unwrap();
        ids.iter().map(|&id| run.floats(id).unwrap().to_vec()).collect::<Vec<_>>()
    };
    let mut all = masks(TRAIN, &[1, 2]);
    all.extend(masks(Noise::On { seed: 7, step: 4 }, &[1]));
    all.extend(masks(Noise::On { seed: 8, step: 3 }, &[1]));
    for (i, a) in all.iter().enumerate() {
        assert!(all[..i].iter().all(|b| a != b), "mask {i} must differ from all others");
    }
    // The noise of an instance does not depend on the other instances.
    assert_eq!(masks(TRAIN, &[2])[..], all[4..8]);
}
