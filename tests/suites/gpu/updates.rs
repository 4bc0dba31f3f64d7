//! Optimisers on the device agree with the naive executor along the same gradients.
//! Updates add, multiply, divide and take roots. WGSL defines these to the last bit, except division and square root.
//! Sums of squares use fused multiply-add. With exact arithmetic a device that rounds products and sums separately
//! has the bits of the naive executor, and software devices must. Native arithmetic may differ by [`NATIVE`], and so
//! may devices that fuse other operations.

use crate::common::{exact, executor, inputs_of, is_swift_shader, skipped, training};
use crate::lab::{Lab, TABLE};
use autobatch_ir::Weights;
use autobatch_ir::graph::Graph;
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_ir::plan::BindError;
use autobatch_nn::optim::{
    Adadelta, Adagrad, Adam, AdamW, AmsGrad, Momentum, Nesterov, Optimize, Optimizer, RmsProp, Schedule, Sgd,
};
use autobatch_runtime_wgpu::{Budget, GpuError, Options, Trained};

/// The maximum error of an array after three updates, relative to its largest element.
const NATIVE: f32 = 2e-6;

pub(crate) fn every_rule() -> Vec<Optimizer> {
    vec![
        Sgd::new(0.1).clip_value(0.05),
        Momentum::new(0.1, 0.9).clip_norm(0.3),
        Nesterov::new(0.1, 0.9).weight_decay(0.01),
        Adagrad::new(0.1).schedule(Schedule::warm_up(2, Schedule::Constant)),
        Adadelta::new(1.0).average(0.9),
        RmsProp::new(0.01).centred().momentum(0.5).average(0.5),
        Adam::new(0.01).clip_norm(1.0),
        AdamW::new(0.01).sparse_rows(),
        AmsGrad::new(0.01).average(0.5).sparse_rows(),
    ]
}

/// Words of three minibatches. Some occur repeatedly.
const MINIBATCHES: [&[u32]; 3] = [&[1, 2, 3, 2, 899], &[0, 64, 2, 65, 64, 128, 7, 1], &[5]];

fn follows(options: Options) {
    let Some(mut executor) = executor(options.clone()) else { return };
    let facts = executor.gpu().expect("open").facts().clone();
    let is_held_to_bits = options.arithmetic == exact().arithmetic && facts.kind == "software";
    for optimizer in every_rule() {
        let name = format!("{optimizer:?}");
        let mut lab = Lab::new(optimizer);
        for (turn, words) in MINIBATCHES.into_iter().enumerate() {
            lab.step(&mut executor, &[words]);
            assert_eq!(executor.counters().parameters > 0, turn == 0, "parameters are uploaded once: {name}");
            assert_eq!(executor.counters().read, words.len() as u64 * 4, "only losses are read back: {name}");
            let counters = executor.update_counters();
            assert!(counters.dispatches <= 8, "{name}: {counters:?}");
            assert!(turn == 0 || (counters.stores, counters.pipelines) == (0, 0), "{name}: {counters:?}");
        }
        let (off, same) = lab.compare(&executor);
        assert!(off <= NATIVE, "{name}: off by {off:e}");
        assert!(same || !is_held_to_bits, "{name}: off by {off:e}");
    }
}

#[test]
fn every_optimiser_has_the_bits_of_the_naive_executor_with_exact_arithmetic() {
    follows(exact());
}

#[test]
fn every_optimiser_is_within_its_bound_with_native_arithmetic() {
    follows(Options::default());
}

#[test]
fn rows_without_a_lookup_do_not_change() {
    let Some(mut executor) = executor(exact()) else { return };
    let mut lab = Lab::new(Adam::new(0.1).weight_decay(0.1).average(0.9).sparse_rows());
    lab.step(&mut executor, &[&[1, 2, 3]]);
    let before = lab.table(&executor);
    lab.step(&mut executor, &[&[2, 70, 2, 899]]);
    let after = lab.table(&executor);
    assert_eq!(before.len(), 4, "the table, two moments, an average");
    for (before, after) in before.iter().zip(&after) {
        let rows = before.chunks(TABLE.1).zip(after.chunks(TABLE.1)).enumerate();
        let changed: Vec<u32> = rows.filter(|(_, (a, b))| a != b).map(|(row, _)| row as u32).collect();
        assert_eq!(changed, lab.sparse_rows());
    }
    assert!(lab.compare(&executor).0 <= NATIVE);
}

#[test]
fn gradients_and_sparse_rows_of_several_runs_accumulate() {
    let Some(mut executor) = executor(exact()) else { return };
    for optimizer in [Sgd::new(0.1).clip_norm(0.5), Adam::new(0.1).sparse_rows()] {
        let mut lab = Lab::new(optimizer);
        // The second minibatch is larger, so the rows of the first have moved when it is added.
        let large: Vec<u32> = (0..120).map(|i| i * 7 % 250).collect();
        lab.step(&mut executor, &[&[899, 1, 1], &large, &[898, 0]]);
        assert!([898, 899].iter().all(|row| lab.sparse_rows().contains(row)));
        lab.step(&mut executor, &[&[4], &[5]]);
        let (off, same) = lab.compare(&executor);
        assert!(off <= NATIVE, "off by {off:e}, {same}");
    }
}

