//! The wrong values of DyNet pull request 1258, as a graph, and the proof that rejects a plan with that fault.
//!
//! DyNet's automatic batching gave wrong values if four things held: a node is batched; one of its inputs is shared by the whole
//! batch; that input was itself computed in a batch; and it was not the first element of that batch. The batched node then read
//! the first element. The graph here has all four: three matrices are computed in one batch, and a batch of products shares
//! the third.
//!
//! A plan names the row of each operand, so the fault is a plan whose shared operand names another row. The verifier accepts
//! such a plan, because it reads memory that was written. The proof rejects it, because the row holds another value.

use autobatch_ir::Weights;
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, Plan, StepOperand};
use autobatch_oracle::check::{Disagreement, Wanted, check};
use autobatch_oracle::naive::execute;
use autobatch_oracle::reference;
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Planner, Request, RowOrder};

/// Three matrices in one batch, and four products with the third.
const GRAPH: &str = r#"autobatch graph 2
module "shared"
cell @matrix(%0: f32[2,2]) {
  %1: f32[2,2] = tanh(%0)
  return %1
}
cell @product(%0: f32[2,2], %1: f32[2,1]) {
  %2: f32[2,1] = matmul(%0, %1)
  return %2
}
graph
  %0 = input f32[2,2] (#[0.1, 0.2, 0.3, 0.4])
  %1 = input f32[2,2] (#[-0.5, 0.6, -0.7, 0.8])
  %2 = input f32[2,2] (#[0.9, -1.0, 1.1, -1.2])
  %3 = call @matrix(%0)
  %4 = call @matrix(%1)
  %5 = call @matrix(%2)
  %6 = input f32[2,1] (#[1.0, 2.0])
  %7 = input f32[2,1] (#[3.0, 4.0])
  %8 = input f32[2,1] (#[5.0, 6.0])
  %9 = input f32[2,1] (#[7.0, 8.0])
  %10 = call @product(%5, %6)
  %11 = call @product(%5, %7)
  %12 = call @product(%5, %8)
  %13 = call @product(%5, %9)
output "first" %3
output "second" %4
output "a" %10
output "b" %11
output "c" %12
output "d" %13
"#;

fn graph() -> GraphData {
    let graph = GraphData::from_text(GRAPH).expect("the graph is well formed");
    graph.verify().expect("the graph keeps the rules");
    graph
}

fn planned(graph: &GraphData, policy: &str, rows: RowOrder, mode: Mode) -> Plan {
    let policy: Policy = policy.parse().expect("a policy");
    let mut planner = Planner::new(policy.load().expect("the policy needs no file"));
    planner.plan(graph, &Request { rows, mode, ..Request::default() }).expect("a plan")
}

/// The bits of the outputs of a plan.
fn outputs(graph: &GraphData, plan: Plan) -> Vec<Vec<u32>> {
    let plan = plan.verify().expect("the plan keeps the rules");
    let floats = &graph.bindings.floats;
    let done = execute::<Vec<f32>>(&plan, &[], &[], floats, Noise::Off).expect("the bindings fit");
    (0..done.outputs()).map(|number| done.output(number).expect("an output").to_vec()).collect()
}

fn expected(graph: &GraphData) -> Vec<Vec<u32>> {
    let weights = Weights::init(&graph.module, 0);
    let run = reference::forward::<f32>(graph, &weights, Noise::Off).expect("the graph has values");
    let bits = |row: &[f32]| row.iter().map(|x| x.to_bits()).collect();
    graph.outputs.iter().map(|output| run.floats(output.value).map(bits).expect("floats")).collect()
}

const WANTED: Wanted<'_> = Wanted { values: &[], training: false };

#[test]
fn a_batch_that_shares_a_later_element_of_a_batch_has_the_right_values() {
    let graph = graph();
    let expected = expected(&graph);
    for policy in ["none", "depth", "agenda", "ratio", "beam:4", "auto"] {
        for rows in [RowOrder::Batch, RowOrder::Propagated] {
            for mode in [Mode::Infer, Mode::Train] {
                let plan = planned(&graph, policy, rows, mode);
                let proof = check(&plan.clone().verify().expect("sound"), &graph, WANTED);
                proof.unwrap_or_else(|errors| panic!("{policy}: {errors}"));
                assert_eq!(outputs(&graph, plan), expected, "{policy}, {rows:?}, {mode:?}");
            }
        }
    }
}

#[test]
fn the_proof_rejects_a_plan_that_shares_the_first_element_of_the_batch() {
    let graph = graph();
    let mut plan = planned(&graph, "depth", RowOrder::Batch, Mode::Train);
    let products = plan.steps.iter().position(|step| step.rows == 4 && !plan.kernel(step).source);
    let products = products.expect("the four products are one batch");
    let matrices = plan.steps.iter().position(|step| step.rows == 3 && !plan.kernel(step).source);
    let first = plan.places(&plan.steps[matrices.expect("the three matrices are one batch")])[0];
    let autobatch_ir::plan::Place::Rows { field, start: first } = first else { panic!("found {first:?}") };
    let at = plan.steps[products].operands.start as usize;
    assert_eq!(
        plan.operands[at],
        StepOperand::rows(field, first + 2, 0),
        "the batch shares the third matrix"
    );
    // The fault: the batch reads the first element instead.
    plan.operands[at] = StepOperand::rows(field, first, 0);
    assert_ne!(outputs(&graph, plan.clone()), expected(&graph), "the values are wrong");
    let verified = plan.verify().expect("the plan reads rows that were written");
    let errors = check(&verified, &graph, WANTED).expect_err("the proof finds the fault");
    let is_operand =
        |found: &Disagreement| matches!(found, Disagreement::Operand { operand: 0, lane: 0, .. });
    assert!(errors.found().iter().any(is_operand), "{errors}");
    let text = errors.to_string();
    assert!(text.contains("reads %3 as operand 0, the graph says %5"), "{text}");
}
