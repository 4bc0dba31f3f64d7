//! Large graphs are planned, verified, proven and executed in a time that grows with their size, and on a stack that does not.

use crate::agreement::{planner, verified};
use crate::graphs::weights;
use autobatch_ir::graph::{Graph, GraphData, OutputKind, Value};
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, Plan};
use autobatch_ir::types::f32;
use autobatch_oracle::check::{Wanted, check};
use autobatch_oracle::naive::execute;
use autobatch_planner::{Gradients, Request};
use autobatch_testing::trials;
use std::time::Instant;

/// Seconds that nothing here may take, by far: what is quadratic takes minutes.
const MOST_SECONDS: u64 = 30;

fn in_time<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = run();
    let most = MOST_SECONDS * trials::trials(1, 20);
    assert!(start.elapsed().as_secs() < most, "{what} took {:?}", start.elapsed());
    done
}

/// Plans, proves and executes, through text and bytes; the gradients of the losses too.
fn through(what: &str, graph: &GraphData) {
    let graph = in_time(&format!("{what}: text"), || {
        GraphData::from_text(graph.to_text().as_bytes()).expect("it was just written")
    });
    let graph = in_time(&format!("{what}: bytes"), || {
        GraphData::from_bytes(&graph.to_bytes()).expect("it was just written")
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
            let what = format!("{what}, {mode}, {policy}");
            let plan = in_time(&format!("{what}: plan"), || {
                planner(policy).plan(&graph, &request).expect("it can be planned")
            });
            let text = in_time(&format!("{what}: text of the plan"), || {
                Plan::from_text(plan.to_text().as_bytes()).expect("it was just written")
            });
            let plan = in_time(&format!("{what}: verify"), || verified(text, "it was planned"));
            in_time(&format!("{what}: proof"), || {
                check(&plan, &graph, Wanted { values: &[], training: false }).expect("it is right");
            });
            let weights = weights(&graph);
            let stores: Vec<&[f32]> = weights.iter().map(|param| param.values()).collect();
            in_time(&format!("{what}: execute"), || {
                let (words, floats) = (&graph.bindings.words, &graph.bindings.floats);
                execute(&plan, &stores, words, floats, Noise::Off).expect("it can be executed");
            });
        }
    }
}

fn loss_of<'g>(g: &'g Graph, value: Value<'g>) {
    g.loss("loss", value.mse(g.zeros(value.shape())));
}

#[test]
fn long_chains() {
    let length = trials::trials(20_000, 1_000_000);
    let mut m = ModuleBuilder::new("chain");
    let cell = m.cell("cell", [f32([1])], |_, [x]| [x.tanh()]);
    let module = m.build().expect("the model is well typed");
    let g = Graph::new(&module);
    let mut value = g.input(&[0.5]);
    for number in 0..length {
        value = if number % 2 == 0 { g.call(cell, value)[0] } else { value.sin() };
    }
    loss_of(&g, value);
    through("a chain", &g.finish().expect("the graph is well typed"));
}

#[test]
fn wide_cells_and_lists() {
    let width = trials::trials(4096, 1 << 16);
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
    graph.verify().expect("the graph keeps the rules");
    through("a wide cell", &graph);
}

/// Each port of the step in reverse takes one of thousands of operands or saved registers, and what it makes is one of
/// thousands of contributions, which are all the same in a sum.
#[test]
fn gradients_of_the_operands_of_wide_cells() {
    let width = trials::trials(6000, 1 << 16);
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
        let y = g.call_of_any(cell, &xs)[0].sum();
        let (loss, values) =
            (y.id().expect("no fault"), xs.iter().filter_map(|x| x.id()).collect::<Vec<_>>());
        let graph = g.data();
        let gradients = Some(Gradients { losses: &[(loss, 1.0)], params: None, values: &values });
        let request = Request { wanted: &[loss], mode: Mode::Train, gradients, ..Request::default() };
        let plan =
            in_time("a wide cell's plan", || planner("depth").plan(&graph, &request).expect("it is typed"));
        let plan = in_time("a wide cell's verification", || verified(plan, "it was planned"));
        let proof = in_time("a wide cell's proof", || {
            check(&plan, &graph, Wanted { values: &[loss], training: false }).expect("it is right")
        });
        assert_eq!(proof.values.len(), width);
    }
}

/// A cell in which one parameter is used again and again.
#[test]
fn a_parameter_that_is_used_thousands_of_times_in_a_cell() {
    let uses = trials::trials(1000, 8000);
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
    through("a parameter of many uses", &g.finish().expect("the graph is well typed"));
}

/// Signatures that differ in parameters alone share what is compiled of their cell.
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
    graph.verify().expect("the graph keeps the rules");
    let start = Instant::now();
    let plan = planner("depth").plan(&graph, &Request::default()).expect("outputs are wanted");
    assert!(start.elapsed().as_secs() < 20, "planning took {:?}", start.elapsed());
    assert!(plan.kernels.len() < 8, "{} kernels", plan.kernels.len());
}
