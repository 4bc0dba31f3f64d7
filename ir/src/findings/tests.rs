//! Tests of findings.

use super::*;

rules! {
    "T", "the toy is broken";
    Wheel = 1, "wheels turn";
    Paint = 7, "paint is dry";
}

#[test]
fn findings_are_listed_with_their_numbers_and_capped() {
    let mut findings = Findings::default();
    assert_eq!(findings.clone().verdict(5), Ok(5));
    findings.report(Rule::Paint, &"the door", "expected dry, found wet");
    assert_eq!(
        findings.to_string(),
        "the toy is broken in 1 place\n   1. T7 the door: expected dry, found wet"
    );
    for _ in 0..2 * MAX_FINDINGS {
        findings.report(Rule::Wheel, &"a wheel", "it does not turn");
    }
    assert_eq!(findings.findings().len(), MAX_FINDINGS);
    assert!(findings.to_string().starts_with("the toy is broken in 100 or more places\n"));
    let statements: Vec<&str> = Rule::ALL.iter().map(|rule| rule.statement()).collect();
    assert_eq!(statements, ["wheels turn", "paint is dry"]);
}

#[test]
fn long_and_unprintable_names_are_cut() {
    assert_eq!(brief("a\nb\u{1b}"), "a b\\u001b");
    assert_eq!(brief(&"é".repeat(81)), "é".repeat(80) + "..");
    assert_eq!(brief(&"x".repeat(80)), "x".repeat(80));
}
