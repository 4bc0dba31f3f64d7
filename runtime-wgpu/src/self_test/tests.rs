//! Tests of the self-test.

use super::*;

#[test]
fn the_plan_of_the_self_test_verifies() {
    assert_eq!(plan().steps.len(), 1);
}
