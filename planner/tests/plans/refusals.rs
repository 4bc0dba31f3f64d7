//! Rejections by the proof and the naive executor, with their messages.

use crate::agreement::{planner, verified};
use crate::graphs::weights;
use autobatch_ir::graph::Unary;
use autobatch_ir::graph::{Graph, GraphData, Value};
use autobatch_ir::id::ValueId;
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Address, BindError, Certificate, Code, Origin, Plan, Stage, StepOperand};
use autobatch_ir::types::{INDEX, f32, list};
use autobatch_oracle::check::{Wanted, check};
use autobatch_oracle::naive::{Executed, RunError, execute};
use autobatch_planner::{PlanError, Request, Selection};
use std::sync::Arc;

/// Three looked-up words, their sum in every order, and the row of a computed index.
fn graph(words: [u32; 3]) -> GraphData {
    let mut m = ModuleBuilder::new("sums");
    let embed = m.table("embed", [5, 3], Init::Uniform(0.1));
    let other = m.table("other", [5, 3], Init::Uniform(0.1));
    let look = m.cell("look", [INDEX], |_, [word]| [embed.row(word).tanh()]);
    let pair = m.cell("pair", [f32(3), f32(3)], |_, [a, b]| [a - b]);
    let total = m.cell("total", [list(f32(3))], |_, [items]| [items.sum()]);
    let g = Graph::new(&m.build().expect("valid"));
    let rows: Vec<Value<'_>> = words.iter().map(|&word| g.call(look, word)[0]).collect();
    g.output("total", g.call(total, g.list(&rows))[0]);
    g.output("pair", g.call(pair, [rows[0], rows[1]])[0]);
    g.output("pair2", g.call(pair, [rows[2], rows[0]])[0]);
    let far = rows[0].argmax();
    g.output("other", other.lookup(&g, far + far + far + far));
    g.finish().expect("valid")
}

fn plan(graph: &GraphData) -> Plan {
    planner("depth").plan(graph, &Request::default()).expect("the graph has outputs")
}

fn refused(change: impl FnOnce(&mut Plan)) -> String {
    let graph = graph([1, 2, 3]);
    let mut plan = plan(&graph);
    change(&mut plan);
    let plan = verified(plan, "the change keeps the rules");
    check(&plan, &graph, Wanted { values: &[], training: false })
        .expect_err("the plan computes other values")
        .to_string()
}

fn run(words: [u32; 3]) -> Result<Executed, RunError> {
    let graph = graph(words);
    let weights = weights(&graph);
    let stores: Vec<&[f32]> = weights.iter().map(|param| param.values()).collect();
    let plan = verified(plan(&graph), "the plan is sound");
    execute(&plan, &stores, &graph.bindings.words, &graph.bindings.floats, Noise::Off)
}

/// The number of the first operand that `wanted` accepts.
fn operand(plan: &Plan, wanted: impl Fn(&StepOperand) -> bool) -> usize {
    plan.operands.iter().position(wanted).expect("the plan has such an operand")
}

#[test]
fn reordered_items_of_a_list_are_rejected() {
    let message = refused(|plan| {
        let at = operand(plan, |operand| operand.is_list());
        let (_, items) = plan.operands[at].address.lists().expect("a list");
        plan.tables.swap(items as usize, items as usize + 1);
    });
    assert!(
        message.contains("reads the list [%1 %0 %2] as operand 0, the graph says the list [%0 %1 %2]"),
        "{message}"
    );
}

#[test]
fn other_bound_words_are_rejected() {
    let message = refused(|plan| {
        let at = operand(plan, |operand| operand.origin == Origin::Words);
        plan.operands[at].address = Address::Steps { start: 0, stride: 0 };
    });
    assert!(
        message.contains("reads bound words from 0 as operand 0, the graph says bound words from 1"),
        "{message}"
    );
}

#[test]
fn another_function_in_a_kernel_is_rejected() {
    let message = refused(|plan| {
        for kernel in &mut plan.kernels {
            for stage in &mut Arc::make_mut(kernel).stages {
                let Stage::Map { code, .. } = stage else { continue };
                code.iter_mut()
                    .filter(|instr| instr.code == Code::Unary(Unary::Tanh))
                    .for_each(|instr| instr.code = Code::Unary(Unary::Sigmoid));
            }
        }
    });
    assert!(
        message.contains("result 0 is not what the signature that step f0 executes computes"),
        "{message}"
    );
}

#[test]
fn another_store_of_the_same_type_is_rejected() {
    let message = refused(|plan| plan.store_args[0] = autobatch_ir::plan::StoreId(1));
    assert!(message.contains("parameter port 0 is store1, the graph says store0"), "{message}");
}

#[test]
fn a_wrong_bound_is_rejected() {
    let graph = graph([1, 2, 3]);
    let mut plan = planner("none").plan(&graph, &Request::default()).expect("the graph has outputs");
    let Certificate { batches, bound, .. } = plan.certificate;
    assert!(bound < batches, "the plan of policy none is not optimal");
    plan.certificate.bound = batches;
    let plan = verified(plan, "a bound needs the graph");
    let report = check(&plan, &graph, Wanted { values: &[], training: false });
    let message = report.expect_err("better plans exist").to_string();
    assert!(message.contains("the certificate claims a bound of"), "{message}");
}

