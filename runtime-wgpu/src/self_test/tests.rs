//! Tests of the self-test.

use super::*;

#[test]
fn the_plan_of_the_self_test_verifies() {
    let plan = plan();
    assert!(plan.steps.len() > 20 && !plan.reductions.is_empty() && gradients(&plan).count() > 5);
}

#[test]
fn errors_are_relative_and_nothing_is_overlooked() {
    assert_eq!(relative_error(&[1.0, -2.0], &[1.0, -2.0]), 0.0);
    assert_eq!(relative_error(&[1.0, -1.0], &[1.0, -2.0]), 0.5);
    assert_eq!(relative_error(&[f32::NAN], &[1.0]), f32::INFINITY);
    assert_eq!(relative_error(&[f32::NAN], &[f32::NAN]), 0.0);
    assert_eq!(relative_error(&[1.0], &[1.0, 1.0]), f32::INFINITY);
    let words = |word: u32| [f32::from_bits(word)];
    assert_eq!(relative_error(&words(3), &words(4)), f32::INFINITY);
    assert_eq!(relative_error(&words(4), &words(4)), 0.0);
}
