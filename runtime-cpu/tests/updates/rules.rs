//! Compares fifty updates of each rule with its formula in `f64`.

use crate::lab::{Given, Lab, Random, module};
use autobatch_ir::{Init, ModuleBuilder};
use autobatch_nn::optim::{
    Adadelta, Adagrad, Adam, AdamW, AmsGrad, Momentum, Nesterov, Optimize, Optimizer, RmsProp, Schedule, Sgd,
};
use autobatch_runtime_cpu::Executor;

const UPDATES: u64 = 50;

/// Updates the value and the states of one element in update `t` with gradient `g`.
type Formula = fn(t: f64, g: f64, w: &mut f64, states: &mut [f64; 3]);

/// Compares an optimiser with its formula. `bound` limits the error relative to 1 and the value.
#[track_caller]
fn follows(optimizer: impl Into<Optimizer>, formula: Formula, bound: f64) {
    let mut lab = Lab::new(&module(), optimizer);
    let mut executor = Executor::new(1).expect("the machine has an instruction set");
    let mut random = Random(11);
    let mut exact: Vec<Vec<(f64, [f64; 3])>> = lab
        .weights
        .iter()
        .map(|param| param.values().iter().map(|&w| (f64::from(w), [0.0; 3])).collect())
        .collect();
    for t in 1..=UPDATES {
        let given = lab.gradients(&mut random);
        lab.update(&mut executor, &given, 1.0);
        for (param, gradients) in exact.iter_mut().zip(&given.gradients) {
            for ((w, states), &g) in param.iter_mut().zip(gradients) {
                formula(t as f64, f64::from(g), w, states);
            }
        }
        for (param, exact) in lab.weights.iter().zip(&exact) {
            for (&found, (expected, _)) in param.values().iter().zip(exact) {
                let error = (f64::from(found) - expected).abs() / expected.abs().max(1.0);
                assert!(error < bound, "update {t} of @{}: {found}, expected {expected}", param.name());
            }
        }
    }
    assert_eq!(lab.states.updates(), UPDATES);
}

#[test]
fn sgd_subtracts_the_gradient() {
    follows(Sgd::new(0.1), |_, g, w, _| *w -= 0.1 * g, 1e-5);
}

#[test]
fn momentum_adds_up_gradients() {
    let formula: Formula = |_, g, w, [b, ..]| {
        *b = 0.9 * *b + g;
        *w -= 0.05 * *b;
    };
    follows(Momentum::new(0.05, 0.9), formula, 1e-5);
}

#[test]
fn nesterov_looks_ahead() {
    let formula: Formula = |_, g, w, [b, ..]| {
        *b = 0.9 * *b + g;
        *w -= 0.05 * (g + 0.9 * *b);
    };
    follows(Nesterov::new(0.05, 0.9), formula, 1e-5);
}

#[test]
fn adagrad_divides_by_the_root_of_the_sum_of_squares() {
    let formula: Formula = |t, g, w, [s, ..]| {
        *s += g * g;
        *w -= 0.1 / (1.0 + (t - 1.0) * 0.01) * g / ((*s + 0.5).sqrt() + 1e-10);
    };
    follows(Adagrad::new(0.1).learning_rate_decay(0.01).first_sum(0.5), formula, 1e-5);
}

#[test]
fn adadelta_scales_steps_by_earlier_steps() {
    let formula: Formula = |_, g, w, [s, e, _]| {
        *s = 0.9 * *s + 0.1 * g * g;
        let d = (*e + 1e-6).sqrt() / (*s + 1e-6).sqrt() * g;
        *e = 0.9 * *e + 0.1 * d * d;
        *w -= d;
    };
    follows(Adadelta::new(1.0), formula, 1e-5);
}

#[test]
fn rmsprop_divides_by_the_root_of_the_mean_square() {
    let formula: Formula = |_, g, w, [s, ..]| {
        *s = 0.99 * *s + 0.01 * g * g;
        *w -= 0.01 * g / (s.sqrt() + 1e-8);
    };
    follows(RmsProp::new(0.01), formula, 1e-5);
}

