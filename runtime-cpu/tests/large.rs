//! Plans, verifies and executes cells with many ports, parameters and stages, with their reverse.
//!
//! The sizes detect algorithms whose time or stack depth grows too fast: an exponential algorithm never ends, and a
//! recursive one overflows the stack.

use autobatch_ir::Weights;
use autobatch_ir::graph::{GraphData, OutputKind};
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, Plan};
use autobatch_oracle::check::{Wanted, check_losses};
use autobatch_planner::{Gradients, Planner, Request};
use autobatch_runtime_cpu::{Executor, Inputs};
use std::fmt::Write as _;

/// A graph that calls the cell of this text with all `params` in instances 0 and 1. The first result gives a loss.
fn graph(params: &str, count: usize, cell: &str, operands: &str, results: &str) -> GraphData {
    let mut text = "autobatch graph 2\nparam @first f32[2,2] = uniform(1.0)\n".to_owned();
    let names: Vec<String> = (0..count).map(|number| format!("@w{number}")).collect();
    names.iter().for_each(|name| {
        writeln!(text, "param {name} {params} = uniform(0.5)").expect("writing to a string succeeds")
    });
    let args = if count > 0 { format!("[{}]", names.join(", ")) } else { String::new() };
    writeln!(text, "{cell}\ngraph").expect("writing to a string succeeds");
    for key in 0..2 {
        let results = results.replace('#', &key.to_string());
        write!(
            text,
            "instance {key}:\n  %i{key} = input f32[2] (#[1, {key}])\n  %x{key} = affine[@first](%i{key})\n  {results} = \
             call @c{args}({operands})\n  %s{key} = reduce{{fold=sum over=all}}(%y{key})\nloss \"l{key}\" %s{key}\n",
            operands = operands.replace('#', &key.to_string()),
        )
        .expect("writing to a string succeeds");
    }
    GraphData::from_text(text).expect("the text is sound")
}

/// Plans, verifies and executes twice. Checks the plan against the graph if `proves`.
fn run_all(graph: &GraphData, proves: bool) -> Plan {
    let losses = graph.outputs.iter().filter(|output| output.kind == OutputKind::Loss);
    let losses: Vec<(ValueId, f32)> = losses.map(|output| (output.value, 1.0)).collect();
    let gradients = Some(Gradients { losses: &losses, params: None, values: &[] });
    let request = Request { mode: Mode::Train, training: true, gradients, ..Request::default() };
    let plan = Planner::default().plan(graph, &request).expect("the graph is differentiable");
    let plan = plan.verify().expect("the plan is sound");
    if proves {
        check_losses(&plan, graph, Wanted { values: &[], training: true }, &losses)
            .expect("the plan is right");
    }
    let weights = Weights::init(&graph.module, 1);
    let mut executor = Executor::new(1).expect("opens");
    for _ in 0..2 {
        let (words, floats) = (&graph.bindings.words[..], &graph.bindings.floats[..]);
        let bound = Inputs { words, floats, noise: Noise::Off };
        executor.execute(&plan, &weights, bound).expect("indices are in range");
    }
    Plan::clone(&plan)
}

#[test]
fn a_cell_may_have_many_ports() {
    const PORTS: usize = 1 << 17;
    let ports: Vec<String> = (0..PORTS).map(|port| format!("%p{port}: f32[2]")).collect();
    let mut cell = format!("cell @c({}) {{\n  %a0 = tanh(%p0)\n", ports.join(", "));
    for port in 1..PORTS {
        writeln!(cell, "  %a{port} = add(%a{}, %p{port})", port - 1).expect("writing to a string succeeds");
    }
    write!(cell, "  return %a{}\n}}", PORTS - 1).expect("writing to a string succeeds");
    // All ports take a constant, so the reverse computes no gradients for them.
    let constant = "%i#";
    run_all(&graph("f32", 0, &cell, &vec![constant; PORTS].join(", "), "%y#"), false);
}

#[test]
fn a_cell_may_have_many_parameters() {
    const PARAMS: usize = 1 << 14;
    let ports: Vec<String> = (0..PARAMS).map(|port| format!("@{port}: f32[2,2]")).collect();
    let mut cell = format!("cell @c[{}](%x: f32[2]) {{\n  %a0 = affine[@0](%x)\n", ports.join(", "));
    for port in 1..PARAMS {
        writeln!(cell, "  %a{port} = affine[@{port}](%a{})", port - 1).expect("writing to a string succeeds");
    }
    write!(cell, "  return %a{}\n}}", PARAMS - 1).expect("writing to a string succeeds");
    let plan = run_all(&graph("f32[2,2]", PARAMS, &cell, "%x#", "%y#"), true);
    assert_eq!(plan.reductions.len(), PARAMS + 1);
}

#[test]
fn a_cell_may_be_called_with_many_weights() {
    const PARAMS: usize = 1 << 16;
    let mut text = "autobatch graph 2\ncell @c[@0: f32[2,2]](%x: f32[2]) {\n  %y = affine[@0](%x)\n  return %y\n}\ngraph\n".to_owned();
    let params: String =
        (0..PARAMS).map(|number| format!("param @w{number} f32[2,2] = uniform(1.0)\n")).collect();
    text.insert_str("autobatch graph 2\n".len(), &params);
    text += "instance 0:\n  %a = input f32[2] (#[1, 2])\n  %0 = tanh(%a)\n";
    for number in 0..PARAMS {
        writeln!(text, "  %{} = call @c[@w{number}](%{number})", number + 1)
            .expect("writing to a string succeeds");
    }
    write!(text, "  %s = reduce{{fold=sum over=all}}(%{PARAMS})\nloss \"l\" %s\n")
        .expect("writing to a string succeeds");
    run_all(&GraphData::from_text(text).expect("sound"), false);
}

/// A graph of a cell with `depth` elementwise stages.
fn body(depth: usize, stage: impl Fn(usize) -> String) -> GraphData {
    let mut cell = "cell @c(%x: f32[2]) {\n  %a0 = neg(%x)\n".to_owned();
    (1..=depth).for_each(|number| {
        writeln!(cell, "  %a{number} = {}", stage(number - 1)).expect("writing to a string succeeds")
    });
    write!(cell, "  %z = tanh(%a{depth})\n  %y = mul(%z, %x)\n  return %y\n}}")
        .expect("writing to a string succeeds");
    graph("f32", 0, &cell, "%x#", "%y#")
}

#[test]
fn a_value_that_is_used_twice_is_visited_once() {
    run_all(&body(80, |before| format!("add(%a{before}, %a{before})")), true);
}

#[test]
fn a_body_may_be_a_chain_of_many_stages() {
    run_all(&body(100_000, |before| format!("neg(%a{before})")), false);
}
