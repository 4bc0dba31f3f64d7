//! A device that is lost during the work, and invalid inputs.

use crate::batches::cells;
use crate::common::{executor, inferring, inputs_of};
use autobatch_ir::Weights;
use autobatch_ir::graph::{Graph, Value};
use autobatch_ir::module::{Init, ModuleBuilder, Table};
use autobatch_ir::plan::{BindError, FieldId};
use autobatch_runtime_cpu::RunError;
use autobatch_runtime_wgpu::{GpuError, Options};

#[test]
fn a_lost_device_is_an_error_and_the_next_run_reopens_it() {
    let Some(mut executor) = executor(Options::default()) else { return };
    let (graph, values) = cells(9, 6);
    let weights = Weights::init(&graph.module, 3);
    let plan = inferring(&graph, &values);
    executor.execute(&plan, &weights, inputs_of(&graph, false)).expect("executes");
    let before = executor.output(0).to_vec();
    executor.gpu().expect("open").destroy();
    let error = executor.execute(&plan, &weights, inputs_of(&graph, false)).expect_err("the device is gone");
    assert!(matches!(error, GpuError::Lost { .. }), "{error:?}");
    assert!(error.to_string().contains("execute again"), "{error}");
    assert!(executor.gpu().is_none());
    executor.execute(&plan, &weights, inputs_of(&graph, false)).expect("executes on a new device");
    assert_eq!(executor.output(0), before, "the given parameters are uploaded again");
    assert!(executor.counters().parameters > 0, "they were uploaded again");
}

#[test]
fn a_reopened_device_has_no_rows() {
    let Some(mut executor) = executor(Options::default()) else { return };
    let (graph, values) = cells(2, 4);
    let weights = Weights::init(&graph.module, 3);
    let plan = inferring(&graph, &values);
    executor.execute(&plan, &weights, inputs_of(&graph, false)).expect("executes");
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
    let mut numbers = inputs_of(&graph, false);
    numbers.words = &[1, 2];
    let error = executor.execute(&plan, &weights, numbers).expect_err("2 is no truth value");
    assert!(matches!(error, GpuError::Input(BindError::Truth { found: 2, word: 1, .. })), "{error:?}");
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
    let row = table.lookup(&g, 4);
    let wanted = [row.id().expect("sound")];
    let graph = g.finish().expect("sound");
    let weights = Weights::init(&graph.module, 1);
    let plan = inferring(&graph, &wanted);
    let mut words = graph.bindings.words.clone();
    words[0] = 5;
    let mut numbers = inputs_of(&graph, false);
    numbers.words = &words;
    let error = executor.execute(&plan, &weights, numbers).expect_err("there are five rows");
    assert!(
        matches!(error, GpuError::Input(BindError::Index { found: 5, limit: 5, word: 0, .. })),
        "{error:?}"
    );
    numbers.words = &[];
    let error = executor.execute(&plan, &weights, numbers).expect_err("nothing is bound");
    assert!(error.to_string().contains("expected 1") || error.to_string().contains("reads 1"), "{error}");
}

#[test]
fn a_computed_index_out_of_range_fails_as_on_the_cpu() {
    let Some(mut executor) = executor(Options::default()) else { return };
    let mut m = ModuleBuilder::new("picks");
    let table = m.table("table", [4, 3], Init::Uniform(1.0));
    let module = m.build().expect("sound");
    let mut on_cpu = autobatch_runtime_cpu::Executor::new(1).expect("opens");
    type Use = for<'g> fn(&'g Graph, Table, Value<'g>) -> Value<'g>;
    let uses: [(Use, u32); 5] = [
        (|g, _, at| g.input_shaped([3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).pick(at), 3),
        (|g, _, at| g.list([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]].map(|x| g.input(&x))).pick(at), 3),
        (|g, _, at| g.one_hot(at, 4), 4),
        (|g, table, at| table.lookup(g, at), 4),
        (|g, _, at| g.input(&[1.0, 2.0, 0.5]).cross_entropy(at), 3),
    ];
    for (use_index, limit) in uses {
        for shift in 0..5 {
            let g = Graph::new(&module);
            for instance in 0..7_u32 {
                g.instance(u64::from(instance));
                // Instance 5 reads index `shift`, all others 0.
                let at = g.index(if instance == 5 { shift } else { 0 }) + g.index(0);
                g.output(&format!("y{instance}"), use_index(&g, table, at));
            }
            let graph = g.finish().expect("sound");
            let weights = Weights::init(&graph.module, 1);
            let plan = inferring(&graph, &[]);
            let (here, there) = (
                executor.execute(&plan, &weights, inputs_of(&graph, false)),
                on_cpu.execute(&plan, &weights, inputs_of(&graph, false)),
            );
            match (here, there) {
                (Ok(()), Ok(())) => assert!(shift < limit, "index {shift} of {limit}"),
                (Err(GpuError::Index(here)), Err(RunError::Index(there))) => {
                    assert!(shift >= limit && here == there && here.found == shift, "{here} {there}");
                    assert!(here.node.is_some() && here.limit == limit, "{here}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
