//! Tests of exit codes and error messages of the program.

use crate::{NAMES, ORDER, planned, scratch};
use std::process::{Command, Output, Stdio};

fn autobatch(words: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_autobatch");
    Command::new(program).args(words).stdin(Stdio::null()).output().expect("the program was built")
}

#[test]
fn code_0_is_success_and_code_1_is_no() {
    assert_eq!(autobatch(&["plan", NAMES]).status.code(), Some(0));
    assert_eq!(autobatch(&["diff", NAMES, NAMES]).status.code(), Some(0));
    assert_eq!(autobatch(&["diff", NAMES, ORDER]).status.code(), Some(1));
    let plan = planned(NAMES, "exit_one.plan", &[]);
    assert_eq!(autobatch(&["check", ORDER, &plan]).status.code(), Some(1));
}

#[test]
fn code_2_is_a_usage_error() {
    for words in [
        &["plan"][..],
        &["plan", NAMES, "--policy", "best"],
        &["explain", NAMES, "--why", "%1"],
        &["explain", NAMES, "--passes", "--json"],
        &["explain", NAMES, "--labels", "--json"],
        &["explain", NAMES, "--kernel", "lstm", "--json"],
        &["explain", NAMES, "--forced", "%3", "--json"],
        &["sing"],
    ] {
        assert_eq!(autobatch(words).status.code(), Some(2), "{words:?}");
    }
    assert_eq!(
        autobatch(&["show", NAMES, "--format", "text", "-o", &scratch("usage.graph")]).status.code(),
        Some(0)
    );
}