#[test]
fn centred_rmsprop_with_momentum_divides_by_the_deviation() {
    let formula: Formula = |_, g, w, [s, c, b]| {
        *s = 0.95 * *s + 0.05 * g * g;
        *c = 0.95 * *c + 0.05 * g;
        *b = 0.8 * *b + g / ((*s - *c * *c).sqrt() + 1e-6);
        *w -= 0.01 * *b;
    };
    follows(RmsProp::new(0.01).alpha(0.95).eps(1e-6).centred().momentum(0.8), formula, 2e-5);
}

#[test]
fn centred_rmsprop_stays_finite_with_constant_gradients() {
    let module = module();
    let mut lab = Lab::new(&module, RmsProp::new(1e-6).alpha(0.9).centred());
    let mut executor = Executor::new(1).expect("an instruction set");
    let given = lab.gradients(&mut Random(3));
    for _ in 0..300 {
        lab.update(&mut executor, &given, 1.0);
    }
    assert!(lab.weights.iter().all(|param| param.values().iter().all(|w| w.is_finite())));
}

/// Adam with learning rate 0.01 and betas 0.9 and 0.999.
fn adam(t: f64, g: f64, w: &mut f64, [m, v, x]: &mut [f64; 3], ams: bool) {
    *m = 0.9 * *m + 0.1 * g;
    *v = 0.999 * *v + 0.001 * g * g;
    *x = if ams { x.max(*v) } else { *v };
    let (m, v) = (*m / (1.0 - 0.9f64.powf(t)), *x / (1.0 - 0.999f64.powf(t)));
    *w -= 0.01 * m / (v.sqrt() + 1e-8);
}

#[test]
fn adam_corrects_its_moments_and_adds_eps_outside_the_root() {
    follows(Adam::new(0.01), |t, g, w, states| adam(t, g, w, states, false), 1e-5);
}

#[test]
fn a_large_eps_is_added_outside_the_root() {
    let formula: Formula = |t, g, w, [m, v, _]| {
        *m = 0.8 * *m + 0.2 * g;
        *v = 0.9 * *v + 0.1 * g * g;
        let v = *v / (1.0 - 0.9f64.powf(t));
        *w -= 0.01 * *m / (1.0 - 0.8f64.powf(t)) / (v.sqrt() + 0.3);
    };
    follows(Adam::new(0.01).betas(0.8, 0.9).eps(0.3), formula, 1e-5);
}

#[test]
fn amsgrad_never_shrinks_its_divisor() {
    follows(AmsGrad::new(0.01), |t, g, w, states| adam(t, g, w, states, true), 1e-5);
}

#[test]
fn adam_adds_the_decay_to_the_gradient() {
    let formula: Formula = |t, g, w, states| adam(t, g + 0.1 * *w, w, states, false);
    follows(Adam::new(0.01).weight_decay(0.1), formula, 1e-5);
}

#[test]
fn adamw_decays_apart_from_its_moments() {
    follows(
        AdamW::new(0.01),
        |t, g, w, states| {
            *w *= 1.0 - 0.01 * 0.01;
            adam(t, g, w, states, false);
        },
        1e-5,
    );
    follows(
        AdamW::new(0.01).weight_decay(0.3),
        |t, g, w, states| {
            *w *= 1.0 - 0.01 * 0.3;
            adam(t, g, w, states, false);
        },
        1e-5,
    );
}

#[test]
fn every_rule_supports_decoupled_decay() {
    let formula: Formula = |_, g, w, _| *w = *w * (1.0 - 0.1 * 0.2) - 0.1 * g;
    follows(Sgd::new(0.1).decoupled_weight_decay(0.2), formula, 1e-5);
}

#[test]
fn learning_rates_follow_their_schedule_with_one_plan() {
    let formula: Formula = |t, g, w, _| {
        let factor = if t <= 10.0 { t / 10.0 } else { 0.5f64.powf(((t - 11.0) / 8.0).floor()) };
        *w -= 0.1 * factor * g;
    };
    let schedule = Schedule::warm_up(10, Schedule::step(8, 0.5));
    follows(Sgd::new(0.1).schedule(schedule), formula, 1e-5);
}

