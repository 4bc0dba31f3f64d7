//! Several executors on one adapter are independent.

use crate::batches::{bits, cells};
use crate::common::{executor, inferring, inputs_of};
use autobatch_ir::Weights;
use autobatch_runtime_wgpu::{Executor, GpuError, Options};
use std::thread;

#[test]
fn executors_on_several_threads_are_independent() {
    let Some(mut alone) = executor(Options::default()) else { return };
    let graphs = [3, 40, 17].map(|instances| cells(instances, 8));
    let expected: Vec<_> = graphs.iter().map(|(graph, values)| bits(&mut alone, graph, values)).collect();
    let check = |executor: &mut Executor, first: usize| {
        for number in (first..first + 3).map(|number| number % 3) {
            let (graph, values) = &graphs[number];
            assert_eq!(bits(executor, graph, values), expected[number], "{number}");
        }
    };
    let mut executors: Vec<Executor> = thread::scope(|scope| {
        let check = &check;
        let spawned: Vec<_> = (0..3)
            .map(|number| {
                scope.spawn(move || {
                    let mut executor = Executor::new(Options::default()).expect("opens");
                    check(&mut executor, number);
                    check(&mut executor, number + 1);
                    executor
                })
            })
            .collect();
        spawned.into_iter().map(|thread| thread.join().expect("executes")).collect()
    });
    // An executor that loses its device does not affect others.
    executors[1].gpu().expect("open").destroy();
    check(&mut executors[0], 1);
    let (graph, values) = &graphs[0];
    let (plan, weights) = (inferring(graph, values), Weights::init(&graph.module, 3));
    let error =
        executors[1].execute(&plan, &weights, inputs_of(graph, false)).expect_err("the device is gone");
    assert!(matches!(error, GpuError::Lost { .. }), "{error:?}");
    check(&mut executors[1], 0);
    // The first is dropped first, and the last on another thread while one executes.
    drop(executors.remove(0));
    let last = executors.pop().expect("two are left");
    thread::scope(|scope| {
        scope.spawn(move || drop(last));
        check(&mut executors[0], 2);
    });
    drop(alone);
    check(&mut executors[0], 0);
}
