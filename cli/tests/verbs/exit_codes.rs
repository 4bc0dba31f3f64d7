//! Exit codes of the real program, and errors as they are rendered.

use crate::{NAMES, ORDER, planned, scratch};
use std::process::{Command, Output, Stdio};

fn autobatch(words: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_autobatch");
    Command::new(program).args(words).stdin(Stdio::null()).output().expect("the program was built")
}

#[test]
fn zero_is_done_and_one_is_no() {
    assert_eq!(autobatch(&["plan", NAMES]).status.code(), Some(0));
    assert_eq!(autobatch(&["diff", NAMES, NAMES]).status.code(), Some(0));
    assert_eq!(autobatch(&["diff", NAMES, ORDER]).status.code(), Some(1));
    let plan = planned(NAMES, "exit_one.plan", &[]);
    assert_eq!(autobatch(&["check", ORDER, &plan]).status.code(), Some(1));
}

#[test]
fn two_is_a_command_line_that_makes_no_sense() {
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
fn what_makes_no_sense_is_refused_before_anything_is_done() {
    let plan = planned(NAMES, "refused.plan", &[]);
    let order = scratch("order.json");
    std::fs::write(&order, "{\"batch\": []}").expect("the scratch folder is there");
    for (words, expected) in [
        (&["emit", "random", "-o", "x.plan"][..], "x.plan: .plan is a form of plans"),
        (&["plan", NAMES, "-o", "x.abg"], "x.abg: .abg is a form of graphs"),
        (&["plan", NAMES, "-o", "x.dot"], "x.dot: plans have no DOT form"),
        (&["show", &plan, "-o", "x.graph"], "x.graph: .graph is a form of graphs"),
        (&["diff", &plan, NAMES], "names.graph is a graph and"),
        (&["check", NAMES, "--batches", &order], "order.json: no list of batches"),
        (
            &["emit", "random", "--instances", "9999", "--nodes", "9999"],
            "are 99980001, at most 4194304 are emitted",
        ),
        (
            &["emit", "trees", "--instances", "99999", "--batch", "9"],
            "ends at instance 999990, 262144 are invented",
        ),
        (&["run", "treelstm", "--batch", "0"], "batch must be 1 to 1000000, found 0"),
        (&["train", "names", "--lr", "-1"], "--lr must be above 0, found -1"),
        (&["train", "names", "--clip", "-1"], "--clip must be 0 or more, found -1"),
        (&["train", "names", "--decay", "nan"], "--decay must be 0 or more, found NaN"),
        (&["train", "names", "--max-minutes", "-2"], "--max-minutes must be 0 or more, found -2"),
        (&["train", "names", "--curve", "x.png"], "x.png: expected .svg, .csv or .json for a curve"),
        (&["train", "names", "--decode"], "model names decodes nothing"),
        (&["train", "names", "--resume", "no-such.safetensors"], "error: no-such.safetensors: No such file"),
        (&["train", "names", "--curve", "x.svg", "--save", "x.svg"], "x.svg is named for two outputs"),
        (
            &["train", "names", "--save", "x.svg", "--curve", "x.best.svg"],
            "x.best.svg is named for two outputs",
        ),
        (&["sweep", "b", "-o", "x.png"], "x.png: the picture is an .svg"),
        (&["sweep", "b", "--json", "-o", "-"], "-o - and --json both write to standard output"),
        (&["sweep", "b", "--dump", "x"], "--dump is no option of sweep; leave it out"),
        (&["bench", "b", "--batch", "1,2"], "a second number of --batch is no option of b"),
        (&["bench", "peak", "b", "--phases"], "--phases is no option of peak"),
        (
            &["bench", "peak"],
            "expected a model's name, perhaps after `sweep`, `peak` or `threads`, found `peak`",
        ),
        (&["bench", "b", "--threads", "1025"], "threads must be 0 to 1024, found 1025"),
        (&["execute", NAMES, "-o", "x.json", "--trace", "x.json"], "x.json is named for two outputs"),
        (&["plan", NAMES, "-o", "x.xyz"], "x.xyz: no form of plans has this extension"),
        (&["show", NAMES, "-o", "x.xyz"], "x.xyz: no form of graphs has this extension"),
        (&["show", NAMES, "--format", "json", "-o", "x.abg"], "x.abg: another form than --format json"),
        (&["show", NAMES, "--format", "summary", "-o", "x.graph"], "x.graph: another form than"),
        (&["show", NAMES, "--rows", "batch"], "--rows says how to plan, and only for the picture"),
        (&["explain", &plan, "--policy", "depth"], "--policy says how to plan, and"),
        (&["explain", &plan, "--why", "%1", "%2", "--mode", "train"], "--mode says how to plan, and"),
        (&["execute", NAMES, &plan, "--policy", "depth"], "--policy says how to plan, and"),
        (&["execute", NAMES, "-o", "x.csv"], "x.csv: outputs have no such form"),
        (&["execute", NAMES, "-o", "-", "--trace", "-"], "-o - and --trace - both write to standard output"),
        (&["execute", NAMES, "-o", "-", "--counters"], "-o - and --counters both write to standard output"),
        (&["emit", "bilstm", "--cells", "3"], "--cells is no option of bilstm"),
        (&["emit", "trees", "--nodes", "3"], "--nodes is no option of trees"),
        (&["emit", "lattice", "--every-node"], "--every-node is no option of lattice"),
        (&["emit", "random", "--data", "x.txt"], "--data is no option of random"),
        (&["check", "-", "-"], "standard input can be one file, not two"),
        (&["diff", "-", "-"], "standard input can be one file, not two"),
    ] {
        let output = autobatch(words);
        let said = crate::without_folder(&String::from_utf8_lossy(&output.stderr));
        assert!(said.contains(expected), "{words:?}: {said}");
        assert!(matches!(output.status.code(), Some(2 | 3)), "{words:?}");
        assert!(output.stdout.is_empty(), "{words:?}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn outputs_never_take_the_place_of_what_is_read() {
    let graph = scratch("kept.json");
    autobatch(&["emit", "random", "--instances", "2", "--hidden", "2", "--nodes", "4", "-o", &graph]);
    let before = std::fs::read(&graph).expect("it was emitted");
    for words in [
        &["plan", &graph, "-o", &graph][..],
        &["plan", &graph, "-o", &scratch("./kept.json")],
        &["execute", &graph, "-o", &graph],
        &["execute", &graph, "--trace", &graph],
        &["show", &graph, "-o", &graph],
        &["fsm-train", &graph, "-o", &graph],
        &["reduce", &graph, "-o", &graph, "--", "false"],
        &["emit", "trees", "--data", &graph, "-o", &graph],
    ] {
        let output = autobatch(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("is to be read, and would be written over"), "{words:?}: {said}");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
    }
    assert_eq!(std::fs::read(&graph).expect("it is there"), before);
}

#[test]
fn places_that_cannot_be_written_are_found_out_before_any_work() {
    let file = scratch("a_file");
    std::fs::write(&file, "not a folder").expect("the scratch folder is there");
    let [folder, below] = [scratch(""), format!("{file}/x.svg")];
    for words in [
        &["train", "names", "--save", &folder][..],
        &["train", "names", "--curve", &below],
        &["sweep", "b", "-o", &below],
        &["calibrate", "-o", &below],
    ] {
        let output = autobatch(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.starts_with("error: cannot write "), "{words:?}: {said}");
        assert_eq!(output.status.code(), Some(4), "{words:?}");
        assert!(output.stdout.is_empty(), "{words:?}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn variables_that_are_empty_say_nothing_and_wrong_ones_are_named() {
    let folder = scratch("variables");
    std::fs::create_dir_all(&folder).expect("the scratch folder is there");
    let with = |variables: &[(&str, &str)], words: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_autobatch"));
        program.args(words).envs(variables.iter().copied()).current_dir(&folder);
        program.output().expect("the program was built")
    };
    let train = |variables: &[(&str, &str)]| {
        with(variables, &["train", "names", "--count", "8", "--hidden", "4", "--epochs", "1"])
    };
    let all = ["AUTOBATCH_POLICY", "AUTOBATCH_CPU", "AUTOBATCH_COSTS", "AUTOBATCH_DUMP", "AUTOBATCH_TERMS"];
    let output = train(&all.map(|name| (name, "")));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_dir(&folder).expect("it was made").count(), 0, "nothing is dumped");
    for name in ["AUTOBATCH_POLICY", "AUTOBATCH_CPU"] {
        let output = train(&[(name, "zebra")]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("`zebra`") && said.contains(name), "{said}");
        assert_eq!(output.status.code(), Some(3), "{name}");
    }
    let names = std::path::absolute(NAMES).expect("there is a working folder");
    let output = with(&[("AUTOBATCH_CPU", "zebra")], &["execute", &names.to_string_lossy()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.starts_with("error: unknown instruction set `zebra`"), "{said}");
}

#[test]
fn three_is_a_file_that_is_not_what_it_should_be() {
    let bad = scratch("bad.graph");
    std::fs::write(&bad, "autobatch graph 1\nmodule \"x\"\ngraph\n%0 = foo(%1)\n")
        .expect("the scratch folder is there");
    let output = autobatch(&["plan", &bad]);
    assert_eq!(output.status.code(), Some(3));
    let said = crate::without_folder(&String::from_utf8_lossy(&output.stderr));
    insta::assert_snapshot!(said);
    let output = autobatch(&["plan", "-"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        String::from_utf8_lossy(&output.stderr).starts_with("error: standard input: neither a graph nor")
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
fn damaged_files_of_every_form_are_refused_without_a_panic() {
    for (extension, bytes) in
        [("abg", &b"autobatch"[..]), ("abp", b"\0\0\0"), ("json", b"{\"format\": 3}"), ("plan", b"step")]
    {
        let path = scratch(&format!("damaged.{extension}"));
        std::fs::write(&path, bytes).expect("the scratch folder is there");
        let output = autobatch(&["show", &path]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{extension}: {said}");
        assert!(said.starts_with("error: ") && said.contains("damaged."), "{extension}: {said}");
    }
}

#[test]
fn four_is_an_output_that_cannot_be_written() {
    let nowhere = scratch("no-folder/out.plan");
    assert_eq!(autobatch(&["plan", NAMES, "-o", &nowhere]).status.code(), Some(4));
}

#[test]
fn every_verb_has_help_with_an_example() {
    for verb in [
        "show",
        "plan",
        "explain",
        "policies",
        "diff",
        "check",
        "passes",
        "reduce",
        "fsm-train",
        "emit",
        "devices",
        "doctor",
    ] {
        let output = autobatch(&[verb, "--help"]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{verb}");
        assert!(said.contains("Example") && said.contains(&format!("autobatch {verb}")), "{said}");
    }
}

#[test]
fn devices_say_which_is_the_best_and_doctor_refuses_what_is_none() {
    let output = autobatch(&["devices"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0));
    assert!(said.starts_with("cpu  ") && said.contains("best: "), "{said}");
    assert_eq!(autobatch(&["doctor", "cuda"]).status.code(), Some(2));
    // No machine has a thousand adapters: the answer is no, with the remedy.
    let output = autobatch(&["doctor", "gpu:1000"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("execute on the cpu"), "{said}");
}

#[test]
fn completions_speak_of_every_verb() {
    let output = autobatch(&["completions", "bash"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    for verb in ["policies", "fsm-train", "emit"] {
        assert!(said.contains(verb), "{verb}");
    }
}

#[test]
fn a_graph_goes_through_pipes() {
    let graph = autobatch(&["emit", "random", "--instances", "2", "--hidden", "2", "--nodes", "4"]);
    let mut plan = Command::new(env!("CARGO_BIN_EXE_autobatch"))
        .args(["plan", "-", "--policy", "ratio", "-o", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program was built");
    std::io::Write::write_all(&mut plan.stdin.take().expect("piped"), &graph.stdout)
        .expect("the program reads");
    let output = plan.wait_with_output().expect("the program ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("autobatch plan 2"), "{text}");
}

#[test]
fn a_plan_that_claims_rows_which_no_step_writes_is_refused_before_anything_is_allocated() {
    let path = planned(NAMES, "huge.plan", &[]);
    let text = std::fs::read_to_string(&path).expect("just written");
    let huge = text.replace("b: f32[3]} x5", "b: f32[3]} x1000000000").replace("152", "24000000032");
    assert_ne!(text, huge);
    std::fs::write(&path, huge).expect("the scratch folder is there");
    let output = autobatch(&["show", &path, "--format", "svg"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("it declares 1000000000 rows, steps write 5 of them"), "{said}");
}

#[test]
fn a_binary_file_under_any_name_is_what_its_header_says() {
    let bytes = std::fs::read(planned(NAMES, "sniffed.abp", &[])).expect("just written");
    let mut damaged = bytes.clone();
    if let Some(last) = damaged.last_mut() {
        *last ^= 1;
    }
    for (name, bytes, expected) in [
        ("cut.bin", &bytes[..bytes.len() - 5], "the file is cut off"),
        ("damaged.bin", &damaged[..], "its checksum differs"),
        ("foreign.bin", b"\xff\xd8\xff", "neither a graph nor a plan in any form"),
        ("empty.json", b"[]", "no field \"format\" that says what the document is"),
    ] {
        let path = scratch(name);
        std::fs::write(&path, bytes).expect("the scratch folder is there");
        let output = autobatch(&["show", &path]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(expected), "{name}: {said}");
        assert_eq!(output.status.code(), Some(3), "{name}");
    }
    let whole = scratch("whole.bin");
    std::fs::write(&whole, bytes).expect("the scratch folder is there");
    assert_eq!(autobatch(&["show", &whole]).status.code(), Some(0));
}

#[test]
fn an_answer_is_the_same_if_nobody_reads_it() {
    let closed = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_autobatch"));
        let mut child =
            command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("built");
        // The program reads its input, and so writes, only after nobody reads its output.
        drop(child.stdout.take());
        let graph = std::fs::read(NAMES).expect("the corpus is there");
        std::io::Write::write_all(&mut child.stdin.take().expect("piped"), &graph)
            .expect("the program reads");
        child.wait().expect("the program ends").code()
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
fn a_plan_is_written_even_if_nobody_reads_its_steps() {
    let (graph, plan) = (scratch("unread.abg"), scratch("unread.plan"));
    autobatch(&["emit", "random", "--instances", "2", "--hidden", "2", "--nodes", "600", "-o", &graph]);
    for more in ["--all", "--json"] {
        // A plan of an earlier run must not stand in for this one's.
        let _ = std::fs::remove_file(&plan);
        let mut child = Command::new(env!("CARGO_BIN_EXE_autobatch"))
            .args(["plan", &graph, "-o", &plan, more])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program was built");
        drop(child.stdout.take());
        assert_eq!(child.wait().expect("the program ends").code(), Some(0));
        assert!(std::path::Path::new(&plan).exists(), "{more}");
    }
}

#[test]
fn a_certificate_that_is_wrong_is_corrected_in_one_number() {
    let path = planned(NAMES, "certified.json", &[]);
    let text = std::fs::read_to_string(&path).expect("just written");
    let forged = text.replace("\"copied\":0", "\"copied\":7");
    assert_ne!(text, forged);
    std::fs::write(&path, forged).expect("the scratch folder is there");
    let output = autobatch(&["show", &path]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("P27 the certificate: copied must be 0, found 7"), "{said}");
}
