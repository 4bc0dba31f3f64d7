//! The proof on correct plans of rare forms, and on plans with several coordinated errors.

use crate::agreement::planner;
use autobatch_ir::graph::{Graph, GraphData, ListFold, Op};
use autobatch_ir::id::ValueId;
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_ir::plan::{Kernel, ListSource, Mode, Place, Plan, Reg, RegId, RegKind, Stage, Verified, View};
use autobatch_ir::types::{Type, f32, list};
use autobatch_oracle::check::{Proof, Wanted, check, check_losses};
use autobatch_planner::{Gradients, Planner, Request};
use std::sync::Arc;

const NOTHING_MORE: Wanted<'_> = Wanted { values: &[], training: false };

fn trained(graph: &GraphData, losses: &[(ValueId, f32)], values: &[ValueId]) -> Verified<Plan> {
    let gradients = Some(Gradients { losses, params: None, values });
    let request = Request { mode: Mode::Train, gradients, ..Request::default() };
    planner("auto").plan(graph, &request).expect("a plan").verify().expect("valid")
}

/// Requires that the proof succeeds with and without given losses. `None` if the two proofs differ.
fn proven(graph: &GraphData, losses: &[(ValueId, f32)], values: &[ValueId]) -> Option<Proof> {
    let plan = trained(graph, losses, values);
    let given =
        check_losses(&plan, graph, NOTHING_MORE, losses).expect("the proof succeeds with given losses");
    let found = check(&plan, graph, NOTHING_MORE).expect("the proof succeeds");
    assert_eq!(given.values, values);
    (given == found).then_some(found)
}

#[test]
fn losses_that_are_constants_have_gradients() {
    let mut m = ModuleBuilder::new("constant");
    let w = m.param("w", [2, 1], Init::Glorot(1.0));
    let g = Graph::new(&m.build().expect("valid"));
    let [one, half] = [g.constant(1.0), g.constant(0.5)];
    let computed = (g.input(&[0.5, 0.25]).affine(w, None).sum() * one).tanh();
    g.output("computed", computed);
    g.output("half", half);
    let [one, half, computed] = [one, half, computed].map(|value| value.id().expect("a value of the graph"));
    let graph = g.finish().expect("valid");
    // With the bits of the constant and with others; with readers and without.
    for (constant, factor) in [(one, 2.0), (one, 1.0), (one, -0.0), (half, 1.0), (half, 0.5)] {
        let alone = [(constant, factor)];
        assert!(proven(&graph, &alone, &[constant]).is_some(), "{constant} times {factor} alone");
        for both in
            [[(computed, factor), alone[0]], [alone[0], (computed, factor)], [(computed, 3.0), alone[0]]]
        {
            proven(&graph, &both, &[constant]);
            proven(&graph, &both, &[one, half, computed]);
        }
        proven(&graph, &[alone[0], alone[0], (constant, 4.0)], &[constant]);
        proven(&graph, &[alone[0], (computed, 1.0)], &[]);
    }
}

#[test]
fn values_without_a_finite_gradient_are_reported() {
    let mut m = ModuleBuilder::new("endless");
    let cell = m.cell("cell", [f32(2)], |_, [x]| [(x - x).log()]);
    let g = Graph::new(&m.build().expect("valid"));
    let x = g.input(&[0.5, 0.25]);
    let [y] = g.call(cell, x);
    let loss = y.mse(g.zeros([2]));
    g.loss("loss", loss);
    let [x, loss] = [x, loss].map(|value| value.id().expect("a value of the graph"));
    let graph = g.finish().expect("valid");
    let plan = trained(&graph, &[(loss, 1.0)], &[x]);
    let message = check(&plan, &graph, NOTHING_MORE).expect_err("nothing can be compared").to_string();
    let said =
        "contributes to the gradient of operand 0 is infinite or no number on every lane of random numbers";
    assert!(message.contains(said) && message.contains("cannot be proven"), "{message}");
}

#[test]
fn roots_and_logarithms_of_parameters_are_proven() {
    let mut m = ModuleBuilder::new("roots");
    let w = m.param("w", [3, 3], Init::Glorot(1.0));
    // More numbers than the proof samples one by one.
    let large = m.param("large", [3, 2000], Init::Glorot(1.0));
    let (variance, gain) =
        (m.param("variance", [3], Init::Constant(1.0)), m.param("gain", [], Init::Constant(1.0)));
    let scaled = m.cell("scaled", [f32([3])], |g, [x]| {
        let y = x.affine(w, None) * g.param(variance).rsqrt() + g.param(variance).log();
        [(y.affine(large, None).tanh() * g.param(gain).sqrt()).sum()]
    });
    let g = Graph::new(&m.build().expect("valid"));
    let mut losses = Vec::new();
    for number in 0..3 {
        let [loss] = g.call(scaled, [g.input(&[0.5, number as f32, -1.0])]);
        g.output(&format!("loss {number}"), loss);
        losses.push((loss.id().expect("a value of the graph"), 1.0));
    }
    let graph = g.finish().expect("valid");
    assert!(proven(&graph, &losses, &[]).is_some());
}

#[test]
fn a_constant_with_other_bits_is_rejected() {
    let g = Graph::new(&ModuleBuilder::new("bits").build().expect("valid"));
    let constant = g.constant(1.0);
    g.output("sum", g.input_shaped([], &[0.5]) + constant);
    let graph = g.finish().expect("valid");
    let plan = Planner::default().plan(&graph, &Request::default()).expect("a plan");
    let mut plan = plan.verify().expect("valid").into_inner();
    let brings = plan.kernels.iter_mut().find(|kernel| kernel.regs[0].kind == RegKind::Const(1f32.to_bits()));
    Arc::make_mut(brings.expect("a step makes the constant")).regs[0].kind =
        RegKind::Const(1f32.to_bits() + 1);
    let plan = plan.verify().expect("valid");
    check(&plan, &graph, NOTHING_MORE).expect_err("another constant");
}

