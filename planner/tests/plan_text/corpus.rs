//! The committed plans in `tests/files/plans`: what planning a small model looks like.
//!
//! A change of planner or text shows as a difference of these files. The test that finds one writes
//! the plan as it is now beside the file, ending in `.plan.new`; after a look, run the test again
//! with `AUTOBATCH_BLESS=1` to accept all of them.

use crate::graphs::{MODELS, Random};
use crate::round_trip::parsed;
use autobatch_ir::plan::{Mode, Plan};
use autobatch_ir::types::DType;
use autobatch_planner::{Gradients, Planner, Request};
use std::path::{Path, PathBuf};

/// Model, seed and mode of each file.
const FILES: [(&str, u64, Mode); 11] = [
    ("tree_lstm", 3, Mode::Infer),
    ("bilstm", 2, Mode::Train),
    ("child_sum", 1, Mode::Infer),
    ("lattice", 1, Mode::Infer),
    ("attention", 1, Mode::Infer),
    ("nested", 1, Mode::Infer),
    ("mixed_indices", 1, Mode::Infer),
    ("dropout", 1, Mode::Train),
    ("shapes", 1, Mode::Infer),
    ("elementwise", 1, Mode::Infer),
    ("sources", 1, Mode::Grow),
];

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/files/plans")
}

/// The committed files, by name.
pub(crate) fn files() -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder()).expect("the corpus is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "plan"));
    let read = |path: &PathBuf| (path.display().to_string(), std::fs::read_to_string(path).expect("a text"));
    paths.iter().map(read).collect()
}

#[test]
fn planning_the_models_gives_the_committed_plans() {
    let bless = std::env::var_os("AUTOBATCH_BLESS").is_some();
    let mut differ = Vec::new();
    for (name, seed, mode) in FILES {
        let (_, model) = MODELS.iter().find(|(known, _)| *known == name).expect("the model exists");
        let request = Request { mode, training: mode == Mode::Train, ..Request::default() };
        let plan = Planner::default().plan(&model(&mut Random(seed)), &request).expect("outputs are wanted");
        let path = folder().join(format!("{name}.plan"));
        compare(&path, &plan.to_text(), bless, &mut differ);
    }
    compare(&folder().join("pause.plan"), &pausing().to_text(), bless, &mut differ);
    assert!(
        differ.is_empty(),
        "{differ:?} are planned otherwise now: compare each tests/files/plans/NAME.plan with NAME.plan.new, \
         then accept them with AUTOBATCH_BLESS=1"
    );
    committed_plans_are_sound_and_print_as_they_stand();
}

/// Compares a plan with its file, or writes the file.
fn compare(path: &Path, text: &str, bless: bool, differ: &mut Vec<String>) {
    if bless {
        std::fs::write(path, text).expect("the folder is writable");
    } else if std::fs::read_to_string(path).ok().as_deref() != Some(text) {
        std::fs::write(path.with_extension("plan.new"), text).expect("the folder is writable");
        differ.push(path.display().to_string());
    }
}

/// A plan that pauses for the gradients of all float outputs of a small model.
fn pausing() -> Plan {
    let (_, model) = MODELS.iter().find(|(known, _)| *known == "tree_lstm").expect("the model exists");
    let graph = model(&mut Random(3));
    let floats = graph.outputs.iter().map(|output| output.value);
    let mut arriving: Vec<_> = floats.filter(|&value| graph.type_of(value).dtype == DType::F32).collect();
    arriving.sort_unstable();
    arriving.dedup();
    let gradients = Some(Gradients { losses: &[], params: None, values: &[] });
    let request = Request { mode: Mode::Train, gradients, arriving: &arriving, ..Request::default() };
    Planner::default().plan(&graph, &request).expect("outputs are wanted")
}

/// Behind the comparison, because accepting writes the files.
fn committed_plans_are_sound_and_print_as_they_stand() {
    for (name, text) in files() {
        let plan: Plan = parsed(&name, &text);
        assert!(plan.to_text() == text, "{name} is not as printed");
        plan.verify().unwrap_or_else(|errors| panic!("{name}: {errors}"));
    }
}
