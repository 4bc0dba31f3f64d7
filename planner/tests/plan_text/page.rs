//! The page of the grammar: each of its examples parses.

use crate::round_trip::parsed;
use autobatch_ir::plan::UpdatePlan;

const PAGE: &str = include_str!("../../../ir/PLAN.md");

/// The examples between fences of a kind.
fn examples(kind: &str) -> Vec<&'static str> {
    let fence = format!("```{kind}\n");
    PAGE.split(&fence).skip(1).map(|rest| rest.split("\n```").next().expect("a fence is closed")).collect()
}

const HEAD: &str = "autobatch plan 5 module \"page\" structure 0x0 mode infer ";
const TAIL: &str = "certificate batches 0 bound 0 | rows copied 0 gathered 0 direct 0 | slabs 0 bytes";

/// The text around an example of each kind.
const SETTINGS: [(&str, usize, &str, &str); 4] = [
    ("plan", 1, "", ""),
    ("memory", 1, HEAD, TAIL),
    (
        "stage",
        9,
        "bind words 0 floats 0 kernel k0 f (%0: f32[4], %1: f32[4], %2: list f32[4], %3: list f32[1], %4: u32) \
         [@0: f32[8,6], @1: f32[6], @2: f32[9,4]] { temp %5: f32[6], %6: f32[4], %7: f32[2,4], %8: f32[2,6], \
         %9: f32, %10: i32[4] edges %11: list f32[4] ",
        " return } ",
    ),
    (
        "step",
        5,
        "bind words 0 floats 0 slab s0 value {a: f32, b: f32} x9 kernel k0 f () { return } wave 0 f0 k0 x3 ",
        " ",
    ),
];

#[test]
fn every_example_of_the_page_parses_and_prints_what_it_says() {
    for (kind, count, before, after) in SETTINGS {
        let found = examples(kind);
        assert_eq!(found.len(), count, "examples of {kind}");
        for example in found {
            let text = match kind {
                "plan" | "memory" => format!("{before}{example}\n{after}"),
                _ => format!("{HEAD}{before}{example}\n{after}{TAIL}"),
            };
            let plan = parsed("ir/PLAN.md", &text);
            let printed = plan.to_text();
            assert!(parsed("print", &printed) == plan, "{printed}");
            if kind == "plan" {
                plan.verify().unwrap_or_else(|errors| panic!("{errors}"));
            }
        }
    }
}

#[test]
fn every_example_of_roles_parses_and_prints_as_it_stands() {
    let lines = examples("roles").concat();
    assert_eq!(lines.lines().count(), 4);
    for line in lines.lines() {
        let kernel = format!("kernel k0 f () {{ {line} return }}");
        let plan = parsed("ir/PLAN.md", &format!("{HEAD}bind words 0 floats 0 {kernel}{TAIL}"));
        assert!(plan.kernels[0].roles.is_some());
        assert!(plan.to_text().contains(line), "{}", plan.to_text());
    }
}

#[test]
fn every_update_plan_of_the_page_parses_and_verifies() {
    let found = examples("update");
    assert_eq!(found.len(), 1);
    for example in found {
        let plan = UpdatePlan::from_text(example).unwrap_or_else(|error| panic!("{error}"));
        let printed = plan.to_text();
        assert_eq!(UpdatePlan::from_text(&printed).unwrap_or_else(|error| panic!("{error}")), plan);
        plan.verify().unwrap_or_else(|errors| panic!("{errors}"));
    }
}

#[test]
fn what_the_page_says_of_runs_is_so() {
    let text = examples("step")[1];
    let (_, _, before, after) = SETTINGS[3];
    let plan = parsed("ir/PLAN.md", &format!("{HEAD}{before}{text}\n{after}{TAIL}"));
    assert_eq!(plan.tables[..9], [5, 6, 7, 0, 2, 4, 7, 7, 7]);
    assert_eq!(plan.tables[9..], [0, 5, 7, 11, 0, 1, 2, 3, 8, 1, 1, 5, 5, 5, 5]);
    assert_eq!(plan.lanes.iter().map(|lane| lane.index()).collect::<Vec<usize>>(), [0, 4, 8]);
}