#[test]
fn the_bound_counts_losses_without_parameters() {
    let mut m = ModuleBuilder::new("nowhere");
    let w = m.param("w", [2, 2], Init::Glorot(1.0));
    let g = Graph::new(&m.build().expect("valid"));
    let x = g.input(&[0.5, 0.25]);
    let [aside, loss] = [x.tanh().exp().sum(), x.affine(w, None).sum()];
    let [x, aside, loss] = [x, aside, loss].map(|value| value.id().expect("a value of the graph"));
    let graph = g.finish().expect("valid");
    proven(&graph, &[(loss, 1.0), (aside, 0.5)], &[]);
    proven(&graph, &[(aside, 0.5), (loss, 1.0)], &[x]);
    proven(&graph, &[(loss, 1.0)], &[aside]);
    // A plan without gradients.
    let gradients = Some(Gradients { losses: &[(aside, 1.0)], params: Some(&[]), values: &[] });
    let request = Request { mode: Mode::Train, gradients, ..Request::default() };
    let plan = planner("auto").plan(&graph, &request).expect("a plan").verify().expect("valid");
    check(&plan, &graph, NOTHING_MORE).expect("the proof succeeds");
    check_losses(&plan, &graph, NOTHING_MORE, &[(aside, 1.0)]).expect("the proof succeeds");
}

#[test]
fn gradients_of_every_result_of_many_are_proven() {
    let g = Graph::new(&ModuleBuilder::new("many").build().expect("valid"));
    let numbers: Vec<f32> = (0..80).map(|x| x as f32 / 80.0).collect();
    let parts = g.input(&numbers).chunks(0, 80);
    // With two readers, with one and with none.
    let loss = parts[70].tanh() * parts[70].exp() + parts[75].tanh() + parts[3].exp();
    g.output("loss", loss.sum());
    let values = [70, 75, 79, 3, 0].map(|part: usize| parts[part].id().expect("a value of the graph"));
    let graph = g.finish().expect("valid");
    let loss = graph.outputs[0].value;
    assert!(proven(&graph, &[(loss, 1.0)], &values).is_some());
}

/// A kernel that sums a list of pairs and also returns the sum to each of them.
fn sum_and_edges(sum: &Kernel) -> Kernel {
    let mut kernel = sum.clone();
    let pair = f32(2);
    let edges = RegId(kernel.regs.len() as u32);
    kernel.regs.push(Reg { kind: RegKind::Edges, ty: list(pair) });
    kernel.stages.push(Stage::SegGrad {
        op: Op::ListFold(ListFold::Sum),
        query: None,
        lists: vec![RegId(0)],
        elements: vec![pair],
        dy: kernel.results[0],
        dsts: vec![Some(edges)],
    });
    kernel.results.push(View { reg: edges, start: 0, width: 2 });
    kernel
}

#[test]
fn gradients_of_values_over_values_that_are_still_read_are_found() {
    let g = Graph::new(&ModuleBuilder::new("edges").build().expect("valid"));
    let [a, b, c, d] = [0.5, 1.5, 2.5, 3.5].map(|x| g.input(&[x, -x]));
    let first = g.list([a, b]).sum();
    g.output("second", g.list([c, d, first]).sum());
    let graph = g.finish().expect("valid");
    let request = Request { mode: Mode::Train, ..Request::default() };
    let plan = Planner::default().plan(&graph, &request).expect("a plan").verify().expect("valid");
    check(&plan, &graph, NOTHING_MORE).expect("the unchanged plan is correct");
    let mut plan = plan.into_inner();
    let folds: Vec<usize> = (0..plan.steps.len())
        .filter(|&step| matches!(plan.kernel(&plan.steps[step]).stages[..], [Stage::Seg { .. }]))
        .collect();
    let &[first, second] = &folds[..] else { panic!("two sums: {plan:?}") };
    let Stage::Seg { lists, .. } = &plan.kernel(&plan.steps[first]).stages[0] else { unreachable!() };
    assert_eq!(lists[..], [ListSource::Port(RegId(0))]);
    let list = |step: usize| plan.operands(&plan.steps[step])[0];
    let (offsets, _) = list(first).address.lists().expect("a list");
    let (field, (_, items)) = list(second).field().zip(list(second).address.lists()).expect("a list");
    assert_eq!(plan.field(field).ty, Type { is_list: false, ..f32(2) });
    // Writes the edges of the first sum over the values of the second.
    let rows = &plan.tables[items as usize..][..2];
    assert_eq!(rows[0] + 1, rows[1], "neighbours");
    let start = rows[0];
    let kernel = Arc::new(sum_and_edges(plan.kernel(&plan.steps[first])));
    plan.steps[first].kernel.0 = plan.kernels.len() as u32;
    plan.kernels.push(kernel);
    let at = plan.steps[first].places.end;
    plan.places.insert(at as usize, Place::Edges { field, start, offsets });
    plan.steps[first].places.end += 1;
    for step in &mut plan.steps[first + 1..] {
        step.places = step.places.start + 1..step.places.end + 1;
    }
    let plan = plan.verify().expect("the plan is valid but computes other values");
    check(&plan, &graph, NOTHING_MORE).expect_err("the second sum reads gradients");
}
