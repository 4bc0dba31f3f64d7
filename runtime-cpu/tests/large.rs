//! Cells with many ports, parameters and stages: planned with their reverse, verified and executed in a time that grows with
//! their size, on a stack that does not.

use autobatch_ir::Weights;
use autobatch_ir::graph::{GraphData, OutputKind};
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, Plan};
use autobatch_oracle::check::{Wanted, check_losses};
use autobatch_planner::{Gradients, Planner, Request};
use autobatch_runtime_cpu::{Bound, Executor};
use std::fmt::Write as _;
use std::time::Instant;

/// Seconds that nothing here may take, by far: what is quadratic takes more, what is exponential never ends.
const MOST_SECONDS: u64 = 20;

fn in_time<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = run();
    assert!(start.elapsed().as_secs() < MOST_SECONDS, "{what} took {:?}", start.elapsed());
    done
}

/// A cell of this text, called with all `params` in instances 0 and 1 on `x`, and the losses of what comes first.
fn graph(params: &str, count: usize, cell: &str, operands: &str, results: &str) -> GraphData {
    let mut text = "autobatch graph 2\nparam @first f32[2,2] = uniform(1.0)\n".to_owned();
    let names: Vec<String> = (0..count).map(|number| format!("@w{number}")).collect();
    names.iter().for_each(|name| writeln!(text, "param {name} {params} = uniform(0.5)").expect("a text"));
    let args = if count > 0 { format!("[{}]", names.join(", ")) } else { String::new() };
    writeln!(text, "{cell}\ngraph").expect("a text");
    for key in 0..2 {
        let results = results.replace('#', &key.to_string());
        write!(
            text,
            "instance {key}:\n  %i{key} = input f32[2] (#[1, {key}])\n  %x{key} = affine[@first](%i{key})\n  {results} = \
             call @c{args}({operands})\n  %s{key} = reduce{{fold=sum over=all}}(%y{key})\nloss \"l{key}\" %s{key}\n",
            operands = operands.replace('#', &key.to_string()),
        )
        .expect("a text");
    }
    in_time("the text", || GraphData::from_text(text).expect("sound"))
}

/// Plans, verifies and executes, twice; and proves the plan if it `proves`.
fn through(graph: &GraphData, proves: bool) -> Plan {
    let losses = graph.outputs.iter().filter(|output| output.kind == OutputKind::Loss);
    let losses: Vec<(ValueId, f32)> = losses.map(|output| (output.value, 1.0)).collect();
    let gradients = Some(Gradients { losses: &losses, params: None, values: &[] });
    let request = Request { mode: Mode::Train, training: true, gradients, ..Request::default() };
    let plan = in_time("planning", || Planner::default().plan(graph, &request).expect("differentiable"));
    let plan = in_time("verifying", || plan.verify().expect("sound"));
    if proves {
        in_time("the proof", || {
            check_losses(&plan, graph, Wanted { values: &[], training: true }, &losses).expect("it is right");
        });
    }
    let weights = Weights::init(&graph.module, 1);
    let mut executor = Executor::new(1).expect("opens");
    for execute in ["the first run", "the second run"] {
        let (words, floats) = (&graph.bindings.words[..], &graph.bindings.floats[..]);
        let bound = Bound { words, floats, noise: Noise::Off };
        in_time(execute, || executor.execute(&plan, &weights, bound).expect("in range"));
    }
    Plan::clone(&plan)
}

#[test]
fn a_cell_may_have_many_ports() {
    const PORTS: usize = 1 << 17;
    let ports: Vec<String> = (0..PORTS).map(|port| format!("%p{port}: f32[2]")).collect();
    let mut cell = format!("cell @c({}) {{\n  %a0 = tanh(%p0)\n", ports.join(", "));
    for port in 1..PORTS {
        writeln!(cell, "  %a{port} = add(%a{}, %p{port})", port - 1).expect("a text");
    }
    write!(cell, "  return %a{}\n}}", PORTS - 1).expect("a text");
    // The reverse of so many ports is another matter: no gradient leads to the constant that they take.
    let constant = "%i#";
    through(&graph("f32", 0, &cell, &vec![constant; PORTS].join(", "), "%y#"), false);
}

#[test]
fn a_cell_may_take_many_parameters() {
    const PARAMS: usize = 1 << 14;
    let ports: Vec<String> = (0..PARAMS).map(|port| format!("@{port}: f32[2,2]")).collect();
    let mut cell = format!("cell @c[{}](%x: f32[2]) {{\n  %a0 = affine[@0](%x)\n", ports.join(", "));
    for port in 1..PARAMS {
        writeln!(cell, "  %a{port} = affine[@{port}](%a{})", port - 1).expect("a text");
    }
    write!(cell, "  return %a{}\n}}", PARAMS - 1).expect("a text");
    let plan = through(&graph("f32[2,2]", PARAMS, &cell, "%x#", "%y#"), true);
    assert_eq!(plan.reductions.len(), PARAMS + 1);
}

#[test]
fn many_weights_may_take_turns_in_one_cell() {
    const PARAMS: usize = 1 << 16;
    let mut text = "autobatch graph 2\ncell @c[@0: f32[2,2]](%x: f32[2]) {\n  %y = affine[@0](%x)\n  return %y\n}\ngraph\n".to_owned();
    let params: String =
        (0..PARAMS).map(|number| format!("param @w{number} f32[2,2] = uniform(1.0)\n")).collect();
    text.insert_str("autobatch graph 2\n".len(), &params);
    text += "instance 0:\n  %a = input f32[2] (#[1, 2])\n  %0 = tanh(%a)\n";
    for number in 0..PARAMS {
        writeln!(text, "  %{} = call @c[@w{number}](%{number})", number + 1).expect("a text");
    }
    write!(text, "  %s = reduce{{fold=sum over=all}}(%{PARAMS})\nloss \"l\" %s\n").expect("a text");
    through(&GraphData::from_text(text).expect("sound"), false);
}

/// A body of elementwise stages, the last of which is worth a row.
fn body(depth: usize, stage: impl Fn(usize) -> String) -> GraphData {
    let mut cell = "cell @c(%x: f32[2]) {\n  %a0 = neg(%x)\n".to_owned();
    (1..=depth).for_each(|number| writeln!(cell, "  %a{number} = {}", stage(number - 1)).expect("a text"));
    write!(cell, "  %z = tanh(%a{depth})\n  %y = mul(%z, %x)\n  return %y\n}}").expect("a text");
    graph("f32", 0, &cell, "%x#", "%y#")
}

#[test]
fn what_a_body_uses_twice_is_looked_at_once() {
    through(&body(80, |before| format!("add(%a{before}, %a{before})")), true);
}

#[test]
fn a_body_may_be_a_chain_of_many_stages() {
    through(&body(100_000, |before| format!("neg(%a{before})")), false);
}
