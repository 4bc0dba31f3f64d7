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

#[test]
fn a_plan_comes_back_equal_from_bytes() {
    for (name, plan) in plans(30) {
        let bytes = plan.to_bytes();
        let back = Plan::from_bytes(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(*back == plan, "{name}");
        assert!(back.to_bytes() == bytes, "{name}");
    }
}

#[test]
fn a_plan_comes_back_equal_from_json() {
    for (name, plan) in plans(6) {
        let json = serde_json::to_string_pretty(&plan).expect("plans are plain data");
        let back: Plan = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(back == plan, "{name}");
    }
}

#[test]
fn json_of_plans_spells_words_as_text_does() {
    let (_, plan) = plans(1).swap_remove(0);
    let json = serde_json::to_value(&plan).expect("plans are plain data");
    assert_eq!(json["mode"], "infer");
    assert_eq!(json["structure"], format!("{:#034x}", plan.structure));
    assert_eq!(json["stores"][0]["kind"]["param"], "table");
    assert!(json["operands"][0]["address"]["table"]["at"].is_u64(), "{}", json["operands"][0]);
    assert_eq!(json["operands"][0]["origin"], "words");
    assert!(json["places"][0]["rows"]["field"].is_u64(), "{}", json["places"][0]);
    let stages = json["kernels"][0]["stages"].as_array().expect("a list");
    assert!(stages[0]["lookup"]["dst"]["width"].is_u64(), "{}", stages[0]);
}

#[test]
fn pools_in_any_order_have_one_normal_form() {
    use autobatch_ir::plan::{Address, GroupRange};
    for (name, plan) in plans(12) {
        let mut shifted = plan.clone();
        shifted.tables.splice(0..0, [9, 9, 9]);
        for group in &mut shifted.groups {
            if let GroupRange::Table { at } = &mut group.range {
                *at += 3;
            }
        }
        shifted.groups.splice(0..0, plan.groups.first().copied());
        for operand in &mut shifted.operands {
            match &mut operand.address {
                Address::Table { at } => *at += 3,
                Address::Lists { offsets, items } => (*offsets, *items) = (*offsets + 3, *items + 3),
                Address::Groups { first, .. } => *first += 1,
                Address::Steps { .. } => {}
            }
        }
        shifted.operands.extend(plan.operands.first().copied());
        assert_eq!(shifted.to_text(), plan.to_text(), "{name}");
        shifted.normalise();
        assert!(shifted == plan, "{name}");
    }
}

#[test]
fn runs_too_long_for_a_reader_to_believe_are_cut() {
    use autobatch_ir::NodeId;
    for lanes in [60_000, 200_000, 1_000_000] {
        let (name, mut plan) = plans(1).swap_remove(0);
        let last = plan.steps.last_mut().expect("the plan has steps");
        plan.lanes.truncate(last.lanes.start as usize);
        plan.lanes.extend((0..lanes).map(NodeId::new));
        last.lanes.end = plan.lanes.len() as u32;
        let text = plan.to_text();
        assert_eq!(text.contains(&format!("n0..n{lanes}")), lanes < 65_536, "{lanes} lanes in one run");
        assert!(parsed(&name, &text) == plan, "{lanes} lanes");
    }
}

#[test]
fn tables_of_results_come_before_those_of_operands() {
    use autobatch_ir::plan::{Address, Place};
    let text = "autobatch plan 5 module \"m\" structure 0x0 mode infer bind words 0 floats 0 \
        slab s0 value {a: f32} x9 kernel k0 f () { return } wave 0 f0 k0 x2 -> s0.a{4 2} <- s0.a{7 1} \
        certificate batches 0 bound 0 | rows copied 0 gathered 0 direct 0 | slabs 0 bytes";
    let plan = parsed("results", text);
    assert_eq!(plan.tables, [4, 2, 7, 1]);
    assert!(matches!(
        (plan.places[0], plan.operands[0].address),
        (Place::Table { at: 0, .. }, Address::Table { at: 2 })
    ));
    let mut normal = plan.clone();
    normal.normalise();
    assert!(normal == plan);
}
