//! A device that is lost during the work, and invalid inputs.

use crate::batches::cells;
use crate::common::{bound, executor, inferring};
use autobatch_ir::Weights;
use autobatch_ir::graph::Graph;
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_ir::plan::{BindError, FieldId};
use autobatch_oracle::reference;
use autobatch_runtime_wgpu::{GpuError, Options};

#[test]
fn a_lost_device_is_an_error_and_the_next_run_reopens_it() {
    let Some(mut executor) = executor(Options::default()) else { return };
    let (graph, values) = cells(9, 6);
    let weights = Weights::init(&graph.module, 3);
    let plan = inferring(&graph, &values);
    executor.execute(&plan, &weights, bound(&graph, false)).expect("executes");
    let before = executor.output(0).to_vec();
    executor.gpu().expect("open").destroy();
    let error = executor.execute(&plan, &weights, bound(&graph, false)).expect_err("the device is gone");
    assert!(matches!(error, GpuError::Lost { .. }), "{error:?}");
    assert!(error.to_string().contains("execute again"), "{error}");
    assert!(executor.gpu().is_none());
    executor.execute(&plan, &weights, bound(&graph, false)).expect("executes on a new device");
    assert_eq!(executor.output(0), before, "the given parameters are uploaded again");
    assert!(executor.counters().parameters > 0, "they were uploaded again");
}

#[test]
fn a_reopened_device_has_no_rows() {
    let Some(mut executor) = executor(Options::default()) else { return };
    let (graph, values) = cells(2, 4);
    let weights = Weights::init(&graph.module, 3);
    let plan = inferring(&graph, &values);
    executor.execute(&plan, &weights, bound(&graph, false)).expect("executes");
    assert!(executor.row(&plan, FieldId(0), 0).expect("reads").is_some());
    executor.close();
    for _ in 0..2 {
        let error = executor.row(&plan, FieldId(0), 0).expect_err("nothing was executed there");
        assert!(matches!(error, GpuError::Lost { .. }), "{error:?}");
        executor.target().expect("opens");
    }
}

#[test]
fn an_invalid_bound_boolean_is_reported_before_the_run() {
    let Some(mut executor) = executor(Options::default()) else { return };
    let g = Graph::new(&ModuleBuilder::new("masks").build().expect("sound"));
    let wanted = [g.input(&[1.0, 2.0]).mask(&[true, false]).id().expect("sound")];
    let graph = g.finish().expect("sound");
    let weights = Weights::init(&graph.module, 1);
    let plan = inferring(&graph, &wanted);
    let mut numbers = bound(&graph, false);
    numbers.words = &[1, 2];
    let error = executor.execute(&plan, &weights, numbers).expect_err("2 is no truth value");
    assert!(matches!(error, GpuError::Bound(BindError::Truth { found: 2, word: 1, .. })), "{error:?}");
    numbers.words = &[0, 1];
    executor.execute(&plan, &weights, numbers).expect("truth values");
}

#[test]
fn a_bound_index_out_of_range_is_reported_before_the_run() {
    let Some(mut executor) = executor(Options::default()) else { return };
    let mut m = ModuleBuilder::new("tables");
    let table = m.table("embed", [5, 3], Init::Uniform(1.0));
    let g = Graph::new(&m.build().expect("sound"));
    g.instance(0);
    let row = table.look(&g, 4);
    let wanted = [row.id().expect("sound")];
    let graph = g.finish().expect("sound");
    let weights = Weights::init(&graph.module, 1);
    let plan = inferring(&graph, &wanted);
    let mut words = graph.bindings.words.clone();
    words[0] = 5;
    let mut numbers = bound(&graph, false);
    numbers.words = &words;
    let error = executor.execute(&plan, &weights, numbers).expect_err("there are five rows");
    assert!(
        matches!(error, GpuError::Bound(BindError::Index { found: 5, limit: 5, word: 0, .. })),
        "{error:?}"
    );
    numbers.words = &[];
    let error = executor.execute(&plan, &weights, numbers).expect_err("nothing is bound");
    assert!(error.to_string().contains("expected 1") || error.to_string().contains("reads 1"), "{error}");
}

#[test]
fn a_computed_index_out_of_range_is_clamped() {
    let Some(mut executor) = executor(Options::default()) else { return };
    let g = Graph::new(&ModuleBuilder::new("picks").build().expect("sound"));
    g.instance(0);
    g.output("row", g.input_shaped([3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).pick(g.index(3)));
    g.output("hot", g.one_hot(g.index(u32::MAX), 4));
    let graph = g.finish().expect("sound");
    let weights = Weights::init(&graph.module, 1);
    let plan = inferring(&graph, &[]);
    let run = reference::forward::<f32>(&graph, &weights, reference::Noise::Off).expect("evaluates");
    let mut on_cpu = autobatch_runtime_cpu::Executor::new(1).expect("opens");
    executor.execute(&plan, &weights, bound(&graph, false)).expect("executes");
    on_cpu.execute(&plan, &weights, bound(&graph, false)).expect("executes");
    for (number, output) in graph.outputs.iter().enumerate() {
        let expected = run.floats(output.value).expect("floats");
        assert_eq!((executor.output(number), on_cpu.output(&plan, number)), (expected, expected));
    }
}
