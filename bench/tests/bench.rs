//! Tests of reports as text and JSON, and of invalid options.

use autobatch_bench::{BenchError, Mode, Options, Percentiles, SameBits, effort, latency, pairs, run, sweep};
use autobatch_models::catalogue;
use std::process::{Command, Stdio};
use std::time::Duration;

fn quick() -> Options {
    let sizes = catalogue::Options {
        seed: 5,
        count: Some(6),
        batch: Some(4),
        hidden: Some(8),
        ..catalogue::Options::default()
    };
    Options { sizes, rounds: 2, turn: Duration::ZERO, ..Options::default() }
}

#[test]
fn a_report_covers_all_instances_of_all_variants() {
    let report = run("treelstm", &quick()).unwrap();
    assert_eq!((report.instances, report.batch, report.plans.graphs), (6, 4, 2));
    assert_eq!(
        (report.numbers, report.same_bits),
        (6 * 3, Some(SameBits { equal: true, minibatches: 2, numbers: 6 * 3, trained: 0 }))
    );
    let single = report.unbatched.unwrap();
    assert!(single.plan == 0.0 && single.execute > 0.0, "plans of the unbatched variant are made in advance");
    let parts = report.batched;
    assert!(parts.emit > 0.0 && parts.plan > 0.0 && parts.verify > 0.0 && parts.execute > 0.0);
    assert!(report.plans.batches >= report.plans.bound && report.plans.bound > 0);
    assert_eq!(report.seconds_per_step, parts.total);
    assert!(report.repeated.unwrap().execute > 0.0);
}

#[test]
fn latency_is_measured_with_cached_and_new_plans() {
    let measured = latency("names", &Options { rounds: 1, ..quick() }).unwrap();
    assert_eq!((measured.calls, measured.instances), (1000, 6));
    let Percentiles { p50, p90, p99 } = measured.cached;
    assert!(0.0 < p50 && p50 <= p90 && p90 <= p99, "{measured:?}");
    assert!(measured.planned.p50 > p50, "a new plan takes longer: {measured:?}");
    let shown = measured.to_string();
    assert!(shown.contains("1000 calls over 6 names") && shown.contains("cached plan"), "{shown}");
    let refused = latency("names", &Options { mode: Mode::Train, ..quick() }).unwrap_err().to_string();
    assert!(refused.contains("--mode train"), "{refused}");
}

#[test]
fn a_repeated_step_has_the_plan_of_a_longer_search() {
    let sizes = catalogue::Options { count: Some(12), batch: Some(12), ..quick().sizes };
    let report = run("lattice", &Options { sizes, ..quick() }).unwrap();
    let repeated = report.repeated_plans.unwrap();
    assert!(repeated.batches < report.plans.batches, "{} and {}", repeated.batches, report.plans.batches);
    assert_eq!((repeated.bound, repeated.nodes), (report.plans.bound, report.plans.nodes));
    assert!(report.same_bits.unwrap().equal);
    let shown = report.to_string();
    assert!(shown.contains(&format!("plans from a cache: {} batches", repeated.batches)), "{shown}");
}

#[test]
fn the_json_has_the_fields_for_scripts() {
    let report = run("names", &Options { variants: false, ..quick() }).unwrap();
    assert_eq!((report.same_bits, report.unbatched, report.repeated), (None, None, None));
    let read: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(read["seconds_per_step"], report.seconds_per_step);
    assert_eq!((read["mode"].as_str(), read["threads"].as_u64()), (Some("infer"), Some(1)));
    let shown = report.to_string();
    for part in ["emit", "plan", "verify", "execute", "read", "total", "names/s", "not compared"] {
        assert!(shown.contains(part), "{part} is missing in:\n{shown}");
    }
}

