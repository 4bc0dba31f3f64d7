//! There and back, for plans of every model in every mode.

use crate::graphs::{MODELS, Random};
use autobatch_ir::plan::{Mode, Plan};
use autobatch_planner::{Planner, Request, RowOrder};

/// Plans of every model, with their names.
pub(crate) fn plans(seeds: u64) -> Vec<(String, Plan)> {
    let mut planner = Planner::default();
    let mut plans = Vec::new();
    for (name, model) in MODELS {
        for seed in 0..seeds {
            let graph = model(&mut Random(seed));
            let (mode, rows) = match seed % 3 {
                0 => (Mode::Infer, RowOrder::Propagated),
                1 => (Mode::Train, RowOrder::Propagated),
                _ => (Mode::Grow, RowOrder::Batch),
            };
            let request = Request { mode, rows, training: seed % 2 == 1, ..Request::default() };
            let plan = planner.plan(&graph, &request).expect("the model asks for outputs");
            plans.push((format!("{name} with seed {seed}"), plan));
        }
    }
    plans
}

pub(crate) fn parsed(name: &str, text: &str) -> Plan {
    Plan::from_text(text).unwrap_or_else(|error| panic!("{}\n\n{text}", error.in_file(name)))
}

#[test]
fn a_plan_reads_back_equal_and_prints_the_same_again() {
    for (name, plan) in plans(30) {
        let text = plan.to_text();
        let back = parsed(&name, &text);
        assert!(back == plan, "{name}: another plan came back\n{text}\n{}", back.to_text());
        assert_eq!(back.to_text(), text, "{name}");
    }
}

#[test]
fn planners_make_plans_in_normal_form() {
    for (name, plan) in plans(30) {
        let mut normal = plan.clone();
        normal.normalise();
        assert!(normal == plan, "{name}");
    }
}