#[test]
fn arrays_in_many_buffers_are_updated_like_arrays_in_one() {
    // Half a block of a sum of squares each, so blocks and tiles of states span buffers.
    let Some(mut roomy) = executor(exact()) else { return };
    if is_swift_shader(&roomy) {
        return skipped(
            "SwiftShader takes gigabytes and minutes to compile sums of gradients over several bindings",
        );
    }
    let options = Options { budget: Budget { binding: Some(8 << 10), ..Budget::default() }, ..exact() };
    let Some(mut narrow) = executor(options) else { return };
    for optimizer in every_rule() {
        let name = format!("{optimizer:?}");
        let (mut one, mut other) = (Lab::new(optimizer.clone()), Lab::new(optimizer));
        for words in [MINIBATCHES[0], MINIBATCHES[2]] {
            one.step(&mut roomy, &[words]);
            other.step(&mut narrow, &[words]);
        }
        assert_eq!(one.table(&roomy), other.table(&narrow), "{name}");
        let (off, same) = other.compare(&narrow);
        assert!(off <= NATIVE, "{name}: off by {off:e}, {same}");
        assert!(narrow.update_counters().dispatches > roomy.update_counters().dispatches, "{name}");
    }
}

#[test]
fn only_values_that_the_host_changed_are_uploaded() {
    let Some(mut executor) = executor(exact()) else { return };
    let mut lab = Lab::new(Adam::new(0.01));
    lab.step(&mut executor, &[&[1, 2]]);
    lab.receive(&executor);
    // The values that were read have the versions that the device holds.
    lab.step(&mut executor, &[&[1, 2]]);
    assert_eq!((executor.counters().parameters, executor.update_counters().stores), (0, 0));
    assert!(lab.compare(&executor).0 <= NATIVE);
}

#[test]
fn a_mismatch_of_an_update_is_rejected_and_changes_nothing() {
    let Some(mut executor) = executor(exact()) else { return };
    let mut lab = Lab::new(Adam::new(0.01).clip_norm(1.0));
    let plan = lab.plan().clone();
    let refused = |executor: &mut autobatch_runtime_wgpu::Executor, floats: &[f32]| {
        let (mut weights, mut states) = (lab.weights.clone(), lab.states.clone());
        let mut trained = Trained { weights: &mut weights, states: &mut states };
        executor.update(&plan, &mut trained, floats).expect_err("is refused")
    };
    let error = refused(&mut executor, &[0.0; 3]);
    assert!(
        matches!(error, GpuError::Input(BindError::Store { found: 0, .. })),
        "nothing was executed: {error}"
    );
    let error = refused(&mut executor, &[]);
    assert!(matches!(error, GpuError::Input(BindError::Count { what: "floats", found: 0, .. })), "{error}");
    lab.step(&mut executor, &[&[1, 2]]);
    let before = lab.table(&executor);
    // A plan without gradients forgets those of the run before.
    let (graph, values) = crate::batches::cells(2, 3);
    let _ = crate::batches::bits(&mut executor, &graph, &values);
    let (mut weights, mut states) = (lab.weights.clone(), lab.states.clone());
    let mut trained = Trained { weights: &mut weights, states: &mut states };
    let error = executor.update(lab.plan(), &mut trained, &[0.0; 3]).expect_err("is refused");
    assert!(matches!(error, GpuError::Input(BindError::Store { found: 0, .. })), "{error}");
    assert!(before.iter().flatten().all(|x| x.is_finite()));
    let (graph, gradients) = lab.graph(&[1]);
    executor.set_accumulate_gradients(true);
    let error = executor.execute(&gradients, &lab.weights, inputs_of(&graph, false)).expect_err("is refused");
    assert_eq!(error, GpuError::OtherGradients);
}

#[test]
fn gradients_of_other_sizes_are_not_accumulated() {
    let Some(mut executor) = executor(exact()) else { return };
    // Modules whose stores have the same numbers.
    let of_width = |width: usize| {
        let mut m = ModuleBuilder::new("sums");
        let w = m.param("w", [width, 3], Init::Glorot(1.0));
        let g = Graph::new(&m.build().expect("sound"));
        let loss = g.affine([g.fill([width], 1.0)], w, None).sum().id().expect("sound");
        let graph = g.finish().expect("sound");
        let plan = training(&graph, &[(loss, 1.0)]);
        (Weights::init(&graph.module, 1), graph, plan)
    };
    for widths in [[4, 7], [7, 4]] {
        let [(weights, graph, plan), (others, other_graph, other)] = widths.map(of_width);
        executor.set_accumulate_gradients(false);
        executor.execute(&plan, &weights, inputs_of(&graph, false)).expect("executes");
        executor.set_accumulate_gradients(true);
        let error =
            executor.execute(&other, &others, inputs_of(&other_graph, false)).expect_err("these are others");
        assert_eq!(error, GpuError::OtherGradients, "{widths:?}");
    }
}

#[test]
fn sixteen_bit_elements_share_words_until_gradients_are_made() {
    let Some(mut executor) = executor(exact()) else { return };
    let mut lab = Lab::new(Sgd::new(0.1));
    let words = MINIBATCHES[0];
    lab.losses(&mut executor, words);
    let shared = executor.counters().parameters;
    lab.step(&mut executor, &[words]);
    let head = 29 * 7u64;
    let more = 2 * (head - head.div_ceil(2)) * 4;
    assert_eq!(executor.counters().parameters, shared + more, "one element per word from now on");
    let trained = lab.losses(&mut executor, words);
    assert_eq!(executor.counters().parameters, 0, "updated values stay on the device");
    lab.receive(&executor);
    executor.close();
    assert_eq!(lab.losses(&mut executor, words), trained);
    assert_eq!(executor.counters().parameters, shared, "a closed device uploads everything again");
}
