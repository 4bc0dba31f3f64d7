//! Tests of `explain --why`: each verdict, and each part of a signature.

use crate::{ORDER, planned, transcript};

fn why(policy: &str, a: &str, b: &str) -> String {
    transcript(&["explain", ORDER, "--policy", policy, "--why", a, b])
}

#[test]
fn verdict_same_step() {
    insta::assert_snapshot!(why("auto", "%1", "%6"));
}

#[test]
fn verdict_depends() {
    insta::assert_snapshot!(why("auto", "%1", "%3"));
    // The order of the two values does not matter.
    assert!(why("auto", "%3", "%1").contains("%1 @a (step 2) -> %2 @b (step 3) -> %3 @a (step 5)"));
}

#[test]
fn verdict_not_ready() {
    insta::assert_snapshot!(why("auto", "%3", "%15"));
    let fewer = why("depth", "%1", "%15");
    assert!(fewer.contains("yes, and policy depth then needs 1 fewer in total"), "{fewer}");
}

#[test]
fn verdict_policy_choice() {
    insta::assert_snapshot!(why("depth", "%2", "%5"));
    let never = why("none", "%2", "%5");
    assert!(never.contains("no-batching: policy none gives every node a step of its own"), "{never}");
}

#[test]
fn verdict_marked_alone() {
    insta::assert_snapshot!(why("auto", "%2", "%16"));
}

#[test]
fn verdict_dead() {
    insta::assert_snapshot!(why("auto", "%2", "%17"));
}

#[test]
fn verdict_folded() {
    insta::assert_snapshot!(why("auto", "%2", "%0"));
    insta::assert_snapshot!(why("auto", "%2", "%12"));
}

#[test]
fn signatures_differ_in_callee() {
    insta::assert_snapshot!(why("auto", "%2", "%1"));
}

#[test]
fn signatures_differ_in_attribute() {
    insta::assert_snapshot!(why("auto", "%10", "%11"));
}

#[test]
fn signatures_differ_in_weights() {
    insta::assert_snapshot!(why("auto", "%1", "%8"));
}

#[test]
fn signatures_differ_in_operand_types_or_sources_of_indices() {
    let types = transcript(&["explain", "tests/files/parts.graph", "--why", "%2", "%3"]);
    assert!(types.contains("signature: they differ in operand type"), "{types}");
    let indices = transcript(&["explain", "tests/files/parts.graph", "--why", "%6", "%7"]);
    assert!(indices.contains("the source of indices: computed in one, a binding in the other"), "{indices}");
}

#[test]
fn unknown_values_are_rejected() {
    insta::assert_snapshot!(why("auto", "%2", "%99"));
    insta::assert_snapshot!(why("auto", "two", "%1"));
}

const MERGED: &str = "tests/files/merged.graph";

#[test]
fn verdict_merged() {
    insta::assert_snapshot!(transcript(&["explain", MERGED, "--why", "%3", "%4", "--passes"]));
    let separate = transcript(&["explain", MERGED, "--why", "%3", "%4"]);
    assert!(separate.contains("same-step"), "{separate}");
}

#[test]
fn verdict_folded_by_a_pass() {
    let folded = transcript(&["explain", MERGED, "--why", "%1", "%3", "--passes"]);
    assert!(folded.contains("folded: %1") && folded.contains("depends on constants only"), "{folded}");
}

#[test]
fn verdict_different_delta() {
    insta::assert_snapshot!(transcript(&["explain", ORDER, "--why", "%3", "%15", "--forced", "%3"]));
    let both = transcript(&["explain", ORDER, "--why", "%1", "%3", "--forced", "%4"]);
    assert!(both.contains("depends"), "both belong to one delta: {both}");
}

#[test]
fn dropout_sites_have_different_signatures() {
    let file = "tests/files/dropouts.graph";
    let sites = transcript(&["explain", file, "--why", "%3", "%4"]);
    assert!(sites.contains("signature: they differ in dropout site"), "{sites}");
    let rates = transcript(&["explain", file, "--why", "%3", "%5"]);
    assert!(rates.contains("signature: they differ in attribute"), "{rates}");
}

#[test]
fn the_named_policy_judges_alternatives() {
    let plan = planned(ORDER, "why_depth.plan", &["--policy", "depth"]);
    let ask = |more: &[&str]| {
        transcript(&[&["explain", &plan, "--graph", ORDER, "--why", "%2", "%5"], more].concat())
    };
    let assumed = ask(&[]);
    assert!(
        assumed.contains("policy auto") && assumed.contains("the plan does not record its policy"),
        "{assumed}"
    );
    let named = ask(&["--policy", "depth"]);
    assert!(named.contains("policy depth") && !named.contains("the plan does not record"), "{named}");
}
