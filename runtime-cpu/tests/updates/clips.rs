//! Scaling and clipping of gradients, weight decay, and the choice of trained parameters.

use crate::lab::{Given, Lab, Random, all, module};
use autobatch_ir::ParamId;
use autobatch_nn::optim::{Adam, Optimize, Sgd};
use autobatch_runtime_cpu::Executor;

fn executor() -> Executor {
    Executor::new(1).expect("the machine has an instruction set")
}

/// The amount that one update subtracts from each parameter.
fn step(lab: &mut Lab, given: &Given, scale: f64) -> Vec<Vec<f64>> {
    let before = lab.weights.clone();
    lab.update(&mut executor(), given, scale);
    let pairs = before.iter().zip(lab.weights.iter());
    pairs
        .map(|(before, after)| {
            let pairs = before.values().iter().zip(after.values());
            pairs.map(|(&before, &after)| f64::from(before) - f64::from(after)).collect()
        })
        .collect()
}

fn norm(gradients: &[Vec<f32>]) -> f64 {
    gradients.iter().flatten().map(|&g| f64::from(g) * f64::from(g)).sum::<f64>().sqrt()
}

#[track_caller]
fn close(found: &[Vec<f64>], expected: impl Fn(usize, usize) -> f64) {
    for (param, found) in found.iter().enumerate() {
        for (at, found) in found.iter().enumerate() {
            let expected = expected(param, at);
            assert!(
                (found - expected).abs() < 1e-6,
                "element {at} of parameter {param}: {found}, expected {expected}"
            );
        }
    }
}

#[test]
fn gradients_are_scaled_first() {
    let mut lab = Lab::new(&module(), Sgd::new(0.5));
    let given = lab.gradients(&mut Random(1));
    let found = step(&mut lab, &given, 0.25);
    close(&found, |param, at| 0.5 * 0.25 * f64::from(given.gradients[param][at]));
}

#[test]
fn gradients_are_clipped_to_the_norm_over_all_parameters() {
    let mut lab = Lab::new(&module(), Sgd::new(0.5).clip_norm(2.0));
    let given = lab.gradients(&mut Random(2));
    let factor = 2.0 / (norm(&given.gradients) + 1e-6);
    assert!(factor < 0.2);
    let found = step(&mut lab, &given, 1.0);
    close(&found, |param, at| 0.5 * factor * f64::from(given.gradients[param][at]));
}

#[test]
fn the_norm_uses_scaled_gradients() {
    let mut lab = Lab::new(&module(), Sgd::new(0.5).clip_norm(2.0));
    let given = lab.gradients(&mut Random(2));
    let scale = 1.9 / norm(&given.gradients);
    let found = step(&mut lab, &given, scale);
    close(&found, |param, at| 0.5 * scale * f64::from(given.gradients[param][at]));
    let given = lab.gradients(&mut Random(3));
    let scale = 4.0 / norm(&given.gradients);
    let found = step(&mut lab, &given, scale);
    close(&found, |param, at| 0.5 * 0.5 * scale * f64::from(given.gradients[param][at]));
}

#[test]
fn elements_are_clipped_to_a_magnitude() {
    let mut lab = Lab::new(&module(), Sgd::new(1.0).clip_value(0.1));
    let given = lab.gradients(&mut Random(4));
    let found = step(&mut lab, &given, 1.0);
    close(&found, |param, at| f64::from(given.gradients[param][at]).clamp(-0.1, 0.1));
}

#[test]
fn untrained_parameters_stay_and_do_not_count_in_the_norm() {
    let module = module();
    let trained = [ParamId::new(1)];
    let mut lab = Lab::training(&module, Sgd::new(1.0).clip_norm(0.5), &trained);
    let given = lab.gradients(&mut Random(5));
    let factor = 0.5 / (norm(&given.gradients[1..2]) + 1e-6);
    assert!(factor < 1.0);
    let versions: Vec<u64> = all(&module).iter().map(|&param| lab.weights.version(param)).collect();
    let found = step(&mut lab, &given, 1.0);
    close(&found, |param, at| if param == 1 { factor * f64::from(given.gradients[1][at]) } else { 0.0 });
    let changed: Vec<bool> =
        all(&module).iter().zip(versions).map(|(&param, old)| lab.weights.version(param) != old).collect();
    assert_eq!(changed, [false, true, false], "packed copies of other parameters stay valid");
}

#[test]
fn a_parameter_named_twice_is_updated_once() {
    let module = module();
    let twice = [ParamId::new(1), ParamId::new(0), ParamId::new(1)];
    let lab = Lab::training(&module, Adam::new(1e-3), &twice);
    let names: Vec<&str> = lab.states.iter().map(|state| state.name()).collect();
    assert_eq!(names, ["w.m", "w.v", "b.m", "b.v"]);
}

#[test]
fn only_chosen_parameters_decay() {
    for optimizer in [Sgd::new(0.1).decoupled_weight_decay(0.5), Sgd::new(0.1).weight_decay(0.5)] {
        let mut lab = Lab::new(&module(), optimizer.decay_only(|decl| decl.name != "b"));
        let mut given = lab.gradients(&mut Random(6));
        given.gradients.iter_mut().for_each(|gradient| gradient.fill(0.0));
        let before = lab.weights.clone();
        let found = step(&mut lab, &given, 1.0);
        let value = |param, at: usize| f64::from(before.get(ParamId::new(param))[at]);
        close(&found, |param, at| if param == 1 { 0.0 } else { 0.1 * 0.5 * value(param, at) });
    }
}
