//! The loss of an instance: it reads what nothing else read, and depends on parameters.

use super::act::Act;
use super::kit::CLASSES;
use super::recipe::{Reach, Step};
use super::stage::Stage;
use autobatch_ir::{Graph, Value};

/// A scalar that depends smoothly on parameters if the stage's steps do.
pub(super) fn of_instance<'g>(stage: &mut Stage<'g, '_>, form: u32) -> Value<'g> {
    let step = Step {
        name: 0,
        act: Act::Fill,
        reach: Reach::Any,
        twin: false,
        pick: form,
        size: form / 8,
        alone: false,
    };
    let x = features(stage, &step);
    let label = form / 8 % CLASSES as u32;
    if let (1, Some(head)) = (form % 8, stage.kit.head) {
        let [loss] = stage.g.call(head, (x, label));
        return loss;
    }
    let scores = x.affine(stage.kit.out, Some(stage.kit.out_bias));
    let numbers = finite(&stage.numbers(&step, CLASSES));
    let target = |g: &'g Graph| g.input(&numbers);
    match form % 8 {
        2 => scores.mse(target(stage.g)),
        3 => scores.bce(target(stage.g).sigmoid()),
        4 => scores.log_softmax().kl_div(target(stage.g).softmax()),
        5 => scores.cross_entropy_with(target(stage.g).softmax()),
        6 => scores.tanh().mean(),
        7 => (scores.square() + 0.5).log().sum(),
        _ => scores.cross_entropy(label),
    }
}

/// The sum of some values that nothing read, or any vector.
fn features<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Value<'g> {
    let sinks = stage.sinks(4);
    match sinks.as_slice() {
        [] => stage.vector(step, 0).0,
        [one] => one.0,
        several => stage.g.list(several.iter().map(|sink| sink.0)).sum(),
    }
}

/// Targets stay finite even where inputs are wild.
fn finite(numbers: &[f32]) -> Vec<f32> {
    numbers.iter().map(|&x| if x.is_finite() { x.clamp(-2.0, 2.0) } else { 0.5 }).collect()
}
