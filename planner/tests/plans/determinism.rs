//! Equal graphs give equal plans, byte by byte: on any thread, concurrently, and in another process.

use crate::agreement::planner;
use crate::graphs::{MODELS, Random};
use autobatch_ir::hash::hash_bytes;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::Mode;
use autobatch_ir::types::DType;
use autobatch_planner::{Gradients, Request, RowOrder};
use std::process::Command;

/// The environment variable that asks the other process for its digest.
const ASKED: &str = "AUTOBATCH_PLANS_DIGEST";

/// The hash of the bytes of many plans, with and without a reverse.
fn digest() -> u64 {
    let mut bytes = Vec::new();
    for (name, model) in MODELS {
        let graph = model(&mut Random(7));
        for policy in ["depth", "agenda", "auto", "none"] {
            for rows in [RowOrder::Batch, RowOrder::Propagated] {
                let infer = Request { rows, ..Request::default() };
                let plan =
                    planner(policy).plan(&graph, &infer).unwrap_or_else(|error| panic!("{name}: {error}"));
                bytes.extend(plan.to_bytes());
                let float = |value: &ValueId| {
                    let ty = graph.type_of(*value);
                    ty.dtype == DType::F32 && !ty.is_list
                };
                let outputs = graph.outputs.iter().map(|output| output.value).filter(float);
                let losses: Vec<(ValueId, f32)> = outputs.map(|value| (value, 1.0)).collect();
                let gradients = Some(Gradients { losses: &losses, params: None, values: &[] });
                let train = Request { mode: Mode::Train, rows, gradients, ..Request::default() };
                let plan =
                    planner(policy).plan(&graph, &train).unwrap_or_else(|error| panic!("{name}: {error}"));
                bytes.extend(plan.to_bytes());
            }
        }
    }
    hash_bytes(&bytes)
}

#[test]
fn plans_are_equal_on_two_threads() {
    let alone = digest();
    let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(digest)).collect();
    for thread in threads {
        assert_eq!(thread.join().expect("planning does not panic"), alone);
    }
    if std::env::var_os(ASKED).is_some() {
        println!("digest {alone:016x}");
    }
}

#[test]
fn plans_are_equal_in_another_process() {
    let program = std::env::current_exe().expect("the path of this test program");
    let test = "determinism::plans_are_equal_on_two_threads";
    let output = Command::new(program)
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(ASKED, "1")
        .output()
        .expect("the test runs again");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains(&format!("digest {:016x}", digest())), "the other process printed {printed}");
}