#[test]
fn training_measures_reverse_reductions_and_update() {
    let report = run("treelstm", &Options { mode: Mode::Train, phases: true, ..quick() }).unwrap();
    assert_eq!(report.numbers, 6, "one loss per instance");
    let (parts, phases) = (report.batched, report.phases.unwrap());
    assert!(parts.update > 0.0 && phases.reverse > 0.0 && phases.reductions > 0.0 && phases.forward > 0.0);
    assert!(report.kernels.iter().any(|kernel| kernel.name.ends_with('\'')), "{:?}", report.kernels);
    let shown = report.to_string();
    assert!(shown.contains("reverse") && shown.contains("update"), "{shown}");
    assert!(report.to_json().contains(r#""mode":"train""#));
}

#[test]
fn both_variants_train() {
    let options = Options { mode: Mode::Train, sparse_rows: true, ..quick() };
    let report = run("names", &options).unwrap();
    let same = report.same_bits.unwrap();
    assert!(same.equal && same.trained > 1000, "{same:?}");
    // Two minibatches of a step, four times.
    assert_eq!((report.numbers, same.minibatches, same.numbers), (6, 8, 24));
    let expected = format!("yes, all 24 losses of 8 minibatches, and {} weights and moments", same.trained);
    let shown = report.to_string();
    assert!(shown.contains(&expected), "{shown}");
    assert!(report.unbatched.unwrap().update > 0.0);
}

#[test]
fn two_threads_give_the_same_bits_as_one() {
    let report = run("parser", &Options { threads: 2, ..quick() }).unwrap();
    assert!(report.same_bits.is_some_and(|same| same.equal));
}

#[test]
fn a_sweep_measures_the_same_instances_at_each_batch_size() {
    let mut options = quick();
    options.sizes.count = None;
    let sweep = sweep("acceptor", &[1, 2, 4], &options).unwrap();
    assert_eq!(sweep.instances, 4);
    let batches: Vec<u64> = sweep.rows.iter().map(|row| row.batches).collect();
    assert!(batches.is_sorted_by(|more, fewer| more > fewer), "{batches:?}");
    assert_eq!(sweep.to_string().lines().count(), 2 + 3);
}

#[test]
fn invalid_options_are_errors() {
    let error = |name: &str, options: Options| run(name, &options).unwrap_err().to_string();
    assert_eq!(error("treelstm", Options { rounds: 0, ..quick() }), "rounds must be 1 to 10000, found 0");
    assert!(error("x", quick()).starts_with("unknown model `x`: expected one of "));
    assert!(matches!("tran".parse::<Mode>(), Err(BenchError::Mode(_))));
    let empty = std::env::temp_dir().join(format!("autobatch-bench-{}.json", std::process::id()));
    std::fs::write(&empty, r#"{"trees": [], "labels": []}"#).unwrap();
    let mut options = quick();
    options.sizes.instances = Some(empty.clone());
    let found = error("treelstm", options);
    std::fs::remove_file(&empty).unwrap();
    assert_eq!(
        found,
        "the data has no instances; name a file with instances, or omit --peer-data to generate instances"
    );
}

#[test]
fn the_effort_is_a_share_of_the_peak() {
    let effort = effort("treelstm", &quick()).unwrap();
    assert!(effort.steps > 3 && effort.product_flops > 0.0 && effort.seconds > 0.0, "{effort:?}");
    assert!(effort.share() > 0.0 && effort.share() < 1.0, "{effort:?}");
    assert!(effort.overhead.total() > 0.0 && effort.to_string().contains("% of the peak"), "{effort}");
}

#[test]
fn the_effort_of_training_counts_every_product() {
    let sizes = catalogue::Options { hidden: None, ..quick().sizes };
    let effort = effort("mnist", &Options { mode: Mode::Train, sizes, ..quick() }).unwrap();
    // The widths of the layers. Inputs have no gradient, so the first layer has two products and the others three.
    let layers = [784 * 200, 200 * 100, 100 * 10].map(f64::from);
    let forward: f64 = layers.iter().sum();
    let share = |kind: &str| effort.kinds.iter().find(|share| share.kind == kind).unwrap();
    let of = |kind: &str| share(kind).flops;
    assert_eq!(of("gradients of weights"), 2.0 * 4.0 * forward, "{effort}");
    assert_eq!(of("products with weights"), 2.0 * 4.0 * (forward + layers[1] + layers[2]), "{effort}");
    assert_eq!(effort.product_flops, 2.0 * 4.0 * (2.0 * forward + layers[1] + layers[2]), "{effort}");
    // Every product reads a row and writes one: forward through three layers, back through two.
    let rows = [784 + 200, 200 + 100, 100 + 10, 10 + 100, 100 + 200].map(f64::from);
    assert_eq!(share("products with weights").bytes, 4.0 * 4.0 * rows.iter().sum::<f64>(), "{effort}");
    assert!(effort.copying > 1e8 && effort.to_string().contains("GB/s"), "{effort}");
    assert!(effort.is_training && effort.step.iter().all(|&seconds| seconds > 0.0), "{effort:?}");
    assert!(effort.kinds.iter().all(|share| share.seconds > 0.0), "{effort:?}");
}

#[test]
fn the_effort_counts_attention_and_products_of_values() {
    for (name, kind) in [("transformer", "attention"), ("gat", "attention"), ("lm", "losses of labels")] {
        let effort = effort(name, &quick()).unwrap();
        let share = effort.kinds.iter().find(|share| share.kind == kind).unwrap();
        assert!(share.flops > 0.0 && share.seconds > 0.0, "{effort}");
    }
}

#[test]
fn pairs_measure_speedup_and_idle_time() {
    let pairs = pairs("acceptor", &Options { threads: 2, ..quick() }).unwrap();
    assert_eq!((pairs.threads, pairs.pairs), (2, 20));
    assert!(pairs.single > 0.0 && pairs.several > 0.0 && pairs.speedup() > 0.0, "{pairs:?}");
    // The steps are too small to be split between threads.
    assert!((0.5..=1.0).contains(&pairs.idle), "{pairs:?}");
}

#[test]
fn a_plan_over_the_memory_limit_is_an_error() {
    let error = run("treelstm", &Options { memory_limit: Some(100), ..quick() }).unwrap_err().to_string();
    assert!(error.contains("the memory limit is 100"), "{error}");
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_autobatch-bench"))
        .args(["b", "--alone", "--count", "2", "--hidden", "4", "--rounds", "1", "--turn", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[cfg(feature = "gpu")]
#[test]
fn predictions_cover_all_models_in_both_modes_without_a_gpu() {
    let predicted = autobatch_bench::predict(&[], &quick()).unwrap();
    let document: serde_json::Value = serde_json::from_str(&predicted.to_json()).unwrap();
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * autobatch_models::catalogue::ENTRIES.len());
    for pair in rows.chunks_exact(2) {
        let [infer, train] = [&pair[0], &pair[1]].map(|row| row["seconds"]["H100"].as_f64().unwrap());
        assert!(infer > 0.0 && infer < train, "{pair:?}");
    }
    assert!(predicted.to_string().lines().count() == rows.len() + 1, "{predicted}");
}
