//! `--why`: a test for each verdict, and for each part of a signature.

use crate::{ORDER, planned, says};

fn why(policy: &str, a: &str, b: &str) -> String {
    says(&["explain", ORDER, "--policy", policy, "--why", a, b])
}

#[test]
fn lanes_of_one_step() {
    insta::assert_snapshot!(why("auto", "%1", "%6"));
}

#[test]
fn one_is_computed_from_the_other_along_a_path() {
    insta::assert_snapshot!(why("auto", "%1", "%3"));
    // The order of the question does not matter.
    assert!(why("auto", "%3", "%1").contains("%1 @a (step 2) -> %2 @b (step 3) -> %3 @a (step 5)"));
}

#[test]
fn one_still_waited_when_the_other_ran() {
    insta::assert_snapshot!(why("auto", "%3", "%15"));
    let fewer = why("depth", "%1", "%15");
    assert!(fewer.contains("yes, and policy depth then needs 1 fewer in all"), "{fewer}");
}

#[test]
fn the_policy_held_one_back() {
    insta::assert_snapshot!(why("depth", "%2", "%5"));
    let never = why("none", "%2", "%5");
    assert!(never.contains("no: policy none runs them apart"), "{never}");
}

#[test]
fn the_model_asked_for_a_batch_of_its_own() {
    insta::assert_snapshot!(why("auto", "%2", "%16"));
}

#[test]
fn no_output_needs_it() {
    insta::assert_snapshot!(why("auto", "%2", "%17"));
}

#[test]
fn constants_and_lists_are_in_no_batch() {
    insta::assert_snapshot!(why("auto", "%2", "%0"));
    insta::assert_snapshot!(why("auto", "%2", "%12"));
}

#[test]
fn signatures_differ_in_the_callee() {
    insta::assert_snapshot!(why("auto", "%2", "%1"));
}

#[test]
fn signatures_differ_in_an_attribute() {
    insta::assert_snapshot!(why("auto", "%10", "%11"));
}

#[test]
fn signatures_differ_in_the_weights() {
    insta::assert_snapshot!(why("auto", "%1", "%8"));
}

#[test]
fn signatures_differ_in_operand_types_and_in_where_indices_come_from() {
    let types = says(&["explain", "tests/files/parts.graph", "--why", "%2", "%3"]);
    assert!(types.contains("signature: they differ in operand type"), "{types}");
    let indices = says(&["explain", "tests/files/parts.graph", "--why", "%6", "%7"]);
    assert!(indices.contains("where indices come from: computed in one, bound in the other"), "{indices}");
}

#[test]
fn values_that_are_not_there_are_refused() {
    insta::assert_snapshot!(why("auto", "%2", "%99"));
    insta::assert_snapshot!(why("auto", "two", "%1"));
}

const MERGED: &str = "tests/files/merged.graph";

#[test]
fn a_pass_made_them_one() {
    insta::assert_snapshot!(says(&["explain", MERGED, "--why", "%3", "%4", "--passes"]));
    let apart = says(&["explain", MERGED, "--why", "%3", "%4"]);
    assert!(apart.contains("same-step"), "{apart}");
}

#[test]
fn a_pass_computed_it() {
    let folded = says(&["explain", MERGED, "--why", "%1", "%3", "--passes"]);
    assert!(folded.contains("folded: %1") && folded.contains("depends on constants alone"), "{folded}");
}

#[test]
fn one_was_forced_before_the_other_was_planned() {
    insta::assert_snapshot!(says(&["explain", ORDER, "--why", "%3", "%15", "--forced", "%3"]));
    let both = says(&["explain", ORDER, "--why", "%1", "%3", "--forced", "%4"]);
    assert!(both.contains("depends"), "both are of one delta: {both}");
}

#[test]
fn uses_of_dropout_are_told_apart_by_their_site() {
    let file = "tests/files/dropouts.graph";
    let sites = says(&["explain", file, "--why", "%3", "%4"]);
    assert!(sites.contains("signature: they differ in dropout site"), "{sites}");
    let rates = says(&["explain", file, "--why", "%3", "%5"]);
    assert!(rates.contains("signature: they differ in attribute"), "{rates}");
}

#[test]
fn alternatives_to_a_plan_are_judged_by_a_policy_that_is_named() {
    let plan = planned(ORDER, "why_depth.plan", &["--policy", "depth"]);
    let ask =
        |more: &[&str]| says(&[&["explain", &plan, "--graph", ORDER, "--why", "%2", "%5"], more].concat());
    let assumed = ask(&[]);
    assert!(assumed.contains("policy auto") && assumed.contains("the plan does not say which"), "{assumed}");
    let named = ask(&["--policy", "depth"]);
    assert!(named.contains("policy depth") && !named.contains("the plan does not say"), "{named}");
}
