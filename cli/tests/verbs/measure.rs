//! Tests of the form of measurements: `bench`, `sweep`, `scale` and `calibrate`.

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
fn scale_predicts_powers_of_two_up_to_the_minibatch() {
    let words = ["scale", "treelstm", "--hidden", "8", "--count", "40", "--batch", "21", "--rounds", "1"];
    let printed = transcript(&[&words[..], &["--latency", "2"]].concat());
    let ranks = printed.lines().skip(3).filter_map(|line| line.split_whitespace().next());
    let ranks: Vec<usize> = ranks.map_while(|word| word.parse().ok()).collect();
    assert_eq!(ranks, [1, 2, 4, 8, 16], "{printed}");
    assert!(printed.contains("assumed: give --latency and --bandwidth"), "{printed}");
    assert!(printed.contains("steps are fastest on .. ranks"), "{printed}");
    let printed = transcript(
        &[&words[..], &["--ranks", "4", "--json", "--latency", "2", "--bandwidth", "1.5"]].concat(),
    );
    let json: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    let rows = json["predictions"].as_array().expect("a list");
    let of = |row: &serde_json::Value, name: &str| row[name].as_u64().expect("a count");
    let counts: Vec<(u64, u64)> = rows.iter().map(|row| (of(row, "ranks"), of(row, "instances"))).collect();
    assert_eq!(counts, [(1, 21), (2, 11), (4, 6)], "{printed}");
    assert_eq!((of(&rows[0], "sent_bytes"), json["network"]["origin"].as_str()), (0, Some("given")));
    // Every rank sends the dense gradient as a whole, and its report and rows.
    assert!(of(&rows[1], "sent_bytes") > 4 * 8 * 8 && json["measured_2_ranks_ms"].is_null(), "{printed}");
}

#[test]
fn failed_measurements_have_exit_codes() {
    assert!(transcript(&["bench", "nothing", "treelstm"]).ends_with("[exit 2]\n"));
    assert!(transcript(&["bench", "zebra"]).ends_with("[exit 2]\n"));
    assert!(transcript(&["bench", "treelstm", "--peer-data", "no/such.json"]).ends_with("[exit 3]\n"));
    assert!(transcript(&["sweep", "sweep", "treelstm"]).ends_with("[exit 2]\n"));
    for (words, message) in [
        (&["--count", "8", "--batch", "9"][..], "--batch 9 is more than the 8 training instances"),
        (&["--latency", "0"], "expected a number above 0"),
        (&["--bandwidth", "inf"], "expected a number above 0"),
    ] {
        let printed = transcript(&[&["scale", "treelstm"], words].concat());
        assert!(printed.contains(message) && printed.ends_with("[exit 2]\n"), "{printed}");
    }
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