#[test]
fn an_output_at_another_row_is_rejected() {
    let message = refused(|plan| {
        let (field, row) = (plan.outputs[1].field, plan.outputs[1].row);
        (plan.outputs[2].field, plan.outputs[2].row) = (field, row);
    });
    assert!(message.contains("output 2: expected %6, found %5"), "{message}");
}

#[test]
fn a_plan_of_another_graph_is_rejected() {
    let own = graph([1, 2, 3]);
    let plan = verified(plan(&own), "the plan is sound");
    let mut m = ModuleBuilder::new("other");
    let cell = m.cell("cell", [f32(3)], |_, [x]| [x.tanh()]);
    let g = Graph::new(&m.build().expect("valid"));
    g.output("y", g.call(cell, g.input(&[1.0; 3]))[0]);
    let other = g.finish().expect("valid");
    let report = check(&plan, &other, Wanted { values: &[], training: false }).expect_err("another graph");
    assert!(report.to_string().contains("structure: the graph has"), "{report}");
}

#[test]
fn a_bound_index_out_of_range_names_its_word_and_step() {
    let message = run([1, 5, 2]).expect_err("row 5 does not exist").to_string();
    assert!(message.starts_with("index 5 (bound word 1) is out of range for "), "{message}");
    assert!(message.ends_with(" in step f0: it must be below 5"), "{message}");
}

#[test]
fn a_computed_index_out_of_range_names_its_step_and_node() {
    let errors: Vec<String> =
        (0..5).filter_map(|word| run([word, 1, 2]).err()).map(|error| error.to_string()).collect();
    assert!(!errors.is_empty() && errors.len() < 5, "{errors:?}");
    for error in errors {
        assert!(error.contains("computed index") && error.contains("it must be below"), "{error}");
        assert!(error.contains("(node n"), "{error}");
    }
}

#[test]
fn missing_inputs_are_named() {
    let graph = graph([1, 2, 3]);
    let plan = verified(plan(&graph), "the plan is sound");
    let full = [vec![0.0; 15], vec![0.0; 15]];
    let refused = |stores: &[Vec<f32>], words: &[u32], floats: &[f32]| {
        execute(&plan, stores, words, floats, Noise::Off).expect_err("something is missing")
    };
    let count = |what, expected, found| RunError::Input(BindError::Count { what, expected, found });
    assert_eq!(refused(&full, &[1, 2], &[]), count("words", 3, 2));
    assert_eq!(refused(&full, &[1, 2, 3], &[1.0]), count("floats", 0, 1));
    assert_eq!(refused(&full[..1], &[1, 2, 3], &[]), RunError::Stores { expected: 2, found: 1 });
    let short = [vec![0.0; 15], vec![0.0; 14]];
    let expected = RunError::Input(BindError::Store { name: "other".to_owned(), expected: 15, found: 14 });
    assert_eq!(refused(&short, &[1, 2, 3], &[]), expected);
}

/// Two queries over one context marked `shared`, or over one context each.
fn promised(contexts: usize) -> GraphData {
    let mut m = ModuleBuilder::new("shared");
    let cell = m.cell("cell", [f32(3), f32(3)], |_, [x, context]| [x * context]);
    let g = Graph::new(&m.build().expect("valid"));
    let contexts: Vec<Value<'_>> = (0..contexts).map(|_| g.input(&[0.5; 3]).tanh().shared()).collect();
    for number in 0..2 {
        let x = g.input(&[1.0; 3]);
        g.output(&format!("y{number}"), g.call(cell, [x, contexts[number % contexts.len()]])[0]);
    }
    g.finish().expect("valid")
}

#[test]
fn a_shared_mark_holds_or_is_rejected() {
    let kept = promised(1);
    let plan = verified(plan(&kept), "shared");
    check(&plan, &kept, Wanted { values: &[], training: false }).expect("all readers share the value");
    let error = planner("depth").plan(&promised(2), &Request::default()).expect_err("there are two contexts");
    let wanted = "%1 is shared, but a batch of @cell also reads %3; \
        remove .shared(), or separate the others with .alone()";
    assert_eq!(error.to_string(), wanted);
    // In batches of one job every mark holds.
    planner("none").plan(&promised(2), &Request::default()).expect("no batch has two jobs");
}

#[test]
fn values_outside_the_graph_are_rejected() {
    let graph = graph([1, 2, 3]);
    let missing = ValueId::new(graph.arena.values());
    let request = Request { wanted: &[missing], ..Request::default() };
    let mut planner = planner("none");
    let error = planner.plan(&graph, &request).expect_err("there is no such value");
    assert_eq!(error, PlanError::NoValue(missing));
    assert!(error.to_string().contains(&format!("has no value {missing}")), "{error}");
    let rewritten = planner.optimize_and_plan(&graph, &request, &Selection::none());
    assert_eq!(rewritten.expect_err("there is no such value"), PlanError::NoValue(missing));
}
