//! Every verb that takes a file, on every hostile file: within its memory and time it answers or says what is wrong.

use crate::{NAMES, scratch};
use autobatch::ir::graph::GraphData;
use autobatch::ir::id::ValueId;
use autobatch::ir::plan::{Mode, Plan, Reg, RegKind};
use autobatch::ir::types::f32;
use autobatch::ir::{Graph, Init, ModuleBuilder};
use autobatch_planner::{Gradients, Planner, Request};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// A training plan of a recurrent cell, and its graph.
fn training_plan() -> (Plan, GraphData) {
    let mut m = ModuleBuilder::new("small");
    let weight = m.param("w", [6, 3], Init::Glorot(1.0));
    let cell = m.cell("cell", [f32([3]); 2], |g, [x, h]| [g.affine([x, h], weight, None).tanh()]);
    let graph = Graph::new(&m.build().expect("the model is well typed"));
    let [h] = graph.call(cell, [graph.input(&[1.0, 2.0, 3.0]), graph.zeros([3])]);
    let losses: Vec<(ValueId, f32)> = h.sum().id().into_iter().map(|loss| (loss, 1.0)).collect();
    let data = graph.finish().expect("the graph is well typed");
    let gradients = Some(Gradients { losses: &losses, params: None, values: &[] });
    let request = Request { mode: Mode::Train, gradients, ..Request::default() };
    let plan = Planner::default().plan(&data, &request).expect("a plan");
    (plan, data)
}

/// Writes the graph, and plans of it that declare much, in each form. Returns the paths, first that of the graph.
fn declared() -> Vec<String> {
    let (plan, graph) = training_plan();
    let write = |name: &str, bytes: &[u8]| {
        let path = scratch(name);
        std::fs::write(&path, bytes).expect("the scratch folder exists");
        path
    };
    let mut paths = vec![write("matrix.abg", &graph.to_bytes())];
    type Change = fn(&mut Plan);
    let changes: [(&str, Change); 4] = [
        // Registers of half a gigabyte in a kernel of the reverse, and in one of the forward part.
        ("derivative", |plan| add_register(plan, plan.kernels.len() - 1)),
        ("forward", |plan| add_register(plan, 0)),
        ("rows", |plan| plan.slabs[0].rows = u32::MAX),
        ("lanes", |plan| plan.steps[0].lanes = 0..u32::MAX),
    ];
    for (name, change) in changes {
        let mut large = plan.clone();
        change(&mut large);
        paths.push(write(&format!("matrix_{name}.plan"), large.to_text().as_bytes()));
        let bytes = large.to_bytes();
        paths.push(write(&format!("matrix_{name}.abp"), &bytes));
        paths.push(write(&format!("matrix_{name}_cut.abp"), &bytes[..bytes.len() * 2 / 3]));
    }
    // A header of 2^40 bytes, and a tensor that the file does not hold.
    let tensor = br#"{"w":{"dtype":"F32","shape":[1073741824,64],"data_offsets":[0,274877906944]}}"#;
    let weights = [&(tensor.len() as u64).to_le_bytes()[..], tensor, &[0; 64]].concat();
    paths.push(write("matrix.safetensors", &weights));
    paths.push(write("matrix_head.safetensors", &[&(1_u64 << 40).to_le_bytes()[..], b"{"].concat()));
    paths.push(write("matrix_deep.json", "[".repeat(100_000).as_bytes()));
    paths.push(write("matrix_brackets.txt", "(".repeat(100_000).as_bytes()));
    paths
}

fn add_register(plan: &mut Plan, kernel: usize) {
    let kernel = Arc::make_mut(&mut plan.kernels[kernel]);
    kernel.regs.push(Reg { kind: RegKind::Temp, ty: f32([1 << 29]) });
}

/// The files of the repository that showed a defect.
fn known() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/files/hostile");
    let files = std::fs::read_dir(folder).expect("the folder exists");
    let mut paths: Vec<String> =
        files.map(|file| file.expect("a file").path().to_string_lossy().into_owned()).collect();
    paths.sort_unstable();
    paths
}

#[test]
fn every_verb_answers_or_refuses_every_hostile_file_within_its_limits() {
    let [page, reduced, table, answers, image] =
        ["matrix.html", "matrix_small.graph", "matrix_table.json", "matrix_answers", "matrix.svg"]
            .map(scratch);
    let declared = declared();
    let graph = declared[0].clone();
    let files: Vec<String> = declared.into_iter().chain(known()).collect();
    assert!(files.len() > 20);
    let mut refused = 0;
    for file in &files {
        let commands: [&[&str]; 24] = [
            &["show", file],
            &["show", file, "--format", "svg", "-o", &image],
            &["plan", file],
            &["plan", file, "--mode", "train"],
            &["explain", file],
            &["explain", file, "--graph", &graph],
            &["inspect", file, "-o", &page],
            &["check", &graph, file],
            &["check", file, file],
            &["diff", file, &graph],
            &["policies", file],
            &["execute", file, "--memory-limit", "256MiB", "--work-limit", "1e8"],
            &["execute", &graph, file],
            &["execute", &graph, "--weights", file],
            &["execute", NAMES, "--weights", file],
            &["reduce", file, "-o", &reduced, "--", "false"],
            &["fsm-train", file, "--episodes", "1", "-o", &table],
            &["run", "names", "--peer-data", file, "--rounds", "1"],
            &["eval", "names", "--weights", file],
            &["predict", "names", "--weights", file, file],
            &["predict", "treelstm", "--weights", file, file],
            &["map", "names", "--weights", file, "--data", file, "-o", &answers],
            &["train", "names", "--resume", file, "--epochs", "1"],
            &["plan", &graph, "--policy", &format!("fsm:{file}")],
        ];
        for words in commands {
            // A gigabyte of memory, and ten seconds of a core.
            let script = "ulimit -v 1048576 2>/dev/null; ulimit -t 10; exec \"$0\" \"$@\" 2>&1";
            let mut command = Command::new("sh");
            command.args(["-c", script, env!("CARGO_BIN_EXE_autobatch")]).args(words).stdin(Stdio::null());
            let output = command.output().expect("every system has a shell");
            let code = output.status.code();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(matches!(code, Some(0..=4)), "{words:?} ends with {:?}: {said}", output.status);
            assert!(code == Some(0) || said.contains("error") || code == Some(1), "{words:?}: {said}");
            refused += u32::from(code != Some(0));
        }
    }
    assert!(refused > 100, "most of these files are of no use to most verbs: {refused}");
}