#[test]
fn invalid_options_are_rejected_before_any_work() {
    let plan = planned(NAMES, "refused.plan", &[]);
    let other = planned(ORDER, "refused_order.plan", &[]);
    let order = scratch("order.json");
    std::fs::write(&order, "{\"batch\": []}").expect("the scratch folder exists");
    for (words, expected) in [
        (&["emit", "random", "-o", "x.plan"][..], "x.plan: .plan is an extension of plans"),
        (&["plan", NAMES, "-o", "x.abg"], "x.abg: .abg is an extension of graphs"),
        (&["plan", NAMES, "-o", "x.dot"], "x.dot: plans have no DOT form"),
        (&["show", &plan, "-o", "x.graph"], "x.graph: .graph is an extension of graphs"),
        (&["diff", &plan, NAMES], "names.graph is a graph, but"),
        (&["check", NAMES, "--batches", &order], "order.json: expected a list of batches"),
        (
            &["emit", "random", "--instances", "9999", "--nodes", "9999"],
            "have 99980001 nodes, the maximum is 4194304",
        ),
        (
            &["emit", "treelstm", "--instances", "99999", "--batch", "9"],
            "needs 999990 generated instances, the maximum is 262144",
        ),
        (&["run", "treelstm", "--batch", "0"], "batch must be 1 to 1000000, found 0"),
        (&["train", "names", "--lr", "-1"], "--lr must be above 0 and below 3.4e38, found -1"),
        (&["train", "names", "--clip", "-1"], "--clip must be 0 or more, found -1"),
        (&["train", "names", "--decay", "nan"], "--decay must be 0 or more, found NaN"),
        (&["train", "names", "--max-minutes", "-2"], "--max-minutes must be 0 or more, found -2"),
        (&["train", "names", "--curve", "x.png"], "x.png: expected .svg, .csv or .json for a curve"),
        (&["train", "names", "--decode"], "model names has no decoder"),
        (&["train", "names", "--resume", "no-such.safetensors"], "error: no-such.safetensors: No such file"),
        (&["train", "names", "--curve", "x.svg", "--save", "x.svg"], "two outputs have the same path x.svg"),
        (
            &["train", "names", "--save", "x.svg", "--curve", "x.best.svg"],
            "two outputs have the same path x.best.svg",
        ),
        (&["sweep", "treelstm", "-o", "x.png"], "x.png: the picture must be an .svg"),
        (&["sweep", "treelstm", "--json", "-o", "-"], "-o - and --json both write to standard output"),
        (&["sweep", "treelstm", "--dump", "x"], "unexpected argument '--dump'"),
        (&["bench", "treelstm", "--batch", "1,2"], "a second number of --batch is not an option of treelstm"),
        (&["bench", "peak", "treelstm", "--phases"], "--phases is not an option of peak"),
        (&["bench", "threads", "treelstm", "--sparse-rows"], "--sparse-rows is not an option of threads"),
        (
            &["bench", "latency", "names", "--memory-limit", "1GiB"],
            "--memory-limit is not an option of latency",
        ),
        (
            &["bench", "peak"],
            "expected the name of a model, optionally after `sweep`, `peak` or `threads`, found `peak`",
        ),
        (&["bench", "treelstm", "--threads", "1025"], "threads must be 0 to 1024, found 1025"),
        (&["execute", NAMES, "-o", "x.json", "--trace", "x.json"], "two outputs have the same path x.json"),
        (&["plan", NAMES, "-o", "x.xyz"], "x.xyz: no form of plans has this extension"),
        (&["show", NAMES, "-o", "x.xyz"], "x.xyz: no form of graphs has this extension"),
        (
            &["show", NAMES, "--format", "json", "-o", "x.abg"],
            "x.abg: the extension contradicts --format json",
        ),
        (&["show", NAMES, "--format", "summary", "-o", "x.graph"], "x.graph: the extension contradicts"),
        (&["show", NAMES, "--rows", "batch"], "--rows is an option of planning, but show plans only"),
        (&["explain", &plan, "--policy", "depth"], "--policy is an option of planning, but"),
        (&["explain", &plan, "--why", "%1", "%2", "--mode", "train"], "--mode is an option of planning, but"),
        (&["execute", NAMES, &plan, "--policy", "depth"], "--policy is an option of planning, but"),
        (&["execute", NAMES, "-o", "x.csv"], "x.csv: no form of outputs has this extension"),
        (&["execute", NAMES, "-o", "-", "--trace", "-"], "-o - and --trace - both write to standard output"),
        (&["execute", NAMES, "-o", "-", "--counters"], "-o - and --counters both write to standard output"),
        (&["emit", "tagger", "--cells", "3"], "model tagger does not use --cells"),
        (&["emit", "treelstm", "--nodes", "3"], "model treelstm does not use --nodes"),
        (&["emit", "random", "--data", "x/"], "model random does not use --data"),
        (&["emit", "random", "--loss"], "model random does not use --loss"),
        (&["check", "-", "-"], "two inputs are `-`"),
        (&["inspect", "-", "-", "-o", "x.html"], "two inputs are `-`"),
        (&["inspect", "-o", "x.html"], "inspect needs a graph"),
        (&["inspect", NAMES, &other, "-o", "x.html"], "is a plan of another structure than"),
        (&["inspect", &plan, "-o", "x.html"], "expected a graph, found a plan"),
        (&["diff", "-", "-"], "two inputs are `-`"),
    ] {
        let output = autobatch(words);
        let printed = crate::without_folder(&String::from_utf8_lossy(&output.stderr));
        assert!(printed.contains(expected), "{words:?}: {printed}");
        assert!(matches!(output.status.code(), Some(2 | 3)), "{words:?}");
        assert!(output.stdout.is_empty(), "{words:?}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn outputs_never_overwrite_inputs() {
    let graph = scratch("input.json");
    autobatch(&["emit", "random", "--instances", "2", "--hidden", "2", "--nodes", "4", "-o", &graph]);
    let before = std::fs::read(&graph).expect("the graph was emitted");
    for words in [
        &["plan", &graph, "-o", &graph][..],
        &["plan", &graph, "-o", &scratch("./input.json")],
        &["execute", &graph, "-o", &graph],
        &["execute", &graph, "--trace", &graph],
        &["show", &graph, "-o", &graph],
        &["fsm-train", &graph, "-o", &graph],
        &["reduce", &graph, "-o", &graph, "--", "false"],
    ] {
        let output = autobatch(words);
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(printed.contains("is both an input and an output"), "{words:?}: {printed}");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
    }
    assert_eq!(std::fs::read(&graph).expect("the graph exists"), before);
}

#[test]
fn unwritable_paths_are_rejected_before_any_work() {
    let file = scratch("a_file");
    std::fs::write(&file, "not a folder").expect("the scratch folder exists");
    let [folder, below] = [scratch(""), format!("{file}/x.svg")];
    for words in [
        &["train", "names", "--save", &folder][..],
        &["train", "names", "--curve", &below],
        &["sweep", "treelstm", "-o", &below],
        &["calibrate", "-o", &below],
    ] {
        let output = autobatch(words);
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(printed.starts_with("error: cannot write "), "{words:?}: {printed}");
        assert_eq!(output.status.code(), Some(4), "{words:?}");
        assert!(output.stdout.is_empty(), "{words:?}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn empty_variables_are_ignored_and_invalid_ones_are_named() {
    let folder = scratch("variables");
    std::fs::create_dir_all(&folder).expect("the scratch folder exists");
    let with = |variables: &[(&str, &str)], words: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_autobatch"));
        program.args(words).envs(variables.iter().copied()).current_dir(&folder);
        program.output().expect("the program was built")
    };
    let train = |variables: &[(&str, &str)]| {
        with(variables, &["train", "names", "--count", "8", "--hidden", "4", "--epochs", "1"])
    };
    let all = ["AUTOBATCH_POLICY", "AUTOBATCH_CPU", "AUTOBATCH_COSTS", "AUTOBATCH_DUMP"];
    let output = train(&all.map(|name| (name, "")));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_dir(&folder).expect("the folder exists").count(), 0, "nothing is dumped");
    let limited = format!("{folder}/dump:zebra");
    let wrong = [("AUTOBATCH_POLICY", "zebra"), ("AUTOBATCH_CPU", "zebra"), ("AUTOBATCH_DUMP", &limited)];
    for (name, value) in wrong {
        let output = train(&[(name, value)]);
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(printed.contains("`zebra`") && printed.contains(name), "{printed}");
        assert_eq!(output.status.code(), Some(3), "{name}");
    }
    let names = std::path::absolute(NAMES).expect("the working folder exists");
    let output = with(&[("AUTOBATCH_CPU", "zebra")], &["execute", &names.to_string_lossy()]);
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(printed.starts_with("error: unknown instruction set `zebra`"), "{printed}");
}

#[test]
fn a_dumped_plan_finds_its_graph_and_a_dump_without_plans_is_reported() {
    let folder = scratch("dumps");
    std::fs::create_dir_all(&folder).expect("the scratch folder exists");
    let with_dump = |words: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_autobatch"));
        program.args(words).env("AUTOBATCH_DUMP", format!("{folder}/dump")).current_dir(&folder);
        let output = program.output().expect("the program was built");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let printed = with_dump(&["run", "names", "--hidden", "4"]);
    assert!(
        printed.contains("note: AUTOBATCH_DUMP wrote nothing") && printed.contains("run -o"),
        "{printed}"
    );
    let printed = with_dump(&["train", "names", "--count", "8", "--hidden", "4", "--epochs", "1"]);
    assert!(!printed.contains("AUTOBATCH_DUMP"), "{printed}");
    let plan = format!("{folder}/dump/0000-train.abp");
    let output = autobatch(&["explain", &plan]);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        printed.contains("batches per depth: no kernel") || printed.contains("per depth (most"),
        "{printed}"
    );
}

#[test]
fn code_3_is_a_malformed_file() {
    let bad = scratch("bad.graph");
    std::fs::write(&bad, "autobatch graph 2\nmodule \"x\"\ngraph\n%0 = foo(%1)\n")
        .expect("the scratch folder exists");
    let output = autobatch(&["plan", &bad]);
    assert_eq!(output.status.code(), Some(3));
    let printed = crate::without_folder(&String::from_utf8_lossy(&output.stderr));
    insta::assert_snapshot!(printed);
    let output = autobatch(&["plan", "-"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        String::from_utf8_lossy(&output.stderr).starts_with("error: standard input: the file is empty\n")
    );
    let output = autobatch(&["plan", "no-such.graph"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: no-such.graph: "));
    let plan = planned(NAMES, "exit_three.plan", &[]);
    let output = autobatch(&["plan", &plan]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("expected a graph, found a plan"));
}

#[test]
fn damaged_files_of_every_form_are_errors() {
    for (extension, bytes) in
        [("abg", &b"autobatch"[..]), ("abp", b"\0\0\0"), ("json", b"{\"format\": 3}"), ("plan", b"step")]
    {
        let path = scratch(&format!("damaged.{extension}"));
        std::fs::write(&path, bytes).expect("the scratch folder exists");
        let output = autobatch(&["show", &path]);
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{extension}: {printed}");
        assert!(printed.starts_with("error: ") && printed.contains("damaged."), "{extension}: {printed}");
    }
}

#[test]
fn code_4_is_an_unwritable_output() {
    let unwritable = scratch("no-folder/out.plan");
    assert_eq!(autobatch(&["plan", NAMES, "-o", &unwritable]).status.code(), Some(4));
}

#[test]
fn devices_names_the_best_and_doctor_rejects_unknown_devices() {
    let output = autobatch(&["devices"]);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0));
    assert!(printed.starts_with("cpu  ") && printed.contains("best: "), "{printed}");
    assert_eq!(autobatch(&["doctor", "--device", "cuda"]).status.code(), Some(2));
    // No machine has a thousand adapters, so the answer is no, with a remedy.
    let output = autobatch(&["doctor", "--device", "gpu:1000"]);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("execute on the cpu"), "{printed}");
    let report = scratch("report.json");
    let output = autobatch(&["doctor", "--gpu", "--device", "gpu:1000", "--json", &report]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let written =
        std::fs::read_to_string(&report).expect("the report is written although nothing was executed");
    assert!(written.contains("execute on the cpu") && written.contains("findings"), "{written}");
    let unwritable = scratch("no-folder/report.json");
    assert_eq!(autobatch(&["doctor", "--gpu", "--json", &unwritable]).status.code(), Some(4));
}

#[test]
fn graphs_pass_through_pipes() {
    let graph = autobatch(&["emit", "random", "--instances", "2", "--hidden", "2", "--nodes", "4"]);
    let mut plan = Command::new(env!("CARGO_BIN_EXE_autobatch"))
        .args(["plan", "-", "--policy", "ratio", "-o", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program was built");
    std::io::Write::write_all(&mut plan.stdin.take().expect("piped"), &graph.stdout)
        .expect("the program reads its input");
    let output = plan.wait_with_output().expect("the program exits");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("autobatch plan 5"), "{text}");
}

#[test]
fn declared_rows_that_no_step_writes_are_rejected_before_allocation() {
    let path = planned(NAMES, "huge.plan", &[]);
    let text = std::fs::read_to_string(&path).expect("the file was just written");
    let huge = text.replace("b: f32[3]} x5", "b: f32[3]} x1000000000").replace("152", "24000000032");
    assert_ne!(text, huge);
    std::fs::write(&path, huge).expect("the scratch folder exists");
    let output = autobatch(&["show", &path, "--format", "svg"]);
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{printed}");
    assert!(printed.contains("it declares 1000000000 rows, steps write 5 of them"), "{printed}");
}

#[test]
fn the_header_tells_the_kind_of_a_binary_file() {
    let bytes = std::fs::read(planned(NAMES, "sniffed.abp", &[])).expect("the file was just written");
    let mut damaged = bytes.clone();
    if let Some(last) = damaged.last_mut() {
        *last ^= 1;
    }
    for (name, bytes, expected) in [
        ("cut.bin", &bytes[..bytes.len() - 5], "the file is truncated"),
        ("damaged.bin", &damaged[..], "its checksum differs"),
        ("foreign.bin", b"\xff\xd8\xff", "the file is neither a graph nor a plan"),
        ("empty.json", b"[]", "the document has no field \"format\""),
    ] {
        let path = scratch(name);
        std::fs::write(&path, bytes).expect("the scratch folder exists");
        let output = autobatch(&["show", &path]);
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(printed.contains(expected), "{name}: {printed}");
        assert_eq!(output.status.code(), Some(3), "{name}");
    }
    let whole = scratch("whole.bin");
    std::fs::write(&whole, bytes).expect("the scratch folder exists");
    assert_eq!(autobatch(&["show", &whole]).status.code(), Some(0));
}

#[test]
fn a_closed_pipe_does_not_change_the_exit_code() {
    let closed = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_autobatch"));
        let mut child = command
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program was built");
        // The program writes only after it has read its input, when its output is already closed.
        drop(child.stdout.take());
        let graph = std::fs::read(NAMES).expect("the graph exists");
        std::io::Write::write_all(&mut child.stdin.take().expect("piped"), &graph)
            .expect("the program reads its input");
        child.wait().expect("the program exits").code()
    };
    let plan = planned(NAMES, "unread_answer.plan", &[]);
    assert_eq!(closed(&["diff", "-", ORDER]), Some(1));
    assert_eq!(closed(&["diff", "-", ORDER, "--json"]), Some(1));
    assert_eq!(closed(&["diff", "-", NAMES]), Some(0));
    assert_eq!(closed(&["check", "-", &plan]), Some(0));
    assert_eq!(closed(&["check", "-", &planned(ORDER, "unread_other.plan", &[])]), Some(1));
    assert_eq!(closed(&["show", "-"]), Some(0));
}

#[test]
fn a_closed_pipe_does_not_prevent_writing_the_plan() {
    let (graph, plan) = (scratch("unread.abg"), scratch("unread.plan"));
    autobatch(&["emit", "random", "--instances", "2", "--hidden", "2", "--nodes", "600", "-o", &graph]);
    for more in ["--all", "--json"] {
        // Remove the plan of an earlier run.
        let _ = std::fs::remove_file(&plan);
        let mut child = Command::new(env!("CARGO_BIN_EXE_autobatch"))
            .args(["plan", &graph, "-o", &plan, more])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program was built");
        drop(child.stdout.take());
        assert_eq!(child.wait().expect("the program exits").code(), Some(0));
        assert!(std::path::Path::new(&plan).exists(), "{more}");
    }
}

#[test]
fn a_wrong_certificate_is_an_error() {
    let path = planned(NAMES, "certified.json", &[]);
    let text = std::fs::read_to_string(&path).expect("the file was just written");
    let forged = text.replace("\"copied\":0", "\"copied\":7");
    assert_ne!(text, forged);
    std::fs::write(&path, forged).expect("the scratch folder exists");
    let output = autobatch(&["show", &path]);
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(printed.contains("P27 the certificate: copied must be 0, found 7"), "{printed}");
}
