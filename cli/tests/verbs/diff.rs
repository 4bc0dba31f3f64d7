//! Tests of `diff`: equal files are equal, and each kind of difference is named.

use crate::{NAMES, ORDER, planned, scratch, transcript, without_folder};

/// The output of `diff` for a file and a copy with one replacement in its text.
fn diff_after_replacement(graph: &str, from: &str, to: &str, name: &str) -> String {
    let text = std::fs::read_to_string(graph).expect("the graph exists");
    let other = text.replacen(from, to, 1);
    assert_ne!(text, other, "{graph} contains {from}");
    let path = scratch(name);
    std::fs::write(&path, other).expect("the scratch folder exists");
    transcript(&["diff", graph, &path])
}

/// The values of a property: from its row of the table, or from the two lines below its name.
fn line(printed: &str, what: &str) -> Vec<String> {
    let mut lines = printed.lines().skip_while(|line| !line.starts_with(what));
    let found = lines.next().unwrap_or_else(|| panic!("no line {what:?} in {printed}"));
    if found == what {
        return lines.take(2).map(|line| line[5..].to_owned()).collect();
    }
    let cells = found[what.len()..].split("  ").map(|cell| cell.trim().to_owned());
    cells.filter(|cell| !cell.is_empty()).collect()
}

#[test]
fn an_emitted_graph_equals_its_text_form() {
    for model in ["tagger", "lattice", "treelstm"] {
        let (emitted, text) =
            (scratch(&format!("diff_{model}.abg")), scratch(&format!("diff_{model}.graph")));
        transcript(&["emit", model, "--instances", "3", "--hidden", "4", "-o", &emitted]);
        transcript(&["show", &emitted, "-o", &text]);
        let printed = transcript(&["diff", &emitted, &text]);
        assert!(printed.contains("are equal") && !printed.contains("[exit"), "{model}: {printed}");
    }
}

#[test]
fn a_changed_op_is_shown_with_its_cell() {
    let printed = diff_after_replacement(
        NAMES,
        "%12: f32[3] = tanh(%8)",
        "%12: f32[3] = sigmoid(%8)",
        "diff_body.graph",
    );
    assert_eq!(line(&printed, "in cell @lstm"), ["%12: f32[3] = tanh(%8)", "%12: f32[3] = sigmoid(%8)"]);
}

#[test]
fn changed_attributes_and_declarations_are_shown() {
    let printed = diff_after_replacement(ORDER, "{value=0.5}", "{value=1.0}", "diff_fill.graph");
    let fills = ["%0 = fill f32[2] {value=0.5}", "%0 = fill f32[2] {value=1.0}"];
    assert_eq!(line(&printed, "first node that differs"), fills);
    let printed = diff_after_replacement(
        ORDER,
        "@w f32[2,2] = glorot(1.0)",
        "@w f32[2,2] = glorot(2.0)",
        "diff_init.graph",
    );
    let inits = ["param f32[2,2] = glorot(1.0)", "param f32[2,2] = glorot(2.0)"];
    assert_eq!(line(&printed, "parameter @w"), inits);
    let printed = diff_after_replacement(ORDER, "output \"y\" %8", "output \"y\" %7", "diff_output.graph");
    assert_eq!(line(&printed, "first output that differs"), ["output \"y\" %8", "output \"y\" %7"]);
    let printed = diff_after_replacement(ORDER, "instance 2:", "instance 9:", "diff_key.graph");
    assert_eq!(line(&printed, "first instance that differs"), ["instance 2 from n14", "instance 9 from n14"]);
}

#[test]
fn changed_bindings_and_source_lines_are_shown() {
    let printed = diff_after_replacement(NAMES, "(#17, %0, %0)", "(#16, %0, %0)", "diff_bound.graph");
    let calls = ["#17", "#16"].map(|bound| format!("%1, %2 = call @lstm[@letters, @w, @b]({bound}, %0, %0)"));
    assert_eq!(line(&printed, "first binding that differs"), calls);
    assert!(!printed.contains("structure"), "{printed}");
    let printed =
        diff_after_replacement(NAMES, "\"src/names.rs\" 26:9", "\"src/names.rs\" 27:9", "diff_site.graph");
    assert_eq!(line(&printed, "first source line that differs"), ["src/names.rs:26:9", "src/names.rs:27:9"]);
}

#[test]
fn plans_of_one_order_show_the_first_line_that_differs() {
    let plan = planned(ORDER, "diff_plan.plan", &[]);
    let text = std::fs::read_to_string(&plan).expect("the file was just written");
    let outputs: Vec<&str> = text.lines().filter(|line| line.contains("\"x\"")).collect();
    let [output] = outputs[..] else { panic!("expected one line with the output in {text}") };
    let renamed = output.replace("\"x\"", "\"other\"");
    let printed = diff_after_replacement(&plan, output, &renamed, "diff_renamed.plan");
    let number = text.lines().position(|line| line == output).map_or(0, |at| at + 1);
    assert_eq!(line(&printed, &format!("line {number} of the text")), [output.trim(), renamed.trim()]);
}

#[test]
fn changed_kernels_are_named() {
    let plan = planned(ORDER, "diff_kernel.plan", &[]);
    let printed = without_folder(&diff_after_replacement(&plan, "tanh", "sigmoid", "diff_sigmoid.plan"));
    assert_eq!(line(&printed, "kernels of one plan only"), ["@b", "@b"], "{printed}");
    assert!(printed.contains(" of the text"), "{printed}");
}

#[test]
fn stores_of_different_kinds_are_shown() {
    let plan = planned(ORDER, "diff_kind.plan", &[]);
    let printed = diff_after_replacement(&plan, "store @v param ", "store @v table ", "diff_table.plan");
    let stores = ["param", "table"].map(|kind| format!("v f32[2,2], {kind}"));
    assert_eq!(line(&printed, "first store that differs"), stores);
}
