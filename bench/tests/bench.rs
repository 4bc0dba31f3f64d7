//! Reports say what was asked for, in words and as JSON, and what cannot be measured is refused.

use autobatch_bench::{BenchError, Mode, Options, effort, pairs, run, sweep};
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
fn a_report_covers_all_instances_in_batches_and_one_by_one() {
    let report = run("b", &quick()).unwrap();
    assert_eq!((report.instances, report.batch, report.plans.graphs), (6, 4, 2));
    assert_eq!((report.numbers, report.same_bits), (6 * 3, Some(true)));
    let single = report.one_by_one.unwrap();
    assert!(single.plan == 0.0 && single.execute > 0.0, "plans of one by one are made beforehand");
    let parts = report.batched;
    assert!(parts.emit > 0.0 && parts.plan > 0.0 && parts.verify > 0.0 && parts.execute > 0.0);
    assert!(report.plans.batches >= report.plans.bound && report.plans.bound > 0);
    assert_eq!(report.seconds_per_step, parts.total);
}

#[test]
fn the_last_line_and_the_json_hold_what_other_scripts_read() {
    let report = run("e", &Options { one_by_one: false, ..quick() }).unwrap();
    assert_eq!((report.same_bits, report.one_by_one), (None, None));
    for text in [report.agreed_line(), report.to_json()] {
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["seconds_per_step"], report.seconds_per_step);
        assert_eq!((read["mode"].as_str(), read["threads"].as_u64()), (Some("infer"), Some(1)));
    }
    let shown = report.to_string();
    for part in ["emit", "plan", "verify", "execute", "read", "total", "names/s", "not compared"] {
        assert!(shown.contains(part), "{part} is missing in:\n{shown}");
    }
}

#[test]
fn training_goes_back_and_updates_and_says_what_its_phases_took() {
    let report = run("b", &Options { mode: Mode::Train, phases: true, ..quick() }).unwrap();
    assert_eq!(report.numbers, 6, "a loss an instance");
    let (parts, phases) = (report.batched, report.phases.unwrap());
    assert!(parts.update > 0.0 && phases.reverse > 0.0 && phases.reductions > 0.0 && phases.forward > 0.0);
    assert!(report.kernels.iter().any(|kernel| kernel.name.ends_with('\'')), "{:?}", report.kernels);
    let shown = report.to_string();
    assert!(shown.contains("reverse") && shown.contains("update"), "{shown}");
    assert!(report.agreed_line().contains(r#""mode": "train""#));
}

#[test]
fn training_moves_the_weights_so_that_batched_and_one_by_one_part_by_rounding_only() {
    let options = Options { mode: Mode::Train, sparse_rows: true, ..quick() };
    let report = run("e", &options).unwrap();
    assert_eq!(report.numbers, 6);
    assert!(report.one_by_one.unwrap().update > 0.0);
}

#[test]
fn two_threads_give_the_bits_of_one() {
    let report = run("g", &Options { threads: 2, ..quick() }).unwrap();
    assert_eq!(report.same_bits, Some(true));
}

#[test]
fn a_sweep_goes_through_the_same_instances_at_each_batch_size() {
    let mut options = quick();
    options.sizes.count = None;
    let sweep = sweep("f1", &[1, 2, 4], &options).unwrap();
    assert_eq!(sweep.instances, 4);
    let batches: Vec<u64> = sweep.rows.iter().map(|row| row.batches).collect();
    assert!(batches.is_sorted_by(|more, fewer| more > fewer), "{batches:?}");
    assert_eq!(sweep.to_string().lines().count(), 2 + 3);
}

#[test]
fn what_cannot_be_measured_is_refused_with_a_remedy() {
    let say = |name: &str, options: Options| run(name, &options).unwrap_err().to_string();
    assert_eq!(say("b", Options { rounds: 0, ..quick() }), "rounds must be 1 to 10000, found 0");
    assert!(say("x", quick()).starts_with("unknown model `x`: expected one of "));
    assert!(matches!("tran".parse::<Mode>(), Err(BenchError::Mode(_))));
    let empty = std::env::temp_dir().join(format!("autobatch-bench-{}.json", std::process::id()));
    std::fs::write(&empty, r#"{"trees": [], "labels": []}"#).unwrap();
    let mut options = quick();
    options.sizes.data = Some(empty.clone());
    let found = say("b", options);
    std::fs::remove_file(&empty).unwrap();
    assert_eq!(found, "the data holds no instances; give a file with at least one, or none to generate some");
}

#[test]
fn the_effort_is_a_part_of_the_peak() {
    let effort = effort("b", &quick()).unwrap();
    assert!(effort.steps > 3 && effort.product_flops > 0.0 && effort.seconds > 0.0, "{effort:?}");
    assert!(effort.share() > 0.0 && effort.share() < 1.0, "{effort:?}");
    assert!(effort.besides.total() > 0.0 && effort.to_string().contains("% of the peak"), "{effort}");
}

#[test]
fn pairs_of_runs_say_how_much_threads_gain_and_idle() {
    let pairs = pairs("f1", &Options { threads: 2, ..quick() }).unwrap();
    assert_eq!((pairs.threads, pairs.pairs), (2, 20));
    assert!(pairs.single > 0.0 && pairs.several > 0.0 && pairs.speedup() > 0.0, "{pairs:?}");
    // Nothing here is large enough to be shared.
    assert!((0.5..=1.0).contains(&pairs.idle), "{pairs:?}");
}

#[test]
fn a_plan_over_the_memory_limit_is_not_measured() {
    let error = run("b", &Options { memory_limit: Some(100), ..quick() }).unwrap_err().to_string();
    assert!(error.contains("the memory limit is 100"), "{error}");
}

#[test]
fn whoever_stops_reading_ends_the_program_quietly() {
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
