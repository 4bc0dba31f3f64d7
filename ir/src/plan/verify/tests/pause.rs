//! Rule P37: the pause of a plan.

use super::refused;
use crate::plan::verify::Rule;
use crate::plan::{Mode, OutputKey, Pause, Plan};

fn with_pause(waves: u32, outputs: &[u32], change: impl FnOnce(&mut Plan)) -> String {
    refused(Rule::Pause, |plan| {
        (plan.mode, plan.pause) = (Mode::Train, Some(Pause { waves, outputs: outputs.to_vec() }));
        change(plan);
    })
}

shows! {
    only_training_plans_pause: with_pause(2, &[0], |plan| plan.mode = Mode::Infer) => @r#"
    the plan breaks its rules in 1 place
       1. P37 the pause: only a plan in mode train pauses, found infer
    "#;
    a_pause_follows_waves_of_the_plan: with_pause(3, &[0], |_| {}) => @r#"
    the plan breaks its rules in 1 place
       1. P37 the pause: it follows 3 waves, the plan has 2
    "#;
    its_outputs_exist: with_pause(2, &[0, 2], |_| {}) => @r#"
    the plan breaks its rules in 1 place
       1. P37 the pause: output 2 does not exist, the plan has 2
    "#;
    its_outputs_are_listed_once: with_pause(2, &[1, 1], |_| {}) => @r#"
    the plan breaks its rules in 1 place
       1. P37 the pause: output 1 is listed twice
    "#;
    its_outputs_are_no_gradients: with_pause(2, &[0], |plan| {
        plan.outputs[0].key = OutputKey::Gradient(crate::id::ValueId::new(3));
    }) => @r#"
    the plan breaks its rules in 1 place
       1. P37 the pause: output 0 must be a float value and no gradient
    "#;
    outputs_are_written_before_it: with_pause(1, &[1], |_| {}) => @r#"
    the plan breaks its rules in 2 places
       1. P37 the pause: output 0 must be written before the pause
       2. P37 the pause: output 1 must be written before the pause
    "#;
    no_step_before_it_reads_what_arrives: refused(Rule::Bindings, |plan| {
        (plan.mode, plan.pause) = (Mode::Train, Some(Pause { waves: 2, outputs: vec![0] }));
        plan.operands[1].address = crate::plan::Address::Steps { start: 2, stride: 1 };
    }) => @r#"
    the plan breaks its rules in 1 place
       1. P23 step f1 (k1 input): operand 0 reads up to floats 4 of 2 that are bound
    "#;
}

#[test]
fn steps_behind_a_pause_read_what_arrives() {
    let mut plan = super::good();
    plan.normalise();
    (plan.mode, plan.pause) = (Mode::Train, Some(Pause { waves: 2, outputs: vec![1, 0] }));
    assert_eq!((plan.all_floats(), plan.steps_before_pause()), (6, 3));
    let plan = plan.verify().expect("outputs are written before the pause");
    let text = plan.to_text();
    assert!(text.contains("\npause waves 2 outputs 1 0\n"), "{text}");
    assert_eq!(Plan::from_text(&text).expect("it was printed"), *plan);
    assert_eq!(*Plan::from_bytes(&plan.to_bytes()).expect("it was written"), *plan);
}
