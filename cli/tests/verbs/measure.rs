//! Measuring verbs: the shape of what they say and write, never a time.

use crate::{says, scratch};
use autobatch_planner::CostTable;

const SMALL: [&str; 8] = ["--hidden", "8", "--count", "6", "--rounds", "1", "--turn", "0"];

#[test]
fn bench_ends_with_the_line_that_other_programs_read() {
    let said = says(&[&["bench", "b"][..], &SMALL].concat());
    let last: serde_json::Value = serde_json::from_str(said.lines().last().expect("a line")).expect("JSON");
    assert_eq!((last["mode"].as_str(), last["threads"].as_u64()), (Some("infer"), Some(1)), "{said}");
    assert!(last["seconds_per_step"].as_f64().is_some_and(|seconds| seconds > 0.0));
    let one = says(&[&["bench", "b", "--json"][..], &SMALL].concat());
    assert_eq!(one.lines().count(), 1, "{one}");
}

#[test]
fn bench_speaks_of_the_peak_and_of_threads() {
    let peak = says(&[&["bench", "peak", "b"][..], &SMALL].concat());
    assert!(peak.contains("% of the peak") && peak.contains("outside of kernels"), "{peak}");
    let threads = says(&[&["bench", "threads", "b", "--threads", "2"][..], &SMALL].concat());
    assert!(threads.contains("2 threads") && threads.contains("idle"), "{threads}");
}

#[test]
fn a_sweep_is_a_table_and_a_picture() {
    let picture = scratch("sweep.svg");
    let said = says(&[&["sweep", "f1", "--batch", "1,2,6", "-o", &picture][..], &SMALL].concat());
    let sizes: Vec<&str> =
        said.lines().skip(2).filter_map(|line| line.split_whitespace().next()).take(3).collect();
    assert_eq!(sizes, ["1", "2", "6"], "{said}");
    let svg = std::fs::read_to_string(picture).expect("it was drawn");
    assert_eq!(svg.matches("<circle").count(), 3);
}

#[test]
fn what_cannot_be_measured_is_a_failure_with_its_exit_code() {
    assert!(says(&["bench", "nothing", "b"]).ends_with("[exit 2]\n"));
    assert!(says(&["bench", "zebra"]).ends_with("[exit 2]\n"));
    assert!(says(&["bench", "b", "--data", "no/such.json"]).ends_with("[exit 3]\n"));
    assert!(says(&["sweep", "sweep", "b"]).contains("sweep takes one model"));
    let refused = says(&[&["bench", "b", "--memory-limit", "1000"][..], &SMALL].concat());
    assert!(refused.contains("the memory limit is 1000; plan a smaller minibatch"), "{refused}");
}

#[test]
fn a_calibration_is_a_table_that_the_planner_reads() {
    let path = scratch("costs.json");
    let said = says(&["calibrate", "--turn", "0", "-o", &path]);
    assert!(said.contains("ns a step") && said.contains("Next: AUTOBATCH_COSTS="), "{said}");
    let table = CostTable::load(&path).expect("it reads back");
    assert!(table.machine.ends_with("1 thread") && table.classes.product.unit_ns > 0.0, "{table:?}");
}