/// Expected results: four elements after twenty updates of PyTorch 2.4 in float64, with its names of the optimisers. The elements
/// start as `[0.5, -1.25, 2, 0.001]`. Element `i` of update `t` (both from 0) has the gradient
/// `((7 t + 5 i) mod 13 - 6) / 8`; the last element has a 512th of it.
#[test]
fn every_rule_matches_pytorch() {
    #[rustfmt::skip]
    let ends: [(&str, Optimizer, [f64; 4]); 12] = [
        ("SGD(lr=.1)", Sgd::new(0.1).into(),
            [0.65, -1.2125, 1.925, 0.000_951_171_875]),
        ("SGD(lr=.1, weight_decay=.05)", Sgd::new(0.1).weight_decay(0.05),
            [0.593_884_553, -1.094_645_193, 1.740_688_506, 0.000_856_367_765]),
        ("SGD(lr=.1, momentum=.9, weight_decay=.05)", Momentum::new(0.1, 0.9).weight_decay(0.05),
            [0.871_769_799, -0.490_245_680, 0.469_015_286, 0.000_434_887_354]),
        ("the same with nesterov=True", Nesterov::new(0.1, 0.9).weight_decay(0.05),
            [0.890_537_897, -0.454_861_710, 0.453_793_949, 0.000_381_785_841]),
        ("Adam(lr=.01)", Adam::new(0.01).into(),
            [0.547_117_739, -1.240_095_305, 1.959_881_695, 0.008_852_344]),
        ("Adam(lr=.01, betas=(.8, .99), eps=1e-6, weight_decay=.05)",
            Adam::new(0.01).betas(0.8, 0.99).eps(1e-6).weight_decay(0.05),
            [0.529_916_578, -1.217_395_744, 1.930_285_328, 0.001_569_028]),
        ("AdamW(lr=.01)", AdamW::new(0.01).into(),
            [0.546_049_798, -1.237_612_327, 1.955_944_286, 0.008_833_623]),
        ("Adam(lr=.01, amsgrad=True)", AmsGrad::new(0.01).into(),
            [0.547_118_645, -1.240_091_861, 1.959_885_526, 0.008_854_027]),
        ("Adagrad(lr=.1, lr_decay=.1, initial_accumulator_value=.25)",
            Adagrad::new(0.1).learning_rate_decay(0.1).first_sum(0.25).into(),
            [0.610_322_278, -1.239_887_120, 1.909_746_666, 0.000_973_971]),
        ("Adadelta(lr=1)", Adadelta::new(1.0).into(),
            [0.506_785_704, -1.245_646_405, 1.996_006_285, 0.000_561_665]),
        ("RMSprop(lr=.01)", RmsProp::new(0.01).into(),
            [0.647_238_347, -1.160_531_943, 1.877_297_873, 0.014_860_854]),
        ("RMSprop(lr=.01, centered=True, momentum=.5, weight_decay=.05)",
            RmsProp::new(0.01).centred().momentum(0.5).weight_decay(0.05),
            [0.695_823_393, -0.950_318_872, 1.520_305_198, -0.007_093_661]),
    ];
    let mut m = ModuleBuilder::new("four");
    m.param("w", [4], Init::Values([0.5, -1.25, 2.0, 1e-3].into()));
    let module = m.build().expect("the module is well formed");
    let mut executor = Executor::new(1).expect("an instruction set");
    for (name, optimizer, expected) in ends {
        let mut lab = Lab::new(&module, optimizer);
        for t in 0..20 {
            let gradient = |i: i32| ((7 * t + 5 * i) % 13 - 6) as f32 / if i < 3 { 8.0 } else { 4096.0 };
            let given = Given { gradients: vec![(0..4).map(gradient).collect()], sparse_rows: Vec::new() };
            lab.update(&mut executor, &given, 1.0);
        }
        for (&found, expected) in lab.weights.by_name("w").expect("declared").iter().zip(expected) {
            let error = (f64::from(found) - expected).abs() / expected.abs().max(1.0);
            assert!(error < 1e-6, "{name}: {found}, expected {expected}");
        }
    }
}
