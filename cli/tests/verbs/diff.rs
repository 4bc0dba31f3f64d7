//! `diff`: what is the same is called the same, and what differs by its name.

use crate::{NAMES, ORDER, planned, says, scratch, without_folder};

/// What `diff` says of a graph and the same with a part of its text replaced.
fn changed(graph: &str, from: &str, to: &str, name: &str) -> String {
    let text = std::fs::read_to_string(graph).expect("the test's graph is there");
    let other = text.replacen(from, to, 1);
    assert_ne!(text, other, "{from} stands in {graph}");
    let path = scratch(name);
    std::fs::write(&path, other).expect("the scratch folder is there");
    says(&["diff", graph, &path])
}

/// What is said of either file about something: in the table, or on two lines below it.
fn line(said: &str, what: &str) -> Vec<String> {
    let mut lines = said.lines().skip_while(|line| !line.starts_with(what));
    let found = lines.next().unwrap_or_else(|| panic!("no line {what:?} in {said}"));
    if found == what {
        return lines.take(2).map(|line| line[5..].to_owned()).collect();
    }
    let cells = found[what.len()..].split("  ").map(|cell| cell.trim().to_owned());
    cells.filter(|cell| !cell.is_empty()).collect()
}

#[test]
fn a_graph_that_was_emitted_and_its_text_say_the_same() {
    for model in ["bilstm", "lattice", "trees"] {
        let (emitted, text) =
            (scratch(&format!("diff_{model}.abg")), scratch(&format!("diff_{model}.graph")));
        says(&["emit", model, "--instances", "3", "--hidden", "4", "-o", &emitted]);
        says(&["show", &emitted, "-o", &text]);
        let said = says(&["diff", &emitted, &text]);
        assert!(said.contains("say the same") && !said.contains("[exit"), "{model}: {said}");
    }
}

#[test]
fn another_op_in_a_body_is_shown_under_its_cell() {
    let said = changed(NAMES, "%12: f32[3] = tanh(%8)", "%12: f32[3] = sigmoid(%8)", "diff_body.graph");
    assert_eq!(line(&said, "in cell @lstm"), ["%12: f32[3] = tanh(%8)", "%12: f32[3] = sigmoid(%8)"]);
}

#[test]
fn attributes_and_declarations_are_spelled_out() {
    let said = changed(ORDER, "{value=0.5}", "{value=1.0}", "diff_fill.graph");
    let fills = ["%0 = fill f32[2] {value=0.5}", "%0 = fill f32[2] {value=1.0}"];
    assert_eq!(line(&said, "first that differs"), fills);
    let said = changed(ORDER, "@w f32[2,2] = glorot(1.0)", "@w f32[2,2] = glorot(2.0)", "diff_init.graph");
    let inits = ["param f32[2,2] = glorot(1.0)", "param f32[2,2] = glorot(2.0)"];
    assert_eq!(line(&said, "parameter @w"), inits);
    let said = changed(ORDER, "output \"y\" %8", "output \"y\" %7", "diff_output.graph");
    assert_eq!(line(&said, "first output that differs"), ["output \"y\" %8", "output \"y\" %7"]);
    let said = changed(ORDER, "instance 2:", "instance 9:", "diff_key.graph");
    assert_eq!(line(&said, "first instance that differs"), ["instance 2 from n14", "instance 9 from n14"]);
}

#[test]
fn what_is_no_structure_has_lines_of_its_own() {
    let said = changed(NAMES, "(#17, %0, %0)", "(#16, %0, %0)", "diff_bound.graph");
    let calls = ["#17", "#16"].map(|bound| format!("%1, %2 = call @lstm[@letters, @w, @b]({bound}, %0, %0)"));
    assert_eq!(line(&said, "first bound number that differs"), calls);
    assert!(!said.contains("structure"), "{said}");
    let said = changed(NAMES, "\"src/names.rs\" 26:9", "\"src/names.rs\" 27:9", "diff_site.graph");
    assert_eq!(line(&said, "first source line that differs"), ["src/names.rs:26:9", "src/names.rs:27:9"]);
}

#[test]
fn plans_of_one_order_differ_in_a_line_of_their_text() {
    let plan = planned(ORDER, "diff_plan.plan", &[]);
    let text = std::fs::read_to_string(&plan).expect("just written");
    let outputs: Vec<&str> = text.lines().filter(|line| line.contains("\"x\"")).collect();
    let [output] = outputs[..] else { panic!("one line of {text} is the output") };
    let renamed = output.replace("\"x\"", "\"other\"");
    let said = changed(&plan, output, &renamed, "diff_renamed.plan");
    let number = text.lines().position(|line| line == output).map_or(0, |at| at + 1);
    assert_eq!(line(&said, &format!("line {number} of the text")), [output.trim(), renamed.trim()]);
}

#[test]
fn kernels_that_compute_something_else_are_named() {
    let plan = planned(ORDER, "diff_kernel.plan", &[]);
    let said = without_folder(&changed(&plan, "tanh", "sigmoid", "diff_sigmoid.plan"));
    assert_eq!(line(&said, "kernels that the other lacks"), ["@b", "@b"], "{said}");
    assert!(said.contains(" of the text"), "{said}");
}

#[test]
fn stores_that_are_of_other_kinds_are_told_apart() {
    let plan = planned(ORDER, "diff_kind.plan", &[]);
    let said = changed(&plan, "store @v param ", "store @v table ", "diff_table.plan");
    let stores = ["param", "table"].map(|kind| format!("v f32[2,2], {kind}"));
    assert_eq!(line(&said, "first store that differs"), stores);
}
