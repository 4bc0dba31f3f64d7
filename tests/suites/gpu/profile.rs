//! Device times of dispatches.

use crate::common::{executor, inputs_of, training, weights};
use autobatch_ir::Graph;
use autobatch_ir::id::ValueId;
use autobatch_models::catalogue::{Options as Sizes, open};
use autobatch_runtime_wgpu::Options;

#[test]
fn a_profile_times_every_dispatch_and_leaves_the_outputs() {
    let Some(mut executor) = executor(Options::default()) else { return };
    let sizes = Sizes { count: Some(4), batch: Some(4), hidden: Some(8), seed: 1, ..Sizes::default() };
    let problem = open("treelstm", &sizes).expect("the model");
    let graph = Graph::new(&problem.module);
    let losses: Vec<(ValueId, f32)> = (0..4)
        .filter_map(|instance| {
            graph.instance(instance as u64);
            Some((problem.workload.loss(&graph, instance).id()?, 0.25))
        })
        .collect();
    let graph = graph.finish().expect("records");
    let (plan, weights) = (training(&graph, &losses), weights(&graph));
    executor.execute(&plan, &weights, inputs_of(&graph, false)).expect("executes");
    let outputs = |executor: &autobatch_runtime_wgpu::Executor| -> Vec<u32> {
        (0..losses.len()).flat_map(|number| executor.output(number)).map(|x| x.to_bits()).collect()
    };
    let expected = outputs(&executor);
    let first = losses.first().map(|_| plan.stores.len()).expect("there are losses");
    let gradients = |executor: &mut autobatch_runtime_wgpu::Executor| -> Vec<u32> {
        let stores = (0..first as u32).map(autobatch_ir::plan::StoreId);
        let values = stores.filter_map(|store| executor.gradient(store).expect("reads")).flatten();
        values.map(f32::to_bits).collect()
    };
    let reversed = gradients(&mut executor);
    let Some(times) = executor.profile(&plan, &weights, inputs_of(&graph, false)).expect("profiles") else {
        crate::common::skipped("the device has no timestamps");
        return;
    };
    assert_eq!(times.len(), executor.counters().dispatches as usize, "one time per dispatch of a whole run");
    assert!(times.iter().all(|dispatch| dispatch.groups > 0 && dispatch.segments > 0));
    assert!(times.iter().any(|dispatch| !dispatch.time.is_zero()), "{times:?}");
    assert_eq!(outputs(&executor), expected);
    assert_eq!(gradients(&mut executor), reversed, "the second execution starts from gradients of zero");
}
