//! Tests of the form of measurements: `bench`, `sweep` and `calibrate`.

use crate::{scratch, transcript};
use autobatch_planner::CostTable;

const SMALL: [&str; 8] = ["--hidden", "8", "--count", "6", "--rounds", "1", "--turn", "0"];

#[test]
fn bench_prints_a_table_or_one_line_of_json() {
    let printed = transcript(&[&["bench", "treelstm"][..], &SMALL].concat());
    assert!(printed.contains("same bits   yes") && !printed.contains('{'), "{printed}");
    let one = transcript(&[&["bench", "treelstm", "--json"][..], &SMALL].concat());
    assert_eq!(one.lines().count(), 1, "{one}");
    let line: serde_json::Value = serde_json::from_str(&one).expect("JSON");
    assert_eq!((line["mode"].as_str(), line["threads"].as_u64()), (Some("infer"), Some(1)), "{one}");
    assert!(line["seconds_per_step"].as_f64().is_some_and(|seconds| seconds > 0.0));
}

#[test]
fn bench_reports_peak_and_threads() {
    let peak = transcript(&[&["bench", "peak", "treelstm"][..], &SMALL].concat());
    assert!(peak.contains("% of the peak") && peak.contains("outside kernels"), "{peak}");
    let threads = transcript(&[&["bench", "threads", "treelstm", "--threads", "2"][..], &SMALL].concat());
    assert!(threads.contains("2 threads") && threads.contains("idle"), "{threads}");
}

#[test]
fn sweep_prints_a_table_and_draws_a_picture() {
    let picture = scratch("sweep.svg");
    let printed =
        transcript(&[&["sweep", "acceptor", "--batch", "1,2,6", "-o", &picture][..], &SMALL].concat());
    let sizes: Vec<&str> =
        printed.lines().skip(2).filter_map(|line| line.split_whitespace().next()).take(3).collect();
    assert_eq!(sizes, ["1", "2", "6"], "{printed}");
    assert!(printed.contains(&format!("wrote {picture}: sequences per second")), "{printed}");
    let svg = std::fs::read_to_string(picture).expect("the picture was drawn");
    assert_eq!(svg.matches("<circle").count(), 3);
}

#[test]
fn failed_measurements_have_exit_codes() {
    assert!(transcript(&["bench", "nothing", "treelstm"]).ends_with("[exit 2]\n"));
    assert!(transcript(&["bench", "zebra"]).ends_with("[exit 2]\n"));
    assert!(transcript(&["bench", "treelstm", "--peer-data", "no/such.json"]).ends_with("[exit 3]\n"));
    assert!(transcript(&["sweep", "sweep", "treelstm"]).ends_with("[exit 2]\n"));
    let refused = transcript(&[&["bench", "treelstm", "--memory-limit", "1000"][..], &SMALL].concat());
    assert!(refused.contains("the memory limit is 1000; plan a smaller minibatch"), "{refused}");
}

#[test]
fn the_planner_reads_the_table_of_a_calibration() {
    let path = scratch("costs.json");
    let printed = transcript(&["calibrate", "--turn", "0", "-o", &path]);
    assert!(printed.contains("ns per step") && printed.contains("Next: AUTOBATCH_COSTS="), "{printed}");
    let table = CostTable::load(&path).expect("the table reads back");
    assert!(table.machine.ends_with("1 thread") && table.classes.product.unit_ns > 0.0, "{table:?}");
}
