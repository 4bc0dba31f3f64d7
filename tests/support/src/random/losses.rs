//! Emits the loss of an instance. It reads the values without readers and depends on parameters.

use super::kit::CLASSES;
use super::recipe::Step;
use super::stage::Stage;
use autobatch_ir::{DType, Graph, Value};

/// Emits a scalar that depends smoothly on parameters if the stage's steps do.
pub(super) fn of_instance<'g>(stage: &mut Stage<'g, '_>, form: u32) -> Value<'g> {
    let step = Step::choice(form, form / 8);
    let loss = of_vectors(stage, &step, form);
    of_the_rest(stage, &step, loss, form / 64 % 4)
}

fn of_vectors<'g>(stage: &mut Stage<'g, '_>, step: &Step, form: u32) -> Value<'g> {
    let x = features(stage, step);
    let label = form / 8 % CLASSES as u32;
    if let (1, Some(head)) = (form % 8, stage.kit.head) {
        let [loss] = stage.g.call(head, (x, label));
        return loss;
    }
    let scores = x.affine(stage.kit.out, Some(stage.kit.out_bias));
    let numbers = finite(&stage.numbers(step, CLASSES));
    let target = |g: &'g Graph| g.input(&numbers);
    match form % 8 {
        2 => scores.mse(target(stage.g)),
        3 => scores.bce(target(stage.g).sigmoid()),
        4 => scores.log_softmax().kl_div(target(stage.g).softmax()),
        5 => scores.cross_entropy_with(target(stage.g).softmax()),
        6 => scores.tanh().mean(),
        7 => (scores.square() + 0.5).log().sum(),
        _ if step.size / 16 % 3 == 1 => x.label_loss(stage.kit.table.as_param(), label),
        _ => scores.cross_entropy(label),
    }
}

/// Sums some values without readers, or returns any vector.
fn features<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Value<'g> {
    let vector = stage.vector_type();
    let sinks = stage.sinks(4, |ty| ty == vector);
    match sinks.as_slice() {
        [] => stage.vector(step, 0).0,
        [one] => one.0,
        several => stage.g.list(several.iter().map(|sink| sink.0)).sum(),
    }
}

/// Adds `count` values of other shapes without readers to the loss. Each element has its own weight, so gradients
/// distinguish elements.
fn of_the_rest<'g>(stage: &mut Stage<'g, '_>, step: &Step, loss: Value<'g>, count: u32) -> Value<'g> {
    let vector = stage.vector_type();
    let sinks = stage.sinks(count as usize, |ty| ty.dtype == DType::F32 && ty != vector);
    sinks.into_iter().fold(loss, |loss, (x, _)| {
        let weights = finite(&stage.numbers(step, x.shape().elements()));
        let weighted = x * stage.g.input_shaped(x.shape(), &weights);
        loss + if x.shape().rank() > 0 { weighted.sum() } else { weighted }
    })
}

/// Replaces numbers that are not finite, so targets stay finite even with wild inputs.
fn finite(numbers: &[f32]) -> Vec<f32> {
    numbers.iter().map(|&x| if x.is_finite() { x.clamp(-2.0, 2.0) } else { 0.5 }).collect()
}
