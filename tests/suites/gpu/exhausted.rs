//! Memory that the system refuses, in a process of its own with little memory.

use crate::batches::{bits, cells};
use crate::common::{executor, inferring, inputs_of, skipped};
use autobatch_ir::Weights;
use autobatch_ir::graph::Graph;
use autobatch_ir::module::ModuleBuilder;
use autobatch_runtime_wgpu::{GpuError, Options};
use std::process::Command;

/// Marks the process with little memory.
const LITTLE: &str = "AUTOBATCH_LITTLE_MEMORY";

/// Kibibytes of its address space. A driver takes about one and a half million.
const ADDRESSES: u32 = 3 << 20;

#[test]
fn refused_memory_is_an_error_and_the_executor_continues() {
    let Some(mut executor) = executor(Options::default()) else { return };
    if std::env::var_os(LITTLE).is_some() {
        return refused(&mut executor);
    }
    let is_software = executor.gpu().is_some_and(|gpu| gpu.facts().kind == "software");
    if !(cfg!(target_os = "linux") && is_software) {
        return skipped("only on Linux memory of a software adapter is that of the process");
    }
    let own = std::env::current_exe().expect("the test has a file");
    let output = Command::new("sh")
        .args(["-c", &format!("ulimit -v {ADDRESSES} && exec \"$0\" \"$@\"")])
        .arg(own)
        .args(["--exact", "--nocapture", "--test-threads", "1"])
        .arg("exhausted::refused_memory_is_an_error_and_the_executor_continues")
        .env(LITTLE, "1")
        .output()
        .expect("the test starts");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if output.status.code().is_none() && memory_is_a_file(&executor) {
        return skipped("the driver takes memory from a file and does not ask whether it can be mapped");
    }
    assert!(output.status.success() && said[0].contains("1 passed"), "{}\n{}", said[0], said[1]);
}

/// Whether the driver is a Mesa that backs device memory by files. A limit of the address space does not refuse such
/// memory: the process is killed when it is mapped, or when the driver allocates memory of its own.
fn memory_is_a_file(executor: &autobatch_runtime_wgpu::Executor) -> bool {
    let driver = executor.gpu().map(|gpu| gpu.facts().driver.clone()).unwrap_or_default();
    let version = driver.split("Mesa ").nth(1).and_then(|rest| rest.split('.').next());
    version.and_then(|major| major.parse().ok()).is_some_and(|major: u32| major >= 24)
}

fn refused(executor: &mut autobatch_runtime_wgpu::Executor) {
    let (small, values) = cells(9, 6);
    let before = bits(executor, &small, &values);
    // Fourteen times three rows of 64 MB: more than the address space, and less than bindings hold.
    let g = Graph::new(&ModuleBuilder::new("wide").build().expect("sound"));
    let mut wanted = Vec::new();
    for instance in 0..14 {
        g.instance(instance);
        // Rows that are short enough for the loops of a software adapter.
        let ones = g.zeros([32, 512 << 10]) + g.input(&[1.0]).broadcast([32, 512 << 10]);
        wanted.extend(ones.max_rows().id());
    }
    let graph = g.finish().expect("sound");
    let weights = Weights::init(&graph.module, 1);
    let plan = inferring(&graph, &wanted);
    let error =
        executor.execute(&plan, &weights, inputs_of(&graph, false)).expect_err("there is not so much");
    // The bindings of OpenGL hold less than this plan, so the executor refuses it before it asks the system.
    let is_small = executor.gpu().is_some_and(|gpu| gpu.facts().backend == "gl");
    let is_refused = match error {
        GpuError::Memory { .. } => true,
        GpuError::TooLarge { .. } => is_small,
        _ => false,
    };
    assert!(is_refused, "{error:?}");
    assert!(error.to_string().contains("plan fewer instances at once"), "{error}");
    assert_eq!(bits(executor, &small, &values), before);
}
