//! Every target runs a bounded number of cases on stable Rust.
//!
//! `AUTOBATCH_TEST=long` runs twenty times as many cases, `short` a twelfth; `AUTOBATCH_SEED=n` runs other cases. A failing case
//! prints the arguments of `volume` that replay it.

#![expect(clippy::print_stdout, reason = "a failing test shows the arguments that replay its case")]

use autobatch_fuzz::{Bench, Case, Counts, Tally, targets};
use autobatch_testing::hostile::{Counting, SLOW, cap};
use autobatch_testing::trials::{asked_seed, cases};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs the cases of a target. Every event of `expected` must occur.
fn run(name: &str, usual: u64, expected: &[Tally]) {
    let target = targets().into_iter().find(|target| target.name == name).expect("a target");
    let mut bench = Bench::new(target);
    let (seed, mut counts) = (asked_seed().unwrap_or(1), Counts::default());
    for number in 0..cases(usual) {
        let input = bench.input(Case { seed, number });
        let outcome = catch_unwind(AssertUnwindSafe(|| bench.check(&input, &mut counts)));
        if let Err(payload) = outcome {
            println!("replay with: volume --target {name} --seed {seed} --start {number} --cases 1");
            resume_unwind(payload);
        }
    }
    println!("{counts:?}, time limits times {SLOW}");
    for &tally in expected {
        assert!(counts.get(tally) > 0, "no case counts as {}: {counts:?}", tally.name());
    }
}

const FILE: [Tally; 4] = [Tally::Refused, Tally::Accepted, Tally::Executed, Tally::Proven];

macro_rules! runs {
    ($($test:ident: $name:literal, $cases:literal, $expected:expr;)*) => {
        $(#[test]
        fn $test() {
            run($name, $cases, &$expected);
        })*

        /// The targets that have a test.
        const TESTED: &[&str] = &[$($name),*];
    };
}

runs! {
    texts_of_graphs: "graph_text", 2_000, FILE;
    binary_files_of_graphs: "graph_binary", 2_000, FILE;
    graphs_as_json: "graph_json", 2_000, FILE;
    texts_of_modules: "module_text", 3_000, [Tally::Refused, Tally::Accepted, Tally::Executed];
    binary_files_of_modules: "module_binary", 3_000, [Tally::Refused, Tally::Accepted, Tally::Executed];
    texts_of_plans: "plan_text", 2_000, FILE;
    binary_files_of_plans: "plan_binary", 2_000, FILE;
    plans_as_json: "plan_json", 2_000, FILE;
    texts_of_update_plans: "update_text", 3_000, [Tally::Refused, Tally::Executed, Tally::Values];
    binary_files_of_update_plans: "update_binary", 3_000, [Tally::Refused, Tally::Executed, Tally::Values];
    update_plans_as_json: "update_json", 3_000, [Tally::Refused, Tally::Executed, Tally::Values];
    learned_tables: "fsm_table", 3_000, [Tally::Refused, Tally::Accepted, Tally::Planned];
    cost_tables: "cost_table", 2_000, [Tally::Refused, Tally::Accepted, Tally::Planned];
    checkpoints: "checkpoint", 1_000, [Tally::Refused];
    weights: "weights", 1_000, [Tally::Refused, Tally::Accepted];
    random_graphs_forward: "forward", 240, [Tally::Proven, Tally::Executed, Tally::Values];
    random_graphs_in_reverse: "reverse", 120, [Tally::Proven, Tally::Executed, Tally::Values];
    random_graphs_under_every_policy: "forward_everywhere", 12, [Tally::Proven, Tally::Executed, Tally::Values];
    gradients_under_every_policy: "reverse_everywhere", 6, [Tally::Proven, Tally::Executed, Tally::Values];
    growing_graphs: "grow", 120, [Tally::Proven, Tally::Executed, Tally::Values];
    tasks: "tasks", 60, [Tally::Executed, Tally::Values];
}

#[test]
fn every_target_has_a_test_and_a_file_for_libfuzzer() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz_targets");
    let names: Vec<&str> = targets().iter().map(|target| target.name).collect();
    assert_eq!(names, TESTED);
    for name in names {
        let file = folder.join(format!("{name}.rs"));
        let text =
            std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert!(text.contains(&format!("autobatch_fuzz::libfuzzer!(\"{name}\");")), "{}", file.display());
    }
}

#[test]
fn a_case_depends_on_its_seed_and_number_alone() {
    let target = targets()[0];
    let input = |seed, number| Bench::new(target).input(Case { seed, number });
    assert_eq!(input(1, 5), input(1, 5));
    assert!(input(1, 5) != input(1, 6) && input(1, 5) != input(2, 5));
}

/// Several uses of a parameter in these graphs contribute the same, and the proof took one for a later one.
#[test]
fn sums_of_equal_contributions_are_proven() {
    let target = targets().into_iter().find(|target| target.name == "reverse").expect("it is a target");
    let (mut bench, mut counts) = (Bench::new(target), Counts::default());
    for number in [441_911, 590_865, 676_661] {
        let input = bench.input(Case { seed: 601, number });
        bench.check(&input, &mut counts);
    }
    assert_eq!((counts.get(Tally::Proven), counts.get(Tally::Unproven)), (3, 0));
}

#[test]
fn the_cap_of_the_allocator_fails_large_allocations() {
    cap(1 << 20);
    let mut bytes = Vec::<u8>::new();
    let (small, large) = (bytes.try_reserve_exact(1 << 10), bytes.try_reserve_exact(1 << 24));
    cap(usize::MAX);
    assert!(small.is_ok() && large.is_err());
    assert!(bytes.try_reserve_exact(1 << 24).is_ok());
}
