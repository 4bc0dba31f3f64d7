//! The work on large graphs grows linearly: text, bytes, planning, verification, proof and execution.
//!
//! Every stage runs on a graph and on one of twice the size. The tests compare allocations and peak memory, which no other process
//! disturbs. A quadratic stage would also take minutes on these sizes.

use crate::agreement::{planner, verified};
use crate::graphs::weights;
use autobatch_ir::graph::{Graph, GraphData, OutputKind, Value};
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, Plan};
use autobatch_ir::types::f32;
use autobatch_oracle::check::{Wanted, check};
use autobatch_oracle::naive::execute;
use autobatch_planner::{Gradients, Planner, Request};
use autobatch_testing::hostile::{allocations, measured};
use autobatch_testing::trials;

/// The memory work of one stage.
struct Work {
    stage: String,
    peak: usize,
    allocations: usize,
}

/// Runs a stage and records its work.
fn record<T>(log: &mut Vec<Work>, stage: String, run: impl FnOnce() -> T) -> T {
    let before = allocations();
    let (result, peak) = measured(run);
    log.push(Work { stage, peak, allocations: allocations() - before });
    result
}

/// Requires that twice the size takes at most three times the work. Quadratic work takes four times as much.
fn assert_linear(what: &str, [small, large]: [Vec<Work>; 2]) {
    for (small, large) in small.iter().zip(&large) {
        let within = |small: usize, large: usize, slack: usize| large <= 3 * small + slack;
        let stage = &small.stage;
        let (a, b) = (small.peak, large.peak);
        assert!(within(a, b, 1 << 16), "{what}, {stage}: peak of {a} bytes, then {b} bytes");
        let (a, b) = (small.allocations, large.allocations);
        assert!(within(a, b, 256), "{what}, {stage}: {a} allocations, then {b}");
    }
}

/// Runs all stages on a graph, with gradients if it has losses.
fn stages(graph: &GraphData) -> Vec<Work> {
    let log = &mut Vec::new();
    let graph = record(log, "text".to_owned(), || {
        GraphData::from_text(graph.to_text().as_bytes()).expect("written text is a graph")
    });
    let graph = record(log, "bytes".to_owned(), || {
        GraphData::from_bytes(&graph.to_bytes()).expect("written bytes are a graph")
    });
    let losses = graph.outputs.iter().filter(|output| output.kind == OutputKind::Loss);
    let losses: Vec<_> = losses.map(|output| (output.value, 1.0)).collect();
    let gradients = Some(Gradients { losses: &losses, params: None, values: &[] });
    let training = Request { mode: Mode::Train, gradients, ..Request::default() };
    for (mode, request) in [("forward", Request::default()), ("reverse", training)] {
        if mode == "reverse" && losses.is_empty() {
            continue;
        }
        for policy in ["depth", "agenda", "auto"] {
            let stage = |name: &str| format!("{mode}, {policy}: {name}");
            let mut planner: Planner = planner(policy);
            let plan =
                record(log, stage("plan"), || planner.plan(&graph, &request).expect("a valid request"));
            let plan = record(log, stage("text of the plan"), || {
                Plan::from_text(plan.to_text().as_bytes()).expect("written text is a plan")
            });
            let plan = record(log, stage("verify"), || verified(plan, "a planned plan"));
            record(log, stage("proof"), || {
                check(&plan, &graph, Wanted { values: &[], training: false }).expect("a correct plan");
            });
            let weights = weights(&graph);
            let stores: Vec<&[f32]> = weights.iter().map(|param| param.values()).collect();
            record(log, stage("execute"), || {
                let (words, floats) = (&graph.bindings.words, &graph.bindings.floats);
                execute(&plan, &stores, words, floats, Noise::Off).expect("an executable plan");
            });
        }
    }
    std::mem::take(log)
}

/// Runs all stages on the graphs of half the size and of the size.
fn assert_linear_stages(what: &str, size: usize, graph: impl Fn(usize) -> GraphData) {
    assert_linear(what, [size / 2, size].map(|size| stages(&graph(size))));
}

fn loss_of<'g>(g: &'g Graph, value: Value<'g>) {
    g.loss("loss", value.mse(g.zeros(value.shape())));
}

#[test]
fn long_chains() {
    let mut m = ModuleBuilder::new("chain");
    let cell = m.cell("cell", [f32([1])], |_, [x]| [x.tanh()]);
    let module = m.build().expect("the model is well typed");
    assert_linear_stages("a chain", trials::trials(20_000, 1_000_000), |length| {
        let g = Graph::new(&module);
        let mut value = g.input(&[0.5]);
        for number in 0..length {
            value = if number % 2 == 0 { g.call(cell, value)[0] } else { value.sin() };
        }
        loss_of(&g, value);
        g.finish().expect("the graph is well typed")
    });
}

