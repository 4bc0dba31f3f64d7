//! Each rule for fifty updates against its formula in `f64`.

use crate::lab::{Lab, Random, module};
use autobatch_nn::optim::{
    Adadelta, Adagrad, Adam, AdamW, AmsGrad, Momentum, Nesterov, Optimize, Optimizer, RmsProp, Sgd,
};
use autobatch_runtime_cpu::Player;

const UPDATES: u64 = 50;

/// One element in `f64`: the value and whatever the formula keeps, changed by update `t` with `g`.
type Formula = fn(t: f64, g: f64, w: &mut f64, kept: &mut [f64; 3]);

/// Plays an optimiser and its formula; the largest difference relative to 1 and the value.
#[track_caller]
fn follows(optimizer: impl Into<Optimizer>, formula: Formula, bound: f64) {
    let mut lab = Lab::new(&module(), optimizer);
    let mut player = Player::new(1).expect("the machine has an instruction set");
    let mut random = Random(11);
    let mut exact: Vec<Vec<(f64, [f64; 3])>> = lab
        .weights
        .iter()
        .map(|param| param.values().iter().map(|&w| (f64::from(w), [0.0; 3])).collect())
        .collect();
    for t in 1..=UPDATES {
        let given = lab.gradients(&mut random);
        lab.update(&mut player, &given, 1.0);
        for (param, gradients) in exact.iter_mut().zip(&given.gradients) {
            for ((w, kept), &g) in param.iter_mut().zip(gradients) {
                formula(t as f64, f64::from(g), w, kept);
            }
        }
        for (param, exact) in lab.weights.iter().zip(&exact) {
            for (&found, (expected, _)) in param.values().iter().zip(exact) {
                let error = (f64::from(found) - expected).abs() / expected.abs().max(1.0);
                assert!(error < bound, "update {t} of @{}: {found} for {expected}", param.name());
            }
        }
    }
    assert_eq!(lab.states.updates(), UPDATES);
}

#[test]
fn sgd_goes_against_the_gradient() {
    follows(Sgd::new(0.1), |_, g, w, _| *w -= 0.1 * g, 1e-5);
}

fn adam(decay: f64, t: f64, g: f64, w: &mut f64, [m, v, _]: &mut [f64; 3]) {
    *w *= 1.0 - 0.01 * decay;
    *m = 0.9 * *m + 0.1 * g;
    *v = 0.999 * *v + 0.001 * g * g;
    let (m, v) = (*m / (1.0 - 0.9f64.powf(t)), *v / (1.0 - 0.999f64.powf(t)));
    *w -= 0.01 * m / (v.sqrt() + 1e-8);
}

#[test]
fn adam_corrects_its_moments_and_adds_eps_outside_the_root() {
    follows(Adam::new(0.01), |t, g, w, kept| adam(0.0, t, g, w, kept), 1e-5);
}