/// A call of a cell with many ports, and lists of many values.
fn wide(width: usize) -> GraphData {
    let join = |of: &dyn Fn(usize) -> String| (0..width).map(of).collect::<Vec<_>>().join(", ");
    let (ports, names) = (join(&|n| format!("%p{n}: f32[1]")), join(&|n| format!("%p{n}")));
    let inputs: String = (0..width).map(|n| format!("  %p{n} = input f32[1] (#[{n}])\n")).collect();
    let text = format!(
        "autobatch graph 2\ncell @sum({ports}) {{\n  %row = concat{{axis=0}}({names})\n  %list = list({names})\n  \
         %all = reduce{{fold=sum over=all}}(%row)\n  %one = reshape{{shape=[1]}}(%all)\n  %two = list_sum(%list)\n  %three = concat{{axis=0}}(%one, %two)\n  \
         return %three\n}}\ngraph\n{inputs}  %x = call @sum({names})\n  %list = list({names})\n  %mean = list_mean(%list)\n  \
         %y = concat{{axis=0}}(%mean, %mean)\n  %loss = mse(%x, %y)\nloss \"loss\" %loss\n"
    );
    let graph = GraphData::from_text(text.as_bytes()).expect("the text is a graph");
    graph.verify().expect("the graph follows the rules");
    graph
}

#[test]
fn wide_cells_and_lists() {
    assert_linear_stages("a wide cell", trials::trials(4096, 1 << 16), wide);
}

/// Plans, verifies and proves the gradients of all operands of wide cells. The reverse step has one port per operand or saved
/// register, and thousands of equal contributions are summed.
fn gradients_of_operands(width: usize) -> Vec<Work> {
    let mut log = Vec::new();
    let mut m = ModuleBuilder::new("wide");
    let ports = vec![f32([2]); width];
    let sum = m.cell_of_any("sum", &ports, |g, xs| vec![g.list(xs).sum().tanh()]);
    let product = m.cell_of_any("product", &ports, |_, xs| {
        let first = xs[0];
        vec![xs[1..].iter().fold(first, |y, x| (y * x + 0.5).tanh())]
    });
    let module = m.build().expect("the model is well typed");
    for cell in [sum, product] {
        let g = Graph::new(&module);
        let xs: Vec<Value<'_>> = (0..width).map(|n| g.input(&[n as f32 * 1e-3, 0.5]).tanh()).collect();
        let y = g.call_any(cell, &xs)[0].sum();
        let (loss, values) =
            (y.id().expect("no fault"), xs.iter().filter_map(|x| x.id()).collect::<Vec<_>>());
        let graph = g.data();
        let gradients = Some(Gradients { losses: &[(loss, 1.0)], params: None, values: &values });
        let request = Request { wanted: &[loss], mode: Mode::Train, gradients, ..Request::default() };
        let plan = record(&mut log, "plan".to_owned(), || {
            planner("depth").plan(&graph, &request).expect("well typed")
        });
        let plan = record(&mut log, "verify".to_owned(), || verified(plan, "a planned plan"));
        let proof = record(&mut log, "proof".to_owned(), || {
            check(&plan, &graph, Wanted { values: &[loss], training: false }).expect("a correct plan")
        });
        assert_eq!(proof.values.len(), width);
    }
    log
}

#[test]
fn gradients_of_the_operands_of_wide_cells() {
    let width = trials::trials(6000, 1 << 16);
    assert_linear("wide cells in reverse", [width / 2, width].map(gradients_of_operands));
}

/// A cell that uses one parameter many times.
fn parameter_uses(uses: usize) -> GraphData {
    let mut m = ModuleBuilder::new("uses");
    let weight = m.param("weight", [2, 2], Init::Glorot(1.0));
    let cell = m.cell("cell", [f32([2])], |g, [x]| {
        let mut value = x;
        for _ in 0..uses {
            value = g.affine([value], weight, None).tanh();
        }
        [value]
    });
    let module = m.build().expect("the model is well typed");
    let g = Graph::new(&module);
    let [value] = g.call(cell, g.input(&[0.5, 0.25]));
    loss_of(&g, value);
    g.finish().expect("the graph is well typed")
}

#[test]
fn a_cell_uses_a_parameter_thousands_of_times() {
    assert_linear_stages("a parameter of many uses", trials::trials(1000, 8000), parameter_uses);
}

/// Signatures that differ only in parameters share the kernel of their cell.
#[test]
fn a_large_cell_with_many_parameters_is_compiled_once() {
    let (levels, params) = (14, 1000);
    let mut text = String::from("autobatch graph 2\n");
    for number in 0..params {
        text += &format!("param @w{number} f32[1]\n");
    }
    text += "cell @c0[@0: f32[1]](%x: f32[1]) {\n  %w = param[@0]\n  %y = mul(%x, %w)\n  return %y\n}\n";
    for level in 1..levels {
        let inner = level - 1;
        text += &format!(
            "cell @c{level}[@0: f32[1]](%x: f32[1]) {{\n  %y = call @c{inner}[@0](%x)\n  %z = call @c{inner}[@0](%y)\n  return %z\n}}\n"
        );
    }
    text += "graph\n  %x = input f32[1] (#[1.0])\n";
    for number in 0..params {
        text += &format!("  %y{number} = call @c{}[@w{number}](%x)\n", levels - 1);
        text += &format!("output \"y{number}\" %y{number}\n");
    }
    let graph = GraphData::from_text(text.as_bytes()).expect("the text is a graph");
    graph.verify().expect("the graph follows the rules");
    let plan = planner("depth").plan(&graph, &Request::default()).expect("the graph has outputs");
    assert!(plan.kernels.len() < 8, "{} kernels", plan.kernels.len());
}
